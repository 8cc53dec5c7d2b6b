"""The values about sessions that go into a store and come out of it.

All times are integers: microseconds since 1970-01-01 UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from historykit.errors import InvalidRequestError
from historykit.ids import check_id, check_name, check_time

__all__ = [
    "MAIN_STREAM",
    "MAX_OFFSET",
    "PAGE_SESSIONS",
    "IfExists",
    "RunLease",
    "SessionDraft",
    "SessionHead",
    "SessionKey",
    "SessionPatch",
    "SessionPosition",
    "SessionQuery",
    "SessionRecord",
    "SessionSlice",
]

MAIN_STREAM: Final = "main"
"""The stream that holds the conversation itself."""

PAGE_SESSIONS: Final = 500
"""The most sessions that one `SessionSlice` holds."""

MAX_OFFSET: Final = 1 << 53
"""No search skips more sessions. Every database knows the number."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Where a session lives. Two keys name the same session only if all three parts are equal.

    `user_id` is "" where nobody cares. Raises `InvalidRequestError` for a part that is no
    identifier."""

    namespace: str
    user_id: str
    session_id: str

    def __post_init__(self) -> None:
        check_id(self.namespace, "namespace")
        if self.user_id != "":
            check_id(self.user_id, "user_id")
        check_id(self.session_id, "session_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """What an append decides on; it is read and written under the session's lock."""

    incarnation: str
    version: int
    next_sequence: int
    memory_enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDraft:
    """The fields of a session on its way into a store.

    `agent_id` and `status` are "" or identifiers. `labels` are digests that the session can be
    found by. `body` holds everything that is kept with a session and not searched. `created_at`
    None means now. Raises `InvalidRequestError` for what is no such field."""

    agent_id: str = ""
    status: str = "active"
    memory_enabled: bool = True
    labels: frozenset[str] = frozenset()
    body: bytes = field(default=b"", repr=False)
    created_at: int | None = None

    def __post_init__(self) -> None:
        _check_fields(self.agent_id, self.status, self.labels)
        _check_times(created_at=self.created_at)

    def as_record(self, key: SessionKey, incarnation: str, now: int) -> SessionRecord:
        """Return the session that this draft creates: without messages, at version 0."""
        return SessionRecord(
            key=key,
            incarnation=incarnation,
            agent_id=self.agent_id,
            status=self.status,
            memory_enabled=self.memory_enabled,
            labels=self.labels,
            body=self.body,
            created_at=now if self.created_at is None else self.created_at,
            updated_at=now,
            last_message_at=None,
            streams={},
            version=0,
            revision=0,
        )

    def as_patch(self) -> SessionPatch:
        """Return the change that gives an existing session the fields of this draft."""
        return SessionPatch(
            agent_id=self.agent_id,
            status=self.status,
            memory_enabled=self.memory_enabled,
            labels=self.labels,
            body=self.body,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPatch:
    """A change of a session's fields; None leaves a field as it is.

    Raises `InvalidRequestError` for a field that `SessionDraft` does not take either."""

    agent_id: str | None = None
    status: str | None = None
    memory_enabled: bool | None = None
    labels: frozenset[str] | None = None
    body: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check_fields(self.agent_id, self.status, self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session as a store returns it, without its messages.

    `streams` holds how many messages each stream has; `message_count` and `last_message_at` are
    those of the main stream. `version` counts message
    operations, `revision` changes of the session's own fields. `run_id` holds the session until
    `run_expires_at`.
    """

    key: SessionKey
    incarnation: str
    agent_id: str
    status: str
    memory_enabled: bool
    labels: frozenset[str]
    body: bytes = field(repr=False)
    created_at: int
    updated_at: int
    last_message_at: int | None
    streams: Mapping[str, int]
    version: int
    revision: int
    run_id: str | None = None
    run_expires_at: int | None = None

    @property
    def message_count(self) -> int:
        """How many messages the main stream has."""
        return self.streams.get(MAIN_STREAM, 0)

    @property
    def position(self) -> SessionPosition:
        """The session's place in the order of a search."""
        return SessionPosition(self.created_at, self.key.session_id, self.key.user_id)


class SessionPosition(NamedTuple):
    """The place of a session in the order of a search: newest first, then by id, descending."""

    created_at: int
    session_id: str
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
    """Which sessions to find; conditions that are None are not applied, the others all hold.

    `user_id` None spans all users. `created_from` is included, `created_before` is not. A session
    matches `labels` if it has them all. `position` continues behind that session, `offset` skips.
    Raises `InvalidRequestError` for a condition that no session can meet, and for a page that there
    is not.
    """

    namespace: str
    user_id: str | None = None
    agent_id: str | None = None
    status: str | None = None
    memory_enabled: bool | None = None
    labels: frozenset[str] = frozenset()
    created_from: int | None = None
    created_before: int | None = None
    position: SessionPosition | None = None
    offset: int = 0
    limit: int = 20
    with_total: bool = True

    def __post_init__(self) -> None:
        check_id(self.namespace, "namespace")
        if self.user_id is not None:
            check_name(self.user_id, "user_id")
        _check_fields(self.agent_id, self.status, self.labels)
        _check_times(created_from=self.created_from, created_before=self.created_before)
        if not 0 <= self.offset <= MAX_OFFSET:
            raise InvalidRequestError(f"offset must be 0 to {MAX_OFFSET}, not {self.offset}")
        if not 1 <= self.limit <= PAGE_SESSIONS:
            raise InvalidRequestError(f"limit must be 1 to {PAGE_SESSIONS}, not {self.limit}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSlice:
    """One page of a search. `total` counts all matches, None where it was not asked for."""

    records: tuple[SessionRecord, ...]
    total: int | None
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLease:
    """A run's hold on a session, until `expires_at` unless it is renewed."""

    run_id: str
    expires_at: int


IfExists = Literal["error", "return", "update"]
"""What `create_session` does where the session exists."""


def _check_fields(agent_id: str | None, status: str | None, labels: frozenset[str] | None) -> None:
    if agent_id is not None:
        check_name(agent_id, "agent_id")
    if status is not None:
        check_name(status, "status")
    for label in labels or ():
        check_id(label, "a label")


def _check_times(**times: int | None) -> None:
    for name, time in times.items():
        if time is not None:
            check_time(time, name)
