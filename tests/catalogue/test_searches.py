from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalogue.searches import SearchTests


class TestSQLite(SearchTests):
    backend = "sqlite"

    @pytest.fixture
    def backend_config(self, tmp_path: Path) -> dict[str, object]:
        return {"path": tmp_path / "chat.db", "synchronous": "normal"}


class TestRedis(SearchTests):
    backend = "redis"

    @pytest.fixture
    def backend_config(self, redis_url: str, redis_prefix: str) -> dict[str, object]:
        return {"url": redis_url, "prefix": redis_prefix}


class TestMongo(SearchTests):
    backend = "mongo"

    @pytest.fixture
    def backend_config(self, mongo_url: str, mongo_database: str) -> dict[str, object]:
        return {"url": mongo_url, "database": mongo_database}


class TestPostgres(SearchTests):
    backend = "postgres"

    @pytest.fixture
    def backend_config(self, postgres_url: str, postgres_schema: str) -> dict[str, object]:
        return {"url": postgres_url, "schema": postgres_schema}
