"""The storage contract: what every backend provides, and what it needs not care about.

`HistoryStore` has a public method for each operation, which is the same for all backends: it checks
the arguments, that the store is open and on its event loop, and that the capability is there; it
translates the driver's errors and shields writes from cancellation. Behind each stands one private
method, which a backend writes."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from math import inf
from typing import ClassVar

from historykit.capabilities import Capability, Guarantee
from historykit.errors import (
    CapabilityNotSupportedError,
    InvalidRequestError,
    TooLargeError,
)
from historykit.ids import check_id, check_time, new_id
from historykit.lifecycle import LoopBound
from historykit.records import (
    AppendReceipt,
    AppendRequest,
    DeleteReceipt,
    MessageDraft,
    MessagePatch,
    MessageSelector,
    ReplaceRequest,
    Retention,
    ServerInfo,
    Slice,
    StoredMessage,
    Tail,
    Window,
)
from historykit.session_records import (
    MAIN_STREAM,
    IfExists,
    RunLease,
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionQuery,
    SessionRecord,
    SessionSlice,
)

__all__ = ["Clock", "HistoryStore", "system_clock"]

WHOLE = Window()
"""The window of as many of the newest messages as a `Slice` holds."""

NEWEST = Window(limit=1)
"""The window of the newest message."""

NEW = SessionDraft()
"""The fields of a session that an append creates, where it does not say."""

Clock = Callable[[], int]
"""Returns the time in microseconds since 1970-01-01 UTC."""


def system_clock() -> int:
    """Return the system's time in microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


