"""Single messages: in how many trips they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import redis

from historykit.session_records import SessionKey
from historykit.testing.drafts import draft, drafts
from historykit_redis import RedisStore

pytestmark = pytest.mark.asyncio


class Counted:
    """Counts the trips to the server."""

    def __init__(self, exchange: Any) -> None:
        self._exchange = exchange
        self.trips = 0

    async def send(self, commands: Sequence[Any]) -> list[Any]:
        self.trips += 1
        answers: list[Any] = await self._exchange.send(commands)
        return answers


async def _filled(store: RedisStore) -> list[SessionKey]:
    keys = [SessionKey("app", "ada", f"s{n}") for n in range(60)]
    for number, key in enumerate(keys):
        await store.append(key, [draft("first", id="first"), draft(f"{number}" * 5000)])
    return keys


async def test_a_lookup_is_one_trip(store: RedisStore) -> None:
    """A message by its id is one trip, and so is the newest of many sessions."""
    keys = await _filled(store)
    store._server._exchange = counted = Counted(store._server._exchange)
    assert (await store.read_message(keys[0], "first")).body == b"first"
    rows = await store.read_newest(keys)
    assert [row and row.body for row in rows] == [b"%d" % n * 5000 for n in range(60)]
    assert counted.trips == 2


async def test_a_server_that_forgot_the_scripts_gets_them_again(
    store: RedisStore, inside: redis.Redis
) -> None:
    """Where scripts were flushed, a lookup takes another trip, once."""
    keys = await _filled(store)
    inside.script_flush()
    assert None not in await store.read_newest(keys)
    store._server._exchange = counted = Counted(store._server._exchange)
    await store.read_newest(keys)
    assert counted.trips == 1


async def test_the_newest_of_sessions_on_all_nodes(
    open_store: Callable[..., Any], cluster_url: str
) -> None:
    """In a cluster the newest messages come from all its nodes, in the order of the question."""
    store = await open_store(url=cluster_url)
    keys = await _filled(store)
    rows = await store.read_newest(keys)
    assert [row and row.body for row in rows] == [b"%d" % n * 5000 for n in range(60)]
    for key in keys:
        await store.delete_session(key)
    await store.append(keys[3], drafts("m", 2))
    rows = await store.read_newest(keys)
    assert [n for n, row in enumerate(rows) if row is not None] == [3]
    await store.delete_session(keys[3])
