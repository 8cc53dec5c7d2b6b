"""The Redis backend behind a proxy."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from historykit.testing import NetworkConformance


class TestRedisNetwork(NetworkConformance):
    backend = "redis"

    @pytest.fixture
    def backend_config(self, redis_url: str, redis_prefix: str) -> Mapping[str, object]:
        return {"url": redis_url, "prefix": redis_prefix}
