from __future__ import annotations

import pytest

from tests.catalogue.searches import SearchTests


class TestRedisCluster(SearchTests):
    """The searches that tests/catalogue makes on one server, where the catalogue is on another node
    than most sessions."""

    backend = "redis"

    @pytest.fixture
    def backend_config(self, cluster_url: str) -> dict[str, object]:
        return {"url": cluster_url, "prefix": "searches:"}
