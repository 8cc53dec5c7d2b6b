"""What statements cost: which indexes they walk, and how many blocks they look at."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from historykit.records import Retention, Window
from historykit.session_records import SessionDraft, SessionKey, SessionPosition, SessionQuery
from historykit.testing.drafts import conversation, draft, drafts
from historykit_postgres import PostgresConfig, PostgresStore, connections
from historykit_postgres.drivers import Driver, Row

pytestmark = pytest.mark.asyncio

Inside = Callable[..., list[Any]]

PAGE = Path(__file__).parents[3] / "docs" / "schema.md"

EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "


SESSIONS = """
INSERT INTO historykit_sessions (key, namespace, user_id, session_id, incarnation, agent_id,
                                 status, memory_enabled, created_at, updated_at)
SELECT decode(md5('{session}' || n), 'hex'), 'app', '{user}' || n % 100, '{session}' || n, 'i' || n,
       'common', 'active', true, n, n
FROM generate_series(1, {count}) AS n
"""


class ExplainingDriver:
    """Has each statement explained, which executes it, undoes that, and executes it again."""

    def __init__(self, driver: Driver, plans: list[dict[str, Any]]) -> None:
        self._driver = driver
        self._plans = plans
        self.execute = driver.execute
        self.fetch_planned = self.fetch

    async def fetch(self, statement: str, /, *arguments: object) -> Sequence[Row]:
        is_nested = self.in_transaction
        await self.execute("SAVEPOINT explained" if is_nested else "BEGIN")
        ((found,),) = await self._driver.fetch_planned(EXPLAIN + statement, *arguments)
        (plan,) = json.loads(found) if isinstance(found, str) else found
        self._plans.append(plan["Plan"])
        await self.execute("ROLLBACK TO SAVEPOINT explained" if is_nested else "ROLLBACK")
        return await self._driver.fetch(statement, *arguments)

    @property
    def closed(self) -> bool:
        return self._driver.closed

    @property
    def in_transaction(self) -> bool:
        return self._driver.in_transaction


class Costs:
    """Counts what calls cost."""

    def __init__(self) -> None:
        self.plans: list[dict[str, Any]] = []

    async def blocks(self, call: Callable[[], Any]) -> int:
        """Return how many blocks of tables and indexes a call looks at."""
        self.plans.clear()
        await call()
        return sum(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for plan in self.plans)

    async def nodes(self, call: Callable[[], Any]) -> list[str]:
        """Return how a call gets at rows: the kind of each scan, with its table or index."""
        self.plans.clear()
        await call()
        return [scan for plan in self.plans for scan in scans(plan)]


def scans(plan: dict[str, Any]) -> Iterator[str]:
    place = plan.get("Index Name") or plan.get("Relation Name")
    if place and plan["Actual Loops"] and plan["Node Type"] != "ModifyTable":
        yield f"{plan['Node Type']} {place}"
    for part in plan.get("Plans", ()):
        yield from scans(part)


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Counts what the stores of a test cost."""
    costs = Costs()
    driver_of = connections.driver_of

    def explaining(connection: Any, *, prepared: bool) -> Any:
        return ExplainingDriver(driver_of(connection, prepared=prepared), costs.plans)

    monkeypatch.setattr(connections, "driver_of", explaining)
    return costs


@pytest_asyncio.fixture
async def store(
    costs: Costs, postgres_url: str, postgres_schema: str, inside: Inside
) -> AsyncIterator[PostgresStore]:
    """A store whose tables hold the history of many others."""
    config = PostgresConfig(url=postgres_url, schema=postgres_schema, pool_size=1)
    async with PostgresStore(config) as store:
        inside(SESSIONS.format(user="u", session="s", count=10_000))
        inside("""
            INSERT INTO historykit_session_labels
            SELECT id, 'common' FROM historykit_sessions
        """)
        inside("""
            INSERT INTO historykit_messages (session, stream, sequence, id, role, created_at,
                                             turn_start, digest, body)
            SELECT s.id, 'main', n, 'm' || n, 'user', n, n % 2 = 1, 'd', 'body'
            FROM historykit_sessions AS s, generate_series(1, 6) AS n
        """)
        inside("""
            INSERT INTO historykit_session_bodies SELECT id, 'body' FROM historykit_sessions
        """)
        inside("VACUUM ANALYZE")
        yield store


