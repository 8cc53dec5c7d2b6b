"""The store behind PgBouncer in transaction mode, where nothing lasts longer than a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from historykit.errors import StorageError
from historykit.session_records import SessionKey
from historykit.testing import HistoryConformance
from historykit.testing.drafts import drafts
from historykit_postgres import PostgresConfig, PostgresStore
from tests.services.pgbouncer import PgBouncerServer
from tests.services.postgres import connect
from tests.services.service import Service


class BehindPgBouncer(HistoryConformance):
    """The suite in a schema of each test, without prepared statements."""

    backend = "postgres"
    driver = ""
    __test__ = False

    @pytest.fixture
    def backend_config(self, pgbouncer_url: str, pgbouncer_schema: str) -> dict[str, object]:
        url = pgbouncer_url.replace("postgresql:", f"postgresql+{self.driver}:")
        return {"url": url, "schema": pgbouncer_schema, "prepared_statements": False}


class TestAsyncpg(BehindPgBouncer):
    driver = "asyncpg"


class TestPsycopg(BehindPgBouncer):
    driver = "psycopg"


def test_a_client_changes_connections(pgbouncer_url: str) -> None:
    """The PgBouncer of these tests gives each transaction another connection to the server."""
    with connect(pgbouncer_url) as one, connect(pgbouncer_url) as other:
        other.execute("BEGIN")  # so that there is a second connection
        one.execute("SELECT 1")
        other.execute("COMMIT")
        seen = {one.execute("SELECT pg_backend_pid()").fetchone() for _ in range(4)}
    assert len(seen) > 1


@pytest.mark.asyncio
@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_many_writers_at_once(
    pgbouncer_url: str, pgbouncer_schema: str, key: SessionKey, driver: str
) -> None:
    """Stores whose statements share a few connections lose and double nothing."""
    url = pgbouncer_url.replace("postgresql:", f"postgresql+{driver}:")
    config = PostgresConfig(url=url, schema=pgbouncer_schema, prepared_statements=False)
    async with PostgresStore(config) as one, PostgresStore(config) as other:
        stores = [one, other] * 20
        receipts = await asyncio.gather(
            *(store.append(key, drafts(f"w{n}", 3)) for n, store in enumerate(stores))
        )
        assert [receipt.stored for receipt in receipts] == [3] * 40
        found = await one.read(key)
        assert [message.sequence for message in found.messages] == list(range(1, 121))


@pytest.mark.asyncio
@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_prepared_statements_that_get_lost_are_an_error_with_a_remedy(
    pgbouncer_url: str, services: Mapping[str, Service], key: SessionKey, driver: str
) -> None:
    """Where PgBouncer does not keep prepared statements, the error says which setting helps."""

    async def append_until_it_fails(url: str) -> None:
        async with PostgresStore(PostgresConfig(url=url)) as store:
            keys = [replace(key, session_id=str(number)) for number in range(6)]
            while True:
                await asyncio.gather(*(store.append(each, drafts("m", 2)) for each in keys))

    with PgBouncerServer(next(services["pgbouncer"].programs()), prepares=False) as server:
        url = server.url.replace("postgresql:", f"postgresql+{driver}:")
        with pytest.raises(StorageError, match="set prepared_statements=False"):
            await append_until_it_fails(url)
