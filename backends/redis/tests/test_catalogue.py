"""How sessions are found: in what order, at what cost, and without ghosts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import redis

from historykit.session_records import (
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionQuery,
    SessionRecord,
)
from historykit.testing.drafts import draft
from historykit_redis import RedisConfig, RedisStore, catalogue
from tests.services.redis import RedisServer

pytestmark = pytest.mark.asyncio

Open = Callable[..., Awaitable[RedisStore]]

ALL = SessionQuery(namespace="app", limit=500)


async def make(store: RedisStore, count: int, **fields: Any) -> list[SessionKey]:
    """Make sessions, each a microsecond younger than the one before."""
    keys = [SessionKey("app", "", f"s{number}") for number in range(count)]
    await asyncio.gather(
        *(
            store.create_session(
                each, SessionDraft(created_at=number, **fields), if_exists="return"
            )
            for number, each in enumerate(keys)
        )
    )
    return keys


async def walk(store: RedisStore, query: SessionQuery) -> list[SessionRecord]:
    """Return all sessions that match, page by page."""
    records: list[SessionRecord] = []
    while True:
        page = await store.find_sessions(query)
        records += page.records
        if not page.more:
            return records
        query = replace(query, position=records[-1].position)


async def test_times_are_in_order_however_far_they_are(store: RedisStore) -> None:
    """Times before 1970, and more microseconds than a double is exact for, are in order, and
    windows of time cut between them exactly."""
    times = [-(1 << 63), -1, 0, 1, (1 << 53) + 1, (1 << 53) + 2, (1 << 63) - 1]
    for time in times:
        key = SessionKey("app", "", f"s{time}")
        await store.create_session(key, SessionDraft(created_at=time))
    assert [record.created_at for record in await walk(store, ALL)] == times[::-1]
    for first, last in product(times, times):
        query = replace(ALL, created_from=first, created_before=last)
        expected = [time for time in times if first <= time < last]
        found = await store.find_sessions(query)
        assert [record.created_at for record in found.records] == expected[::-1]
        assert found.total == len(expected)


async def test_sessions_of_one_time_are_in_the_order_of_their_bytes(store: RedisStore) -> None:
    """Of sessions of the same time the greater id comes first, byte by byte, then the user."""
    ids = ["a", "a\x01", "aa", "b", "é", "\uffff", "\U0001f600"]
    for session_id, user in product(ids, ["", "a", "b"]):
        await store.create_session(SessionKey("app", user, session_id), SessionDraft(created_at=7))
    found = [(record.key.session_id, record.key.user_id) for record in await walk(store, ALL)]
    assert found == sorted(found, key=lambda pair: (pair[0].encode(), pair[1]), reverse=True)
    assert len(found) == 21


async def test_conditions_that_few_sessions_meet_together(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where two conditions are met by many and both by few, pages and totals are right, although
    the server looks at a part of the entries at a time."""
    monkeypatch.setattr(catalogue, "BUDGET", 500)
    keys = await make(store, 1200, agent_id="a")
    for number in range(0, 1200, 100):
        await store.patch_session(keys[number], SessionPatch(status="rare"))
    for number in range(50, 1200, 100):
        await store.patch_session(keys[number], SessionPatch(agent_id="b", status="rare"))
    query = replace(ALL, agent_id="a", status="rare", limit=5)
    assert [record.key for record in await walk(store, query)] == keys[1100::-100]
    page = await store.find_sessions(replace(query, offset=3))
    assert [record.key for record in page.records] == keys[800:300:-100]
    assert (page.total, page.more) == (12, True)
    position = page.records[-1].position
    rest = await store.find_sessions(replace(query, position=position))
    assert (rest.total, [record.key for record in rest.records]) == (12, keys[300::-100])
    page = await store.find_sessions(replace(query, with_total=False))
    assert (page.total, len(page.records), page.more) == (None, 5, True)


async def test_search_costs_the_same_among_many_sessions(
    store: RedisStore, inside: redis.Redis
) -> None:
    """A page by one condition, its total included, moves no more keys among 1,000 sessions than
    among 100."""
    costs = []
    for count in (100, 1000):
        await make(store, count)
        inside.config_resetstat()
        found = await store.find_sessions(replace(ALL, status="active", limit=20))
        assert found.total == count
        stats = inside.info("commandstats")
        costs.append(
            {name: value["calls"] for name, value in stats.items() if "config" not in name}
        )
    assert costs[0] == costs[1]


