"""A session in memory: its fields, its streams, and what an operation does to them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from historykit.planning import INSTRUCTION_ROLES, plan_update, retention_cut
from historykit.records import (
    TAIL_DIGESTS,
    MessageDraft,
    MessagePatch,
    MessageSelector,
    Retention,
    StoredMessage,
    Window,
)
from historykit.session_records import (
    MAIN_STREAM,
    RunLease,
    SessionDraft,
    SessionHead,
    SessionKey,
    SessionQuery,
    SessionRecord,
)

__all__ = ["MemorySession", "matches"]


@dataclass(slots=True)
class MemoryStream:
    """The messages of one stream, by sequence, and how many retention removed."""

    messages: list[StoredMessage] = field(default_factory=list)
    trimmed: int = 0

    def index(self, sequence: int) -> int:
        """Return where the message of that sequence is, or would be."""
        return bisect_left(self.messages, sequence, key=_sequence)

    def walk(self, window: Window) -> Iterator[StoredMessage]:
        """Yield the messages that a window may hold, nearest first."""
        if window.after is not None:
            yield from self.messages[bisect_right(self.messages, window.after, key=_sequence) :]
            return
        end = len(self.messages) if window.before is None else self.index(window.before)
        for index in range(end - 1, -1, -1):
            yield self.messages[index]

    def opening(self) -> StoredMessage | None:
        """Return the system message that opens the stream, if one does."""
        first = self.messages[0]
        return first if first.role in INSTRUCTION_ROLES else None

    def beyond(self, retention: Retention) -> list[StoredMessage]:
        """Return the messages that retention removes."""
        if len(self.messages) <= retention.max_messages:
            return []
        cut = retention_cut(
            (row.sequence for row in self.messages if row.turn_start),
            oldest_wanted=self.messages[-retention.max_messages].sequence,
            opening=(self.messages[0].sequence, self.messages[0].role),
        )
        if cut is None:
            return []
        return [row for row in self.messages if cut[0] <= row.sequence <= cut[1]]


@dataclass(slots=True)
class MemorySession:
    """Everything that belongs to one session."""

    record: SessionRecord
    next_sequence: int = 1
    epoch: int = 0
    streams: dict[str, MemoryStream] = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)
    places: dict[str, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def create(
        cls, key: SessionKey, draft: SessionDraft, incarnation: str, now: int
    ) -> MemorySession:
        """Return a session without messages."""
        return cls(draft.as_record(key, incarnation, now))

    @property
    def head(self) -> SessionHead:
        """What an append decides on."""
        return SessionHead(
            incarnation=self.record.incarnation,
            version=self.record.version,
            next_sequence=self.next_sequence,
            memory_enabled=self.record.memory_enabled,
        )

    @property
    def lease(self) -> RunLease | None:
        """The hold of a run on the session, expired or not."""
        if self.record.run_id is None or self.record.run_expires_at is None:
            return None
        return RunLease(run_id=self.record.run_id, expires_at=self.record.run_expires_at)

    def hold(self, lease: RunLease | None) -> None:
        """Note the hold of a run, or that there is none."""
        self.record = replace(
            self.record,
            run_id=lease.run_id if lease else None,
            run_expires_at=lease.expires_at if lease else None,
        )

    def stream(self, name: str) -> MemoryStream:
        """Return a stream, an empty one where there is none of that name."""
        return self.streams.setdefault(name, MemoryStream())

    def known(self, drafts: Sequence[MessageDraft]) -> Mapping[str, tuple[int, bytes]]:
        """Return sequence and digest of the drafts that are stored already."""
        return {
            draft.id: (self.places[draft.id][1], self.digests[draft.id])
            for draft in drafts
            if draft.id in self.places
        }

    def tail_digests(self, stream: str) -> tuple[bytes, ...]:
        """Return the digests of a stream's newest messages."""
        return tuple(self.digests[row.id] for row in self.stream(stream).messages[-TAIL_DIGESTS:])

    def insert(self, stream: str, drafts: Sequence[MessageDraft]) -> None:
        """Add messages to the end of a stream."""
        for sequence, draft in enumerate(drafts, start=self.next_sequence):
            self.stream(stream).messages.append(_stored(draft, sequence))
            self.digests[draft.id] = draft.digest
            self.places[draft.id] = (stream, sequence)
        self.next_sequence += len(drafts)

    def remove(self, stream: str, doomed: Sequence[StoredMessage]) -> None:
        """Remove messages from a stream."""
        gone = {row.id for row in doomed}
        kept = self.stream(stream)
        kept.messages = [row for row in kept.messages if row.id not in gone]
        for id in gone:
            del self.digests[id], self.places[id]

    def trim(self, stream: str, retention: Retention) -> None:
        """Remove what retention does not keep."""
        doomed = self.stream(stream).beyond(retention)
        self.remove(stream, doomed)
        self.stream(stream).trimmed += len(doomed)

    def message(self, message_id: str) -> StoredMessage | None:
        """Return a message, None where there is none of that id."""
        if message_id not in self.places:
            return None
        stream, sequence = self.places[message_id]
        return self.stream(stream).messages[self.stream(stream).index(sequence)]

    def update(self, message_id: str, patch: MessagePatch) -> StoredMessage:
        """Change a message and return it."""
        stream, sequence = self.places[message_id]
        messages = self.stream(stream).messages
        index = self.stream(stream).index(sequence)
        messages[index] = plan_update(messages[index], patch)
        if patch.digest is not None:
            self.digests[message_id] = patch.digest
        return messages[index]

    def selected(self, selector: MessageSelector) -> list[StoredMessage]:
        """Return the messages that meet all conditions of a selector."""
        return [row for row in self.stream(selector.stream).messages if _selected(row, selector)]

    def touch(self, now: int, *, edited: bool) -> None:
        """Note that messages were added, or changed and removed."""
        self.epoch += edited
        messages = self.stream(MAIN_STREAM).messages
        self.record = replace(
            self.record,
            updated_at=now,
            version=self.record.version + 1,
            streams={name: len(s.messages) for name, s in self.streams.items() if s.messages},
            last_message_at=messages[-1].created_at if messages else None,
        )


def matches(record: SessionRecord, query: SessionQuery) -> bool:
    """Return whether a session meets all conditions of a query."""
    return (
        record.key.namespace == query.namespace
        and query.user_id in (None, record.key.user_id)
        and query.agent_id in (None, record.agent_id)
        and query.status in (None, record.status)
        and query.memory_enabled in (None, record.memory_enabled)
        and query.labels <= record.labels
        and (query.created_from is None or record.created_at >= query.created_from)
        and (query.created_before is None or record.created_at < query.created_before)
    )


def _stored(draft: MessageDraft, sequence: int) -> StoredMessage:
    return StoredMessage(
        sequence,
        draft.id,
        draft.role,
        draft.body,
        draft.created_at,
        draft.turn_start,
        extra=draft.extra,
    )


def _selected(row: StoredMessage, selector: MessageSelector) -> bool:
    return (
        (selector.ids is None or row.id in selector.ids)
        and (selector.first is None or row.sequence >= selector.first)
        and (selector.last is None or row.sequence <= selector.last)
        and (selector.created_before is None or row.created_at < selector.created_before)
    )


def _sequence(row: StoredMessage) -> int:
    return row.sequence
