from __future__ import annotations

import pytest

from historykit.testing import HistoryConformance
from tests.services.postgres import PostgresServer


class Postgres(HistoryConformance):
    """The suite on one schema of a server, which the tests share."""

    backend = "postgres"
    __test__ = False


class TestPostgres18(Postgres):
    @pytest.fixture
    def backend_config(self, postgres18: PostgresServer) -> dict[str, object]:
        return {"url": postgres18.url, "schema": "conformance"}


class TestPostgres18Psycopg(Postgres):
    @pytest.fixture
    def backend_config(self, postgres18: PostgresServer) -> dict[str, object]:
        url = postgres18.url.replace("postgresql:", "postgresql+psycopg:")
        return {"url": url, "schema": "conformance_psycopg"}


class TestPostgres15(Postgres):
    @pytest.fixture
    def backend_config(self, postgres15: PostgresServer) -> dict[str, object]:
        return {"url": postgres15.url, "schema": "conformance"}


class TestPostgres15Psycopg(Postgres):
    @pytest.fixture
    def backend_config(self, postgres15: PostgresServer) -> dict[str, object]:
        url = postgres15.url.replace("postgresql:", "postgresql+psycopg:")
        return {"url": url, "schema": "conformance_psycopg"}
