"""Many writers and readers at once: nothing is lost, torn or stored twice."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence

from historykit.capabilities import Capability, Guarantee
from historykit.errors import VersionConflictError
from historykit.records import MessagePatch, StoredMessage
from historykit.session_records import SessionKey, SessionPatch
from historykit.store import HistoryStore
from historykit.testing import processes
from historykit.testing.drafts import draft, drafts, numbered, texts
from historykit.testing.rules import requires, since
from historykit.testing.subject import StoreSubject, read_all

__all__ = ["ConcurrencyTests", "whole_batches"]


class ConcurrencyTests:
    """What is decided under a session's lock."""

    @since("0.1")
    async def test_parallel_appends_lose_nothing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Twenty tasks that append ten batches of three each leave 600 messages, none twice."""
        key = subject.key()
        await asyncio.gather(*(_append(store, key, f"w{n}", batches=10) for n in range(20)))
        rows = await subject.messages(store, key)
        assert len(rows) == 600
        assert len({row.id for row in rows}) == 600
        assert len({row.sequence for row in rows}) == 600

    @since("0.1")
    async def test_parallel_batches_stay_whole(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The messages of a batch stand side by side, whoever else appends at the same time."""
        key = subject.key()
        await asyncio.gather(*(_append(store, key, f"w{n}", batches=4) for n in range(10)))
        _assert_whole(await subject.messages(store, key), [f"w{n}" for n in range(10)], batches=4)

    @since("0.1")
    async def test_writers_of_many_sessions_do_not_meet(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Appends to thirty sessions at once end up in the session that each names."""
        keys = [subject.key(f"s{n}") for n in range(30)]
        await asyncio.gather(*(_append(store, key, key.session_id, batches=2) for key in keys))
        for key in keys:
            _assert_whole(await read_all(store, key), [key.session_id], batches=2)

    @since("0.1")
    @requires(Guarantee.SHARED)
    async def test_batches_of_several_stores_stay_whole(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The same with writers on four stores over one configuration."""
        key = subject.key()
        others = [subject.store() for _ in range(3)]
        try:
            await asyncio.gather(*(other.open() for other in others))
            writers = enumerate(itertools.islice(itertools.cycle([store, *others]), 8))
            await asyncio.gather(*(_append(each, key, f"w{n}", batches=4) for n, each in writers))
            _assert_whole(await read_all(store, key), [f"w{n}" for n in range(8)], batches=4)
        finally:
            await asyncio.gather(*(other.aclose() for other in others))

    @since("0.1")
    @requires(Guarantee.SHARED)
    async def test_batches_of_several_processes_stay_whole(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The same with four processes, which begin with a session that does not exist."""
        key = subject.key()
        writers = [f"w{n}" for n in range(4)]
        await processes.append(subject, key, writers=writers, batches=10, size=3)
        _assert_whole(await read_all(store, key), writers, batches=10)

    @since("0.1")
    async def test_parallel_first_appends_make_one_session(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Of several first appends at once one creates the session, and all go into it."""
        key = subject.key()
        receipts = await asyncio.gather(*(store.append(key, drafts("m", 2)) for _ in range(8)))
        assert [receipt.created for receipt in receipts].count(True) == 1
        assert len({receipt.incarnation for receipt in receipts}) == 1
        assert sorted(receipt.version for receipt in receipts) == list(range(1, 9))
        assert len(await subject.messages(store, key)) == 16

    @since("0.1")
    async def test_parallel_retries_store_once(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A batch that is sent eight times at once is stored once, and all learn its places."""
        key = subject.key()
        await store.append(key, [draft("before")])
        batch = drafts("m", 3)
        receipts = await asyncio.gather(*(store.append(key, batch) for _ in range(8)))
        assert sorted(receipt.stored for receipt in receipts) == [0] * 7 + [3]
        assert len({receipt.sequences for receipt in receipts}) == 1
        assert await subject.texts(store, key) == ["before", *numbered("m", 3)]

    @since("0.1")
    async def test_one_of_those_who_expect_a_version_wins(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Of appends at once that expect the same version one is done, the others conflict."""
        key = subject.key()
        version = (await store.append(key, [draft("before")])).version
        results = await asyncio.gather(
            *(store.append(key, [draft(f"m {n}")], expected_version=version) for n in range(8)),
            return_exceptions=True,
        )
        lost = [result for result in results if isinstance(result, BaseException)]
        assert [type(error) for error in lost] == [VersionConflictError] * 7
        assert len(await subject.messages(store, key)) == 2

    @since("0.1")
    async def test_parallel_changes_of_a_session_are_all_counted(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Changes of different fields at once are all there, and each counts as a revision."""
        key = subject.key()
        await store.append(key, [draft()])
        patches = [
            SessionPatch(agent_id="a"),
            SessionPatch(status="s"),
            SessionPatch(body=b"b"),
            SessionPatch(labels=frozenset({"l"})),
        ]
        records = await asyncio.gather(*(store.patch_session(key, patch) for patch in patches))
        assert sorted(record.revision for record in records) == [1, 2, 3, 4]
        final = await store.read_session(key)
        assert (final.agent_id, final.status, final.body) == ("a", "s", b"b")
        assert final.labels == {"l"}

    @since("0.1")
    async def test_one_of_those_who_expect_a_revision_wins(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Of changes at once that expect the same revision one is done, the others conflict."""
        key = subject.key()
        await store.append(key, [draft()])
        results = await asyncio.gather(
            *(
                store.patch_session(key, SessionPatch(status=f"s{n}"), if_revision=0)
                for n in range(6)
            ),
            return_exceptions=True,
        )
        lost = [result for result in results if isinstance(result, BaseException)]
        assert [type(error) for error in lost] == [VersionConflictError] * 5
        assert (await store.read_session(key)).revision == 1

    @since("0.1")
    @requires(Capability.EDIT)
    async def test_parallel_edits_are_all_counted(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Edits of different messages, and appends between them, are all there."""
        key = subject.key()
        batch = drafts("m", 8)
        await store.append(key, batch)
        await asyncio.gather(
            *(
                store.update_message(key, each.id, MessagePatch(body=b"new", digest=b"n" * 16))
                for each in batch
            ),
            *(store.append(key, [draft("late")]) for _ in range(4)),
        )
        async with subject.witness(store) as witness:
            page = await witness.read(key)
        assert texts(page.messages) == ["new"] * 8 + ["late"] * 4
        assert (page.version, page.epoch) == (13, 8)

    @since("0.1")
    async def test_reader_never_sees_a_part_of_a_batch(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """While others append, each read shows whole batches, and only more at the end."""
        key = subject.key()
        writing = asyncio.gather(*(_append(store, key, f"w{n}", batches=5) for n in range(5)))
        seen: list[StoredMessage] = []
        done = False
        async with subject.witness(store) as witness:
            while not done:
                done = writing.done()
                rows = await read_all(witness, key)
                assert rows[: len(seen)] == seen
                whole_batches(rows)
                seen = rows
                await asyncio.sleep(0)
        assert len(seen) == 75

    @since("0.1")
    async def test_cancelled_append_is_done_or_not_done(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Appends that are cancelled, each a moment later than the one before, are there whole or
        not at all; the store goes on."""
        key = subject.key()
        await store.append(key, drafts("first 0", 3))
        for moment in range(30):
            task = asyncio.ensure_future(store.append(key, drafts(f"w{moment} 0", 3)))
            for _ in range(moment):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        await store.append(key, drafts("last 0", 3))
        rows = await subject.messages(store, key)
        found = whole_batches(rows)
        assert found[0] == "first 0"
        assert "last 0" in found  # what was cancelled may go on beside it, and end after it
        assert len(set(found)) == len(found)

    @since("0.1")
    async def test_cancelled_read_leaves_the_store_in_order(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """After reads that were cancelled nobody gets the answer that was meant for another."""
        keys = [subject.key(f"s{n}") for n in range(4)]
        for key in keys:
            await store.append(key, drafts(key.session_id, 20))
        for moment in range(20):
            tasks = [asyncio.ensure_future(store.read(key)) for key in keys]
            for _ in range(moment):
                await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.wait(tasks)
            for key, task in list(zip(keys, tasks, strict=True))[1::2]:
                assert texts(task.result().messages) == numbered(key.session_id, 20)
        for key in keys:
            assert texts(await read_all(store, key)) == numbered(key.session_id, 20)

    @since("0.1")
    async def test_parallel_reads_do_not_mix(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Forty reads of ten sessions at once each get their own session."""
        keys = [subject.key(f"s{n}") for n in range(10)]
        for key in keys:
            await store.append(key, [draft(key.session_id)])
        pages = await asyncio.gather(*(store.read(key) for key in keys * 4))
        assert [texts(page.messages) for page in pages] == [[key.session_id] for key in keys * 4]


async def _append(store: HistoryStore, key: SessionKey, writer: str, *, batches: int) -> None:
    """Append batches of three messages that name their writer, their batch and their place."""
    for number in range(batches):
        await store.append(key, drafts(f"{writer} {number}", 3))


def whole_batches(rows: Sequence[StoredMessage]) -> list[str]:
    """Return the names of the batches that the messages are of, which have to be whole."""
    found = texts(rows)
    names = [text.rpartition(" ")[0] for text in found[::3]]
    assert found == [text for name in names for text in numbered(name, 3)], "a batch is torn"
    places = [row.sequence for row in rows]
    assert all(first < second for first, second in itertools.pairwise(places))
    return names


def _assert_whole(rows: Sequence[StoredMessage], writers: Sequence[str], *, batches: int) -> None:
    """Check that all batches of all writers are there, whole, those of one writer in order."""
    names = whole_batches(rows)
    assert Counter(names) == Counter(name for w in writers for name in numbered(w, batches))
    for writer in writers:
        own = [name for name in names if name.partition(" ")[0] == writer]
        assert own == numbered(writer, batches)
