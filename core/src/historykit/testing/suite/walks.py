"""Searches give their sessions page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from historykit.capabilities import Capability
from historykit.session_records import SessionDraft, SessionPatch, SessionQuery, SessionRecord
from historykit.store import HistoryStore
from historykit.testing.drafts import draft
from historykit.testing.rules import requires, since
from historykit.testing.subject import START, StoreSubject

__all__ = ["WalkTests"]

CATALOGUE = requires(Capability.CATALOGUE)

ANY = SessionDraft()

LABELS = frozenset({"a", "b"})

FILTERS: tuple[dict[str, Any], ...] = (
    {"user_id": ""},
    {"agent_id": "x"},
    {"status": "s"},
    {"memory_enabled": True},
    {"labels": frozenset({"a"})},
    {"labels": LABELS, "status": "s"},
    {"agent_id": "x", "created_from": START - 9, "created_before": START + 9},
)


class WalkTests:
    """`find_sessions`: its pages and its totals."""

    @since("0.1")
    @CATALOGUE
    async def test_pages_by_offset(self, subject: StoreSubject, store: HistoryStore) -> None:
        """Limit and offset cut a page; the total counts all; more says that it goes on."""
        names = await _many(store, subject, 23)
        for offset, limit in [(0, 10), (10, 10), (20, 10), (13, 10), (23, 5), (99, 5), (0, 500)]:
            query = SessionQuery(namespace=subject.namespace, offset=offset, limit=limit)
            found = await store.find_sessions(query)
            assert _names(found.records) == names[offset : offset + limit]
            assert (found.total, found.more) == (23, offset + limit < 23)

    @since("0.1")
    @CATALOGUE
    async def test_total_is_not_counted_unasked(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Without with_total there is no total, and the page is the same."""
        names = await _many(store, subject, 5)
        for limit in (2, 5):
            query = SessionQuery(namespace=subject.namespace, limit=limit, with_total=False)
            found = await store.find_sessions(query)
            assert (_names(found.records), found.total) == (names[:limit], None)
            assert found.more is (limit < 5)

    @since("0.1")
    @CATALOGUE
    async def test_walk_meets_each_session_once(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Walking by position meets each session once, whatever the size of the pages, also where
        many are of the same time; the total stays that of all."""
        names = await _many(store, subject, 60)
        for limit in (1, 7, 25, 60, 100):
            found: list[str] = []
            position = None
            for _ in names:
                query = SessionQuery(namespace=subject.namespace, position=position, limit=limit)
                page = await store.find_sessions(query)
                found += _names(page.records)
                assert page.total == 60
                if not page.more:
                    break
                position = page.records[-1].position
            assert found == names

    @since("0.1")
    @CATALOGUE
    async def test_walk_is_not_disturbed_by_changes(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Sessions that are added and deleted while one walks cost no other session its turn."""
        names = await _many(store, subject, 20)
        found: list[str] = []
        position = None
        for step in range(20):
            query = SessionQuery(
                namespace=subject.namespace, position=position, limit=3, with_total=False
            )
            page = await store.find_sessions(query)
            found += _names(page.records)
            if not page.more:
                break
            position = page.records[-1].position
            late = SessionDraft(created_at=START * 2)
            await store.create_session(subject.key(f"late {step}"), late)
            if step % 2:
                await store.delete_session(page.records[-1].key)
            await store.append(page.records[0].key, [draft()])
        assert found == names

    @since("0.1")
    @CATALOGUE
    async def test_filtered_walk_is_not_disturbed_by_changes(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A walk through the sessions that a filter finds meets each of them once, in order, while
        others come before, between and behind them, and some of those that were met stop to
        match."""
        for number, conditions in enumerate(FILTERS):
            namespace = f"-{number}"
            fields = SessionDraft(agent_id="x", status="s", labels=LABELS)
            names = await _many(store, subject, 20, namespace=namespace, fields=fields)
            query = SessionQuery(
                namespace=subject.namespace + namespace, limit=3, with_total=False, **conditions
            )
            found: list[str] = []
            for step in range(20):
                page = await store.find_sessions(query)
                found += _names(page.records)
                if not page.more:
                    break
                query = replace(query, position=page.records[-1].position)
                times = (START * 2, page.records[-1].created_at, START // 2)
                for place, time in enumerate(times):
                    key = subject.key(f"late {step} {place}", namespace=namespace)
                    await store.create_session(key, replace(fields, created_at=time))
                left = SessionPatch(agent_id="y", status="t", labels=frozenset())
                await store.patch_session(page.records[1].key, left)
            assert [name for name in found if not name.startswith("late")] == names, conditions
            assert len(found) == len(set(found)), conditions

    @since("0.1")
    @CATALOGUE
    async def test_walk_spans_users(self, subject: StoreSubject, store: HistoryStore) -> None:
        """A walk over all users meets the sessions that share id and time, one for each user."""
        users = [f"u{n}" for n in range(5)]
        for user in users:
            await store.create_session(subject.key(user=user), SessionDraft(created_at=START))
        found: list[str] = []
        position = None
        for _ in users:
            query = SessionQuery(namespace=subject.namespace, position=position, limit=1)
            page = await store.find_sessions(query)
            found += [record.key.user_id for record in page.records]
            position = page.records[-1].position
        assert found == users[::-1]
        assert page.more is False


async def _many(
    store: HistoryStore,
    subject: StoreSubject,
    count: int,
    *,
    namespace: str = "",
    fields: SessionDraft = ANY,
) -> list[str]:
    """Create sessions, several at each time, and return their ids in the order of a search."""
    times = [START + n // 7 for n in range(count)]
    for n, time in enumerate(times):
        key = subject.key(f"s{n:02}", namespace=namespace)
        await store.create_session(key, replace(fields, created_at=time))
    return [f"s{n:02}" for n in range(count)][::-1]


def _names(records: Sequence[SessionRecord]) -> list[str]:
    return [record.key.session_id for record in records]
