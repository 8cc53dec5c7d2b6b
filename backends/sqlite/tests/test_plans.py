"""What statements cost: which index they walk, and how much work SQLite has with them."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
import pytest_asyncio

from historykit.records import Retention, Window
from historykit.session_records import SessionDraft, SessionKey, SessionPosition, SessionQuery
from historykit.testing.drafts import conversation, draft, drafts
from historykit_sqlite import SQLiteStore
from historykit_sqlite import messages as m
from historykit_sqlite.heads import READ_HEAD, WRITE_HEAD
from historykit_sqlite.search import find_sessions

pytestmark = pytest.mark.asyncio

Make = Callable[..., SQLiteStore]

STATEMENTS = {
    "read_head": READ_HEAD,
    "write_head": WRITE_HEAD,
    "life": m.LIFE,
    "newest": m.NEWEST,
    "oldest": m.OLDEST,
    "by_id": m.BY_ID,
    "message": m.MESSAGE,
    "last": m.LAST,
    "digests": m.DIGESTS,
    "newest_time": m.NEWEST_TIME,
    "opening": m.OPENING,
    "from_oldest": m.FROM_OLDEST,
    "from_newest": m.FROM_NEWEST,
    "turn_start": m.TURN_START,
    "known": m.KNOWN,
    "update": m.UPDATE,
    "delete_range": m.DELETE_RANGE,
    "delete_selected": m.DELETE_SELECTED,
}

QUERIES = {
    "sessions_by_time": {},
    "sessions_by_user": {"user_id": "ada"},
    "sessions_by_agent": {"agent_id": "helper"},
    "sessions_by_status": {"status": "closed"},
    "sessions_by_memory": {"memory_enabled": False},
}

BEGINNINGS = {
    "user_id": ("ada", "INDEX sessions_by_user (namespace=? AND user_id=?"),
    "labels": (frozenset({"blue"}), "INDEX sessions_by_label (label=?)"),
    "agent_id": ("helper", "INDEX sessions_by_agent (namespace=? AND agent_id=?"),
    "status": ("open", "INDEX sessions_by_status (namespace=? AND status=?"),
    "memory_enabled": (True, "INDEX sessions_by_memory (namespace=? AND memory_enabled=?"),
}
"""Conditions by what they usually leave, the fewest first, and the index for each."""


def plan(db: sqlite3.Connection, statement: str) -> str:
    """Return the plan of a statement as text."""
    values = [1] * statement.count("?")
    rows = db.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
    return "; ".join(row[3] for row in rows)


@pytest.mark.parametrize("name", STATEMENTS)
async def test_a_hot_statement_walks_an_index(make: Make, name: str) -> None:
    """No statement on a session's row or messages scans a table or sorts."""
    async with make() as store:
        found = await store._reader.do(lambda db: plan(db, STATEMENTS[name]))
    assert "SEARCH" in found
    assert "SCAN" not in found
    assert "TEMP B-TREE" not in found


@pytest.mark.parametrize("index", QUERIES)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"created_from": 1},
        {"created_before": 9},
        {"position": SessionPosition(5, "s", "ada")},
    ],
)
async def test_a_search_walks_its_index_in_order(
    make: Make, index: str, more: dict[str, Any]
) -> None:
    """A search by one filter, with dates or from a position on, walks the index for it and does
    not sort; the total is counted in an index, too."""
    query = SessionQuery(namespace="app", **QUERIES[index], **more)
    async with make() as store:
        plans = await store._reader.do(lambda db: plans_of(db, query))
    assert f"INDEX {index} (" in plans[-1]
    for found in plans:
        assert "INDEX sessions_by_" in found
        assert "SCAN" not in found
        assert "TEMP B-TREE" not in found


