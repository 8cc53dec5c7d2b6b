"""The head of a session: what its row says about its messages."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import Final

import orjson

from historykit.session_records import SessionHead, SessionKey

__all__ = ["Head", "live_messages", "read_head", "write_head"]

READ_HEAD: Final = """
SELECT row, incarnation, memory_enabled, version, epoch, next_sequence, last_message_at, streams
FROM sessions WHERE namespace = ? AND user_id = ? AND session_id = ?
"""

WRITE_HEAD: Final = """
UPDATE sessions
SET version = ?, epoch = ?, next_sequence = ?, last_message_at = ?, streams = ?, updated_at = ?
WHERE row = ?
"""


@dataclass(slots=True)
class Head:
    """What is read before each operation on messages and written after it.

    `row` is the number of the session's row. `live` holds how many messages each stream has,
    `trimmed` how many more were removed by retention.
    """

    row: int
    incarnation: str
    memory_enabled: bool
    version: int = 0
    epoch: int = 0
    next_sequence: int = 1
    last_message_at: int | None = None
    live: dict[str, int] = field(default_factory=dict)
    trimmed: dict[str, int] = field(default_factory=dict)

    def planned(self) -> SessionHead:
        """Return what the plan of an append needs."""
        return SessionHead(
            incarnation=self.incarnation,
            version=self.version,
            next_sequence=self.next_sequence,
            memory_enabled=self.memory_enabled,
        )


def read_head(db: sqlite3.Connection, key: SessionKey) -> Head | None:
    """Return the head of a session, None where there is no session."""
    row = db.execute(READ_HEAD, (key.namespace, key.user_id, key.session_id)).fetchone()
    if row is None:
        return None
    number, incarnation, memory_enabled, *numbers, streams = row
    return Head(number, incarnation, bool(memory_enabled), *numbers, *orjson.loads(streams))


def write_head(db: sqlite3.Connection, head: Head, *, now: int, edited: bool = False) -> None:
    """Store the head after an operation; `edited` says that it changed or removed messages."""
    head.version += 1
    head.epoch += edited
    streams = orjson.dumps([head.live, head.trimmed]).decode()
    numbers = (head.version, head.epoch, head.next_sequence, head.last_message_at)
    db.execute(WRITE_HEAD, (*numbers, streams, now, head.row))


def live_messages(streams: str) -> dict[str, int]:
    """Return how many messages each stream has that has any, from the column that holds it."""
    live: dict[str, int] = orjson.loads(streams)[0]
    return {name: count for name, count in live.items() if count}
