"""Messages are changed in their place, deleted and replaced."""

from __future__ import annotations

import pytest

from historykit.capabilities import Capability
from historykit.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    VersionConflictError,
)
from historykit.records import AppendReceipt, MessageDraft, MessagePatch, MessageSelector
from historykit.session_records import SessionDraft
from historykit.store import HistoryStore
from historykit.testing.drafts import draft, drafts, numbered, texts
from historykit.testing.rules import requires, since
from historykit.testing.subject import START, StoreSubject

__all__ = ["EditingTests"]

EDIT = requires(Capability.EDIT)


class EditingTests:
    """`update_message`, `delete_messages`, `replace`."""

    @since("0.1")
    @EDIT
    async def test_change_keeps_the_message_in_its_place(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A changed message keeps its place and its time; nothing else of the stream changes."""
        key = subject.key()
        batch = [draft("a"), draft("...", role="assistant", extra=b"e"), draft("b")]
        await store.append(key, batch)
        before = await subject.messages(store, key)
        subject.clock.advance(60)
        patch = MessagePatch(body=b"final", digest=b"f" * 16)
        changed = await store.update_message(key, batch[1].id, patch)
        assert changed == before[1]._replace(body=b"final", revision=1)
        assert await subject.messages(store, key) == [before[0], changed, before[2]]

    @since("0.1")
    @EDIT
    async def test_change_is_seen_by_the_session(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A change moves version and time of the session, not its revision nor its counts."""
        key = subject.key()
        batch = drafts("m", 2)
        await store.append(key, batch)
        before = await store.read_session(key)
        subject.clock.advance(60)
        await store.update_message(key, batch[0].id, MessagePatch(reaction="LIKE"))
        after = await store.read_session(key)
        assert (after.version, after.revision) == (before.version + 1, before.revision)
        assert (after.message_count, after.created_at) == (2, before.created_at)
        assert after.updated_at == subject.clock.now

    @since("0.1")
    @EDIT
    async def test_change_of_the_body_changes_the_digest(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The tail has the digest of the body that is stored."""
        key = subject.key()
        batch = drafts("m", 3)
        await store.append(key, batch)
        patch = MessagePatch(body=b"new", digest=b"n" * 16)
        await store.update_message(key, batch[1].id, patch)
        tail = await store.read_tail(key)
        assert tail.digests == (batch[0].digest, b"n" * 16, batch[2].digest)

    @since("0.1")
    @EDIT
    async def test_reaction_and_extra_are_set_and_cleared(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A patch changes the fields that it names, to None too, and leaves the others."""
        key = subject.key()
        message = draft(role="assistant")
        await store.append(key, [message, draft()])
        for patch, expected in [
            (MessagePatch(reaction="LIKE"), ("LIKE", None)),
            (MessagePatch(extra=b"x"), ("LIKE", b"x")),
            (MessagePatch(reaction="DISLIKE", extra=b""), ("DISLIKE", b"")),
            (MessagePatch(reaction=None), (None, b"")),
            (MessagePatch(extra=None), (None, None)),
        ]:
            changed = await store.update_message(key, message.id, patch)
            assert (changed.reaction, changed.extra, changed.body) == (*expected, b"hello")
            row, other = await subject.messages(store, key)
            assert row == changed
            assert (other.reaction, other.revision) == (None, 0)
        assert row.revision == 5

    @since("0.1")
    @EDIT
    async def test_change_reaches_any_stream(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A message is found by its id in whichever stream of its session it is."""
        key = subject.key()
        message = draft("audit")
        await store.append(key, [draft("main")])
        await store.append(key, [message], stream="audit")
        await store.update_message(key, message.id, MessagePatch(reaction="LIKE"))
        assert [row.reaction for row in await subject.messages(store, key)] == [None]
        rows = await subject.messages(store, key, stream="audit")
        assert [row.reaction for row in rows] == ["LIKE"]

    @since("0.1")
    @EDIT
    async def test_change_for_another_role_is_refused(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A patch that requires a role leaves messages of other roles alone."""
        key = subject.key()
        question, answer = draft("q"), draft("a", role="assistant")
        await store.append(key, [question, answer])
        patch = MessagePatch(reaction="LIKE", required_role="assistant")
        with pytest.raises(InvalidRequestError):
            await store.update_message(key, question.id, patch)
        page = await store.read(key)
        assert [row.reaction for row in page.messages] == [None, None]
        assert (page.version, page.epoch) == (1, 0)
        assert (await store.update_message(key, answer.id, patch)).reaction == "LIKE"

    @since("0.1")
    @EDIT
    async def test_change_of_no_message_is_an_error(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """An unknown message, or session, is a NotFoundError, and nothing is made of it."""
        key, other = subject.key(), subject.key("s2")
        message = draft()
        await store.append(other, [message])
        patch = MessagePatch(reaction="LIKE")
        with pytest.raises(NotFoundError):
            await store.update_message(key, message.id, patch)
        with pytest.raises(NotFoundError):
            await store.update_message(other, "unknown", patch)
        with pytest.raises(NotFoundError):
            await store.read_session(key)

    @since("0.1")
    @EDIT
    async def test_messages_are_deleted_by_id(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The messages named are gone, the others keep order and places; the number is returned."""
        key = subject.key()
        batch = drafts("m", 5)
        await store.append(key, batch)
        before = await subject.messages(store, key)
        ids = (batch[3].id, batch[1].id, "unknown")
        assert await store.delete_messages(key, MessageSelector(ids=ids)) == 2
        assert await subject.messages(store, key) == [before[0], before[2], before[4]]

    @since("0.1")
    @EDIT
    async def test_messages_are_deleted_by_place(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """First and last are included, and either may be left out."""
        for first, last, rest in [(2, 4, "0156"), (None, 2, "3456"), (5, None, "01234")]:
            key = subject.key(f"{first} {last}")
            receipt = await store.append(key, [draft(text) for text in "0123456"])
            places = receipt.sequences
            selector = MessageSelector(
                first=None if first is None else places[first],
                last=None if last is None else places[last],
            )
            assert await store.delete_messages(key, selector) == 7 - len(rest)
            assert await subject.texts(store, key) == list(rest)

    @since("0.1")
    @EDIT
    async def test_messages_are_deleted_by_time(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """What was created before a time goes, what was created at it stays; all conditions of a
        selector have to hold."""
        key = subject.key()
        times = [START + offset for offset in (0, 2, 1, 3)]
        receipt = await store.append(
            key, [draft(str(time - START), created_at=time) for time in times]
        )
        selector = MessageSelector(created_before=START + 3, first=receipt.sequences[1])
        assert await store.delete_messages(key, selector) == 2
        assert await subject.texts(store, key) == ["0", "3"]
        assert await store.delete_messages(key, MessageSelector(created_before=START + 3)) == 1
        assert await subject.texts(store, key) == ["3"]

    @since("0.1")
    @EDIT
    async def test_deletion_stays_in_its_stream(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A selector reaches one stream of one session."""
        key, other = subject.key(), subject.key("s2")
        for each, stream in [(key, "main"), (key, "audit"), (other, "main")]:
            await store.append(each, drafts(stream, 2), stream=stream)
        assert await store.delete_messages(key, MessageSelector(first=0, stream="audit")) == 2
        assert await subject.texts(store, key) == numbered("main", 2)
        assert await subject.messages(store, key, stream="audit") == []
        assert await subject.texts(store, other) == numbered("main", 2)

    @since("0.1")
    @EDIT
    async def test_deletion_that_finds_nothing_changes_nothing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Where no message is selected, or no session is there, the number is 0, and that is
        all."""
        key = subject.key()
        selector = MessageSelector(ids=("unknown",))
        assert await store.delete_messages(key, selector) == 0
        with pytest.raises(NotFoundError):
            await store.read_session(key)
        await store.append(key, [draft()])
        record = await store.read_session(key)
        subject.clock.advance(60)
        assert await store.delete_messages(key, selector) == 0
        assert await store.read_session(key) == record
        assert (await store.read(key)).epoch == 0

    @since("0.1")
    @EDIT
    async def test_deleted_messages_are_not_counted(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Count, digests and time of the last message are those of what is left."""
        key = subject.key()
        batch = [draft(f"m {n}", created_at=START + n) for n in range(10)]
        await store.append(key, batch)
        await store.delete_messages(key, MessageSelector(ids=(batch[9].id, batch[0].id)))
        tail = await store.read_tail(key)
        assert (tail.count, tail.version) == (8, 2)
        assert tail.digests == tuple(each.digest for each in batch[1:9])
        record = await store.read_session(key)
        assert (record.message_count, record.last_message_at) == (8, START + 8)
        assert (record.version, record.revision) == (2, 0)

    @since("0.1")
    @EDIT
    async def test_sequence_of_a_deleted_message_is_not_reused(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """After the newest messages were deleted, a new one still has a greater sequence."""
        key = subject.key()
        receipt = await store.append(key, drafts("m", 3))
        await store.delete_messages(key, MessageSelector(first=receipt.sequences[1]))
        again = await store.append(key, [draft("new")])
        assert _places(again)[0] > _places(receipt)[2]
        await store.delete_messages(key, MessageSelector(first=0))
        assert _places(await store.append(key, [draft("newer")]))[0] > _places(again)[0]

    @since("0.1")
    @EDIT
    async def test_replacement_takes_the_place_of_a_stream(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A replacement leaves its own messages only, at sequences that were not used before."""
        key = subject.key()
        first = await store.append(key, drafts("old", 5))
        await store.append(key, drafts("audit", 2), stream="audit")
        new: list[MessageDraft] = [*drafts("new", 3), draft("x", extra=b"e", turn_start=True)]
        receipt = await store.replace(key, new, expected_version=2)
        assert (receipt.stored, receipt.version, receipt.created) == (4, 3, False)
        assert (receipt.ids, receipt.incarnation) == (
            tuple(each.id for each in new),
            first.incarnation,
        )
        rows = await subject.messages(store, key)
        assert texts(rows) == [*numbered("new", 3), "x"]
        assert [row.sequence for row in rows] == _places(receipt)
        assert _places(receipt)[0] > _places(first)[-1]
        assert (rows[-1].extra, rows[-1].turn_start) == (b"e", True)
        assert await subject.texts(store, key, stream="audit") == numbered("audit", 2)
        assert (await store.read_session(key)).message_count == 4

    @since("0.1")
    @EDIT
    async def test_replacement_by_nothing_empties_a_stream(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A stream can be emptied; its session stays."""
        key = subject.key()
        life = (await store.append(key, drafts("m", 3))).incarnation
        receipt = await store.replace(key, [], expected_version=1)
        assert (receipt.stored, receipt.ids, receipt.version) == (0, (), 2)
        assert await subject.messages(store, key) == []
        record = await store.read_session(key)
        assert (record.incarnation, record.message_count) == (life, 0)
        assert record.last_message_at is None

    @since("0.1")
    @EDIT
    async def test_replacement_takes_no_message_of_another_stream(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A replacement with the id of a message of another stream is refused, and changes
        nothing; one with ids of the stream itself is not."""
        key = subject.key()
        mine, other = drafts("m", 10), draft("b")
        await store.append(key, mine)
        await store.append(key, [other], stream="audit")
        before = await store.read(key)
        batch = [*drafts("new", 3), other, draft("last")]
        with pytest.raises(ConflictError):
            await store.replace(key, batch, expected_version=2)
        assert await store.read(key) == before
        assert await subject.texts(store, key, stream="audit") == ["b"]
        receipt = await store.replace(key, mine[:5], expected_version=2)
        assert receipt.ids == tuple(each.id for each in mine[:5])
        assert await subject.texts(store, key) == numbered("m", 5)

    @since("0.1")
    @EDIT
    async def test_replacement_of_another_version_is_refused(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A replacement at another version than expected, or of no session, leaves all as it
        was."""
        key = subject.key()
        with pytest.raises(NotFoundError):
            await store.replace(key, drafts("new", 1), expected_version=0)
        await store.create_session(key, SessionDraft())
        await store.append(key, drafts("m", 2))
        for expected in (0, 2):
            with pytest.raises(VersionConflictError) as caught:
                await store.replace(key, drafts("new", 1), expected_version=expected)
            assert (caught.value.expected, caught.value.actual) == (expected, 1)
        assert await subject.texts(store, key) == numbered("m", 2)
        assert (await store.read(key)).epoch == 0

    @since("0.1")
    @EDIT
    async def test_messages_may_come_back_in_a_replacement(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A replacement may hold messages that are in the stream already, in another order."""
        key = subject.key()
        batch = drafts("m", 3)
        await store.append(key, batch)
        receipt = await store.replace(key, batch[::-1], expected_version=1)
        assert receipt.stored == 3
        assert await subject.texts(store, key) == numbered("m", 3)[::-1]


def _places(receipt: AppendReceipt) -> list[int]:
    return [place for place in receipt.sequences if place is not None]
