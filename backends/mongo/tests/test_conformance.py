from __future__ import annotations

import pytest

from historykit.testing import HistoryConformance


class TestMongo(HistoryConformance):
    backend = "mongo"

    @pytest.fixture
    def backend_config(self, mongo_url: str, mongo_database: str) -> dict[str, object]:
        return {"url": mongo_url, "database": mongo_database}


class TestMongoThroughMotor(HistoryConformance):
    backend = "mongo"

    @pytest.fixture
    def backend_config(self, mongo_url: str, mongo_database: str) -> dict[str, object]:
        return {"url": mongo_url, "database": mongo_database, "driver": "motor"}
