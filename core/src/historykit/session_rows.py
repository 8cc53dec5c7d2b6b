"""The rows of a session's main stream, read in pages and as of one time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final, TypeVar

from historykit.errors import ConflictError
from historykit.planning import message_not_found, session_not_found
from historykit.records import Slice, StoredMessage, Window
from historykit.session_records import SessionKey
from historykit.store import HistoryStore

__all__ = ["as_of_one_time", "rows_between", "turn_bounds", "walk_rows"]

T = TypeVar("T")

ATTEMPTS: Final = 5
"""How often a reading begins again because messages were changed while it read its pages."""

TURN_GUESS: Final = 16
"""How many messages to read at once where a turn is wanted."""


class _EditedError(Exception):
    """Messages were changed or removed between two pages."""


async def walk_rows(
    store: HistoryStore,
    key: SessionKey,
    *,
    after: int | None = None,
    before: int | None = None,
    newest_first: bool = False,
    page_size: int | None = None,
) -> AsyncGenerator[StoredMessage, None]:
    """Yield the rows between two sequences, neither included, for `as_of_one_time`.

    Raises `NotFoundError` where there is no session.
    """
    begun: Slice | None = None
    first, last = after, before
    while True:
        if newest_first:
            window = Window(before=last, limit=page_size)
        else:
            window = Window(after=first or 0, limit=page_size)
        page = await store.read(key, window)
        begun = begun or page
        if begun.incarnation is None:
            raise session_not_found(key)
        if (page.incarnation, page.epoch) != (begun.incarnation, begun.epoch):
            raise _EditedError
        for row in reversed(page.messages) if newest_first else page.messages:
            if newest_first and first is not None and row.sequence <= first:
                return
            if not newest_first and last is not None and row.sequence >= last:
                return
            yield row
        if not page.more:
            return
        if newest_first:
            last = page.messages[0].sequence
        else:
            first = page.messages[-1].sequence
        await asyncio.sleep(0)  # not every store waits for something when it reads


async def as_of_one_time(read: Callable[[], Awaitable[T]], key: SessionKey) -> T:
    """Return what is read of a session in one or more pages.

    Where messages were changed or removed between two of them, it is read again. Raises
    `ConflictError` where that happens again and again.
    """
    for _ in range(ATTEMPTS):
        try:
            return await read()
        except _EditedError:
            continue
    raise ConflictError(
        f"session {key.session_id!r} is being edited faster than it can be read; try again"
    )


async def rows_between(
    store: HistoryStore, key: SessionKey, first: int | None, last: int | None
) -> list[StoredMessage]:
    """Return all rows, from a sequence and up to one, included, where they are named."""
    after = None if first is None else first - 1
    before = None if last is None else last + 1

    async def read() -> list[StoredMessage]:
        async with aclosing(walk_rows(store, key, after=after, before=before)) as rows:
            return [row async for row in rows]

    return await as_of_one_time(read, key)


async def turn_bounds(store: HistoryStore, key: SessionKey, row: StoredMessage) -> tuple[int, int]:
    """Return the first and last sequence of the turn that a message is in.

    Raises `NotFoundError` for a message of another stream, which is in no turn.
    """

    async def read() -> tuple[int, int]:
        first = last = row.sequence
        if not row.turn_start:
            earlier_rows = walk_rows(
                store, key, before=row.sequence, newest_first=True, page_size=TURN_GUESS
            )
            async with aclosing(earlier_rows) as rows:
                async for earlier in rows:
                    first = earlier.sequence
                    if earlier.turn_start:
                        break
        later_rows = walk_rows(store, key, after=row.sequence - 1, page_size=TURN_GUESS)
        async with aclosing(later_rows) as rows:
            itself = await anext(rows, None)
            if itself is None or itself.id != row.id:
                raise message_not_found(key, row.id)
            async for later in rows:
                if later.turn_start:
                    break
                last = later.sequence
        return first, last

    return await as_of_one_time(read, key)