async def fill(store: PostgresStore, key: SessionKey, turns: int) -> None:
    """Give a session a history, and the planner a chance to notice."""
    for _ in range(0, turns, 250):
        await store.append(key, conversation(min(turns, 250)))


async def test_an_append_costs_the_same_on_a_long_session(
    store: PostgresStore, key: SessionKey, costs: Costs
) -> None:
    """An append looks at as few blocks on a session of 5,000 messages as on one of 10."""
    await fill(store, key, 5)
    short = await costs.blocks(lambda: store.append(key, conversation(1)))
    assert len(costs.plans) == 1
    await fill(store, key, 2500)
    assert await costs.blocks(lambda: store.append(key, conversation(1))) <= short + 5
    assert len(costs.plans) == 1


@pytest.mark.parametrize("turns", [True, False])
async def test_retention_costs_the_same_on_a_long_session(
    store: PostgresStore, costs: Costs, turns: bool
) -> None:
    """An append with retention does not depend on how much is kept, nor on what cannot go because
    it is one long turn."""

    async def cost(session: str, kept: int) -> int:
        place = SessionKey("app", "", session)
        await store.append(place, conversation(kept // 2) if turns else drafts("m", kept))
        keep = Retention(max_messages=kept if turns else 10)

        async def append() -> None:
            new = [draft("question", turn_start=turns), draft("answer")]
            await store.append(place, new, retention=keep)

        await append()
        return await costs.blocks(append)

    assert await cost("long", 4000) <= await cost("short", 20) + 30


async def test_a_page_costs_the_same_on_a_long_session(
    store: PostgresStore, key: SessionKey, costs: Costs
) -> None:
    """The newest 20, the end for a transcript and a page in the middle do not depend on the
    length of the session."""

    async def all_costs() -> list[int]:
        middle = (await store.read_session(key)).message_count // 2
        calls = (
            lambda: store.read(key, Window(limit=20)),
            lambda: store.read_tail(key),
            lambda: store.read(key, Window(limit=20, before=middle)),
            lambda: store.read(key, Window(limit=20, after=middle)),
        )
        return [await costs.blocks(call) for call in calls]

    await fill(store, key, 50)
    short = await all_costs()
    await fill(store, key, 2500)
    for few, many in zip(short, await all_costs(), strict=True):
        assert many <= few + 6


async def test_a_lookup_costs_the_same_on_a_long_session(
    store: PostgresStore, key: SessionKey, costs: Costs
) -> None:
    """A message by its id and the newest of several sessions are one statement each, which does not
    depend on the length of the sessions."""
    message = draft("wanted")
    keys = [key, *(SessionKey("app", f"u{n}", f"s{n}") for n in range(1, 20))]

    async def all_costs() -> list[int]:
        calls = (lambda: store.read_message(key, message.id), lambda: store.read_newest(keys))
        found = []
        for call in calls:
            found.append(await costs.blocks(call))
            assert len(costs.plans) == 1
        return found

    await store.append(key, [message])
    short = await all_costs()
    await fill(store, key, 2500)
    for few, many in zip(short, await all_costs(), strict=True):
        assert many <= few + 6
    assert max(short) < 12 * len(keys)


async def test_messages_are_read_through_their_key(
    store: PostgresStore, key: SessionKey, costs: Costs
) -> None:
    """No read of messages scans the table, or takes the index of ids and sorts."""
    await fill(store, key, 2500)
    for call in (
        lambda: store.read(key),
        lambda: store.read(key, Window(limit=20)),
        lambda: store.read(key, Window(after=100)),
        lambda: store.read_tail(key),
    ):
        assert {scan for scan in await costs.nodes(call) if "messages" in scan} <= THROUGH_KEY


THROUGH_KEY = {f"Index Scan{way} historykit_messages_pkey" for way in ("", " Backward")}

QUERIES: dict[str, dict[str, Any]] = {
    "sessions_by_time": {},
    "sessions_by_user": {"user_id": "u7"},
    "sessions_by_agent": {"agent_id": "rare"},
    "sessions_by_status": {"status": "rare"},
    "sessions_by_memory": {"memory_enabled": False},
    "sessions_by_label": {"labels": frozenset({"rare"})},
}


RARE = SessionDraft(
    agent_id="rare",
    status="rare",
    memory_enabled=False,
    labels=frozenset({"rare"}),
    created_at=2000,
)


@pytest.mark.parametrize("index", QUERIES)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"created_from": 1000},
        {"created_before": 9000},
        {"position": SessionPosition(5000, "s5000", "u0")},
    ],
)
async def test_a_search_walks_an_index(
    store: PostgresStore, costs: Costs, index: str, more: dict[str, Any]
) -> None:
    """A search by one filter among 10,000 sessions, with dates or from a position on, looks at the
    sessions that match and at few others."""
    for number in range(30):
        await store.create_session(SessionKey("app", "rare", f"r{number}"), RARE)
    query = SessionQuery(namespace="app", with_total=False, **QUERIES[index], **more)
    found = await costs.nodes(lambda: store.find_sessions(query))
    assert not [scan for scan in found if "Seq Scan" in scan], found
    assert await costs.blocks(lambda: store.find_sessions(query)) < 400


