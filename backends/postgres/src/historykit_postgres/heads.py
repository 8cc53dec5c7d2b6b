"""The head of a session: what its row says about its messages, read under the row's lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from historykit.planning import session_not_found
from historykit.session_records import MAIN_STREAM, SessionHead, SessionKey
from historykit_postgres.drivers import Driver
from historykit_postgres.names import Names, digest
from historykit_postgres.ranges import within
from historykit_postgres.statements import RECENT

__all__ = ["Head", "find_head", "lock_head", "write_edited", "write_head"]

LOCK: Final = """
SELECT id, incarnation, memory_enabled, version, epoch, next_sequence, largest, last_message_at,
       coalesce((live ->> $2::text)::bigint, 0), coalesce((trimmed ->> $2::text)::bigint, 0)
FROM {sessions} WHERE key = $1 FOR UPDATE
"""
WRITE: Final = f"""
UPDATE {{sessions}} SET
    version = $2, epoch = $3, next_sequence = $4, last_message_at = $5, updated_at = $6,
    live = live || jsonb_build_object($7::text, $8::bigint),
    trimmed = CASE WHEN $9::bigint = 0 THEN trimmed
                   ELSE trimmed || jsonb_build_object($7::text, $9::bigint) END,
    recent = ($10::text[] || recent)[:{RECENT}], largest = $11
WHERE id = $1
"""
NEWEST_TIME: Final = f"""
SELECT created_at FROM {{messages}} WHERE {within("$1", "$2")} ORDER BY sequence DESC LIMIT 1
"""


@dataclass(slots=True)
class Head:
    """What is read before an operation on messages and written after it.

    `live` and `trimmed` are those of the `stream` that it is about.
    """

    stream: str
    id: int
    incarnation: str
    memory_enabled: bool
    version: int = 0
    epoch: int = 0
    next_sequence: int = 1
    largest: int = 0
    last_message_at: int | None = None
    live: int = 0
    trimmed: int = 0

    def planned(self) -> SessionHead:
        """Return what the plan of an append needs."""
        return SessionHead(
            incarnation=self.incarnation,
            version=self.version,
            next_sequence=self.next_sequence,
            memory_enabled=self.memory_enabled,
        )


async def find_head(driver: Driver, names: Names, key: SessionKey, stream: str) -> Head | None:
    """Lock a session and return its head, None where there is no session."""
    rows = await driver.fetch(names(LOCK), digest(key), stream)
    return Head(stream, *rows[0]) if rows else None


async def lock_head(driver: Driver, names: Names, key: SessionKey, stream: str) -> Head:
    """Lock a session and return its head. Raises `NotFoundError`."""
    head = await find_head(driver, names, key, stream)
    if head is None:
        raise session_not_found(key)
    return head


async def write_head(
    driver: Driver, names: Names, head: Head, *, now: int, marks: Sequence[str] = ()
) -> None:
    """Store the head after an operation, with the marks of the messages that it added."""
    head.version += 1
    await driver.fetch(
        names(WRITE),
        head.id,
        head.version,
        head.epoch,
        head.next_sequence,
        head.last_message_at,
        now,
        head.stream,
        head.live,
        head.trimmed,
        list(marks),
        head.largest,
    )


async def write_edited(driver: Driver, names: Names, head: Head, *, now: int) -> None:
    """Store the head after messages were changed or removed."""
    head.epoch += 1
    if head.stream == MAIN_STREAM:
        newest = await driver.fetch(names(NEWEST_TIME), head.id, head.stream)
        head.last_message_at = newest[0][0] if newest else None
    await write_head(driver, names, head, now=now)
