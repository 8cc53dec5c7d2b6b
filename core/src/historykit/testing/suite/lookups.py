"""Single messages are read: one by its id, and the newest of each of many sessions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from historykit.capabilities import Capability
from historykit.errors import NotFoundError
from historykit.records import MessagePatch, MessageSelector, Retention, StoredMessage
from historykit.session_records import SessionDraft, SessionKey
from historykit.store import HistoryStore
from historykit.testing.drafts import conversation, draft, drafts
from historykit.testing.rules import requires, since
from historykit.testing.subject import StoreSubject

__all__ = ["LookupTests"]


class LookupTests:
    """`read_message` and `read_newest`."""

    @since("0.1")
    async def test_message_is_read_by_its_id(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A message that is read by its id is the one that a page has, old or new, small or
        large."""
        key = subject.key()
        await store.append(key, [draft("rules", role="system", turn_start=True, extra=b"e")])
        await store.append(key, drafts("m", 150))
        await store.append(key, [draft("x" * 100_000, extra=bytes(range(256)), created_at=1)])
        await store.append(key, drafts("n", 3, role="assistant"))
        rows = await subject.messages(store, key)
        async with subject.witness(store) as witness:
            for row in (*rows[:3], rows[75], *rows[-5:]):
                assert await witness.read_message(key, row.id) == row

    @since("0.1")
    async def test_message_is_read_from_any_stream(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A message is read by its id in whichever stream of its session it is."""
        key = subject.key()
        batches = {name: drafts(name, 2) for name in ("main", "audit", "$x.y")}
        for name, batch in batches.items():
            await store.append(key, batch, stream=name)
        for name, batch in batches.items():
            rows = await subject.messages(store, key, stream=name)
            assert [await store.read_message(key, each.id) for each in batch] == rows

    @since("0.1")
    async def test_message_that_is_not_there_is_an_error(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A message that never was, or was trimmed, or whose session was deleted, is a
        NotFoundError that names it; reading it creates nothing."""
        key, gone, nothing = subject.key(), subject.key("gone"), subject.key("nothing")
        batch = conversation(4)
        await store.append(key, batch, retention=Retention(2))
        await store.append(gone, [draft(id="lost")])
        await store.delete_session(gone)
        await _assert_not_found(store, key, "unknown", batch[0].id)
        await _assert_not_found(store, gone, "lost")
        await _assert_not_found(store, nothing, "unknown")
        with pytest.raises(NotFoundError):
            await store.read_session(nothing)

    @since("0.1")
    async def test_message_is_read_from_its_session_only(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """An id leads to no message of another session, user or namespace, and where two sessions
        have it, to that of the session asked."""
        key = subject.key()
        await store.append(key, [draft("mine", id="mine"), draft("first", id="both")])
        await store.append(subject.key("s2"), [draft("second", id="both")])
        others = [subject.key(user="ada"), subject.key(namespace="2"), subject.key("s3")]
        await _assert_not_found(store, subject.key("s2"), "mine")
        for other in others:
            await store.create_session(other, SessionDraft())
            await _assert_not_found(store, other, "mine", "both")
        found = [await store.read_message(each, "both") for each in (key, subject.key("s2"))]
        assert [row.body for row in found] == [b"first", b"second"]

    @since("0.1")
    @requires(Capability.EDIT)
    async def test_message_is_read_as_it_is_now(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A message that was changed is read as it was left; one that was deleted or replaced is
        not found, and one that came back in a replacement is."""
        key = subject.key()
        batch = drafts("m", 150)
        await store.append(key, batch)
        for each in (batch[3], batch[-1]):
            patch = MessagePatch(body=b"new", digest=b"n" * 16, reaction="LIKE", extra=b"e")
            changed = await store.update_message(key, each.id, patch)
            assert await store.read_message(key, each.id) == changed
        await store.delete_messages(key, MessageSelector(ids=(batch[3].id, batch[-1].id)))
        await _assert_not_found(store, key, batch[3].id, batch[-1].id)
        version = (await store.read_tail(key)).version
        await store.replace(key, [draft("fresh"), batch[5]], expected_version=version)
        await _assert_not_found(store, key, batch[4].id)
        assert (await store.read_message(key, batch[5].id)).body == b"m 5"

    @since("0.1")
    async def test_newest_of_each_session_is_read(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """For each session asked for there is its newest message, or None where it has none, in
        the order of the question; it is the one that a page of one has."""
        keys = [subject.key(f"s{n}") for n in range(6)]
        for key, count in zip(keys, (1, 64, 200, 0, 3), strict=False):
            await store.create_session(key, SessionDraft())
            for first in range(0, count, 50):
                await store.append(key, drafts(f"{first}", min(count - first, 50)))
        await store.append(keys[1], [draft("x" * 100_000, extra=b"e", role="assistant")])
        await store.append(keys[2], conversation(20), retention=Retention(4))
        asked = [*reversed(keys), keys[2], subject.key(user="ada")]
        async with subject.witness(store) as witness:
            assert await witness.read_newest(asked) == await _last(witness, asked)
            assert await witness.read_newest([keys[1]]) == await _last(witness, [keys[1]])
            assert await witness.read_newest([]) == []
        found = await store.read_newest(keys)
        assert [row is None for row in found] == [False] * 3 + [True, False, True]

    @since("0.1")
    async def test_newest_is_of_the_session_and_stream_asked_for(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The newest message is that of the stream asked for, whatever came to other streams, users
        and sessions since."""
        keys = [subject.key(user=user) for user in ("", "ada", "bob")]
        for n, key in enumerate(keys):
            await store.append(key, [draft(f"main {n}")])
            await store.append(key, drafts(f"audit {n}", 100), stream="audit")
        for stream, expected in (("main", "main {}"), ("audit", "audit {} 99")):
            rows = await store.read_newest(keys, stream=stream)
            found = [row and row.body.decode() for row in rows]
            assert found == [expected.format(n) for n in range(3)]
        assert await store.read_newest(keys, stream="other") == [None] * 3

    @since("0.1")
    @requires(Capability.EDIT)
    async def test_newest_follows_edits(self, subject: StoreSubject, store: HistoryStore) -> None:
        """A newest message that was changed is read as it was left; where it was deleted, the one
        before it is the newest; where none is left, there is none."""
        keys = [subject.key(f"s{n}") for n in range(3)]
        batches = [drafts(f"{n}", count) for n, count in enumerate((150, 3, 1))]
        for key, batch in zip(keys, batches, strict=True):
            await store.append(key, batch)
        await store.update_message(keys[1], batches[1][-1].id, MessagePatch(reaction="LIKE"))
        await store.delete_messages(keys[2], MessageSelector(first=0))
        last = tuple(each.id for each in batches[0][-100:])
        await store.delete_messages(keys[0], MessageSelector(ids=last))
        found = await store.read_newest(keys)
        assert found == await _last(store, keys)
        assert [row and row.id for row in found] == [batches[0][49].id, batches[1][-1].id, None]


async def _assert_not_found(store: HistoryStore, key: SessionKey, *ids: str) -> None:
    for id in ids:
        with pytest.raises(NotFoundError, match=f"Message not found: {id!r}"):
            await store.read_message(key, id)


async def _last(store: HistoryStore, keys: Sequence[SessionKey]) -> list[StoredMessage | None]:
    """Return the last message of each session, as the pages have it."""
    pages = [await store.read(key) for key in keys]
    return [page.messages[-1] if page.messages else None for page in pages]
