"""What the tests of the PostgreSQL backend share: servers, and a schema of a test's own."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from historykit.records import SessionKey
from historykit_postgres import PostgresConfig, PostgresStore
from tests.services.postgres import POSTGRES_15, POSTGRES_18, PostgresServer

Inside = Callable[..., list[Any]]


@pytest.fixture(scope="session")
def postgres15() -> Iterator[PostgresServer]:
    """A server of the oldest version that is supported."""
    with POSTGRES_15.private(next(POSTGRES_15.programs())) as server:
        yield server


@pytest.fixture(scope="session")
def postgres18() -> Iterator[PostgresServer]:
    """A server of the newest version that is supported."""
    with POSTGRES_18.private(next(POSTGRES_18.programs())) as server:
        yield server


@pytest.fixture
def server(postgres18: PostgresServer) -> PostgresServer:
    """The server for tests that need one of any version."""
    return postgres18


@pytest.fixture(params=["asyncpg", "psycopg"])
def driver(request: pytest.FixtureRequest) -> str:
    """The name of each driver."""
    name: str = request.param
    return name


@pytest.fixture
def url(server: PostgresServer, driver: str) -> str:
    """The server's URL, for each driver."""
    return server.url.replace("postgresql:", f"postgresql+{driver}:")


@pytest.fixture
def schema(server: PostgresServer) -> Iterator[str]:
    """The name of a schema that is not there yet, and is gone in the end."""
    name = f"test_{secrets.token_hex(6)}"
    yield name
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@pytest.fixture
def key() -> SessionKey:
    return SessionKey("app", "", "s")


@pytest.fixture
def make(url: str, schema: str) -> Callable[..., PostgresStore]:
    """Return a function that makes a store in the schema."""

    def make(**settings: Any) -> PostgresStore:
        return PostgresStore(PostgresConfig(**{"url": url, "schema": schema, **settings}))

    return make


@pytest.fixture
def inside(server: PostgresServer, schema: str) -> Inside:
    """Return a function that executes a statement in the schema, past the store."""

    def inside(statement: str, *values: object) -> list[Any]:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"SET search_path = {schema}")
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    return inside
