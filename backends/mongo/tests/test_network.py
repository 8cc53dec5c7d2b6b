"""The MongoDB backend behind a proxy."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

import pytest

from historykit.testing import NetworkConformance
from historykit.testing.proxy import TcpProxy


class TestMongo(NetworkConformance):
    backend = "mongo"

    @pytest.fixture
    def backend_config(self, mongo_url: str, mongo_database: str) -> Mapping[str, object]:
        return {"url": mongo_url, "database": mongo_database}

    @pytest.fixture
    def proxied_config(
        self, backend_config: Mapping[str, object], proxy: TcpProxy
    ) -> Mapping[str, object]:
        # A client that knows of the replica set would go past the proxy.
        direct = urlsplit(str(backend_config["url"]))._replace(query="directConnection=true")
        url = proxy.route(urlunsplit(direct))
        return {**backend_config, "url": url, "timeout": 1.0}


class TestMotor(TestMongo):
    @pytest.fixture
    def backend_config(self, mongo_url: str, mongo_database: str) -> Mapping[str, object]:
        return {"url": mongo_url, "database": mongo_database, "driver": "motor"}
