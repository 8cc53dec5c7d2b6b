"""The ways to a server: URLs of every form, and clients that were handed in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis.asyncio

from historykit.errors import StorageError, WrongLoopError
from historykit.records import DeleteReceipt, MessagePatch, MessageSelector, Window
from historykit.session_records import (
    MAIN_STREAM,
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionQuery,
)
from historykit.testing.drafts import draft, drafts, texts
from historykit_redis import RedisConfig, RedisStore
from tests.services.processes import HOST, wait_until
from tests.services.redis import RedisServer, connect

Open = Callable[..., Awaitable[RedisStore]]

BINARY = bytes(range(256)) * 4
LARGE = BINARY * 20


async def use(store: RedisStore, key: SessionKey) -> None:
    """Do everything once, with bytes that are no text."""
    await store.create_session(key, SessionDraft(body=BINARY, labels=frozenset({"é"})))
    batch = [draft(BINARY, extra=BINARY), draft(LARGE), draft("three", role="assistant")]
    receipt = await store.append(key, batch)
    page = await store.read(key)
    assert [row.body for row in page.messages] == [BINARY, LARGE, b"three"]
    assert page.messages[0].extra == BINARY
    assert (await store.read(key, Window(limit=1))).messages == page.messages[2:]
    assert (await store.read_tail(key)).digests == tuple(each.digest for each in batch)
    patched = await store.update_message(key, receipt.ids[2], MessagePatch(extra=BINARY))
    assert patched.extra == BINARY
    assert await store.delete_messages(key, MessageSelector(ids=receipt.ids[:1])) == 1
    await store.replace(key, [draft(LARGE)], expected_version=3)
    assert (await store.patch_session(key, SessionPatch(status="é"))).body == BINARY
    await store.claim_run(key, "r", ttl=60)
    query = SessionQuery(namespace=key.namespace, status="é", labels=frozenset({"é"}))
    (found,) = (await store.find_sessions(query)).records
    assert (found.streams, found.run_id) == ({MAIN_STREAM: 1}, "r")
    assert (await store.ping()).settings["appendfsync"] == "always"
    assert await store.delete_session(key) == DeleteReceipt(sessions=1, messages=1)


@pytest.mark.asyncio
@pytest.mark.parametrize("decode_responses", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("single_connection", [False, True])
async def test_any_client_will_do(
    server: RedisServer,
    open_store: Open,
    key: SessionKey,
    decode_responses: bool,
    protocol: int,
    single_connection: bool,
) -> None:
    """A client that was handed in works whether it decodes answers or not, in both versions of the
    protocol, with one connection or a pool; and it is left open."""
    async with redis.asyncio.Redis(
        host=HOST,
        port=server.port,
        decode_responses=decode_responses,
        protocol=protocol,
        single_connection_client=single_connection,
    ) as client:
        connection = await client.client_id()
        store = await open_store(client=client)
        await use(store, key)
        await store.aclose()
        assert await client.client_id() == connection


@pytest.mark.asyncio
@pytest.mark.parametrize("decode_responses", [False, True])
async def test_client_of_a_cluster_will_do(
    cluster: list[RedisServer], key: SessionKey, decode_responses: bool
) -> None:
    """So does a client of a cluster."""
    async with redis.asyncio.RedisCluster(
        host=HOST, port=cluster[1].port, decode_responses=decode_responses
    ) as client:
        async with RedisStore(RedisConfig(client=client)) as store:
            await use(store, key)
        assert await client.ping()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "options", ["", "?decode_responses=True", "?protocol=3", "?health_check_interval=1"]
)
async def test_options_in_the_url_are_the_drivers(
    server: RedisServer, open_store: Open, key: SessionKey, options: str
) -> None:
    """Whatever the driver takes in a URL is taken, and does no harm."""
    await use(await open_store(url=server.url + options), key)


@pytest.mark.asyncio
async def test_unix_socket(server: RedisServer, open_store: Open, key: SessionKey) -> None:
    """A server is reached by a socket in the file system."""
    await use(await open_store(url=f"unix://{server.path}?db=1"), key)
    with connect(server.url.replace("/0", "/1")) as client:
        assert client.info("keyspace") == {}


@pytest.mark.asyncio
async def test_one_node_of_a_cluster_by_an_ordinary_url_is_refused(
    cluster: list[RedisServer], key: SessionKey
) -> None:
    """A session on another node of the cluster is an error that names the right form of URL."""
    async with RedisStore(RedisConfig(url=cluster[0].url)) as store:
        appends = [store.append(SessionKey("app", "", f"s{n}"), [draft()]) for n in range(20)]
        results = await asyncio.gather(*appends, return_exceptions=True)
        errors = [result for result in results if isinstance(result, BaseException)]
        assert {type(error) for error in errors} == {StorageError}
        assert all("redis+cluster://" in str(error) for error in errors)


@pytest.mark.asyncio
async def test_sentinel_leads_to_the_primary(
    behind_sentinel: tuple[RedisServer, RedisServer, str], key: SessionKey
) -> None:
    """A store behind sentinels, the first of which is away, follows a failover: it fails until
    there is another primary, and then goes on with what reached that."""
    primary, replica, url = behind_sentinel
    async with RedisStore(RedisConfig(url=url, timeout=1.0)) as store:
        await use(store, key)
        key = SessionKey("app", "", "other")
        await store.append(key, drafts("m", 2))
        with connect(replica.url) as client:
            wait_until(lambda: client.hgetall("hk1:{app::other}:s")[b"n:main"], failed=lambda: None)
        primary.kill()
        batch = [draft("m 2")]
        async with asyncio.timeout(30):
            while True:
                try:
                    await store.append(key, batch)
                    break
                except StorageError:
                    await asyncio.sleep(0.2)
        assert texts((await store.read(key)).messages) == ["m 0", "m 1", "m 2"]
    primary.start()


def test_client_of_another_loop_is_one_clear_error(server: RedisServer, key: SessionKey) -> None:
    """A client that was handed in belongs to its event loop: on the next one the store says so."""

    async def use_here(store: RedisStore) -> None:
        await store.append(key, [draft()])

    async def begin() -> RedisStore:
        client: Any = redis.asyncio.Redis.from_url(server.url)
        store = await RedisStore(RedisConfig(client=client)).open()
        await use_here(store)
        await client.aclose()
        return store

    store = asyncio.run(begin())
    with pytest.raises(WrongLoopError, match="another store"):
        asyncio.run(use_here(store))
    asyncio.run(store.aclose())
