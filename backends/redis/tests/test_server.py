"""What a server promises, what it refuses, and how it fails."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from historykit.capabilities import Guarantee
from historykit.errors import (
    ConfigError,
    DecodeError,
    InvalidRequestError,
    NotFoundError,
    StorageError,
    StorageUnavailableError,
    TooLargeError,
)
from historykit.history import History
from historykit.session_records import SessionDraft, SessionKey, SessionQuery
from historykit.testing.drafts import draft, drafts, texts
from historykit_redis import RedisConfig, RedisStore
from tests.services.processes import HOST, free_port
from tests.services.redis import RedisServer

pytestmark = pytest.mark.asyncio

Open = Callable[..., Awaitable[RedisStore]]
Start = Callable[..., RedisServer]

PASSWORD = "correct horse battery"
DURABLE = {Guarantee.SHARED, Guarantee.SURVIVES_KILL, Guarantee.SURVIVES_POWER_LOSS}


@pytest.mark.parametrize(
    ("settings", "guarantees"),
    [
        ({}, DURABLE),
        ({"appendfsync": "everysec"}, {Guarantee.SHARED}),
        ({"appendonly": "no"}, {Guarantee.SHARED}),
        ({"maxmemory-policy": "allkeys-lru"}, {Guarantee.SHARED}),
    ],
)
async def test_guarantees_are_those_of_the_settings(
    open_store: Open,
    inside: redis.Redis,
    settings: dict[str, str],
    guarantees: set[Guarantee],
) -> None:
    """Surviving is claimed with appendfsync always and noeviction, and not otherwise."""
    before = inside.config_get(*settings) if settings else {}
    for name, value in settings.items():
        inside.config_set(name, value)
    try:
        store = await open_store()
        assert store.guarantees == guarantees
        found = (await store.ping()).settings
        assert found.items() >= settings.items()
        assert found["mode"] == "standalone"
    finally:
        for name, value in before.items():
            inside.config_set(name, value)


async def test_server_that_keeps_its_settings_to_itself_is_trusted_less(
    server: RedisServer, open_store: Open, inside: redis.Redis, key: SessionKey
) -> None:
    """Where CONFIG and INFO are forbidden, as on many hosted servers, a store works and claims no
    more than that it is shared."""
    inside.acl_setuser(
        "reader",
        enabled=True,
        passwords=[f"+{PASSWORD}"],
        keys=["*"],
        categories=["+@read", "+@write", "+@scripting", "+@connection"],
    )
    url = f"redis://reader:{PASSWORD.replace(' ', '%20')}@{HOST}:{server.port}/0"
    store = await open_store(url=url)
    assert store.guarantees == {Guarantee.SHARED}
    await store.append(key, [draft("m")])
    assert texts((await store.read(key)).messages) == ["m"]
    assert (await store.ping()).product


async def test_access_list_that_forbids_it_is_named(
    server: RedisServer, open_store: Open, inside: redis.Redis, key: SessionKey
) -> None:
    """A user who may not write, or not these keys, is told what to grant."""
    inside.acl_setuser("nobody", enabled=True, nopass=True, keys=["other*"], categories=["+@all"])
    store = await open_store(url=f"redis://nobody:x@{HOST}:{server.port}/0")
    with pytest.raises(StorageError, match="access list") as caught:
        await store.append(key, [draft("m")])
    assert not isinstance(caught.value, StorageUnavailableError)


async def test_password_is_shown_nowhere(start: Start) -> None:
    """A wrong password is an error that says so, and neither it nor anything else shows one."""
    server = start("--requirepass", PASSWORD)
    wrong = "wrong and secret"
    url = f"redis://:{wrong.replace(' ', '%20')}@{HOST}:{server.port}/0"
    store = RedisStore(RedisConfig(url=url))
    with pytest.raises(StorageError, match="user or password") as caught:
        await store.open()
    assert not isinstance(caught.value, StorageUnavailableError)
    shown = "".join(traceback.format_exception(caught.value)) + repr(store)
    assert "secret" not in shown
    assert HOST in repr(store)


async def test_full_server_refuses_writes_and_nothing_is_torn(
    open_store: Open, inside: redis.Redis, key: SessionKey
) -> None:
    """A server at its maxmemory refuses to store, whole, and still reads and deletes."""
    store = await open_store()
    await store.append(key, drafts("m", 2))
    inside.config_set("maxmemory", 1)
    try:
        with pytest.raises(StorageUnavailableError, match="maxmemory"):
            await store.append(key, drafts("n", 2))
        with pytest.raises(StorageUnavailableError, match="maxmemory"):
            await store.append(SessionKey("app", "", "new"), drafts("n", 2))
        page = await store.read(key)
        assert (texts(page.messages), page.version) == (["m 0", "m 1"], 1)
        assert (await store.find_sessions(SessionQuery(namespace="app"))).total == 1
        assert (await store.delete_session(key)).messages == 2
        assert inside.dbsize() == 0
    finally:
        inside.config_set("maxmemory", 0)


async def test_replica_refuses_writes(
    start: Start, server: RedisServer, open_store: Open, key: SessionKey
) -> None:
    """A replica is an error that says to connect to the primary."""
    replica = start("--replicaof", HOST, str(server.port))
    store = await open_store(url=replica.url)
    with pytest.raises(StorageUnavailableError, match="primary"):
        await store.append(key, [draft()])
    replica.close()


async def test_outage_is_an_error(start: Start, key: SessionKey) -> None:
    """While the server is gone everything fails as unavailable; when it is back all is there."""
    server = start()
    async with RedisStore(RedisConfig(url=server.url, timeout=1.0)) as store:
        await store.append(key, drafts("m", 2))
        server.kill()
        for call in (
            lambda: store.read(key),
            lambda: store.append(key, [draft()]),
            lambda: store.find_sessions(SessionQuery(namespace="app")),
            store.ping,
        ):
            with pytest.raises(StorageUnavailableError) as caught:
                await call()
            assert caught.value.__cause__ is not None
        server.start()
        assert texts((await store.read(key)).messages) == ["m 0", "m 1"]


async def test_nobody_listens() -> None:
    """A URL where nobody listens is an error when the store is opened."""
    with pytest.raises(StorageUnavailableError):
        await RedisStore(RedisConfig(url=f"redis://{HOST}:{free_port()}/0")).open()


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost:port/0",
        "redis://localhost/0?socket_timeout=soon",
        "redis+sentinel://localhost:26379",
        "redis+sentinel://localhost:x/chat",
        "unix:///x?db=y",
    ],
)
async def test_url_that_cannot_be_read_is_a_mistake_in_the_configuration(url: str) -> None:
    """A URL that the driver does not understand is a ConfigError, which does not show it."""
    config = RedisConfig(url=url.replace("://", "://:hush@", 1) if "unix" not in url else url)
    with pytest.raises(ConfigError, match="url of the redis backend") as caught:
        await RedisStore(config).open()
    assert "hush" not in "".join(traceback.format_exception(caught.value))


async def test_more_calls_than_connections_wait(
    open_store: Open, inside: redis.Redis, key: SessionKey
) -> None:
    """With two connections a hundred calls at once are all done, on those two."""
    store = await open_store(max_connections=2)
    before = int(inside.info("clients")["connected_clients"])
    await asyncio.gather(*(store.append(key, [draft()]) for _ in range(100)))
    assert len((await store.read(key)).messages) == 100
    assert int(inside.info("clients")["connected_clients"]) <= before + 2


async def test_calls_that_come_at_once_go_together(store: RedisStore, inside: redis.Redis) -> None:
    """Of 40 appends to as many sessions each is answered, and five connections do for them."""
    keys = [SessionKey("app", "", f"s{number}") for number in range(40)]
    before = int(inside.info("clients")["connected_clients"])
    receipts = await asyncio.gather(
        *(store.append(each, [draft(each.session_id)]) for each in keys)
    )
    assert int(inside.info("clients")["connected_clients"]) <= before + 5
    pages = [await store.read(each) for each in keys]
    assert [texts(page.messages) for page in pages] == [[each.session_id] for each in keys]
    assert [page.incarnation for page in pages] == [receipt.incarnation for receipt in receipts]


async def test_one_of_several_calls_that_go_together_may_fail(
    store: RedisStore, inside: redis.Redis
) -> None:
    """Where something else lies in the place of a session, only its own append is an error."""
    keys = [SessionKey("app", "", f"s{number}") for number in range(20)]
    inside.set(store._server.keys.session(keys[7]), "something else")
    outcomes = await asyncio.gather(
        *(store.append(each, [draft()]) for each in keys), return_exceptions=True
    )
    assert [isinstance(outcome, StorageError) for outcome in outcomes] == [
        each == keys[7] for each in keys
    ]


async def test_cancelled_appends_leave_those_alone_that_go_with_them(store: RedisStore) -> None:
    """Of 20 appends at once every other one is cancelled, at every point: the rest are stored and
    answered, and each of the cancelled is there or is not."""
    for moment in range(30):
        keys = [SessionKey("app", "", f"s{moment}-{number}") for number in range(20)]
        tasks = [
            asyncio.ensure_future(store.append(each, [draft(each.session_id)])) for each in keys
        ]
        for _ in range(moment):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        pages = [await store.read(each) for each in keys]
        for each, page, task in zip(keys, pages, tasks, strict=True):
            assert texts(page.messages) in ([[]] if task.cancelled() else []) + [[each.session_id]]
        assert [task.result().incarnation for task in tasks[1::2]] == [
            page.incarnation for page in pages[1::2]
        ]


async def test_cancelled_calls_give_their_connections_back(
    open_store: Open, key: SessionKey
) -> None:
    """After 200 calls that were cancelled at every point there are as many connections to be had
    as before, and each answer goes to the one who asked."""
    store = await open_store(max_connections=2)
    keys = [SessionKey("app", "", f"s{number}") for number in range(4)]
    for each in keys:
        await store.append(each, [draft(each.session_id)])
    for moment in range(50):
        tasks = [asyncio.ensure_future(store.read(each)) for each in keys]
        for _ in range(moment % 25):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(10):
            pages = await asyncio.gather(*(store.read(each) for each in keys))
        assert [texts(page.messages) for page in pages] == [[each.session_id] for each in keys]


async def test_reads_of_a_frozen_server_that_are_cancelled_leave_nothing_behind(
    server: RedisServer, open_store: Open
) -> None:
    """Of 200 reads, cancelled while the server stands still, no answer reaches anybody else."""
    store = await open_store(max_connections=8)
    keys = [SessionKey("app", "", f"s{number}") for number in range(10)]
    for each in keys:
        await store.append(each, [draft(each.session_id)])
    for _ in range(20):
        server.freeze()
        tasks = [asyncio.ensure_future(store.read(each)) for each in keys]
        await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        server.thaw()
        pages = await asyncio.gather(*(store.read(each) for each in keys))
        assert [texts(page.messages) for page in pages] == [[each.session_id] for each in keys]


async def test_message_that_is_too_large_is_refused(store: RedisStore, key: SessionKey) -> None:
    """A body of more than 128 MB is a TooLargeError, and nothing is written."""
    body = bytes(RedisStore.max_body_bytes + 1)
    with pytest.raises(TooLargeError):
        await store.append(key, [draft(), draft(body, digest=b"d" * 16)])
    assert (await store.read(key)).incarnation is None


@pytest.mark.parametrize(
    "fields", [{"created_at": 1 << 63}, {"created_at": -(1 << 63) - 1}, {"role": "r" * 70_000}]
)
async def test_what_redis_cannot_hold_is_refused(
    store: RedisStore, key: SessionKey, fields: dict[str, Any]
) -> None:
    """Times beyond 64 bits and roles beyond 64 KB are refused."""
    with pytest.raises(InvalidRequestError):
        await store.append(key, [draft(**fields)])
    assert (await store.read(key)).incarnation is None


async def test_part_of_a_session_that_is_gone_is_an_error(
    store: RedisStore, inside: redis.Redis, key: SessionKey
) -> None:
    """A stream that was evicted or deleted by hand is never an empty history."""
    batch = drafts("m", 3)
    await store.append(key, batch)
    inside.delete("hk1:{app:ada:s1}:m:main")
    for call in (
        store.read(key),
        store.read_tail(key),
        store.read_message(key, batch[0].id),
        store.read_newest([key]),
        store.append(key, batch),
    ):
        with pytest.raises(StorageError, match="noeviction"):
            await call
    assert (await store.delete_session(key)).sessions == 1
    assert inside.dbsize() == 0


async def test_places_of_messages_that_are_gone_are_an_error(
    store: RedisStore, inside: redis.Redis, key: SessionKey
) -> None:
    """Where nothing is known any more of where messages are, none of them is said not to be there,
    unless there are none."""
    await store.append(key, drafts("m", 3))
    inside.delete("hk1:{app:ada:s1}:i")
    with pytest.raises(StorageError, match="noeviction"):
        await store.read_message(key, "m1")
    inside.flushall()
    await store.create_session(key, SessionDraft())
    with pytest.raises(NotFoundError):
        await store.read_message(key, "m1")


async def test_session_whose_hash_is_gone_begins_anew(
    store: RedisStore, inside: redis.Redis, key: SessionKey
) -> None:
    """What is left of a session whose hash was evicted is neither shown nor kept."""
    await store.append(key, [*drafts("m", 3), draft("x" * 5000)])
    await store.append(key, [draft("audit")], stream="audit")
    (last,) = await store.read_newest([key])
    inside.delete("hk1:{app:ada:s1}:s")
    assert (await store.read(key)).incarnation is None
    assert last is not None
    assert await store.read_newest([key]) == [None]
    with pytest.raises(NotFoundError):
        await store.read_message(key, last.id)
    await store.append(key, drafts("n", 2))
    assert texts((await store.read(key)).messages) == ["n 0", "n 1"]
    await store.append(key, [draft("new")], stream="audit")
    assert texts((await store.read(key, stream="audit")).messages) == ["new"]
    assert (await store.find_sessions(SessionQuery(namespace="app"))).total == 1
    await store.delete_session(key)
    assert inside.keys("hk1:{app:*") == []
    for query in (SessionQuery(namespace="app"), SessionQuery(namespace="app", status="active")):
        assert (await store.find_sessions(query)).total == 0


async def test_large_content_that_is_gone_is_one_bad_record(
    store: RedisStore, inside: redis.Redis, key: SessionKey
) -> None:
    """A message whose content is gone cannot be read; the others can, and one can append."""
    history = History(store, namespace="app", user_id="ada")
    await store.append(key, [draft('J{"a":1}'), draft("x" * 5000), draft("tail")])
    inside.delete("hk1:{app:ada:s1}:l")
    assert [row.body for row in (await store.read(key)).messages][1] == b""
    with pytest.raises(DecodeError) as caught:
        await history.load("s1")
    assert (caught.value.session_id, caught.value.sequence) in {("s1", 1), ("s1", 2)}
    assert (await store.append(key, [draft("more")])).stored == 1
