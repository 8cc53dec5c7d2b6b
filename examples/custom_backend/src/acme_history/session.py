"""A session in two files: a head of JSON, and a log with a line of JSON for each message."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from historykit.records import MessageDraft, StoredMessage
from historykit.session_records import SessionDraft, SessionHead, SessionKey, SessionRecord

__all__ = ["Entry", "Session", "StreamHead", "file_name", "parse"]


@dataclass(slots=True)
class StreamHead:
    """What is known of a stream without its messages.

    Of the messages up to `cut` only the `opening` is left: retention removed the others.
    """

    count: int = 0
    trimmed: int = 0
    cut: int = 0
    opening: int = 0
    digests: list[str] = field(default_factory=list)

    def has(self, sequence: int) -> bool:
        """Return whether a message was not removed."""
        return sequence > self.cut or sequence == self.opening


@dataclass(slots=True)
class Session:
    """The head of a session.

    `size` bytes of its log count. `generation` tells its logs apart: a log is written anew when
    most of its lines are of messages that retention removed.
    """

    record: SessionRecord
    next_sequence: int = 1
    size: int = 0
    generation: int = 0
    streams: dict[str, StreamHead] = field(default_factory=dict)

    @classmethod
    def create(cls, key: SessionKey, draft: SessionDraft, incarnation: str, now: int) -> Session:
        """Return a session without messages."""
        return cls(draft.as_record(key, incarnation, now))

    @classmethod
    def load(cls, data: bytes) -> Session:
        """Return the session that `dump` wrote."""
        head = json.loads(data)
        record = head.pop("record")
        record |= {
            "key": SessionKey(*record["key"]),
            "labels": frozenset(record["labels"]),
            "body": _binary(record["body"]),
        }
        streams = {name: StreamHead(**stream) for name, stream in head.pop("streams").items()}
        return cls(SessionRecord(**record), streams=streams, **head)

    def dump(self) -> bytes:
        """Return the session as JSON."""
        head = dataclasses.asdict(self)
        key = self.record.key
        head["record"] |= {
            "key": [key.namespace, key.user_id, key.session_id],
            "labels": sorted(self.record.labels),
            "body": _text(self.record.body),
        }
        return json.dumps(head).encode()

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
    def log(self) -> str:
        """The name of the log. No other life of the session has it."""
        name = file_name(self.record.key)
        return f"{name}.{self.record.incarnation}.{self.generation}.jsonl"

    def stream(self, name: str) -> StreamHead:
        """Return what is known of a stream."""
        return self.streams.setdefault(name, StreamHead())

    def touch(self, now: int, newest: int | None = None) -> None:
        """Note that messages came, the newest of the main stream at that time."""
        counts = {name: stream.count for name, stream in self.streams.items() if stream.count}
        self.record = dataclasses.replace(
            self.record,
            updated_at=now,
            version=self.record.version + 1,
            streams=counts,
            last_message_at=self.record.last_message_at if newest is None else newest,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the log."""

    stream: str
    digest: bytes
    row: StoredMessage

    @classmethod
    def make(cls, stream: str, draft: MessageDraft, sequence: int) -> Entry:
        """Return the line for a new message."""
        row = StoredMessage(
            sequence,
            draft.id,
            draft.role,
            draft.body,
            draft.created_at,
            draft.turn_start,
            extra=draft.extra,
        )
        return cls(stream, draft.digest, row)

    def dump(self) -> bytes:
        """Return the line."""
        row = self.row._asdict()
        row["body"] = _text(self.row.body)
        row["extra"] = None if self.row.extra is None else _text(self.row.extra)
        return json.dumps([self.stream, _text(self.digest), row]).encode() + b"\n"


def parse(log: bytes) -> Iterator[Entry]:
    """Yield the lines of a log."""
    for line in log.splitlines():
        stream, digest, row = json.loads(line)
        row["body"] = _binary(row["body"])
        row["extra"] = None if row["extra"] is None else _binary(row["extra"])
        yield Entry(stream, _binary(digest), StoredMessage(**row))


def file_name(key: SessionKey) -> str:
    """Return the name of a session's files: of what is in its ids no file system takes notice."""
    parts = [key.namespace, key.user_id, key.session_id]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _binary(text: str) -> bytes:
    return base64.b64decode(text)
