"""Selects the backends whose servers the tests need, and lends the tests those servers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Mapping
from contextlib import ExitStack

import pytest

from tests.services.namespaces import (
    mongo_database,
    pgbouncer_schema,
    postgres_schema,
    redis_prefix,
)
from tests.services.resolving import (
    BACKENDS,
    SERVICES,
    WITHOUT_SERVER,
    Resolved,
    ServerError,
    resolve,
)
from tests.services.service import Service, variable

__all__ = ["mongo_database", "pgbouncer_schema", "postgres_schema", "redis_prefix"]

NEEDS = {f"{backend}_url": backend for backend in BACKENDS}
"""The fixtures that a test needs a server for, and the backend that it is of."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the setting for the default."""
    group = parser.getgroup("services", "servers for the tests")
    group.addoption(
        "--backend",
        dest="backends",
        metavar="NAME",
        action="append",
        choices=[*SERVICES, *WITHOUT_SERVER],
        help=f"run the tests that need this server: {', '.join(SERVICES)}; may be repeated. With "
        "memory or sqlite none do. The default is test_backends in pyproject.toml",
    )
    group.addoption(
        "--containers", action="store_true", help="run the servers in containers or not at all"
    )
    group.addoption(
        "--processes", action="store_true", help="run the servers as processes, Docker or not"
    )
    parser.addini("test_backends", "the backends selected without --backend", type="args")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to look after servers. Raises `pytest.UsageError` for names that do not go together."""
    names = config.option.backends or config.getini("test_backends")
    services: dict[str, Service] = {}
    for name in names:
        if name in WITHOUT_SERVER:
            continue
        service = SERVICES[name]
        other = services.setdefault(service.backend, service)
        if other is not service:
            raise pytest.UsageError(f"--backend {other.name} and {name}: one run takes one of them")
    if config.option.containers and config.option.processes:
        raise pytest.UsageError("--containers and --processes: one run takes one of them")
    config.pluginmanager.register(Servers(config, services), "historykit-servers")


class Servers:
    """The servers of a run. Of several processes, the one that starts the others has them."""

    def __init__(self, config: pytest.Config, services: dict[str, Service]) -> None:
        self.services = services
        self.resolved: dict[str, Resolved] = {}
        self.lacking: set[str] = set()
        self.deselected: Counter[str] = Counter()
        self._stack = ExitStack()
        self._is_worker = hasattr(config, "workerinput")
        self._in_container: bool | None = None
        if config.option.containers or config.option.processes:
            self._in_container = config.option.containers

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Have all servers before workers start: those inherit the environment."""
        if session.config.pluginmanager.hasplugin("dsession"):
            self._resolve(self.services)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out the tests that need a server of a backend that is not selected."""
        kept: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            missing = [name for name in _needs(item) if name not in self.services]
            self.deselected.update(missing)
            (left_out if missing else kept).append(item)
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = kept

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Have the servers that the collected tests need."""
        if not self._is_worker and not session.config.option.collectonly:
            self._resolve({name for item in session.items for name in _needs(item)})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which servers the tests ran on."""
        if not (self.resolved or self.lacking or self.deselected):
            return
        terminalreporter.section("servers")
        for backend in BACKENDS:
            terminalreporter.write_line(f"{backend:<10}{self._line(backend)}")

    def pytest_unconfigure(self) -> None:
        """End the servers that were started."""
        self._stack.close()

    def _resolve(self, backends: Container[str]) -> None:
        for backend, service in self.services.items():
            if backend in backends and backend not in self.resolved:
                try:
                    server = resolve(service, self._stack, in_container=self._in_container)
                except ServerError as error:
                    self.lacking.add(backend)
                    raise pytest.UsageError(str(error)) from error
                self.resolved[backend] = server
                os.environ[service.variable] = server.url

    def _line(self, backend: str) -> str:
        if backend in self.resolved:
            return str(self.resolved[backend])
        if backend in self.lacking:
            return "NO SERVER"
        if backend in self.services:
            return "not needed by these tests"
        tests = self.deselected[backend]
        return "NOT SELECTED" + (f" ({tests} tests)" if tests else "")


def _needs(item: pytest.Item) -> set[str]:
    return {NEEDS[name] for name in getattr(item, "fixturenames", ()) if name in NEEDS}


@pytest.fixture(scope="session")
def services(request: pytest.FixtureRequest) -> Mapping[str, Service]:
    """The kinds of servers that are selected, by backend, for servers of a test's own."""
    servers = request.config.pluginmanager.getplugin("historykit-servers")
    assert isinstance(servers, Servers)
    return servers.services


@pytest.fixture(scope="session")
def redis_url() -> str:
    """The URL of the Redis server. A test that needs it is run where redis is selected."""
    return os.environ[variable("redis")]


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """The URL of the PostgreSQL server. A test that needs it is run where it is selected."""
    return os.environ[variable("postgres")]


@pytest.fixture(scope="session")
def pgbouncer_url() -> str:
    """The URL of the PgBouncer. A test that needs it is run where it is selected."""
    return os.environ[variable("pgbouncer")]


@pytest.fixture(scope="session")
def mongo_url() -> str:
    """The URL of the MongoDB server. A test that needs it is run where mongo is selected."""
    return os.environ[variable("mongo")]
