from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from historykit.session_records import SessionQuery
from historykit_mongo.schema import INDEXES, MARK
from historykit_postgres import PostgresConfig, ddl
from historykit_redis.keys import LAYOUT
from historykit_sqlite import SQLiteConfig, SQLiteStore
from historykit_sqlite.schema import APPLICATION_ID, MIGRATIONS
from historykit_sqlite.search import find_sessions
from tests.docs.samples import blocks
from tests.packaging.workspace import ROOT

PAGE = ROOT / "docs" / "schema.md"
TEXT = PAGE.read_text("utf-8")
SQLITE, POSTGRES = (block.text for block in blocks(PAGE) if block.language == "sql")
PLANS = [block.text for block in blocks(PAGE) if block.language == "text"]


def tables(db: sqlite3.Connection) -> dict[str, str]:
    named = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {name: " ".join(sql.split()) for name, sql in named}


@pytest.mark.asyncio
async def test_the_tables_of_sqlite_are_those_of_the_page(tmp_path: Path) -> None:
    """A new file has the tables and indexes that the page's statements make."""
    path = tmp_path / "chat.db"
    async with SQLiteStore(SQLiteConfig(path=path)):
        pass
    shown, made = sqlite3.connect(":memory:"), sqlite3.connect(path)
    shown.executescript(SQLITE)
    assert tables(shown) == tables(made)
    shown.close()
    made.close()


def test_the_marks_of_a_sqlite_file_are_those_of_the_page() -> None:
    """The page names the application id, and the version of the schema."""
    assert (
        f"({APPLICATION_ID}) and as `user_version` the version of the schema, {len(MIGRATIONS)}"
        in TEXT
    )


def test_the_tables_of_postgres_are_those_of_the_page() -> None:
    """The page shows the statements that the backend generates."""
    assert POSTGRES.split() == ddl(PostgresConfig(url="postgresql://localhost/chat")).split()


def test_the_keys_of_redis_are_those_of_the_page() -> None:
    """The page has the layout's version in every key."""
    assert TEXT.count(f"`PREFIX{LAYOUT}:") == 7


def test_the_indexes_of_mongodb_are_those_of_the_page() -> None:
    """The page names each index, and the document with the version."""
    for index in INDEXES:
        assert f"`{index.document['name']}`" in TEXT
    assert f"`{MARK}`, has the version" in TEXT


def test_the_plans_of_sqlite_are_those_of_the_page() -> None:
    """The page shows the plans of count and page of a search by agent."""
    db = sqlite3.connect(":memory:")
    db.executescript(SQLITE)
    statements: list[str] = []
    db.set_trace_callback(statements.append)
    find_sessions(db, SessionQuery(namespace="app", agent_id="rare"))
    db.set_trace_callback(None)
    plans = [db.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall() for statement in statements]
    db.close()
    assert "\n\n".join("\n".join(row[3] for row in plan) for plan in plans) == PLANS[0]


def test_the_page_names_the_index_of_each_condition() -> None:
    """Every index of sessions is in the table of conditions, by its name in each database."""
    table = TEXT[TEXT.index("| condition |") : TEXT.index("Dates and the session behind")]
    indexes = [line.split()[2] for line in SQLITE.splitlines() if line.startswith("CREATE INDEX")]
    for name in indexes:
        if name.startswith("sessions_by"):
            assert f"`{name}`" in table
            assert f'"historykit_{name}"' in POSTGRES
    for index in INDEXES[1:]:
        assert f"`{index.document['name']}`" in table