class HistoryStore(LoopBound):
    """Where history lives.

    A store is used as an asynchronous context manager, or through `open` and `aclose`. It belongs
    to the event loop and the process that opened it. Once that loop is closed, or in a forked
    process, the next call opens the store again; while the loop is not closed, a call from another
    one is a `WrongLoopError`.

    Every call may raise `StoreClosedError`, `WrongLoopError` and `StorageError`, whose cause is the
    driver's error. A write that is cancelled is done fully or not at all.
    """

    backend: ClassVar[str]
    """The entry-point name."""

    capabilities: frozenset[Capability] = frozenset()
    """The capabilities of the store, at most those that its backend declares."""

    guarantees: frozenset[Guarantee] = frozenset()
    """The guarantees that the opened store meets; `_open` sets them."""

    max_body_bytes: ClassVar[int | None] = None
    """The longest body of one message, None where there is no bound."""

    def __init__(self, *, clock: Clock = system_clock) -> None:
        super().__init__()
        self._clock = clock

    def now(self) -> int:
        """Return the time of the store's clock, in microseconds since 1970-01-01 UTC."""
        return self._clock()

    async def ping(self) -> ServerInfo:
        """Return what answers behind the store, after a round trip to it."""
        return await self._call("ping", self._ping)

    # -- messages

    async def append(
        self,
        key: SessionKey,
        drafts: Sequence[MessageDraft],
        *,
        stream: str = MAIN_STREAM,
        create: SessionDraft | None = None,
        incarnation: str | None = None,
        expected_version: int | None = None,
        retention: Retention | None = None,
        new_incarnation: str | None = None,
    ) -> AppendReceipt:
        """Add messages to the end of a stream: all of them, side by side, or none.

        A session that does not exist is created with the fields of `create`, and with
        `new_incarnation` as its incarnation where the caller has made that id. Messages whose id is
        stored already are not stored again. Raises `SessionDeletedError` if `incarnation` is named
        and gone, `VersionConflictError` if the session is not at `expected_version` (0 means that
        there is none), `ConflictError` if an id is stored with other content, `TooLargeError`, and
        `InvalidRequestError` for an empty batch or ids that repeat in it.
        """
        request = AppendRequest(
            key=key,
            stream=check_id(stream, "stream"),
            drafts=self._checked_drafts(drafts),
            create=create or NEW,
            new_incarnation=new_incarnation or new_id(),
            incarnation=incarnation,
            expected_version=_checked_optional(expected_version, "expected_version"),
            retention=retention,
            now=self._clock(),
        )
        if not request.drafts:
            raise InvalidRequestError("append needs at least one message")
        return await self._write("append", self._append, request)

    async def read(
        self, key: SessionKey, window: Window = WHOLE, *, stream: str = MAIN_STREAM
    ) -> Slice:
        """Return one page of a stream, in one round trip. A session that is not there is empty."""
        return await self._call("read", self._read, key, window, check_id(stream, "stream"))

    async def read_tail(self, key: SessionKey, *, stream: str = MAIN_STREAM) -> Tail:
        """Return count and digests of a stream's end, in one round trip whatever its length."""
        return await self._call("read_tail", self._read_tail, key, check_id(stream, "stream"))

    async def read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        """Return one message by its id, whichever stream it is in, in one round trip.

        Raises `NotFoundError` where there is no such message, or no such session.
        """
        check_id(message_id, "message_id")
        return await self._call("read_message", self._read_message, key, message_id)

    async def read_newest(
        self, keys: Sequence[SessionKey], *, stream: str = MAIN_STREAM
    ) -> list[StoredMessage | None]:
        """Return the newest message of each session, in the order of `keys`.

        None stands for a session that has no message in the stream, or is not there. It takes one
        round trip where the database can do that.
        """
        check_id(stream, "stream")
        return await self._call("read_newest", self._read_newest, tuple(keys), stream)

    async def update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch
    ) -> StoredMessage:
        """Change one message in its place and return it.

        Needs `Capability.EDIT`. Raises `NotFoundError`, or `InvalidRequestError` where the message
        does not have the role that the patch requires.
        """
        self._require(Capability.EDIT)
        check_id(message_id, "message_id")
        if patch.body is not None:
            self._check_size(patch.body, f"message {message_id!r}")
        return await self._write(
            "update_message", self._update_message, key, message_id, patch, self._clock()
        )

    async def delete_messages(self, key: SessionKey, selector: MessageSelector) -> int:
        """Delete the messages selected and return their number: 0 where there are none.

        Needs `Capability.EDIT`.
        """
        self._require(Capability.EDIT)
        return await self._write(
            "delete_messages", self._delete_messages, key, selector, self._clock()
        )

    async def replace(
        self,
        key: SessionKey,
        drafts: Sequence[MessageDraft],
        *,
        stream: str = MAIN_STREAM,
        expected_version: int,
    ) -> AppendReceipt:
        """Put `drafts` in the place of all messages of a stream, in one step. Sequences go on.

        Needs `Capability.EDIT`. Raises `NotFoundError` if there is no session and
        `VersionConflictError` if it is not at `expected_version`.
        """
        self._require(Capability.EDIT)
        request = ReplaceRequest(
            key=key,
            stream=check_id(stream, "stream"),
            drafts=self._checked_drafts(drafts),
            expected_version=_checked_number(expected_version, "expected_version"),
            now=self._clock(),
        )
        return await self._write("replace", self._replace, request)

    # -- sessions

    async def create_session(
        self, key: SessionKey, draft: SessionDraft, *, if_exists: IfExists = "error"
    ) -> SessionRecord:
        """Create a session and return it.

        Where it exists already: "error" raises `ConflictError`, "return" returns it as it is,
        "update" gives it the fields of `draft`."""
        if if_exists not in ("error", "return", "update"):
            raise InvalidRequestError(
                f"if_exists must be 'error', 'return' or 'update', not {if_exists!r}"
            )
        return await self._write(
            "create_session", self._create_session, key, draft, if_exists, new_id(), self._clock()
        )

    async def read_session(self, key: SessionKey) -> SessionRecord:
        """Return a session. Raises `NotFoundError`."""
        return await self._call("read_session", self._read_session, key)

    async def patch_session(
        self, key: SessionKey, patch: SessionPatch, *, if_revision: int | None = None
    ) -> SessionRecord:
        """Change fields of a session and return it.

        Raises `NotFoundError`, and `VersionConflictError` if the session is not at `if_revision`.
        """
        _checked_optional(if_revision, "if_revision")
        return await self._write(
            "patch_session", self._patch_session, key, patch, if_revision, self._clock()
        )

    async def delete_session(self, key: SessionKey) -> DeleteReceipt:
        """Delete a session with all its streams. Deleting nothing is a receipt of zeros."""
        return await self._write("delete_session", self._delete_session, key)

    async def find_sessions(self, query: SessionQuery) -> SessionSlice:
        """Return one page of the sessions that match, newest first.

        Needs `Capability.CATALOGUE`.
        """
        self._require(Capability.CATALOGUE)
        return await self._call("find_sessions", self._find_sessions, query)

    # -- runs

    async def claim_run(self, key: SessionKey, run_id: str, *, ttl: float) -> RunLease:
        """Hold a session for a run, for `ttl` seconds.

        Needs `Capability.RUNS`. Raises `NotFoundError`, and `RunInProgressError` while another run
        holds it.
        """
        self._require(Capability.RUNS)
        lease, now = self._lease(run_id, ttl)
        return await self._write("claim_run", self._claim_run, key, lease, now)

    async def renew_run(self, key: SessionKey, run_id: str, *, ttl: float) -> RunLease:
        """Hold a session for `ttl` seconds from now.

        Needs `Capability.RUNS`. Raises `NotFoundError`, and `RunInProgressError` where the run does
        not hold the session any more.
        """
        self._require(Capability.RUNS)
        lease, _ = self._lease(run_id, ttl)
        return await self._write("renew_run", self._renew_run, key, lease)

    async def release_run(self, key: SessionKey, run_id: str) -> bool:
        """Let a session go and return whether the run held it. Needs `Capability.RUNS`."""
        self._require(Capability.RUNS)
        return await self._write("release_run", self._release_run, key, check_id(run_id, "run_id"))

    # -- what a backend writes

    @abstractmethod
    async def _ping(self) -> ServerInfo: ...

    @abstractmethod
    async def _append(self, request: AppendRequest) -> AppendReceipt: ...

    @abstractmethod
    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice: ...

    @abstractmethod
    async def _read_tail(self, key: SessionKey, stream: str) -> Tail: ...

    @abstractmethod
    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage: ...

    @abstractmethod
    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists: IfExists, incarnation: str, now: int
    ) -> SessionRecord: ...

    @abstractmethod
    async def _read_session(self, key: SessionKey) -> SessionRecord: ...

    @abstractmethod
    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord: ...

    @abstractmethod
    async def _delete_session(self, key: SessionKey) -> DeleteReceipt: ...

    async def _read_newest(
        self, keys: Sequence[SessionKey], stream: str
    ) -> list[StoredMessage | None]:
        pages = [await self._read(key, NEWEST, stream) for key in keys]
        return [page.messages[-1] if page.messages else None for page in pages]

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        raise NotImplementedError

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        raise NotImplementedError

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        raise NotImplementedError

    async def _find_sessions(self, query: SessionQuery) -> SessionSlice:
        raise NotImplementedError

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        raise NotImplementedError

    async def _renew_run(self, key: SessionKey, lease: RunLease) -> RunLease:
        raise NotImplementedError

    async def _release_run(self, key: SessionKey, run_id: str) -> bool:
        raise NotImplementedError

    # -- checks

    def _require(self, capability: Capability) -> None:
        if capability not in self.capabilities:
            raise CapabilityNotSupportedError(
                f"the {self.backend} store does not support {capability.name}",
                capability=capability.name,
                backend=self.backend,
            )

    def _checked_drafts(self, drafts: Sequence[MessageDraft]) -> tuple[MessageDraft, ...]:
        seen: set[str] = set()
        for index, draft in enumerate(drafts):
            if check_id(draft.id, f"id of message {index}") in seen:
                raise InvalidRequestError(f"id of message {index} occurs twice in the batch")
            seen.add(draft.id)
            self._check_size(draft.body, f"message {index}")
        return tuple(drafts)

    def _check_size(self, body: bytes, what: str) -> None:
        if self.max_body_bytes is not None and len(body) > self.max_body_bytes:
            raise TooLargeError(
                f"{what} takes {len(body)} bytes; the {self.backend} store takes at most "
                f"{self.max_body_bytes} a message. Keep large content as an attachment"
            )

    def _lease(self, run_id: str, ttl: object) -> tuple[RunLease, int]:
        if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl < inf:
            raise InvalidRequestError(f"ttl must be a number of seconds above 0, not {ttl!r}")
        now = self._clock()
        expires_at = check_time(now + int(ttl * 1_000_000), "the end of a run's hold")
        return RunLease(run_id=check_id(run_id, "run_id"), expires_at=expires_at), now


def _checked_number(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidRequestError(f"{what} must be an integer of 0 or more, not {value!r}")
    return value


def _checked_optional(value: object, what: str) -> int | None:
    return None if value is None else _checked_number(value, what)
