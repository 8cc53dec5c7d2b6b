"""MongoDB's errors, and what they are in historykit.

The driver's texts are not shown: they may hold parts of messages, or of the connection string."""

from __future__ import annotations

from typing import Final

from bson.errors import BSONError
from pymongo.errors import (
    AutoReconnect,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    DuplicateKeyError,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WaitQueueTimeoutError,
    WriteConcernError,
    WTimeoutError,
)

from historykit.errors import (
    ConflictError,
    HistoryKitError,
    InvalidRequestError,
    StorageError,
    StorageUnavailableError,
    TooLargeError,
)

__all__ = ["translate"]

DENIED: Final = frozenset({13, 18, 8000})
"""Unauthorized, AuthenticationFailed, and what Atlas says for both."""

FULL: Final = frozenset({14031, 12501})
"""OutOfDiskSpace, QuotaExceeded."""

TOO_LARGE: Final = frozenset({10334, 17419, 17420})
"""BSONObjectTooLarge, and what an update says about its result."""


def translate(error: Exception, operation: str, where: str) -> HistoryKitError:
    """Return the error of historykit that stands for one that was raised while using the server."""
    if isinstance(error, OverflowError):
        return InvalidRequestError(f"{operation}: MongoDB takes integers of 64 bits at most")
    if isinstance(error, (UnicodeEncodeError, BSONError)):
        return InvalidRequestError(
            f"{operation}: MongoDB takes no surrogates in names; remove them"
        )
    if isinstance(error, DuplicateKeyError):
        return ConflictError(f"{operation}: a message of this id is stored already")
    if isinstance(error, DocumentTooLarge) or _code(error) in TOO_LARGE:
        return TooLargeError(
            f"{operation}: more than MongoDB takes in one document; append in several calls, and "
            "keep large content as attachments"
        )
    return _failure(error, f"{operation} in {where} failed")


def _failure(error: Exception, what: str) -> StorageError:
    code = _code(error)
    if isinstance(error, WTimeoutError):
        return StorageUnavailableError(
            f"{what}: it was not confirmed by a majority of the replica set in time; it may be "
            "stored all the same, and a retry is safe"
        )
    if code in DENIED:
        return StorageError(f"{what}: not permitted; check user, password and roles of the url")
    if code in FULL:
        return StorageUnavailableError(f"{what}: the disk is full; make room and try again")
    if isinstance(error, ServerSelectionTimeoutError):
        return StorageUnavailableError(
            f"{what}: no server that takes writes was found in time; check url, network and server"
        )
    if isinstance(error, WaitQueueTimeoutError):
        return StorageUnavailableError(f"{what}: all connections are in use; raise maxPoolSize")
    if isinstance(error, (AutoReconnect, ConnectionFailure, ExecutionTimeout, WriteConcernError)):
        return StorageUnavailableError(f"{what}: the server did not answer in time; try again")
    if isinstance(error, (ConnectionError, TimeoutError)):
        return StorageUnavailableError(f"{what}: the server did not answer in time; try again")
    if isinstance(error, ConfigurationError):
        return StorageError(f"{what}: the driver refuses its options; check the url")
    name = type(error).__name__
    if isinstance(error, (OperationFailure, PyMongoError)) and code:
        return StorageError(f"{what}: {name}, code {code} of MongoDB")
    return StorageError(f"{what}: {name}")


def _code(error: Exception) -> int:
    """Return MongoDB's number of an error, 0 where there is none."""
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else 0
