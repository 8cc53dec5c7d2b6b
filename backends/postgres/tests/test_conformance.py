from __future__ import annotations

import pytest

from historykit.testing import HistoryConformance


class Postgres(HistoryConformance):
    """The suite in a schema of each test."""

    backend = "postgres"
    driver = ""
    __test__ = False

    @pytest.fixture
    def backend_config(self, postgres_url: str, postgres_schema: str) -> dict[str, object]:
        url = postgres_url.replace("postgresql:", f"postgresql+{self.driver}:")
        return {"url": url, "schema": postgres_schema}


class TestAsyncpg(Postgres):
    driver = "asyncpg"


class TestPsycopg(Postgres):
    driver = "psycopg"