async def test_session_deleted_by_hand_is_no_ghost(store: RedisStore, inside: redis.Redis) -> None:
    """Sessions that somebody deleted in Redis are in no page and no total, and their entries are
    taken away."""
    keys = await make(store, 30, labels=frozenset({"l"}))
    for each in keys[::3]:
        inside.delete(f"hk1:{{app::{each.session_id}}}:s")
    for query in (ALL, replace(ALL, status="active", labels=frozenset({"l"}), limit=10)):
        found = await store.find_sessions(query)
        assert found.total == 20
        assert not {record.key for record in found.records} & set(keys[::3])
        assert [record.key for record in await walk(store, query)] == [
            each for each in keys[::-1] if each not in keys[::3]
        ]
    assert inside.zcard("hk1:{app}:label:l") == 20


async def test_evicted_sessions_are_no_ghosts(open_store: Open, inside: redis.Redis) -> None:
    """What a server drops that may evict is an error or absent, and never in a page."""
    store = await open_store()
    before = inside.config_get("maxmemory", "maxmemory-policy")
    inside.config_set("maxmemory-policy", "allkeys-random")
    try:
        for number in range(60):
            key = SessionKey("app", "", f"s{number}")
            await store.append(key, [draft("x" * 3000)])
        inside.config_set("maxmemory", int(inside.info("memory")["used_memory"]) - 60_000)
        inside.config_set("maxmemory", 0)
        for record in (await store.find_sessions(ALL)).records:
            assert await store.read_session(record.key) == record
    finally:
        for name, value in before.items():
            inside.config_set(name, value)


async def test_catalogue_of_a_cluster_follows_changes_at_once(cluster_url: str) -> None:
    """In a cluster sessions that are changed, deleted and made anew by many at once end up in just
    the sets where they belong."""
    async with RedisStore(RedisConfig(url=cluster_url)) as store:
        namespace = "at once"
        key = SessionKey(namespace, "", "s")

        async def change(number: int) -> None:
            for step in range(5):
                status = f"{(number + step) % 3}"
                draft = SessionDraft(status=status, created_at=number % 2)
                await store.create_session(key, draft, if_exists="update")
                if step == number % 5:
                    await store.delete_session(key)

        await asyncio.gather(*(change(number) for number in range(8)))
        await store.create_session(key, SessionDraft(created_at=0), if_exists="return")
        record = await store.read_session(key)
        for status in ("0", "1", "2", "active"):
            query = SessionQuery(namespace=namespace, status=status)
            found = await store.find_sessions(query)
            assert found.records == ((record,) if record.status == status else ())
            assert found.total == len(found.records)
        await store.delete_session(key)


async def test_catalogue_of_a_cluster_is_kept_by_writers(
    cluster: list[RedisServer], cluster_url: str
) -> None:
    """In a cluster writers leave no entry behind that is wrong, so that nobody has to search
    before it is gone."""
    client = redis.RedisCluster.from_url(cluster_url.replace("redis+cluster", "redis"))

    def sets() -> set[str]:
        return {name.decode().partition("}:")[2] for name in client.scan_iter("hk1:{kept}:*")}

    async with RedisStore(RedisConfig(url=cluster_url)) as store:
        key = SessionKey("kept", "", "s")
        always = {"all", "user:", "agent:", "memory:1"}
        await store.append(key, [draft()])
        assert sets() == {*always, "status:active"}
        await store.patch_session(key, SessionPatch(status="new", labels=frozenset({"l"})))
        assert sets() == {*always, "status:new", "label:l"}
        await store.create_session(key, SessionDraft(created_at=7), if_exists="update")
        assert sets() == {*always, "status:active"}
        assert client.zcard("hk1:{kept}:all") == 1
        await store.delete_session(key)
        assert sets() == set()
    client.close()


async def test_cluster_repairs_what_a_writer_left_behind(
    cluster: list[RedisServer], cluster_url: str
) -> None:
    """In a cluster entries of a writer that ended in the middle, and of sessions deleted by hand,
    are dropped from pages and totals, and removed."""
    client = redis.RedisCluster.from_url(cluster_url.replace("redis+cluster", "redis"))
    async with RedisStore(RedisConfig(url=cluster_url)) as store:
        query = SessionQuery(namespace="left behind", status="active")
        keys = [SessionKey(query.namespace, "", f"s{number}") for number in range(4)]
        for number, each in enumerate(keys):
            await store.create_session(each, SessionDraft(created_at=number))
        place = client.zrange("hk1:{left behind}:status:active", 0, 0)[0]
        client.delete("hk1:{left behind::s0}:s")
        client.zadd("hk1:{left behind}:status:other", {place.replace(b"s0", b"s1"): 0})
        found = await store.find_sessions(query)
        assert ([record.key for record in found.records], found.total) == (keys[:0:-1], 3)
        assert (await store.find_sessions(replace(query, status="other"))).total == 0
        assert client.exists("hk1:{left behind}:status:other") == 0
        for each in keys:
            await store.delete_session(each)
    client.close()