@pytest.mark.parametrize("index", QUERIES)
async def test_a_search_walks_the_index_meant_for_it(
    store: PostgresStore, costs: Costs, inside: Inside, index: str
) -> None:
    """A page and its total come through the index of the filter, without a scan of all sessions
    and, where the index has their order, without sorting."""
    for number in range(30):
        await store.create_session(SessionKey("app", "rare", f"r{number}"), RARE)
    inside("VACUUM ANALYZE")
    query = SessionQuery(namespace="app", **QUERIES[index])
    found = await costs.nodes(lambda: store.find_sessions(query))
    assert [scan for scan in found if f"historykit_{index}" in scan], found
    assert not [scan for scan in found if "Seq Scan" in scan], found


async def test_the_documented_plan_is_the_one_that_is_made(
    store: PostgresStore, costs: Costs, inside: Inside
) -> None:
    """The page on the schema shows the scans that a search by agent really makes, in order."""
    for number in range(30):
        await store.create_session(SessionKey("app", "rare", f"r{number}"), RARE)
    inside("VACUUM ANALYZE")
    query = SessionQuery(namespace="app", agent_id="rare")
    made = await costs.nodes(lambda: store.find_sessions(query))
    scan = re.compile(r"-> +(Index (?:Only )?Scan)(?: Backward)? using (\w+)")
    documented = [" ".join(found) for found in scan.findall(PAGE.read_text("utf-8"))]
    assert documented == made


async def test_a_search_costs_the_same_among_many_sessions(
    store: PostgresStore, costs: Costs, inside: Inside
) -> None:
    """A page does not depend on how many sessions do not match, and without a total not on how
    many do."""
    rare = SessionDraft(agent_id="rare", labels=frozenset({"rare"}))
    for number in range(30):
        await store.create_session(SessionKey("app", "ada", f"a{number}"), rare)

    async def all_costs() -> list[int]:
        queries = (
            SessionQuery(namespace="app", user_id="ada"),
            SessionQuery(namespace="app", agent_id="rare"),
            SessionQuery(namespace="app", labels=frozenset({"rare"})),
            SessionQuery(namespace="app", labels=frozenset({"rare"}), agent_id="rare"),
            SessionQuery(namespace="app", with_total=False),
            SessionQuery(namespace="app", agent_id="common", with_total=False),
            SessionQuery(namespace="app", labels=frozenset({"common"}), with_total=False),
        )
        return [
            await costs.blocks(lambda query=query: store.find_sessions(query)) for query in queries
        ]

    inside("VACUUM ANALYZE")
    few = await all_costs()
    inside(SESSIONS.format(user="v", session="t", count=20000))
    inside("""
        INSERT INTO historykit_session_labels
        SELECT id, 'common' FROM historykit_sessions WHERE session_id LIKE 't%'
    """)
    inside("VACUUM ANALYZE")
    for before, after in zip(few, await all_costs(), strict=True):
        assert after <= before * 1.3 + 20