async def test_a_search_by_label_begins_with_the_label(make: Make) -> None:
    """A search by a label looks at the sessions that have it and at no others."""
    query = SessionQuery(namespace="app", labels=frozenset({"blue"}), status="open")
    async with make() as store:
        plans = await store._reader.do(lambda db: plans_of(db, query))
    for found in plans:
        assert found.startswith("SEARCH sessions USING INTEGER PRIMARY KEY (rowid=?)")
        assert "INDEX sessions_by_label (label=?)" in found
        assert "SCAN" not in found


@pytest.mark.parametrize(("first", "second"), [*itertools.combinations(BEGINNINGS, 2)])
async def test_a_search_begins_with_what_leaves_the_fewest(
    make: Make, first: str, second: str
) -> None:
    """Of two filters the search walks the index of the one that usually leaves fewer sessions."""
    conditions = {name: BEGINNINGS[name][0] for name in (first, second)}
    query = SessionQuery(namespace="app", created_from=1, **conditions)  # type: ignore[arg-type]
    async with make() as store:
        plans = await store._reader.do(lambda db: plans_of(db, query))
    for found in plans:
        assert BEGINNINGS[first][1] in found
        assert "SCAN" not in found


async def test_a_search_by_two_labels_begins_with_the_rarer_one(store: SQLiteStore) -> None:
    """A search by labels looks at the sessions that have the rarest of them, and at no others."""
    steps = Steps(store)
    await create(store, "ada", 300, labels=frozenset({"common"}))
    costs = []
    for rare in ("a rare one", "z rare one"):
        await create(store, "ada", 3, labels=frozenset({"common", rare}))
        query = SessionQuery(namespace="app", labels=frozenset({"common", rare}))
        costs.append(await steps.of(lambda query=query: store.find_sessions(query)))
    by_user = SessionQuery(namespace="app", user_id="ada", labels=frozenset({"common", rare}))
    assert max(costs) < await steps.of(lambda: store.find_sessions(by_user)) / 2


async def test_a_search_by_user_and_label_begins_with_the_user(make: Make) -> None:
    """A search among one user's sessions looks at no others, whoever else has the label."""
    query = SessionQuery(namespace="app", user_id="ada", labels=frozenset({"blue", "red"}))
    async with make() as store:
        plans = await store._reader.do(lambda db: plans_of(db, query))
    for found in plans:
        assert "INDEX sessions_by_user (namespace=? AND user_id=?" in found
        assert "SCAN" not in found


def plans_of(db: sqlite3.Connection, query: SessionQuery) -> list[str]:
    """Return the plans of the statements that a search executes."""
    statements: list[str] = []
    db.set_trace_callback(statements.append)
    find_sessions(db, query)
    db.set_trace_callback(None)
    return [plan(db, statement) for statement in statements]


class Steps:
    """Counts the instructions of SQLite's virtual machine."""

    def __init__(self, store: SQLiteStore) -> None:
        self.store = store
        self.count = 0

    async def of(self, call: Callable[[], Any]) -> int:
        """Return how many a call takes on the store's connections."""
        self.count = 0
        for connection in (self.store._writer, self.store._reader):
            await connection.do(lambda db: db.set_progress_handler(self.step, 1))
        await call()
        for connection in (self.store._writer, self.store._reader):
            await connection.do(lambda db: db.set_progress_handler(None, 0))
        return self.count

    def step(self) -> int:
        self.count += 1
        return 0


@pytest_asyncio.fixture
async def store(make: Make) -> Any:
    async with make(synchronous="normal") as store:
        yield store


async def test_an_append_costs_the_same_on_a_long_session(
    store: SQLiteStore, key: SessionKey
) -> None:
    """An append to a session of 5,000 messages takes SQLite as many steps as one to 10."""
    steps = Steps(store)
    await store.append(key, conversation(5))
    short = await steps.of(lambda: store.append(key, conversation(1)))
    await store.append(key, conversation(2500))
    assert await steps.of(lambda: store.append(key, conversation(1))) == short


