"""What the tests of the PostgreSQL backend share: a schema of each test's own, and processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from historykit.session_records import SessionKey
from historykit_postgres import PostgresConfig, PostgresStore
from tests.services.plugin import Servers
from tests.services.postgres import PostgresServer, PostgresService, connect

Inside = Callable[..., list[Any]]
Make = Callable[..., PostgresStore]
Start = Callable[..., "subprocess.Popen[str]"]

CONNECTIONS = "pg_stat_activity WHERE application_name = current_setting('search_path')"
"""Where a test sees the connections of its own stores from inside."""

PRELUDE = """
import asyncio, os, sys
from historykit.errors import *
from historykit.records import *
from historykit.session_records import *
from historykit.testing.drafts import conversation, draft, drafts, texts
from historykit_postgres import PostgresConfig, PostgresStore

url, schema, *arguments = sys.argv[1:]
key = SessionKey("app", "", "s")

def make(**settings):
    return PostgresStore(PostgresConfig(url=url, schema=schema, **settings))
"""


@pytest.fixture
def key() -> SessionKey:
    return SessionKey("app", "", "s")


@pytest.fixture(params=["asyncpg", "psycopg"])
def driver(request: pytest.FixtureRequest) -> str:
    """The name of each driver."""
    name: str = request.param
    return name


@pytest.fixture
def url(postgres_url: str, driver: str) -> str:
    """The server's URL, with each driver."""
    return postgres_url.replace("postgresql:", f"postgresql+{driver}:")


@pytest.fixture
def make(url: str, postgres_schema: str) -> Make:
    """Return a function that makes a store in the test's schema, with each driver.

    Its connections are known by the schema's name, because other tests use the server meanwhile.
    """
    named = f"{url}{'&' if '?' in url else '?'}application_name={postgres_schema}"

    def make(**settings: Any) -> PostgresStore:
        settings = {"url": named, "schema": postgres_schema, **settings}
        return PostgresStore(PostgresConfig(**settings))

    return make


@pytest.fixture
def inside(postgres_url: str, postgres_schema: str) -> Iterator[Inside]:
    """Return a function that executes a statement in the test's schema, past the store."""
    with connect(postgres_url) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", [postgres_schema])

        def inside(statement: str, *values: object) -> list[Any]:
            cursor = connection.execute(cast(Any, statement), values or None)
            return cursor.fetchall() if cursor.description else []

        yield inside


@pytest.fixture
def own_server(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[Callable[..., Any]]:
    """Return a function that starts a private server of the version selected, with options."""
    servers = cast(Servers, request.config.pluginmanager.getplugin("historykit-servers"))
    service = cast(PostgresService, servers.services["postgres"])
    with ExitStack() as stack:

        def start(*options: str) -> PostgresServer:
            return stack.enter_context(PostgresServer(next(service.programs()), *options))

        yield start


@pytest.fixture
def start(url: str, postgres_schema: str) -> Iterator[Start]:
    """Return a function that starts a process of Python with a script that uses the schema.

    The script finds `make`, `key` and the arguments, and the names that a script needs.
    """
    processes = []

    def start(script: str, *arguments: object) -> Any:
        command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script), url, postgres_schema]
        process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()
