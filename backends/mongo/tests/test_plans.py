"""What searches cost: which index they walk, and how much of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pymongo import AsyncMongoClient
from pymongo.collection import Collection
from pymongo.monitoring import CommandListener

from historykit.session_records import SessionDraft, SessionKey, SessionPosition, SessionQuery
from historykit_mongo import MongoStore
from historykit_mongo.documents import Document, fresh_head

pytestmark = pytest.mark.asyncio

PAGE = Path(__file__).parents[3] / "docs" / "schema.md"

SESSIONS = 10_000

QUERIES: dict[str, dict[str, Any]] = {
    "newest": {},
    "user": {"user_id": "u7"},
    "agent": {"agent_id": "rare"},
    "status": {"status": "rare"},
    "memory": {"memory_enabled": False},
    "labels": {"labels": frozenset({"rare"})},
}

FREQUENT: tuple[dict[str, Any], ...] = (
    {"agent_id": "common"},
    {"status": "active"},
    {"memory_enabled": True},
    {"labels": frozenset({"common"})},
)

MIDDLE = SessionPosition(5000, "s5000", "u7")

ELSEWHERE = {"SORT", "COLLSCAN", "SORT_MERGE"}
"""Stages that look at more sessions than a page has."""


class Searches(CommandListener):
    """The commands that a store sends to search."""

    def __init__(self) -> None:
        self.commands: list[Document] = []

    def started(self, event: Any) -> None:
        """Note a command."""
        if event.command_name in ("find", "aggregate"):
            self.commands.append(dict(event.command))

    def succeeded(self, event: Any) -> None:
        """It was noted before."""

    def failed(self, event: Any) -> None:
        """It was noted before."""


class Plans:
    """Explains what a store sends."""

    def __init__(self, store: MongoStore, inside: Collection[Any], searches: Searches) -> None:
        self._store = store
        self._database = inside.database
        self._searches = searches

    async def of(self, **conditions: Any) -> list[tuple[list[str], int, int]]:
        """Return for each command of a search the stages of its plan, with their indexes, and how
        many entries of indexes and how many documents it looked at."""
        self._searches.commands.clear()
        await self._store.find_sessions(SessionQuery(namespace="app", **conditions))
        return [self._explained(command) for command in self._searches.commands]

    def _explained(self, sent: Document) -> tuple[list[str], int, int]:
        known = ("find", "aggregate", "filter", "sort", "limit", "skip", "projection", "pipeline")
        command = {name: value for name, value in sent.items() if name in known}
        if "aggregate" in command:
            command["cursor"] = {}
        plan = self._database.command("explain", command, verbosity="executionStats")
        if "queryPlanner" not in plan:
            plan = plan["stages"][0]["$cursor"]
        counts = plan["executionStats"]
        stages = list(_stages(plan["queryPlanner"]["winningPlan"]))
        return stages, counts["totalKeysExamined"], counts["totalDocsExamined"]


def _stages(plan: Document) -> Iterator[str]:
    if "stage" in plan:
        yield f"{plan['stage']} {plan.get('indexName', '')}".strip()
    for part in (plan.get("queryPlan"), plan.get("inputStage"), *plan.get("inputStages", ())):
        if part is not None:
            yield from _stages(part)


@pytest_asyncio.fixture
async def plans(open_store: Callable[..., Any], mongo_url: str, inside: Collection[Any]) -> Any:
    """The plans of a store with 10,000 sessions, of which 30 are rare."""
    searches = Searches()
    client: AsyncMongoClient[Any] = AsyncMongoClient(mongo_url, event_listeners=[searches])
    async with client:
        store: MongoStore = await open_store(client=client)
        inside.insert_many(_head(number) for number in range(SESSIONS))
        yield Plans(store, inside, searches)
        await store.aclose()


def _head(number: int) -> Document:
    is_rare = number % (SESSIONS // 30) == 0
    fields = SessionDraft(
        agent_id="rare" if is_rare else "common",
        status="rare" if is_rare else "active",
        memory_enabled=not is_rare,
        labels=frozenset({"common", "rare"} if is_rare else {"common"}),
        created_at=number,
    )
    key = SessionKey("app", f"u{number % 400}", f"s{number}")
    return fresh_head(key, fields, f"i{number}", number)


async def test_a_search_walks_the_index_meant_for_it(plans: Plans) -> None:
    """A page and its total among 10,000 sessions come through the index of the filter, in its
    order: nothing is sorted, and no other session is looked at."""
    for index, conditions in QUERIES.items():
        page, total = await plans.of(**conditions)
        assert f"IXSCAN {index}" in page[0]
        assert total[0] == [f"COUNT_SCAN {index}"]
        assert not ELSEWHERE & {*page[0], *total[0]}
        assert max(page[1:]) <= 32
        assert total[2] == 0


async def test_the_documented_plan_is_the_one_that_is_made(plans: Plans) -> None:
    """The page on the schema shows the stages that a search by agent really has."""
    page, total = await plans.of(agent_id="rare")
    documented = f"{' < '.join(page[0])}\n\n{total[0][0]}\n"
    assert documented in PAGE.read_text("utf-8")


async def test_a_page_of_many_matches_looks_at_one_page(plans: Plans) -> None:
    """A page without a total does not depend on how many match, the first or one behind others."""
    for conditions, more in itertools.product(FREQUENT, ({}, {"position": MIDDLE})):
        (page,) = await plans.of(**conditions, **more, with_total=False)
        assert not ELSEWHERE & set(page[0])
        assert max(page[1:]) <= 24, (conditions, page)


async def test_a_search_with_dates_walks_the_same_index(plans: Plans) -> None:
    """With dates, or from a position on, the page begins there in the index."""
    for more in (
        {"created_from": 5000},
        {"created_before": 5000},
        {"position": MIDDLE},
        {"position": MIDDLE, "created_before": 9000},
    ):
        for index, conditions in QUERIES.items():
            page, *_ = await plans.of(**conditions, **more)
            assert f"IXSCAN {index}" in page[0]
            assert not ELSEWHERE & set(page[0])
            assert max(page[1:]) <= 32, (conditions, more, page)


async def test_a_search_by_two_labels_begins_with_the_rarer_one(plans: Plans) -> None:
    """A search by labels looks at the sessions that have the rarest of them, and at no others."""
    *_, page, total = await plans.of(labels=frozenset({"common", "rare"}))
    for stages, keys, documents in (page, total):
        assert "IXSCAN labels" in stages
        assert max(keys, documents) <= 32
