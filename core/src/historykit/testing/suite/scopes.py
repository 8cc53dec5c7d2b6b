"""Every call reaches the sessions of one user in one namespace, and nobody else's."""

from __future__ import annotations

import pytest

from historykit.capabilities import Capability
from historykit.errors import NotFoundError
from historykit.records import (
    AppendReceipt,
    DeleteReceipt,
    MessagePatch,
    MessageSelector,
    Slice,
    StoredMessage,
)
from historykit.session_records import (
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionQuery,
    SessionRecord,
)
from historykit.store import HistoryStore
from historykit.testing.drafts import drafts
from historykit.testing.rules import requires, since
from historykit.testing.subject import START, StoreSubject, read_all

__all__ = ["ScopeTests"]

STREAMS = ("main", "audit")

FIELDS = SessionDraft(
    agent_id="a",
    status="s",
    labels=frozenset({"l", "m"}),
    body=b"hers",
    created_at=START,
)


class ScopeTests:
    """Calls with another user, with no user, and in another namespace, on a session of the same
    id."""

    @since("0.1")
    async def test_reads_by_others_find_nothing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Pages, ends, single messages, the newest one and the session itself are there for their
        owner only."""
        hers, receipt = await _her_session(subject, store)
        for key in _others(subject):
            for stream in STREAMS:
                assert await store.read(key, stream=stream) == Slice((), None, 0, 0, False)
                assert (await store.read_tail(key, stream=stream)).count == 0
                newest = await store.read_newest([key, hers, key], stream=stream)
                assert [row is None for row in newest] == [True, False, True]
            for id in receipt.ids:
                with pytest.raises(NotFoundError):
                    await store.read_message(key, id)
            with pytest.raises(NotFoundError):
                await store.read_session(key)

    @since("0.1")
    async def test_writes_by_others_change_nothing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """What others change is not found, what they delete is not there, and what they append goes
        into a session of their own, with the same message ids too."""
        hers, receipt = await _her_session(subject, store)
        before = await _state(store, hers)
        for key in _others(subject):
            with pytest.raises(NotFoundError):
                await store.patch_session(key, SessionPatch(status="taken"))
            nothing = DeleteReceipt(sessions=0, messages=0)
            assert await store.delete_session(key) == nothing
            own = drafts("own", 2)
            made = await store.append(key, own)
            assert (made.created, made.stored, made.version) == (True, 2, 1)
            assert (await store.read_session(key)).status == "active"
            await store.patch_session(key, SessionPatch(status="own"))
            assert (await store.delete_session(key)).messages == 2
            record = await store.create_session(key, SessionDraft(), if_exists="update")
            assert (record.body, record.message_count) == (b"", 0)
        assert await _state(store, hers) == before
        assert (await store.append(hers, drafts("more", 1))).version == receipt.version + 1

    @since("0.1")
    @requires(Capability.EDIT)
    async def test_edits_by_others_change_nothing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Messages are changed, deleted and replaced by their owner only, whether others have a
        session of that id or not."""
        hers, receipt = await _her_session(subject, store)
        before = await _state(store, hers)
        for key in _others(subject):
            for own in (False, True):
                if own:
                    await store.append(key, drafts("own", 1))
                for id in receipt.ids:
                    with pytest.raises(NotFoundError):
                        await store.update_message(key, id, MessagePatch(reaction="LIKE"))
                for stream in STREAMS:
                    ids = MessageSelector(stream=stream, ids=receipt.ids)
                    assert await store.delete_messages(key, ids) == 0
                everything = MessageSelector(first=0)
                assert await store.delete_messages(key, everything) == own
                if not own:
                    with pytest.raises(NotFoundError):
                        await store.replace(key, [], expected_version=receipt.version)
            version = (await store.read_tail(key)).version
            await store.replace(key, [], expected_version=version)
        assert await _state(store, hers) == before

    @since("0.1")
    @requires(Capability.RUNS)
    async def test_holds_by_others_are_their_own(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A run of others neither finds the session, nor renews or ends the hold of its owner."""
        hers, _ = await _her_session(subject, store)
        await store.claim_run(hers, "run", ttl=60)
        held = await store.read_session(hers)
        for key in _others(subject):
            for call in (store.claim_run, store.renew_run):
                with pytest.raises(NotFoundError):
                    await call(key, "run", ttl=600)
            assert await store.release_run(key, "run") is False
            await store.create_session(key, SessionDraft())
            await store.claim_run(key, "other", ttl=600)
            assert await store.release_run(key, "run") is False
        assert await store.read_session(hers) == held
        assert await store.release_run(hers, "run") is True

    @since("0.1")
    @requires(Capability.CATALOGUE)
    async def test_searches_by_others_find_their_own(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Whatever the other conditions, a search for a user, or in a namespace, finds and counts
        the sessions of that user in that namespace, also where those of others are the same."""
        keys = [(await _her_session(subject, store))[0], *_others(subject)]
        for key in keys[1:]:
            await store.create_session(key, FIELDS)
        for conditions in (
            {},
            {"agent_id": "a"},
            {"status": "s"},
            {"memory_enabled": True},
            {"labels": frozenset({"l"})},
            {"labels": frozenset({"l", "m"}), "agent_id": "a", "status": "s"},
            {"created_from": START, "created_before": START + 1},
        ):
            for key in keys:
                query = SessionQuery(
                    namespace=key.namespace,
                    user_id=key.user_id,
                    **conditions,
                )
                found = await store.find_sessions(query)
                assert [record.key for record in found.records] == [key], conditions
                assert (found.total, found.more) == (1, False)


def _others(subject: StoreSubject) -> list[SessionKey]:
    """Return keys of a session of the same id that are not hers."""
    return [
        subject.key(user="bob"),
        subject.key(user=""),
        subject.key(user="Ada"),
        subject.key(user="ada", namespace="2"),
    ]


async def _her_session(
    subject: StoreSubject, store: HistoryStore
) -> tuple[SessionKey, AppendReceipt]:
    """Create a session of the user ada and return its key and the receipt of its last append."""
    key = subject.key(user="ada")
    await store.append(key, drafts("hers", 3, role="assistant"), create=FIELDS)
    return key, await store.append(key, drafts("audit", 2), stream="audit")


async def _state(
    store: HistoryStore, key: SessionKey
) -> tuple[SessionRecord, list[list[StoredMessage]]]:
    """Return all that there is of a session."""
    messages = [await read_all(store, key, stream=stream) for stream in STREAMS]
    return await store.read_session(key), messages
