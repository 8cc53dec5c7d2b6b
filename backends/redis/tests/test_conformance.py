from __future__ import annotations

import pytest

from historykit.testing import HistoryConformance


class TestRedis(HistoryConformance):
    backend = "redis"

    @pytest.fixture
    def backend_config(self, redis_url: str, redis_prefix: str) -> dict[str, object]:
        return {"url": redis_url, "prefix": redis_prefix}


class TestRedisCluster(HistoryConformance):
    backend = "redis"

    @pytest.fixture
    def backend_config(self, cluster_url: str) -> dict[str, object]:
        return {"url": cluster_url}
