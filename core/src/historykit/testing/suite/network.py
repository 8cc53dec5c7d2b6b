"""What lies between a store and its server: it breaks, stalls, is slow, and costs round trips."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import pytest

from historykit.capabilities import Capability
from historykit.errors import StorageError
from historykit.ids import new_id
from historykit.messages import Message
from historykit.records import PAGE_MESSAGES, AppendReceipt, Slice, Window
from historykit.session_records import SessionKey
from historykit.store import HistoryStore
from historykit.testing.drafts import draft, drafts, numbered, texts
from historykit.testing.proxy import TcpProxy, Traffic
from historykit.testing.rules import requires, since
from historykit.testing.subject import StoreSubject, read_all
from historykit.testing.suite.concurrency import whole_batches

__all__ = ["NetworkTests"]

DELAY: Final = 0.001
"""Seconds that bytes are under way on a slow network, in each direction."""

SETTLING: Final = 8
"""After so many calls of a kind a driver that prepares statements has done so."""

PATIENCE: Final = 20
"""After so many seconds a store is held to be stuck."""


class NetworkTests:
    """`far` is a store whose server is behind the proxy, `store` one that reaches it directly."""

    @since("0.1")
    async def test_save_is_one_round_trip(
        self, subject: StoreSubject, far: HistoryStore, proxy: TcpProxy
    ) -> None:
        """An append takes one round trip, whether there is a session yet or not."""
        key = subject.key()
        again = await _cost(proxy, lambda: far.append(key, drafts("m", 3)))
        first = await _cost(proxy, lambda: far.append(subject.key(new_id()), drafts("m", 3)))
        assert (again.trips, first.trips) == (1, 1)

    @since("0.1")
    async def test_load_is_one_round_trip_for_each_page(
        self, subject: StoreSubject, store: HistoryStore, far: HistoryStore, proxy: TcpProxy
    ) -> None:
        """A read takes one round trip for each page, with its limit or without one."""
        key = subject.key()
        await store.append(key, drafts("m", 2 * PAGE_MESSAGES + 100))
        assert (await _cost(proxy, lambda: read_all(far, key))).trips == 3
        for window in (Window(limit=20), Window(limit=20, before=50), Window(after=1000)):
            assert (await _cost(proxy, partial(far.read, key, window))).trips == 1

    @since("0.1")
    async def test_history_is_loaded_in_one_round_trip_for_each_page(
        self, subject: StoreSubject, store: HistoryStore, far: HistoryStore, proxy: TcpProxy
    ) -> None:
        """A provider loads a history with no more round trips than it has pages, and saves a turn
        in one."""
        key = subject.key()
        provider = subject.history(far).provider()
        saved = [Message("user", text=text) for text in numbered("m", PAGE_MESSAGES + 100)]
        await subject.history(store).provider().save_messages(key.session_id, saved)
        load = await _cost(proxy, lambda: provider.get_messages(key.session_id))
        turn = [Message("user", text="yes"), Message("assistant", text="yes")]
        save = await _cost(proxy, lambda: provider.save_messages(key.session_id, turn))
        assert (load.trips, save.trips) == (2, 1)

    @since("0.1")
    async def test_save_costs_the_same_on_a_long_session(
        self, subject: StoreSubject, store: HistoryStore, far: HistoryStore, proxy: TcpProxy
    ) -> None:
        """An append moves no more bytes where there are 3,000 messages than where there are 10."""
        short, long = subject.key("length   10"), subject.key("length 3000")
        await store.append(short, [draft("x" * 200) for _ in range(10)])
        await store.append(long, [draft("x" * 200) for _ in range(3000)])
        little = await _cost(proxy, lambda: far.append(short, [draft("x" * 200)]))
        much = await _cost(proxy, lambda: far.append(long, [draft("x" * 200)]))
        assert little.sent > 200
        assert much.trips == little.trips
        assert much.sent + much.received < 1.2 * (little.sent + little.received) + 64

    @since("0.1")
    async def test_broken_connections_are_replaced(
        self, subject: StoreSubject, far: HistoryStore, proxy: TcpProxy
    ) -> None:
        """After all idle connections were broken the next calls work, reads and writes alike."""
        key = subject.key()
        await far.append(key, [draft("first")])
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: far.append(key, [draft("m 0")]),
            lambda: far.read(key),
            lambda: far.read_session(key),
        ]
        for call in calls:
            await asyncio.gather(*(far.read(key) for _ in range(3)))
            proxy.cut()
            await asyncio.sleep(0.02)
            async with asyncio.timeout(PATIENCE):
                await call()
        assert (await subject.texts(far, key)).count("m 0") == 1

    @since("0.1")
    async def test_save_that_is_cut_off_is_whole_or_absent(
        self, subject: StoreSubject, store: HistoryStore, far: HistoryStore, proxy: TcpProxy
    ) -> None:
        """Saves that an outage meets at different points are there whole or not at all; what was
        acknowledged is there, and a save that is sent again afterwards is there once."""
        proxy.delay = DELAY
        for attempt in range(3):
            keys = [subject.key(f"{attempt} {moment}") for moment in range(20)]
            batches = [drafts("m", 3) for _ in keys]
            saves = []
            for key, batch in zip(keys, batches, strict=True):
                saves.append(asyncio.create_task(far.append(key, batch)))
                await asyncio.sleep(DELAY / 5)
            async with proxy.down():
                done = [await _succeeds(save) for save in saves]
            for key, batch, is_done in zip(keys, batches, done, strict=True):
                found = texts(await read_all(store, key))
                assert found in ([numbered("m", 3)] if is_done else [[], numbered("m", 3)])
                await far.append(key, batch)
                assert texts(await read_all(store, key)) == numbered("m", 3)

    @since("0.1")
    @requires(Capability.EDIT)
    async def test_replacement_that_is_cut_off_is_whole_or_absent(
        self, subject: StoreSubject, store: HistoryStore, far: HistoryStore, proxy: TcpProxy
    ) -> None:
        """Replacements that an outage meets at different points are there whole, or what they were
        to replace is."""
        proxy.delay = DELAY
        for attempt in range(3):
            keys = [subject.key(f"{attempt} {moment}") for moment in range(15)]
            for key in keys:
                await store.append(key, drafts("old", 10))
            replacing = []
            for key in keys:
                call = far.replace(key, drafts("new", 5), expected_version=1)
                replacing.append(asyncio.create_task(call))
                await asyncio.sleep(DELAY / 5)
            async with proxy.down():
                done = [await _succeeds(each) for each in replacing]
            for key, is_done in zip(keys, done, strict=True):
                found = texts(await read_all(store, key))
                new, old = numbered("new", 5), numbered("old", 10)
                assert found in ([new] if is_done else [old, new])

    @since("0.1")
    async def test_save_whose_answer_is_lost_is_stored_once(
        self, subject: StoreSubject, store: HistoryStore, far: HistoryStore, proxy: TcpProxy
    ) -> None:
        """A save that the server has done, while its answer never arrives, is there once, also
        after the caller has sent it again."""
        key, batch = subject.key(), drafts("m", 3)
        await _cost(proxy, lambda: far.append(subject.key("other"), drafts("m", 3)))
        async with proxy.stalled(requests=False):
            saving = asyncio.create_task(far.append(key, batch))
            await _stored(store, key)
            proxy.cut()
        await _succeeds(saving)
        assert (await far.append(key, batch)).stored == 0
        assert texts(await read_all(store, key)) == numbered("m", 3)

    @since("0.1")
    async def test_save_waits_out_a_stall(
        self, subject: StoreSubject, store: HistoryStore, far: HistoryStore, proxy: TcpProxy
    ) -> None:
        """A save is stored once where the network stands still for a while, whether the store waits
        or sends it again."""
        key, batch = subject.key(), drafts("m", 3)
        await _cost(proxy, lambda: far.append(subject.key("other"), drafts("m", 3)))
        async with proxy.stalled():
            saving = asyncio.create_task(far.append(key, batch))
            await asyncio.sleep(1.5)
        await _succeeds(saving)
        await far.append(key, batch)
        assert texts(await read_all(store, key)) == numbered("m", 3)

    @since("0.1")
    async def test_outage_in_the_middle_of_saves(
        self, subject: StoreSubject, store: HistoryStore, far: HistoryStore, proxy: TcpProxy
    ) -> None:
        """While the server is away saves and loads are errors, and nothing else; afterwards the
        store works, and what was under way is there whole or not at all."""
        key = subject.key()
        await far.append(key, drafts("first 0", 3))
        proxy.delay = DELAY
        saves = [asyncio.create_task(far.append(key, drafts(f"w {n}", 3))) for n in range(8)]
        await asyncio.sleep(2 * DELAY)
        async with proxy.down():
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(StorageError):
                    await far.append(key, drafts("lost 0", 3))
                with pytest.raises(StorageError):
                    await far.read(key)
                done = [await _succeeds(save) for save in saves]
        await far.append(key, drafts("last 0", 3))
        found = whole_batches(await read_all(store, key))
        assert len(set(found)) == len(found)
        assert {"first 0", "last 0"} <= set(found)
        assert {f"w {n}" for n, is_done in enumerate(done) if is_done} <= set(found)

    @since("0.1")
    async def test_cancelled_calls_on_a_slow_network(
        self, subject: StoreSubject, store: HistoryStore, far: HistoryStore, proxy: TcpProxy
    ) -> None:
        """Of 500 saves and reads that are cancelled at random points each save is there whole or
        not at all, and each read that ended got its own session."""
        keys = [subject.key(f"s{n}") for n in range(10)]
        for key in keys:
            await far.append(key, drafts(f"{key.session_id} first", 3))
        proxy.delay = DELAY
        calls = _Calls(far, keys)
        async with asyncio.timeout(2 * PATIENCE):
            await asyncio.gather(*(calls.make(number, 50) for number in range(10)))
        assert calls.cancelled > 50
        for key in keys:
            assert whole_batches((await far.read(key)).messages)
            found = whole_batches(await read_all(store, key))
            assert len(set(found)) == len(found)
            assert {name.partition(" ")[0] for name in found} == {key.session_id}
            assert calls.acknowledged[key] <= set(found)


class _Calls:
    """Saves and reads that are cancelled at random points; the same ones each time."""

    def __init__(self, store: HistoryStore, keys: list[SessionKey]) -> None:
        self.cancelled = 0
        self.acknowledged: dict[SessionKey, set[str]] = {key: set() for key in keys}
        self._store = store
        self._random = random.Random(500)

    async def make(self, caller: int, count: int) -> None:
        """Make calls one after the other."""
        for number in range(count):
            key = self._random.choice(list(self.acknowledged))
            name = f"{key.session_id} {caller}.{number}"
            if self._random.random() < 0.5:
                if await self._cancelled(self._store.append(key, drafts(name, 3))) is not None:
                    self.acknowledged[key].add(name)
            elif (page := await self._cancelled(self._store.read(key))) is not None:
                assert isinstance(page, Slice)
                owners = {text.partition(" ")[0] for text in whole_batches(page.messages)}
                assert owners == {key.session_id}, "a read got somebody else's messages"

    async def _cancelled(self, call: Awaitable[AppendReceipt | Slice]) -> object:
        """Return what the call returns, None where it was cancelled before."""
        task = asyncio.ensure_future(call)
        await asyncio.sleep(self._random.uniform(0, 8 * DELAY))
        task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            self.cancelled += 1
            return None


async def _cost(proxy: TcpProxy, call: Callable[[], Awaitable[object]]) -> Traffic:
    """Return the traffic of a call that was made before: all that is prepared once is prepared."""
    for _ in range(SETTLING):
        await call()
    cost = proxy.traffic = Traffic()
    await call()
    proxy.traffic = Traffic()
    return cost


async def _stored(store: HistoryStore, key: SessionKey) -> None:
    """Wait until a session has messages."""
    async with asyncio.timeout(PATIENCE):
        while not (await store.read(key)).messages:  # noqa: ASYNC110  - nobody here is told
            await asyncio.sleep(0.01)


async def _succeeds(saving: asyncio.Task[AppendReceipt]) -> bool:
    """Return whether a save succeeds, and not fails as it may."""
    try:
        async with asyncio.timeout(PATIENCE):
            await saving
    except StorageError:
        return False
    return True
