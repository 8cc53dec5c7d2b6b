"""Searches among real conversations give on every store what they give on the memory store."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest_asyncio

from historykit.chat_completions import from_chat_completions
from historykit.history import History
from historykit.memory import MemoryStore
from historykit.session_records import (
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionQuery,
    SessionRecord,
    SessionSlice,
)
from historykit.store import HistoryStore
from historykit.testing.subject import START, ManualClock
from tests.data import conversations

__all__ = ["Searches"]

AGENTS = ("airline", "reasoning", "math", "coding", "")
USERS = ("", "ada", "bob", "Ada", "charlie", "dora", "été")
STATUSES = ("active", "completed", "failed", "archived")
SPAN = 60_000_000
"""Two of five sessions that follow each other are made in the same minute."""

FILTERS: Mapping[str, tuple[object, ...]] = {
    "user_id": ("", "ada", "été"),
    "agent_id": ("airline", "", "nobody"),
    "status": ("active", "archived"),
    "memory_enabled": (True, False),
    "labels": (frozenset({"long"}), frozenset({"tools", "odd"})),
    "created_from": (START + 7 * SPAN, START + 7 * SPAN + 1),
    "created_before": (START + 20 * SPAN, START + 20 * SPAN + 1),
}
"""Values for each condition of a search."""

Stores = tuple[HistoryStore, HistoryStore]
"""The store under test, and a memory store with the same in it."""


class Searches:
    """All conversations as sessions of five agents and seven users."""

    @pytest_asyncio.fixture
    async def stores(self, history: History, clock: ManualClock) -> AsyncIterator[Stores]:
        """The store and a memory store, filled alike."""
        store = history.store
        async with MemoryStore(clock=clock) as reference:
            for each in (store, reference):
                await fill(each)
            yield store, reference
            for record in await every(reference):
                await store.delete_session(record.key)
            assert await every(store) == []

    async def test_filters_find_the_same(self, stores: Stores) -> None:
        """Every filter alone, every pair of them and all together find the same sessions, with the
        same fields, counts and times, in the same order, and the same total."""
        found = [await found_alike(stores, query) for query in queries()]
        assert sum(0 < len(each.records) < 90 for each in found) > 100

    async def test_pages_are_the_same(self, stores: Stores) -> None:
        """Pages by number and pages that go on behind a session have the same sessions, and say
        alike whether there are more; with a total and without."""
        for number, query in enumerate(queries()):
            first = replace(query, limit=12, with_total=number % 2 == 0)
            for offset in (12, 27, 500):
                await found_alike(stores, replace(first, offset=offset))
            page = await found_alike(stores, first)
            while page.more:
                behind = page.records[-1].position
                page = await found_alike(stores, replace(first, position=behind))

    async def test_messages_are_the_same(self, stores: Stores) -> None:
        """The sessions that are found have the same messages, and the same newest one."""
        records = await every(stores[1])
        assert len(records) == 90
        keys = [record.key for record in records]
        mine, theirs = [await store.read_newest(keys) for store in stores]
        assert [row and row.body for row in mine] == [row and row.body for row in theirs]
        for key in keys[::7]:
            pages = [await store.read(key) for store in stores]
            bodies = [[(row.role, row.body) for row in page.messages] for page in pages]
            assert bodies[0]
            assert bodies[0] == bodies[1]

    async def test_changes_are_found_the_same(self, stores: Stores) -> None:
        """After sessions were changed and deleted, searches still agree."""
        records = await every(stores[1])
        for store in stores:
            for number, record in enumerate(records):
                if number % 5 == 0:
                    await store.delete_session(record.key)
                elif number % 5 == 1:
                    labels = frozenset({"odd", "new"})
                    patch = SessionPatch(agent_id="math", status="archived", labels=labels)
                    await store.patch_session(record.key, patch)
        for query in queries():
            await found_alike(stores, query)


async def found_alike(stores: Stores, query: SessionQuery) -> SessionSlice:
    """Return what a search finds, in both stores the same."""
    mine, theirs = [plain(await store.find_sessions(query)) for store in stores]
    assert mine == theirs, query
    return mine


async def fill(store: HistoryStore) -> None:
    """Put the conversations into a store."""
    for number, conversation in enumerate(conversations()):
        user, messages = USERS[number % 7], conversation["messages"]
        history = History(store, namespace="app", user_id=user)
        key = SessionKey("app", user, conversation["id"])
        fields = SessionDraft(
            agent_id=AGENTS[number % 5],
            status=STATUSES[number % 4],
            labels=labels_of(number, messages),
            body=b"%d" % number,
            created_at=START + number * 2 // 5 * SPAN,
        )
        await store.create_session(key, fields)
        await history.append(key.session_id, [from_chat_completions(each) for each in messages])
        if number % 3 == 0:
            await store.patch_session(key, SessionPatch(memory_enabled=False))


def labels_of(number: int, messages: list[dict[str, Any]]) -> frozenset[str]:
    """Return what a conversation can be found by."""
    conditions = {
        "long": len(messages) > 20,
        "tools": any("tool_calls" in message for message in messages),
        "odd": number % 2 == 1,
    }
    return frozenset(label for label, holds in conditions.items() if holds)


def queries() -> Iterator[SessionQuery]:
    """Yield a search without conditions, one for each condition, each pair, and all of them."""
    yield SessionQuery(namespace="app", limit=500)
    conditions = [(name, value) for name, values in FILTERS.items() for value in values]
    for count in (1, 2):
        for chosen in itertools.combinations(conditions, count):
            if len(dict(chosen)) == count:
                yield SessionQuery(namespace="app", limit=500, **dict(chosen))  # type: ignore[arg-type]
    for last in (0, -1):
        everything = {name: values[last] for name, values in FILTERS.items()}
        yield SessionQuery(namespace="app", limit=500, **everything)  # type: ignore[arg-type]


def plain(found: SessionSlice) -> SessionSlice:
    """Return what was found without what each store makes up by itself."""
    return replace(found, records=tuple(replace(each, incarnation="") for each in found.records))


async def every(store: HistoryStore) -> list[SessionRecord]:
    """Return all sessions."""
    return list((await store.find_sessions(SessionQuery(namespace="app", limit=500))).records)
