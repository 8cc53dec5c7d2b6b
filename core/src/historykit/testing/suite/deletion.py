"""A deleted session is gone, and its name is free for another life."""

from __future__ import annotations

import pytest

from historykit.capabilities import Capability, Guarantee
from historykit.errors import NotFoundError, SessionDeletedError
from historykit.records import DeleteReceipt, Slice
from historykit.session_records import SessionDraft, SessionPatch, SessionQuery
from historykit.store import HistoryStore
from historykit.testing.drafts import draft, drafts, numbered
from historykit.testing.rules import requires, since
from historykit.testing.subject import StoreSubject

__all__ = ["DeletionTests"]


class DeletionTests:
    """Deleting a session, and its incarnations."""

    @since("0.1")
    async def test_deletion_leaves_nothing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """After a deletion the session reads as one that never was, in all its streams."""
        key = subject.key()
        await store.append(key, drafts("m", 3))
        await store.append(key, drafts("a", 2), stream="audit")
        assert await store.delete_session(key) == DeleteReceipt(sessions=1, messages=5)
        async with subject.witness(store) as witness:
            for stream in ("main", "audit"):
                assert await witness.read(key, stream=stream) == Slice((), None, 0, 0, False)
                tail = await witness.read_tail(key, stream=stream)
                assert (tail.count, tail.digests, tail.incarnation) == (0, (), None)
            with pytest.raises(NotFoundError):
                await witness.read_session(key)

    @since("0.1")
    async def test_deletion_of_nothing_is_no_error(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A session that is not there is deleted with a receipt of zeros, once and again."""
        key = subject.key()
        nothing = DeleteReceipt(sessions=0, messages=0)
        assert await store.delete_session(key) == nothing
        await store.append(key, [draft()])
        await store.delete_session(key)
        assert await store.delete_session(key) == nothing

    @since("0.1")
    async def test_session_begins_anew_after_deletion(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A session made after a deletion is another one: empty, at version 1, with the fields
        that it is made with."""
        key = subject.key()
        await store.append(key, drafts("old", 3), create=SessionDraft(body=b"old"))
        await store.append(key, drafts("old", 3), stream="audit")
        await store.patch_session(key, SessionPatch(status="archived"))
        await store.delete_session(key)
        receipt = await store.append(key, drafts("new", 2))
        assert (receipt.created, receipt.version) == (True, 1)
        assert await subject.texts(store, key) == numbered("new", 2)
        assert await subject.messages(store, key, stream="audit") == []
        record = await store.read_session(key)
        assert (record.body, record.status, record.revision) == (b"", "active", 0)

    @since("0.1")
    async def test_ids_are_free_after_deletion(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Messages of the deleted session do not make those of the new one repeats."""
        key = subject.key()
        batch = [*drafts("m", 2), draft("known", id="m1", external=True)]
        await store.append(key, batch)
        await store.delete_session(key)
        assert (await store.append(key, batch)).stored == 3
        assert await subject.texts(store, key) == [*numbered("m", 2), "known"]

    @since("0.1")
    async def test_each_life_has_its_incarnation(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Every creation has an incarnation of its own, which is not made of the session's name."""
        key, other = subject.key(), subject.key("s2")
        lives = []
        for _ in range(2):
            lives.append((await store.append(key, [draft()])).incarnation)
            await store.delete_session(key)
            lives.append((await store.create_session(key, SessionDraft())).incarnation)
            await store.delete_session(key)
        lives.append((await store.append(other, [draft()])).incarnation)
        assert len(set(lives)) == 5

    @since("0.1")
    async def test_append_does_not_revive_the_dead(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """An append that names an incarnation which was deleted fails and makes nothing."""
        key = subject.key()
        life = (await store.append(key, [draft()])).incarnation
        await store.delete_session(key)
        with pytest.raises(SessionDeletedError):
            await store.append(key, [draft("late")], incarnation=life)
        with pytest.raises(NotFoundError):
            await store.read_session(key)
        assert await subject.messages(store, key) == []

    @since("0.1")
    async def test_append_does_not_enter_another_life(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """An append that names a deleted incarnation fails also where the session lives again."""
        key = subject.key()
        life = (await store.append(key, [draft()])).incarnation
        await store.delete_session(key)
        await store.append(key, [draft("new")])
        with pytest.raises(SessionDeletedError):
            await store.append(key, [draft("late")], incarnation=life)
        assert await subject.texts(store, key) == ["new"]

    @since("0.1")
    async def test_append_that_names_the_life_it_read_goes_on(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """An append that names the incarnation which lives is like any other."""
        key = subject.key()
        await store.append(key, [draft("a")])
        life = (await store.read(key)).incarnation
        receipt = await store.append(key, [draft("b")], incarnation=life)
        assert (receipt.incarnation, receipt.created) == (life, False)
        assert await subject.texts(store, key) == ["a", "b"]

    @since("0.1")
    async def test_repeat_does_not_revive_the_dead(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A retry that names its incarnation is refused when the session was deleted between."""
        key = subject.key()
        life = (await store.append(key, [draft("a")])).incarnation
        batch = drafts("m", 2)
        await store.append(key, batch, incarnation=life)
        await store.delete_session(key)
        with pytest.raises(SessionDeletedError):
            await store.append(key, batch, incarnation=life)

    @since("0.1")
    @requires(Guarantee.SHARED)
    async def test_second_store_sees_the_deletion(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """What one store deleted, another one that had read it does not find any more."""
        key = subject.key()
        life = (await store.append(key, [draft()])).incarnation
        async with subject.store() as second:
            assert len((await second.read(key)).messages) == 1
            await store.delete_session(key)
            assert (await second.read(key)).incarnation is None
            with pytest.raises(SessionDeletedError):
                await second.append(key, [draft("late")], incarnation=life)

    @since("0.1")
    @requires(Capability.CATALOGUE)
    async def test_deleted_session_is_not_found(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A deleted session is in no search and in no total."""
        keys = [subject.key(f"s{n}") for n in range(3)]
        labels = frozenset({"l"})
        for key in keys:
            await store.create_session(key, SessionDraft(labels=labels))
        await store.delete_session(keys[1])
        for query in (
            SessionQuery(namespace=subject.namespace),
            SessionQuery(namespace=subject.namespace, user_id=""),
            SessionQuery(namespace=subject.namespace, labels=labels),
            SessionQuery(namespace=subject.namespace, status="active"),
        ):
            found = await store.find_sessions(query)
            assert [record.key for record in found.records] == [keys[2], keys[0]]
            assert found.total == 2
