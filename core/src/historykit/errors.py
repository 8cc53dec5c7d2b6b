"""Every error that historykit raises.

::

    HistoryKitError
    ├── ResourceError · APIError · ValidationError
    │   ├── NotFoundError                   404, also a LookupError
    │   ├── InvalidRequestError             400, also a ValueError
    │   ├── ForbiddenError                  403
    │   ├── ConflictError                   409
    │   │   ├── VersionConflictError
    │   │   ├── SessionDeletedError
    │   │   ├── TranscriptDivergedError
    │   │   └── RunInProgressError
    │   ├── StorageError                    503, the driver's error is the cause
    │   │   ├── StorageUnavailableError
    │   │   └── TooLargeError               413
    │   ├── SessionStateError
    │   └── FileUploadError
    ├── CodecError
    │   ├── EncodeError                     also a TypeError
    │   └── DecodeError                     also a ValueError
    │       └── CorruptRecordError          also a ResourceError
    ├── BackendError
    │   ├── BackendNotFoundError            also a LookupError
    │   ├── BackendConflictError
    │   ├── BackendLoadError                also an ImportError
    │   └── IncompatibleBackendError
    ├── ConfigError                         also a ValueError
    ├── CapabilityNotSupportedError         also a NotImplementedError
    ├── StoreClosedError                    also a RuntimeError
    └── WrongLoopError                      also a RuntimeError

`ResourceError`, `APIError` and `ValidationError` are the three of the aiXplain session module; the
errors below them are an `APIError` and a `ResourceError` at once, so that code written against
either catches them. `asyncio.CancelledError` is never wrapped. No message carries a password, a key
or the text of a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "APIError",
    "BackendConflictError",
    "BackendError",
    "BackendLoadError",
    "BackendNotFoundError",
    "CapabilityNotSupportedError",
    "CodecError",
    "ConfigError",
    "ConflictError",
    "CorruptRecordError",
    "DecodeError",
    "EncodeError",
    "FileUploadError",
    "ForbiddenError",
    "HistoryKitError",
    "IncompatibleBackendError",
    "InvalidRequestError",
    "NotFoundError",
    "ResourceError",
    "RunInProgressError",
    "SessionDeletedError",
    "SessionStateError",
    "StorageError",
    "StorageUnavailableError",
    "StoreClosedError",
    "TooLargeError",
    "TranscriptDivergedError",
    "ValidationError",
    "VersionConflictError",
    "WrongLoopError",
]


class HistoryKitError(Exception):
    """Base of all errors of historykit.

    `message` is one text or a list of texts; `details` holds further facts as plain data.
    """

    def __init__(
        self, message: str | Sequence[str], *, details: Mapping[str, Any] | None = None
    ) -> None:
        self.message = message if isinstance(message, str) else "; ".join(message)
        self.details: dict[str, Any] = dict(details or {})
        super().__init__(self.message)


class ResourceError(HistoryKitError):
    """An operation on a session or a message failed."""


class APIError(HistoryKitError):
    """An operation was refused, with the status code that a service would answer."""

    status_code = 500


class ValidationError(HistoryKitError):
    """An object is not in a state that allows the operation."""


class NotFoundError(APIError, ResourceError, LookupError):
    """The session or the message does not exist in this scope."""

    status_code = 404


class InvalidRequestError(APIError, ResourceError, ValueError):
    """An argument is not acceptable; nothing was read or written."""

    status_code = 400


class ForbiddenError(APIError, ResourceError):
    """The scope of this history does not allow the operation."""

    status_code = 403


class ConflictError(APIError, ResourceError):
    """The stored state does not allow the change; nothing was written."""

    status_code = 409


class VersionConflictError(ConflictError):
    """The session moved on since the version (or revision) that the caller names.

    `expected` and `actual` are the two numbers. Read again, then decide again.
    """

    def __init__(self, message: str, *, expected: int, actual: int) -> None:
        super().__init__(message, details={"expected": expected, "actual": actual})
        self.expected = expected
        self.actual = actual


class SessionDeletedError(ConflictError):
    """The session that the caller read was deleted since; the write would have revived it."""


class TranscriptDivergedError(ConflictError):
    """A transcript does not continue the history that is stored."""


class RunInProgressError(ConflictError):
    """Another run holds the session."""


class StorageError(APIError, ResourceError):
    """The store failed. The driver's error is `__cause__`."""

    status_code = 503


class StorageUnavailableError(StorageError):
    """The store does not answer, is locked for too long or out of space; a retry may succeed."""


class TooLargeError(StorageError):
    """A message is larger than the store takes; nothing was written."""

    status_code = 413


class SessionStateError(ValidationError, ResourceError):
    """A session object was used before it was saved or after it was deleted."""


class FileUploadError(ResourceError):
    """An attachment could not be stored."""


class CodecError(HistoryKitError):
    """A message could not be turned into bytes or back."""


class EncodeError(CodecError, TypeError):
    """A value cannot be stored exactly. `path` leads to it, as in ``contents[0].arguments``."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message, details={"path": path})
        self.path = path


class DecodeError(CodecError, ValueError):
    """A stored record cannot be read. `session_id` and `sequence` name it where they are known."""

    def __init__(
        self, message: str, *, session_id: str | None = None, sequence: int | None = None
    ) -> None:
        super().__init__(message, details={"session_id": session_id, "sequence": sequence})
        self.session_id = session_id
        self.sequence = sequence


class CorruptRecordError(DecodeError, ResourceError):
    """A session, or a message of one, cannot be read as what it should be."""


class BackendError(HistoryKitError):
    """A backend could not be found, loaded or used. `backend` is its name."""

    def __init__(
        self, message: str, *, backend: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, details=details)
        self.backend = backend


class BackendNotFoundError(BackendError, LookupError):
    """No backend of that name is installed. `installed` lists those that are."""

    def __init__(self, message: str, *, backend: str, installed: Sequence[str]) -> None:
        super().__init__(message, backend=backend)
        self.installed = tuple(installed)


class BackendConflictError(BackendError):
    """Several distributions claim one backend name. `distributions` lists them."""

    def __init__(self, message: str, *, backend: str, distributions: Sequence[str]) -> None:
        super().__init__(message, backend=backend)
        self.distributions = tuple(distributions)


class BackendLoadError(BackendError, ImportError):
    """A backend is installed and does not load. The real error is `__cause__`."""


class IncompatibleBackendError(BackendError):
    """A backend speaks another version of the backend API."""


class ConfigError(HistoryKitError, ValueError):
    """A configuration is wrong. `field` names the field, where there is one."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message, details={"field": field})
        self.field = field


class CapabilityNotSupportedError(HistoryKitError, NotImplementedError):
    """The store does not have the capability that the call needs."""

    def __init__(self, message: str, *, capability: str, backend: str) -> None:
        super().__init__(message, details={"capability": capability, "backend": backend})
        self.capability = capability
        self.backend = backend


class StoreClosedError(HistoryKitError, RuntimeError):
    """The store is not open: never opened, or closed already."""


class WrongLoopError(HistoryKitError, RuntimeError):
    """The store was opened on an event loop that still runs, and was used from another one."""
