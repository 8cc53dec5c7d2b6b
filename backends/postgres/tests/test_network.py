"""The PostgreSQL backend behind a proxy, with each driver."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from historykit.testing import NetworkConformance
from historykit.testing.proxy import TcpProxy


class PostgresNetwork(NetworkConformance):
    """The suite in a schema of each test."""

    backend = "postgres"
    driver = ""
    __test__ = False

    @pytest.fixture
    def backend_config(self, postgres_url: str, postgres_schema: str) -> Mapping[str, object]:
        url = postgres_url.replace("postgresql:", f"postgresql+{self.driver}:")
        return {"url": url, "schema": postgres_schema}

    @pytest.fixture
    def proxied_config(
        self, backend_config: Mapping[str, object], proxy: TcpProxy
    ) -> Mapping[str, object]:
        return {**backend_config, "url": proxy.route(str(backend_config["url"])), "timeout": 5}


class TestAsyncpgNetwork(PostgresNetwork):
    driver = "asyncpg"


class TestPsycopgNetwork(PostgresNetwork):
    driver = "psycopg"
