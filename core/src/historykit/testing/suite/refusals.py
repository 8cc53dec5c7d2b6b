"""A call whose capability is not declared says so, and one that is declared works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from historykit.capabilities import Capability
from historykit.errors import CapabilityNotSupportedError
from historykit.records import MessagePatch, MessageSelector
from historykit.session_records import SessionKey, SessionQuery
from historykit.store import HistoryStore
from historykit.testing.drafts import draft, drafts
from historykit.testing.rules import since
from historykit.testing.subject import StoreSubject, read_all

__all__ = ["RefusalTests"]


class RefusalTests:
    """Each capability as a whole: all of its calls, or none."""

    @since("0.1")
    async def test_edits_work_or_are_refused(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """With EDIT messages can be changed, deleted and replaced; without it each call refuses and
        changes nothing."""
        key = subject.key()
        batch = drafts("m", 2)
        await store.append(key, batch)
        await _assert_all_or_none(
            store,
            key,
            Capability.EDIT,
            lambda: store.update_message(key, batch[0].id, MessagePatch(reaction="LIKE")),
            lambda: store.delete_messages(key, MessageSelector(ids=(batch[1].id,))),
            lambda: store.replace(key, [draft("new")], expected_version=3),
        )

    @since("0.1")
    async def test_searches_work_or_are_refused(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """With CATALOGUE sessions can be found; without it the call refuses."""
        key = subject.key()
        await store.append(key, [draft()])
        query = SessionQuery(namespace=subject.namespace)
        await _assert_all_or_none(
            store, key, Capability.CATALOGUE, lambda: store.find_sessions(query)
        )

    @since("0.1")
    async def test_runs_work_or_are_refused(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """With RUNS a session can be claimed, renewed and released; without it each call refuses
        and changes nothing."""
        key = subject.key()
        await store.append(key, [draft()])
        await _assert_all_or_none(
            store,
            key,
            Capability.RUNS,
            lambda: store.claim_run(key, "r1", ttl=60),
            lambda: store.renew_run(key, "r1", ttl=60),
            lambda: store.release_run(key, "r1"),
        )


async def _assert_all_or_none(
    store: HistoryStore,
    key: SessionKey,
    capability: Capability,
    *calls: Callable[[], Awaitable[object]],
) -> None:
    if capability in store.capabilities:
        for call in calls:
            await call()
        return
    before = await store.read_session(key), await read_all(store, key)
    for call in calls:
        with pytest.raises(CapabilityNotSupportedError) as caught:
            await call()
        assert (caught.value.capability, caught.value.backend) == (capability.name, store.backend)
    assert (await store.read_session(key), await read_all(store, key)) == before
