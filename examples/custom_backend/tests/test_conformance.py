from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from historykit import HistoryStore
from historykit.testing import HistoryConformance
from historykit.testing.faults import Outage


class TestAcme(HistoryConformance):
    backend = "acme"

    @pytest.fixture
    def backend_config(self, tmp_path: Path) -> dict[str, object]:
        return {"folder": tmp_path / "acme", "durable": False}

    @pytest.fixture
    def outage(self, tmp_path: Path) -> Outage:
        @asynccontextmanager
        async def unmounted(store: HistoryStore) -> AsyncIterator[None]:
            (tmp_path / "acme").rename(tmp_path / "elsewhere")
            try:
                yield
            finally:
                (tmp_path / "elsewhere").rename(tmp_path / "acme")

        return unmounted


class TestDurableAcme(TestAcme):
    """The same, where every write waits for the disk."""

    @pytest.fixture
    def backend_config(self, tmp_path: Path) -> dict[str, object]:
        return {"folder": tmp_path / "acme"}
