"""The values that go into a store and come out of it.

All times are integers: microseconds since 1970-01-01 UTC. All bodies are opaque bytes: a store
keeps them as they are and never looks inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from historykit.errors import InvalidRequestError
from historykit.ids import check_id
from historykit.redaction import HIDDEN
from historykit.session_records import MAIN_STREAM, SessionDraft, SessionKey

__all__ = [
    "PAGE_BYTES",
    "PAGE_MESSAGES",
    "TAIL_DIGESTS",
    "UNCHANGED",
    "AppendReceipt",
    "AppendRequest",
    "DeleteReceipt",
    "MessageDraft",
    "MessagePatch",
    "MessageSelector",
    "ReplaceRequest",
    "Retention",
    "ServerInfo",
    "Slice",
    "StoredMessage",
    "Tail",
    "Unchanged",
    "Window",
]

PAGE_MESSAGES: Final = 500
"""The most messages that one `Slice` holds."""

PAGE_BYTES: Final = 1 << 20
"""Bodies of more bytes than this end a `Slice`; one message is always returned."""

TAIL_DIGESTS: Final = 8
"""How many digests of the newest messages a `Tail` holds at most."""


class Unchanged(Enum):
    """The type of `UNCHANGED`."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
"""In a patch: leave the field as it is (where None is a value of its own)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDraft:
    """A message on its way into a store.

    `id` is the operation's identity as well: the store refuses a second copy. `external` says that
    it was derived from an id that the message brought along, so that it may be known on its own;
    ids that were minted for one append are known all together or not at all. `digest` is 16 bytes
    over role and contents. `turn_start` marks the message that opens a turn. `extra` is a second
    body, for what a session keeps beside a message."""

    id: str
    role: str
    body: bytes = field(repr=False)
    digest: bytes = field(repr=False)
    created_at: int
    turn_start: bool = False
    external: bool = False
    extra: bytes | None = field(default=None, repr=False)


class StoredMessage(NamedTuple):
    """A message as a store returns it.

    A named tuple, because a load makes thousands and a frozen dataclass takes four times as long.
    `sequence` is its place in the session, `revision` counts its changes, `reaction` is "LIKE",
    "DISLIKE" or None.
    """

    sequence: int
    id: str
    role: str
    body: bytes
    created_at: int
    turn_start: bool
    reaction: str | None = None
    extra: bytes | None = None
    revision: int = 0

    def __repr__(self) -> str:
        shown = {**self._asdict(), "body": HIDDEN, "extra": self.extra and HIDDEN}
        return f"StoredMessage({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePatch:
    """A change of one message. `body` and `digest` go together.

    With `required_role`, a message of another role is left alone and the call is an
    `InvalidRequestError`: checked in the same step as the change.
    """

    body: bytes | None = field(default=None, repr=False)
    digest: bytes | None = field(default=None, repr=False)
    reaction: str | Unchanged | None = UNCHANGED
    extra: bytes | Unchanged | None = field(default=UNCHANGED, repr=False)
    required_role: str | None = None

    def __post_init__(self) -> None:
        if (self.body is None) != (self.digest is None):
            raise InvalidRequestError("a patch with a body needs its digest, and the reverse")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSelector:
    """Which messages of a stream to delete: those that meet every condition given.

    `first` and `last` bound the sequence, both included. `created_before` is excluded. A selector
    without any condition, or with an id that no message can have, is an `InvalidRequestError`:
    deleting everything is `delete_session`.
    """

    stream: str = MAIN_STREAM
    ids: tuple[str, ...] | None = None
    first: int | None = None
    last: int | None = None
    created_before: int | None = None

    def __post_init__(self) -> None:
        check_id(self.stream, "stream")
        for index, id in enumerate(self.ids or ()):
            check_id(id, f"ids[{index}]")
        conditions = (self.ids, self.first, self.last, self.created_before)
        if all(condition is None for condition in conditions):
            raise InvalidRequestError(
                "a selector needs ids, first, last or created_before; "
                "to delete everything use delete_session"
            )


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of a stream an append leaves behind.

    The newest `max_messages` stay, and as many more as it takes to begin at the start of a turn. A
    system message that opens the stream stays too.
    """

    max_messages: int

    def __post_init__(self) -> None:
        if self.max_messages < 1:
            raise InvalidRequestError(
                f"max_messages of a retention must be 1 or more, not {self.max_messages}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Which messages of a stream to read, always oldest first.

    Without `after`: the newest `limit` messages below the sequence `before`. With `after`: the
    oldest `limit` messages above that sequence. Neither includes the sequence it names. `limit`
    None means as many as a `Slice` holds, 0 none."""

    limit: int | None = None
    before: int | None = None
    after: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 0:
            raise InvalidRequestError(f"limit must be 0 or more, or None; not {self.limit}")
        if self.before is not None and self.after is not None:
            raise InvalidRequestError("a window has before or after, not both")

    @property
    def page(self) -> int:
        """The most messages that one read returns."""
        return PAGE_MESSAGES if self.limit is None else min(self.limit, PAGE_MESSAGES)


class Slice(NamedTuple):
    """What one read returns.

    `messages` are oldest first. `more` says that the stream goes on beyond them, in the direction
    of the window. `opening` is a system message that opens the stream and lies before `messages`,
    where the window has a limit. `incarnation` names this life of the session, None where there is
    no session; `version` counts its message operations; `epoch` counts those that changed or
    removed messages, so that a reader of several pages notices."""

    messages: tuple[StoredMessage, ...]
    incarnation: str | None
    version: int
    epoch: int
    more: bool
    opening: StoredMessage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The end of a stream, without its messages.

    `count` messages are stored, `trimmed` more were removed by retention; `digests` are those of
    the newest messages, oldest first, at most `TAIL_DIGESTS`."""

    incarnation: str | None
    version: int
    count: int
    trimmed: int
    digests: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRequest:
    """One append, as a backend gets it: checked and complete.

    Where the session does not exist, `create` holds its fields and `new_incarnation` its name.
    """

    key: SessionKey
    stream: str
    drafts: tuple[MessageDraft, ...]
    create: SessionDraft
    new_incarnation: str
    incarnation: str | None
    expected_version: int | None
    retention: Retention | None
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendReceipt:
    """What an append did.

    `ids` are those of all messages asked for, in order, `sequences` their places: None for a repeat
    that retention has removed since, and for all where the session keeps no memory. `stored` counts
    the new ones; `created` says that the session is new.
    """

    incarnation: str
    version: int
    ids: tuple[str, ...]
    sequences: tuple[int | None, ...]
    stored: int
    created: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceRequest:
    """One replacement of a whole stream, as a backend gets it."""

    key: SessionKey
    stream: str
    drafts: tuple[MessageDraft, ...]
    expected_version: int
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteReceipt:
    """What a deletion removed: 0 of each where there was nothing."""

    sessions: int
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What answers behind a store: `product` and `version`, and settings worth knowing."""

    product: str
    version: str
    settings: Mapping[str, str] = field(default_factory=dict)
