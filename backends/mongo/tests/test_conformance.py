from __future__ import annotations

import pytest

from historykit.testing import HistoryConformance
from historykit_mongo import appends, documents


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


class TestMongoInSmallBuckets(HistoryConformance):
    """What most sessions of the suite are too short for: messages that move while they are used."""

    backend = "mongo"

    @pytest.fixture(autouse=True)
    def _small_buckets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (appends, documents):
            monkeypatch.setattr(module, "BUCKET_ROWS", 3)

    @pytest.fixture
    def backend_config(self, mongo_url: str, mongo_database: str) -> dict[str, object]:
        return {"url": mongo_url, "database": mongo_database}
