"""The Redis backend behind a proxy."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from historykit.testing import NetworkConformance
from historykit.testing.proxy import TcpProxy


class TestRedis(NetworkConformance):
    backend = "redis"

    @pytest.fixture
    def backend_config(self, redis_url: str, redis_prefix: str) -> Mapping[str, object]:
        return {"url": redis_url, "prefix": redis_prefix}

    @pytest.fixture
    def proxied_config(
        self, backend_config: Mapping[str, object], proxy: TcpProxy
    ) -> Mapping[str, object]:
        return {**backend_config, "url": proxy.route(str(backend_config["url"])), "timeout": 1}
