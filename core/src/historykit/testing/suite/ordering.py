"""Order is a sequence that the store assigns."""

from __future__ import annotations

import itertools

from historykit.capabilities import Guarantee
from historykit.store import HistoryStore
from historykit.testing.drafts import draft, drafts, numbered, texts
from historykit.testing.rules import requires, since
from historykit.testing.subject import START, StoreSubject, read_all

__all__ = ["OrderingTests"]


class OrderingTests:
    """Messages come back in the order in which they were appended."""

    @since("0.1")
    async def test_batch_keeps_its_order(self, subject: StoreSubject, store: HistoryStore) -> None:
        """A batch is read in the order in which it was handed in, although its times are equal."""
        key = subject.key()
        await store.append(key, drafts("m", 50))
        assert await subject.texts(store, key) == numbered("m", 50)

    @since("0.1")
    async def test_appends_keep_their_order(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Single appends are read in their order, although the clock stands still."""
        key = subject.key()
        for text in numbered("m", 25):
            await store.append(key, [draft(text)])
        assert await subject.texts(store, key) == numbered("m", 25)

    @since("0.1")
    async def test_order_does_not_follow_the_clock(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A clock that goes backwards, and messages dated in the past, change nothing."""
        key = subject.key()
        for index, text in enumerate(numbered("m", 10)):
            subject.clock.advance(-60)
            await store.append(key, [draft(text, created_at=START - index * 1_000_000)])
        assert await subject.texts(store, key) == numbered("m", 10)

    @since("0.1")
    async def test_order_does_not_follow_the_ids(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Ids that sort the other way round change nothing."""
        key = subject.key()
        await store.append(key, [draft(text, id=f"id {9 - int(text[-1])}") for text in "012345"])
        await store.append(key, [draft("6", id="id 0")])
        assert await subject.texts(store, key) == list("0123456")

    @since("0.1")
    async def test_sequences_increase(self, subject: StoreSubject, store: HistoryStore) -> None:
        """Sequences are integers of 1 or more, each greater than the one before it."""
        key = subject.key()
        for _ in range(3):
            await store.append(key, drafts("m", 3))
        places = [row.sequence for row in await subject.messages(store, key)]
        assert all(type(place) is int and place > 0 for place in places)
        assert all(first < second for first, second in itertools.pairwise(places))

    @since("0.1")
    async def test_receipt_names_ids_and_sequences(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A receipt lists the ids of the batch in its order, and the sequences that they got."""
        key = subject.key()
        batch = drafts("m", 5)
        receipt = await store.append(key, batch)
        rows = await subject.messages(store, key)
        assert receipt.ids == tuple(each.id for each in batch) == tuple(row.id for row in rows)
        assert receipt.sequences == tuple(row.sequence for row in rows)
        assert (receipt.stored, receipt.created) == (5, True)

    @since("0.1")
    async def test_streams_of_a_session_are_apart(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Each stream of a session holds its own messages, in their order."""
        key = subject.key()
        for index in range(3):
            await store.append(key, [draft(f"main {index}")])
            await store.append(key, [draft(f"audit {index}")], stream="audit")
        assert await subject.texts(store, key) == numbered("main", 3)
        assert await subject.texts(store, key, stream="audit") == numbered("audit", 3)
        assert await subject.texts(store, key, stream="Main") == []

    @since("0.1")
    async def test_streams_share_the_sequence_of_their_session(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """No sequence occurs in two streams of a session, and a later message has the greater."""
        key = subject.key()
        receipts = [
            await store.append(key, drafts("m", 2), stream=stream)
            for stream in ("main", "audit", "main", "audit")
        ]
        places = [place for receipt in receipts for place in receipt.sequences]
        assert places == sorted(set(places), key=lambda place: place or 0)

    @since("0.1")
    @requires(Guarantee.SHARED)
    async def test_second_store_reads_the_same_order(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Two stores over one configuration append to one sequence and read the same."""
        key = subject.key()
        async with subject.store() as second:
            for index in range(6):
                writer = (store, second)[index % 2]
                await writer.append(key, [draft(f"m {index}")])
            assert texts(await read_all(store, key)) == numbered("m", 6)
            assert await read_all(second, key) == await read_all(store, key)
