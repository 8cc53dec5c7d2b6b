"""What is sent twice is done once: drivers send again what they got no answer to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff

from historykit.errors import StorageUnavailableError
from historykit.records import MessagePatch, MessageSelector, Retention
from historykit.session_records import SessionDraft, SessionKey, SessionPatch
from historykit.testing.drafts import conversation, draft, drafts, texts
from historykit_redis import RedisStore
from tests.services.processes import HOST
from tests.services.redis import RedisServer

pytestmark = pytest.mark.asyncio

Open = Callable[..., Awaitable[RedisStore]]


class Twice:
    """Sends everything twice, as if the first answer had been lost."""

    def __init__(self, exchange: Any) -> None:
        self._exchange = exchange

    async def send(self, commands: Sequence[Any]) -> list[Any]:
        await self._exchange.send(commands)
        answers: list[Any] = await self._exchange.send(commands)
        return answers


@pytest.fixture
def stuttering(store: RedisStore) -> RedisStore:
    """A store whose every command arrives twice."""
    store._server._exchange = Twice(store._server._exchange)
    return store


async def freeze(server: RedisServer, call: Awaitable[Any]) -> Any:
    """Make a call to a server that stands still for 2.5 seconds, and return what becomes of it."""
    server.freeze()
    task = asyncio.ensure_future(call)
    await asyncio.sleep(2.5)
    server.thaw()
    try:
        return await task
    except StorageUnavailableError as error:
        return error


async def test_append_to_a_frozen_server_is_stored_once(
    server: RedisServer, open_store: Open, key: SessionKey
) -> None:
    """A server that stands still for longer than all attempts take stores the messages once, also
    when the caller sends them again."""
    store = await open_store(timeout=0.5)
    await store.append(key, drafts("before", 2))
    batch = drafts("m", 3)
    outcome = await freeze(server, store.append(key, batch))
    assert isinstance(outcome, StorageUnavailableError) or outcome.sequences == (3, 4, 5)
    assert (await store.append(key, batch)).sequences == (3, 4, 5)
    assert texts((await store.read(key)).messages) == ["before 0", "before 1", "m 0", "m 1", "m 2"]


async def test_append_through_a_client_that_tries_ten_times_is_stored_once(
    server: RedisServer, open_store: Open, key: SessionKey
) -> None:
    """The retries of a client that was handed in store the messages once."""
    client = redis.asyncio.Redis(
        host=HOST,
        port=server.port,
        socket_timeout=0.5,
        retry=Retry(ConstantBackoff(0.1), 10),
        retry_on_error=[redis.ConnectionError, redis.TimeoutError],
    )
    async with client:
        store = await open_store(client=client)
        await store.append(key, drafts("before", 2))
        receipt = await freeze(server, store.append(key, drafts("m", 3)))
        assert receipt.sequences == (3, 4, 5)
        page = await store.read(key)
        assert texts(page.messages) == ["before 0", "before 1", "m 0", "m 1", "m 2"]


async def test_repeated_append_gives_the_same_receipt(
    stuttering: RedisStore, key: SessionKey
) -> None:
    """An append that arrives twice stores nothing the second time and names the same places."""
    receipt = await stuttering.append(key, drafts("m", 3))
    assert (receipt.sequences, receipt.version) == ((1, 2, 3), 1)
    receipt = await stuttering.append(key, drafts("n", 2), expected_version=1)
    assert (receipt.sequences, receipt.version) == ((4, 5), 2)


async def test_repeated_append_trims_once(stuttering: RedisStore, key: SessionKey) -> None:
    """Retention counts what it removed once."""
    await stuttering.append(key, conversation(5), retention=Retention(4))
    assert (await stuttering.read_tail(key)).trimmed == 6


async def test_repeated_creation_is_no_conflict(stuttering: RedisStore, key: SessionKey) -> None:
    """A creation that arrives twice finds its own session and is content."""
    record = await stuttering.create_session(key, SessionDraft(agent_id="a"))
    assert (record.agent_id, record.revision) == ("a", 0)


async def test_repeated_patch_counts_once(stuttering: RedisStore, key: SessionKey) -> None:
    """A patch that arrives twice is one revision, and no conflict with itself."""
    await stuttering.append(key, [draft()])
    record = await stuttering.patch_session(key, SessionPatch(status="done"), if_revision=0)
    assert (record.status, record.revision) == ("done", 1)
    record = await stuttering.create_session(key, SessionDraft(), if_exists="update")
    assert (record.status, record.revision) == ("active", 2)


async def test_repeated_update_counts_once(stuttering: RedisStore, key: SessionKey) -> None:
    """An update of a message that arrives twice is one revision and one version."""
    receipt = await stuttering.append(key, [draft("m", role="assistant")])
    row = await stuttering.update_message(key, receipt.ids[0], MessagePatch(reaction="LIKE"))
    assert (row.reaction, row.revision) == ("LIKE", 1)
    page = await stuttering.read(key)
    assert (page.version, page.epoch, page.messages) == (2, 1, (row,))


async def test_repeated_deletion_tells_how_many(stuttering: RedisStore, key: SessionKey) -> None:
    """A deletion of messages that arrives twice tells the number of the first time."""
    await stuttering.append(key, drafts("m", 4))
    assert await stuttering.delete_messages(key, MessageSelector(first=2, last=3)) == 2
    assert (await stuttering.read(key)).version == 2


async def test_repeated_replacement_is_made_once(stuttering: RedisStore, key: SessionKey) -> None:
    """A replacement that arrives twice gives its messages the numbers of the first time."""
    await stuttering.append(key, drafts("m", 2))
    receipt = await stuttering.replace(key, drafts("n", 2), expected_version=1)
    assert (receipt.sequences, receipt.version) == ((3, 4), 2)
    assert [row.sequence for row in (await stuttering.read(key)).messages] == [3, 4]


async def test_repeated_release_still_says_that_the_run_held(
    stuttering: RedisStore, key: SessionKey
) -> None:
    """A release that arrives twice says what the first one did."""
    await stuttering.append(key, [draft()])
    await stuttering.claim_run(key, "r", ttl=60)
    assert await stuttering.release_run(key, "r")
    assert not await stuttering.release_run(key, "r")


async def test_repeated_deletion_spares_the_next_life(store: RedisStore, key: SessionKey) -> None:
    """A deletion that arrives again after the session was made anew leaves the new one alone."""
    await store.append(key, [draft("old")])
    exchange = store._server._exchange
    sent: list[Sequence[Any]] = []

    class Recording:
        async def send(self, commands: Sequence[Any]) -> list[Any]:
            sent.append(commands)
            return await exchange.send(commands)

    store._server._exchange = Recording()
    assert (await store.delete_session(key)).sessions == 1
    store._server._exchange = exchange
    await store.append(key, [draft("new")])
    await exchange.send(sent[-1])
    assert texts((await store.read(key)).messages) == ["new"]


async def test_lost_scripts_are_sent_again(
    store: RedisStore, inside: redis.Redis, key: SessionKey
) -> None:
    """A server that has forgotten the scripts is given them again, one by one."""
    await store.append(key, drafts("m", 2))
    inside.script_flush()
    await store.append(key, [draft("m 2")])
    inside.script_flush()
    assert texts((await store.read(key)).messages) == ["m 0", "m 1", "m 2"]
    inside.script_flush()
    assert (await store.delete_session(key)).messages == 3
