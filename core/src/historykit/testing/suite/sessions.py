"""A session's own fields, beside its messages."""

from __future__ import annotations

import pytest

from historykit.errors import ConflictError, NotFoundError, VersionConflictError
from historykit.records import Retention
from historykit.session_records import SessionDraft, SessionPatch
from historykit.store import HistoryStore
from historykit.testing.drafts import draft, drafts
from historykit.testing.rules import since
from historykit.testing.subject import START, StoreSubject

__all__ = ["SessionTests"]

FIELDS = SessionDraft(
    agent_id="assistant",
    status="paused",
    memory_enabled=True,
    labels=frozenset({"a", "b"}),
    body=b"fields",
    created_at=START - 5,
)


class SessionTests:
    """Creating, reading and changing sessions."""

    @since("0.1")
    async def test_new_session_is_empty(self, subject: StoreSubject, store: HistoryStore) -> None:
        """A session that was created has no messages, version 0, revision 0 and no run."""
        record = await store.create_session(subject.key(), FIELDS)
        assert (record.message_count, record.last_message_at) == (0, None)
        assert (record.version, record.revision) == (0, 0)
        assert (record.run_id, record.run_expires_at) == (None, None)
        assert (record.created_at, record.updated_at) == (START - 5, subject.clock.now)
        page = await store.read(subject.key())
        assert (page.messages, page.version) == ((), 0)
        assert page.incarnation == record.incarnation

    @since("0.1")
    async def test_session_counts_the_messages_of_each_stream(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A session has the number of messages of each stream that has any."""
        key = subject.key()
        await store.append(key, [draft("a"), draft("b")])
        await store.append(key, [draft("c")], stream="audit")
        assert (await store.read_session(key)).streams == {"main": 2, "audit": 1}
        await store.append(key, [draft("d", turn_start=True)], retention=Retention(1))
        assert (await store.read_session(key)).streams == {"main": 1, "audit": 1}

    @since("0.1")
    async def test_creation_of_what_exists_is_a_conflict(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Creating a session that exists is a ConflictError and changes nothing."""
        key = subject.key()
        record = await store.create_session(key, FIELDS)
        subject.clock.advance(60)
        with pytest.raises(ConflictError):
            await store.create_session(key, SessionDraft(body=b"other"))
        assert await store.read_session(key) == record

    @since("0.1")
    async def test_creation_may_return_what_exists(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """With if_exists "return" the session comes back as it is."""
        key = subject.key()
        record = await store.create_session(key, FIELDS, if_exists="return")
        subject.clock.advance(60)
        other = SessionDraft(body=b"other")
        assert await store.create_session(key, other, if_exists="return") == record
        assert await store.read_session(key) == record

    @since("0.1")
    async def test_creation_may_update_what_exists(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """With if_exists "update" the session gets the fields of the draft, its messages stay."""
        key = subject.key()
        await store.create_session(key, FIELDS, if_exists="update")
        await store.append(key, drafts("m", 2))
        before = await store.read_session(key)
        subject.clock.advance(60)
        record = await store.create_session(
            key, SessionDraft(body=b"new", labels=frozenset({"c"})), if_exists="update"
        )
        assert (record.body, record.labels, record.agent_id) == (b"new", frozenset({"c"}), "")
        assert (record.status, record.revision) == ("active", before.revision + 1)
        assert (record.incarnation, record.created_at) == (before.incarnation, START - 5)
        assert (record.message_count, record.version) == (2, before.version)
        assert await store.read_session(key) == record

    @since("0.1")
    async def test_change_reaches_the_fields_it_names(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A patch changes what it names, leaves the rest, and moves revision and time."""
        key = subject.key()
        before = await store.create_session(key, FIELDS)
        for number, (patch, name, value) in enumerate(
            [
                (SessionPatch(agent_id=""), "agent_id", ""),
                (SessionPatch(status="done"), "status", "done"),
                (SessionPatch(memory_enabled=False), "memory_enabled", False),
                (SessionPatch(labels=frozenset()), "labels", frozenset()),
                (SessionPatch(body=b""), "body", b""),
                (SessionPatch(), "status", "done"),
            ],
            1,
        ):
            subject.clock.advance(60)
            record = await store.patch_session(key, patch)
            assert getattr(record, name) == value
            for other in ("agent_id", "status", "memory_enabled", "labels", "body"):
                if other != name:
                    assert getattr(record, other) == getattr(before, other), other
            assert (record.revision, record.version) == (number, 0)
            assert (record.updated_at, record.created_at) == (subject.clock.now, START - 5)
            async with subject.witness(store) as witness:
                assert await witness.read_session(key) == record
            before = record

    @since("0.1")
    async def test_change_of_no_session_is_an_error(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Changing a session that does not exist is a NotFoundError, and makes none."""
        key = subject.key()
        with pytest.raises(NotFoundError):
            await store.patch_session(key, SessionPatch(status="done"))
        with pytest.raises(NotFoundError):
            await store.read_session(key)

    @since("0.1")
    async def test_change_of_another_revision_is_refused(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A patch that names another revision than the session has is a conflict that names
        both."""
        key = subject.key()
        await store.create_session(key, FIELDS)
        record = await store.patch_session(key, SessionPatch(status="a"), if_revision=0)
        for expected in (0, 2):
            with pytest.raises(VersionConflictError) as caught:
                await store.patch_session(key, SessionPatch(status="b"), if_revision=expected)
            assert (caught.value.expected, caught.value.actual) == (expected, 1)
        assert await store.read_session(key) == record

    @since("0.1")
    async def test_append_leaves_the_revision_alone(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Appends count as versions, changes of fields as revisions, and neither as the other."""
        key = subject.key()
        await store.append(key, [draft()])
        await store.patch_session(key, SessionPatch(status="a"), if_revision=0)
        receipt = await store.append(key, [draft()], expected_version=1)
        assert receipt.version == 2
        record = await store.patch_session(key, SessionPatch(status="b"), if_revision=1)
        assert (record.version, record.revision) == (2, 2)
        assert (await store.read(key)).epoch == 0

    @since("0.1")
    async def test_append_makes_the_session_with_its_fields(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The first append creates the session as it is told; a later one changes no field."""
        key = subject.key()
        receipt = await store.append(key, [draft()], create=FIELDS)
        record = await store.read_session(key)
        assert (receipt.created, record.incarnation) == (True, receipt.incarnation)
        assert (record.agent_id, record.status, record.body) == ("assistant", "paused", b"fields")
        assert (record.labels, record.created_at) == (frozenset({"a", "b"}), START - 5)
        assert (record.version, record.revision) == (1, 0)
        receipt = await store.append(key, [draft()], create=SessionDraft(body=b"other"))
        assert receipt.created is False
        after = await store.read_session(key)
        assert (after.body, after.agent_id, after.revision) == (b"fields", "assistant", 0)

    @since("0.1")
    async def test_append_keeps_the_counts_of_the_session(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Count and time of the last message are those of the main stream; an append to any
        stream moves the session's time."""
        key = subject.key()
        await store.append(key, [draft(created_at=START - 9), draft(created_at=START - 7)])
        record = await store.read_session(key)
        assert (record.message_count, record.last_message_at) == (2, START - 7)
        subject.clock.advance(60)
        await store.append(key, [draft(created_at=START)], stream="audit")
        record = await store.read_session(key)
        assert (record.message_count, record.last_message_at) == (2, START - 7)
        assert (record.version, record.updated_at) == (2, subject.clock.now)
        assert record.created_at == START

    @since("0.1")
    async def test_session_without_memory_stores_no_messages(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Where memory is off an append stores nothing and says so; the session is there."""
        key = subject.key()
        receipt = await store.append(key, drafts("m", 2), create=SessionDraft(memory_enabled=False))
        assert (receipt.stored, receipt.sequences, receipt.version) == (0, (None, None), 0)
        assert (receipt.created, len(receipt.ids)) == (True, 2)
        record = await store.read_session(key)
        assert (record.memory_enabled, record.message_count) == (False, 0)
        assert await subject.messages(store, key) == []
        await store.patch_session(key, SessionPatch(memory_enabled=True))
        assert (await store.append(key, [draft("kept")])).stored == 1
        await store.patch_session(key, SessionPatch(memory_enabled=False))
        assert (await store.append(key, [draft("lost")])).stored == 0
        assert await subject.texts(store, key) == ["kept"]
