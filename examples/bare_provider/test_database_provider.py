from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from database_provider import DatabaseHistoryProvider

from historykit import BaseHistoryProvider, Guarantee
from historykit.testing import ProviderConformance


class TestDatabaseHistoryProvider(ProviderConformance):
    guarantees = frozenset({Guarantee.SHARED})

    @pytest.fixture
    def new_provider(self, tmp_path: Path) -> Callable[[], BaseHistoryProvider]:
        return lambda: DatabaseHistoryProvider(tmp_path / "chat.db")
