"""Messages as they are held: apart where they are large, and read in more than one command."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
import redis

from historykit.memory import MemoryStore
from historykit.records import MessagePatch, MessageSelector, Retention, Slice, Window
from historykit.session_records import SessionKey
from historykit.store import HistoryStore
from historykit.testing.drafts import draft, drafts, texts
from historykit_redis import RedisStore
from historykit_redis.packing import LARGE

pytestmark = pytest.mark.asyncio


class Interrupted:
    """Lets somebody else in behind the first of several commands, once."""

    def __init__(self, exchange: Any, interruption: Callable[[], Awaitable[object]]) -> None:
        self._exchange = exchange
        self._interruption: Callable[[], Awaitable[object]] | None = interruption

    async def send(self, commands: Sequence[Any]) -> list[Any]:
        if len(commands) == 1 or self._interruption is None:
            answers: list[Any] = await self._exchange.send(commands)
            return answers
        interruption, self._interruption = self._interruption, None
        first = await self._exchange.send(commands[:1])
        await interruption()
        return [*first, *await self._exchange.send(commands[1:])]


@pytest.mark.parametrize("change", ["append", "update", "delete", "replace", "delete_session"])
async def test_page_is_of_one_moment(
    open_store: Callable[..., Any], key: SessionKey, change: str
) -> None:
    """A page that somebody changed while it was read is read again: version, epoch and messages
    belong together."""
    store, other = await open_store(), await open_store()
    receipt = await store.append(key, [*drafts("m", 3), draft("x" * 5000)])
    changes = {
        "append": lambda: other.append(key, [draft("y" * 5000)]),
        "update": lambda: other.update_message(
            key, receipt.ids[3], MessagePatch(body=b"z" * 6000, digest=b"d" * 16)
        ),
        "delete": lambda: other.delete_messages(key, MessageSelector(last=2)),
        "replace": lambda: other.replace(key, [draft("new")], expected_version=1),
        "delete_session": lambda: other.delete_session(key),
    }
    store._server._exchange = Interrupted(store._server._exchange, changes[change])
    assert await store.read(key) == await other.read(key)


@pytest.mark.parametrize("size", [0, LARGE - 3, LARGE - 2, LARGE, LARGE + 1])
async def test_message_moves_with_its_size(
    store: RedisStore, inside: redis.Redis, key: SessionKey, size: int
) -> None:
    """A body with its extra is beside the message up to 4,096 bytes and apart from there on, also
    when it grows or shrinks, and none of it stays behind."""

    def apart() -> int:
        held = int(inside.hlen("hk1:{app:ada:s1}:l"))
        assert inside.zcard("hk1:{app:ada:s1}:w:main") == held
        return held

    ids = (await store.append(key, [draft("a" * size, extra=b"xx"), draft("next")])).ids
    assert apart() == (size + 2 > LARGE)
    for length in (5000, 10, LARGE, LARGE + 1, size):
        patch = MessagePatch(body=b"b" * length, digest=b"d" * 16, extra=None)
        row = await store.update_message(key, ids[0], patch)
        assert (row.body, row.extra, row.sequence) == (b"b" * length, None, 1)
        assert (await store.read(key)).messages[0] == row
        assert apart() == (length > LARGE)
    await store.delete_messages(key, MessageSelector(ids=ids[:1]))
    assert apart() == 0
    assert texts((await store.read(key)).messages) == ["next"]


@pytest.mark.parametrize("seed", range(6))
async def test_pages_of_any_sizes_are_those_of_the_reference(
    store: RedisStore, key: SessionKey, seed: int
) -> None:
    """Messages from nothing to more than a page, small beside large, are cut into the same pages
    as in memory, in both directions, with the same openings."""
    chance = random.Random(seed)
    sizes = [chance.choice([0, 100, 4096, 4097, 50_000, 400_000, 1 << 20]) for _ in range(25)]
    batch = [
        draft(
            bytes([number]) * size,
            role="system" if number == 0 else "user",
            extra=chance.choice([None, b"", b"e" * 5000]),
        )
        for number, size in enumerate(sizes)
    ]
    async with MemoryStore() as reference:
        stores: list[HistoryStore] = [store, reference]
        for each in stores:
            await each.append(key, batch)
        for limit in (None, 0, 1, 7, 100):
            for place in range(0, 27, 3):
                for window in (Window(limit=limit, before=place), Window(limit=limit, after=place)):
                    mine, wanted = [await each.read(key, window) for each in stores]
                    assert _plain(mine) == _plain(wanted), window


def _plain(page: Slice) -> Slice:
    """Return a page without what two stores cannot have in common."""
    return page._replace(incarnation=None)


async def test_trimming_where_starts_of_turns_are_gone(store: RedisStore, key: SessionKey) -> None:
    """Retention finds the start of the turn that is left, though others before it were deleted,
    just as the reference does."""
    async with MemoryStore() as reference:
        stores: list[HistoryStore] = [store, reference]
        rows = []
        turns = [
            draft(f"m {number}", turn_start=number % 3 == 0, created_at=number)
            for number in range(30)
        ]
        for each in stores:
            await each.append(key, turns[:15])
            await each.append(key, turns[15:])
            doomed = tuple(turns[number].id for number in (9, 12, 18, 21))
            await each.delete_messages(key, MessageSelector(ids=doomed))
            for most in (12, 8, 3):
                await each.append(key, [draft("y", id=f"{most}")], retention=Retention(most))
                rows.append(texts((await each.read(key)).messages))
        assert rows[:3] == rows[3:]
        assert len(rows[0]) > len(rows[2])


async def test_stream_without_turns_is_not_trimmed(store: RedisStore, key: SessionKey) -> None:
    """Where no turn starts nothing is trimmed, as in the reference."""
    await store.append(key, drafts("m", 5))
    await store.append(key, [draft("m 5")], retention=Retention(2))
    assert len((await store.read(key)).messages) == 6


async def test_batch_of_many_is_checked_and_stored_whole(
    store: RedisStore, key: SessionKey
) -> None:
    """A batch of more messages than Lua takes arguments is stored, recognized, trimmed, replaced
    and deleted like any other."""
    batch = [draft(f"m {number}", turn_start=True) for number in range(9000)]
    receipt = await store.append(key, batch)
    assert receipt.sequences == tuple(range(1, 9001))
    assert (await store.append(key, batch)).sequences == receipt.sequences
    await store.append(key, [draft("last", turn_start=True)], retention=Retention(8500))
    assert (await store.read_tail(key)).trimmed == 501
    repeated = await store.append(key, batch)
    assert (repeated.stored, repeated.sequences[500:502]) == (0, (None, 502))
    await store.replace(key, batch, expected_version=2)
    ids = tuple(each.id for each in batch[:8000])
    assert await store.delete_messages(key, MessageSelector(ids=ids)) == 8000
    assert await store.delete_messages(key, MessageSelector(first=1)) == 1000
