"""A store is opened and closed; it belongs to an event loop and a process."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Awaitable, Callable

import pytest

from historykit.capabilities import Guarantee
from historykit.errors import StoreClosedError, WrongLoopError
from historykit.session_records import SessionDraft, SessionKey, SessionPatch
from historykit.store import HistoryStore
from historykit.testing import processes
from historykit.testing.drafts import draft, drafts, numbered, texts
from historykit.testing.rules import requires, since
from historykit.testing.subject import StoreSubject, read_all

__all__ = ["LifecycleTests"]


class LifecycleTests:
    """Opening, closing, opening again: on this event loop, on another one, in another process."""

    @since("0.1")
    async def test_opening_twice_is_opening(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Opening returns the store itself; opening what is open changes nothing."""
        key = subject.key()
        await store.append(key, [draft("before")])
        assert await store.open() is store
        assert texts(await read_all(store, key)) == ["before"]

    @since("0.1")
    async def test_closing_twice_is_closing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Closing what is closed does nothing, and neither does closing what was never open."""
        second = subject.store()
        await second.aclose()
        await second.open()
        await second.aclose()
        await second.aclose()

    @since("0.1")
    async def test_closed_store_refuses_every_call(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A store that is not open, or not any more, raises StoreClosedError."""
        second = subject.store()
        for _ in range(2):
            for call in _calls(second, subject.key()):
                with pytest.raises(StoreClosedError):
                    await call()
            await second.open()
            await second.aclose()

    @since("0.1")
    async def test_store_can_be_opened_again(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A store that was closed can be opened again, and has what it had."""
        key = subject.key()
        await store.append(key, drafts("m", 2))
        await store.aclose()
        await store.open()
        await store.append(key, [draft("m 2")])
        assert texts(await read_all(store, key)) == numbered("m", 3)

    @since("0.1")
    async def test_first_use_may_be_concurrent(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Eight stores that are opened at once, and used at once, all work, three times over."""
        for attempt in range(3):
            await asyncio.gather(*(_first_use(subject, attempt, i) for i in range(8)))

    @since("0.1")
    async def test_one_store_may_be_opened_concurrently(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Tasks that open one store at the same time, and use it, share it."""
        key = subject.key()
        second = subject.store()
        try:
            assert set(await asyncio.gather(*(second.open() for _ in range(5)))) == {second}
            await asyncio.gather(*(second.append(key, [draft()]) for _ in range(5)))
            assert len(await read_all(second, key)) == 5
        finally:
            await second.delete_session(key)
            await second.aclose()

    @since("0.1")
    async def test_closing_finishes_what_was_begun(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Appends that are under way when the store is closed are done, not lost."""
        key = subject.key()
        await store.append(key, [draft("first")])
        begun = [asyncio.ensure_future(store.append(key, [draft()])) for _ in range(5)]
        await asyncio.sleep(0)
        await store.aclose()
        receipts = await asyncio.gather(*begun)
        await store.open()
        rows = await read_all(store, key)
        assert {row.id for row in rows} >= {id for receipt in receipts for id in receipt.ids}

    @since("0.1")
    def test_store_moves_to_the_next_event_loop(self, subject: StoreSubject) -> None:
        """A store whose event loop was closed works on the next one, which finds its data."""
        store = subject.store()
        key = subject.key()

        async def use(*, last: bool) -> list[str]:
            if not last:
                await store.open()
            await store.append(key, [draft("last" if last else "first")])
            found = texts(await read_all(store, key))
            if last:
                await store.delete_session(key)
                await store.aclose()
            return found

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # of what the first loop left behind
            assert asyncio.run(use(last=False)) == ["first"]
            assert asyncio.run(use(last=True)) == ["first", "last"]
            gc.collect()

    @since("0.1")
    async def test_other_running_loop_is_refused(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """While its event loop runs, a store raises WrongLoopError on any other, and goes on."""
        key = subject.key()
        await store.append(key, [draft("here")])
        caught: list[BaseException] = []

        def use_elsewhere() -> None:
            try:
                asyncio.run(store.append(key, [draft("elsewhere")]))
            except BaseException as error:
                caught.append(error)

        thread = threading.Thread(target=use_elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert [type(error) for error in caught] == [WrongLoopError]
        assert texts(await read_all(store, key)) == ["here"]

    @since("0.1")
    @requires(Guarantee.SHARED)
    async def test_second_store_sees_what_was_appended(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """What one store acknowledged, another one over the same configuration reads at once."""
        key = subject.key()
        async with subject.store() as second:
            for count in range(1, 4):
                receipt = await store.append(key, [draft(f"m {count - 1}")])
                page = await second.read(key)
                assert texts(page.messages) == numbered("m", count)
                assert (page.incarnation, page.version) == (receipt.incarnation, receipt.version)

    @since("0.1")
    @requires(Guarantee.SHARED)
    async def test_data_outlives_the_store(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """What was written is there for a store that is made after the first one was closed."""
        key = subject.key()
        await store.create_session(key, SessionDraft(body=b"fields", labels=frozenset({"l"})))
        await store.append(key, drafts("m", 3))
        await store.append(key, [draft("a")], stream="audit")
        record, rows = await store.read_session(key), await read_all(store, key)
        await store.aclose()
        async with subject.store() as second:
            assert await second.read_session(key) == record
            assert await read_all(second, key) == rows
            assert texts(await read_all(second, key, stream="audit")) == ["a"]

    @since("0.1")
    @requires(Guarantee.SHARED)
    async def test_another_process_reads_the_same(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Another process reads exactly the records that this one wrote."""
        key = subject.key()
        await store.append(key, [draft(bytes(range(256)), extra=b"\0"), *drafts("m", 5)])
        assert await processes.read(subject, key) == await read_all(store, key)

    @since("0.1")
    @requires(Guarantee.SURVIVES_KILL)
    async def test_acknowledged_batches_survive_a_kill(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """After kill -9 each acknowledged batch is there whole, and no batch is there in part."""
        key = subject.key()
        acknowledged = await processes.append_until_killed(subject, key, batches=10)
        async with subject.store() as second:
            found = texts(await read_all(second, key))
        batches = [found[begin : begin + 3] for begin in range(0, len(found), 3)]
        assert batches == [numbered(f"batch {n}", 3) for n in range(len(batches))]
        assert len(batches) >= acknowledged

    @since("0.1")
    async def test_process_ends_after_closing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A process that closes its store ends, and has nothing to complain about."""
        complaints = await processes.end(subject, subject.key(), how="closed")
        assert "ResourceWarning" not in complaints
        assert "Traceback" not in complaints

    @since("0.1")
    async def test_process_ends_without_closing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A process that forgets to close its store ends all the same, with a ResourceWarning."""
        complaints = await processes.end(subject, subject.key(), how="forgotten")
        assert "ResourceWarning" in complaints

    @since("0.1")
    async def test_process_ends_when_closing_is_cancelled(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A process ends although the task that closes its store is cancelled."""
        complaints = await processes.end(subject, subject.key(), how="cancelled")
        assert "Traceback" not in complaints


async def _first_use(subject: StoreSubject, attempt: int, index: int) -> None:
    key = subject.key(f"s{attempt}", user=f"u{index}")
    async with subject.store() as store:
        assert (await store.read(key)).messages == ()
        await store.append(key, [draft("first")])
        assert texts(await read_all(store, key)) == ["first"]
        await store.delete_session(key)


def _calls(store: HistoryStore, key: SessionKey) -> list[Callable[[], Awaitable[object]]]:
    """Return every operation that no store may refuse for want of a capability."""
    return [
        store.ping,
        lambda: store.append(key, [draft()]),
        lambda: store.read(key),
        lambda: store.read_tail(key),
        lambda: store.create_session(key, SessionDraft()),
        lambda: store.read_session(key),
        lambda: store.patch_session(key, SessionPatch(status="x")),
        lambda: store.delete_session(key),
    ]
