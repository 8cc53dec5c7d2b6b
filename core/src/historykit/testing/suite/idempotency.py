"""A retry is safe, and what only looks like one is kept."""

from __future__ import annotations

import pytest

from historykit.capabilities import Guarantee
from historykit.errors import ConflictError, NotFoundError, VersionConflictError
from historykit.session_records import SessionPatch
from historykit.store import HistoryStore
from historykit.testing.drafts import draft, drafts, numbered
from historykit.testing.rules import requires, since
from historykit.testing.subject import StoreSubject

__all__ = ["IdempotencyTests"]


class IdempotencyTests:
    """Ids are the operation's identity; texts are not."""

    @since("0.1")
    async def test_retry_stores_once(self, subject: StoreSubject, store: HistoryStore) -> None:
        """A batch that is sent again is stored once; the receipt has the same ids and places."""
        key = subject.key()
        batch = drafts("m", 3)
        first = await store.append(key, batch)
        again = await store.append(key, batch)
        assert (again.ids, again.sequences) == (first.ids, first.sequences)
        assert (again.stored, again.created) == (0, False)
        assert (again.version, again.incarnation) == (first.version, first.incarnation)
        assert await subject.texts(store, key) == numbered("m", 3)

    @since("0.1")
    async def test_retry_through_another_store_stores_once(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """What makes a batch known is stored with the session, not remembered by the store."""
        key = subject.key()
        batch = drafts("m", 3)
        await store.append(key, batch)
        async with subject.witness(store) as witness:
            assert (await witness.append(key, batch)).stored == 0
        assert await subject.texts(store, key) == numbered("m", 3)

    @since("0.1")
    async def test_late_retry_stores_once(self, subject: StoreSubject, store: HistoryStore) -> None:
        """A batch is recognized however many messages came after it."""
        key = subject.key()
        batch = drafts("m", 3)
        first = await store.append(key, batch)
        for number in range(4):
            await store.append(key, drafts(f"later {number}", 150))
        again = await store.append(key, batch)
        assert (again.stored, again.sequences) == (0, first.sequences)
        assert again.version == 5
        assert (await store.read_tail(key)).count == 603

    @since("0.1")
    async def test_retry_of_a_late_message_stores_once(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Old messages with ids of their own are recognized among new ones."""
        key = subject.key()
        old = [draft(f"old {n}", id=f"old-{n}", external=True) for n in range(2)]
        await store.append(key, old)
        await store.append(key, drafts("later", 300))
        new = [draft(f"new {n}", id=f"new-{n}", external=True) for n in range(2)]
        receipt = await store.append(key, [new[0], old[1], new[1], old[0]])
        assert receipt.stored == 2
        assert (await subject.texts(store, key))[-2:] == numbered("new", 2)

    @since("0.1")
    async def test_known_messages_among_new_ones_are_not_stored_again(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Of messages with ids of their own those that are known are left out, the others keep
        their order; the receipt has the places of all."""
        key = subject.key()
        batch = [draft(f"m {n}", id=f"id-{n}", external=True) for n in range(5)]
        first = await store.append(key, [batch[1], batch[3]])
        receipt = await store.append(key, batch)
        assert (receipt.stored, receipt.version) == (3, 2)
        assert receipt.ids == tuple(each.id for each in batch)
        assert (receipt.sequences[1], receipt.sequences[3]) == first.sequences
        assert await subject.texts(store, key) == ["m 1", "m 3", "m 0", "m 2", "m 4"]
        rows = {row.id: row.sequence for row in await subject.messages(store, key)}
        assert receipt.sequences == tuple(rows[each.id] for each in batch)

    @since("0.1")
    async def test_cumulative_batches_store_each_message_once(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A caller that sends all messages each time, with their ids, stores each of them once."""
        key = subject.key()
        batch = [draft(f"m {n}", id=f"id-{n}", external=True) for n in range(4)]
        for count in range(1, 5):
            assert (await store.append(key, batch[:count])).stored == 1
        assert await subject.texts(store, key) == numbered("m", 4)

    @since("0.1")
    async def test_equal_messages_are_no_repeat(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The same text again, in one batch or the next, is said again: it is stored again."""
        key = subject.key()
        for _ in range(2):
            await store.append(key, [draft("yes"), draft("ok", role="assistant")])
        await store.append(key, [draft("yes"), draft("yes")])
        assert await subject.texts(store, key) == ["yes", "ok", "yes", "ok", "yes", "yes"]

    @since("0.1")
    async def test_known_id_with_other_content_is_a_conflict(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """An id that is stored with another digest is a ConflictError, and nothing is written."""
        key = subject.key()
        await store.append(key, [draft("a", id="m1")])
        for external in (False, True):
            batch = [draft("new"), draft("b", id="m1", external=external)]
            with pytest.raises(ConflictError):
                await store.append(key, batch)
        assert await subject.texts(store, key) == ["a"]
        assert (await store.read_session(key)).version == 1

    @since("0.1")
    async def test_part_of_a_known_batch_is_a_conflict(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A batch whose beginning is known and whose end is not is a ConflictError, and nothing is
        written."""
        key = subject.key()
        batch = drafts("m", 3)
        await store.append(key, batch[:2])
        with pytest.raises(ConflictError):
            await store.append(key, batch)
        assert await subject.texts(store, key) == numbered("m", 2)

    @since("0.1")
    async def test_expected_version_is_met_or_refused(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """An append at another version than expected is a conflict that names both, and writes
        nothing."""
        key = subject.key()
        await store.append(key, [draft("a")], expected_version=0)
        await store.append(key, [draft("b")], expected_version=1)
        for expected in (0, 1, 3):
            with pytest.raises(VersionConflictError) as caught:
                await store.append(key, [draft("late")], expected_version=expected)
            assert (caught.value.expected, caught.value.actual) == (expected, 2)
        await store.append(key, [draft("c")])
        assert await subject.texts(store, key) == ["a", "b", "c"]

    @since("0.1")
    @requires(Guarantee.SHARED)
    async def test_of_two_who_read_a_version_one_goes_on(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Of two stores that read a session at the same version the one that appends first goes on,
        also where fields of the session were changed since; the other one conflicts and writes
        nothing. An append that expects no version goes through."""
        key = subject.key()
        async with subject.store() as second:
            for number in range(7):
                await store.append(key, [draft(f"m {number}")])
            versions = [(await each.read(key)).version for each in (store, second)]
            assert versions == [7, 7]
            await second.patch_session(key, SessionPatch(body=b"renamed"))
            receipt = await store.append(key, [draft("m 7")], expected_version=7)
            assert receipt.version == 8
            with pytest.raises(VersionConflictError) as caught:
                await second.append(key, drafts("late", 2), expected_version=7)
            assert (caught.value.expected, caught.value.actual) == (7, 8)
            assert await subject.texts(store, key) == numbered("m", 8)
            assert (await second.append(key, [draft("m 8")])).version == 9
        assert await subject.texts(store, key) == numbered("m", 9)

    @since("0.1")
    async def test_expected_version_of_no_session_is_zero(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Expecting a version above 0 of a session that is not there fails, and makes none."""
        key = subject.key()
        with pytest.raises(VersionConflictError):
            await store.append(key, [draft()], expected_version=1)
        with pytest.raises(NotFoundError):
            await store.read_session(key)

    @since("0.1")
    async def test_retry_is_no_version_conflict(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A batch that was stored at the version it expected is recognized when it is sent again,
        although the version moved by it."""
        key = subject.key()
        batch = drafts("m", 2)
        first = await store.append(key, batch, expected_version=0)
        again = await store.append(key, batch, expected_version=0)
        assert (again.stored, again.sequences) == (0, first.sequences)
        await store.append(key, [draft("later")])
        assert (await store.append(key, batch, expected_version=0)).stored == 0
        assert (await store.read_tail(key)).count == 3