@pytest.mark.parametrize("turns", [True, False])
async def test_retention_costs_the_same_on_a_long_session(
    store: SQLiteStore, key: SessionKey, turns: bool
) -> None:
    """An append with retention does not depend on how much is kept, nor on what cannot go because
    it is one long turn."""
    steps = Steps(store)

    async def cost(session: str, kept: int) -> int:
        place = SessionKey("app", "", session)
        await store.append(place, conversation(kept // 2) if turns else drafts("m", kept))
        new = [draft("question", turn_start=turns), draft("answer")]
        keep = Retention(max_messages=kept if turns else 10)
        await store.append(place, new, retention=keep)
        return await steps.of(
            lambda: store.append(place, [draft("a", turn_start=turns), draft("b")], retention=keep)
        )

    assert await cost("long", 5000) <= await cost("short", 20) + 20


async def test_the_last_messages_cost_the_same_on_a_long_session(
    store: SQLiteStore, key: SessionKey
) -> None:
    """The newest 20, the end for a transcript and a page in the middle do not depend on the
    length of the session."""
    steps = Steps(store)

    async def costs() -> list[int]:
        middle = (await store.read_session(key)).message_count // 2
        calls = (
            lambda: store.read(key, Window(limit=20)),
            lambda: store.read_tail(key),
            lambda: store.read(key, Window(limit=20, before=middle)),
            lambda: store.read(key, Window(limit=20, after=middle)),
        )
        return [await steps.of(call) for call in calls]

    await store.append(key, conversation(50))
    short = await costs()
    await store.append(key, conversation(2500))
    assert grown(short, await costs()) == []


async def test_a_search_costs_the_same_among_many_sessions(store: SQLiteStore) -> None:
    """A page of one user's or one agent's sessions does not depend on how many others there are,
    and a page without total not on how many match."""
    steps = Steps(store)

    async def costs() -> list[int]:
        queries = (
            SessionQuery(namespace="app", user_id="ada"),
            SessionQuery(namespace="app", agent_id="rare"),
            SessionQuery(namespace="app", labels=frozenset({"rare"})),
            SessionQuery(namespace="app", labels=frozenset({"rare"}), agent_id="rare"),
            SessionQuery(namespace="app", status="rare"),
            SessionQuery(namespace="app", memory_enabled=False),
            SessionQuery(namespace="app", created_before=25),
            SessionQuery(namespace="app", with_total=False),
            SessionQuery(namespace="app", agent_id="common", with_total=False),
        )
        return [await steps.of(lambda query=query: store.find_sessions(query)) for query in queries]

    rare = {"agent_id": "rare", "status": "rare", "memory_enabled": False}
    await create(store, "ada", 25, labels=frozenset({"rare"}), **rare)
    await create(store, "bob", 75, agent_id="common")
    few = await costs()
    await store._writer.do(lambda db: db.executescript(OTHERS))
    assert (await store.find_sessions(SessionQuery(namespace="app"))).total == 10_000
    assert grown(few, await costs()) == []


OTHERS = """
WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
INSERT INTO sessions (namespace, user_id, session_id, incarnation, agent_id, status,
                      memory_enabled, created_at, updated_at)
SELECT 'app', 'bob', 's' || i, 'i' || i, 'common', 'active', 1, i, i FROM n;
INSERT INTO session_bodies SELECT row, x'00' FROM sessions WHERE created_at >= 100;
"""
"""Another 9,900 sessions."""


def grown(before: list[int], after: list[int]) -> list[tuple[int, int]]:
    """The costs that rose; a newer SQLite spends some steps less on a file that has grown."""
    return [(old, new) for old, new in zip(before, after, strict=True) if new > old]


async def create(store: SQLiteStore, user: str, count: int, **fields: Any) -> None:
    before = (await store.find_sessions(SessionQuery(namespace="app"))).total or 0
    for number in range(before, before + count):
        key = SessionKey("app", user, f"s{number}")
        await store.create_session(key, SessionDraft(created_at=number, **fields))
