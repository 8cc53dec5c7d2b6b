from __future__ import annotations

from pathlib import Path

import pytest

from historykit.testing import HistoryConformance


class TestSQLite(HistoryConformance):
    backend = "sqlite"

    @pytest.fixture
    def backend_config(self, tmp_path: Path) -> dict[str, object]:
        return {"path": tmp_path / "chat.db"}
