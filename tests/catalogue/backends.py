"""The backends on which the catalogue of sessions is tried: one class for each set of tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from historykit.config import build_config
from historykit.history import History
from historykit.plugins import load_backend
from historykit.testing.subject import ManualClock

__all__ = ["OnMemory", "OnMongo", "OnPostgres", "OnRedis", "OnSQLite"]


class Backend:
    """What the tests of one backend are given."""

    name: str

    @pytest.fixture
    def clock(self) -> ManualClock:
        """A clock that stands."""
        return ManualClock()

    @pytest_asyncio.fixture
    async def history(
        self, settings: Mapping[str, Any], clock: ManualClock
    ) -> AsyncIterator[History]:
        """A history of no user in a part of the backend that is new."""
        spec = load_backend(self.name)
        store = spec.make_store(build_config(spec, settings), clock=clock)
        async with History(store) as history:
            yield history


class OnMemory(Backend):
    name = "memory"

    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {}


class OnSQLite(Backend):
    name = "sqlite"

    @pytest.fixture
    def settings(self, tmp_path: Path) -> dict[str, Any]:
        return {"path": str(tmp_path / "chat.db")}


class OnRedis(Backend):
    name = "redis"

    @pytest.fixture
    def settings(self, redis_url: str, redis_prefix: str) -> dict[str, Any]:
        return {"url": redis_url, "prefix": redis_prefix}


class OnPostgres(Backend):
    name = "postgres"

    @pytest.fixture
    def settings(self, postgres_url: str, postgres_schema: str) -> dict[str, Any]:
        return {"url": postgres_url, "schema": postgres_schema}


class OnMongo(Backend):
    name = "mongo"

    @pytest.fixture
    def settings(self, mongo_url: str, mongo_database: str) -> dict[str, Any]:
        return {"url": mongo_url, "database": mongo_database}
