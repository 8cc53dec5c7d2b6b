from __future__ import annotations

from typing import Any

import pytest

from tests.catalogue.backends import OnRedis
from tests.catalogue.searches import Searches

pytestmark = pytest.mark.asyncio


class TestRedisCluster(Searches, OnRedis):
    """What searches find among real conversations, where the catalogue is on another node than most
    sessions."""

    @pytest.fixture
    def settings(self, cluster_url: str) -> dict[str, Any]:
        return {"url": cluster_url, "prefix": "searches:"}
