from __future__ import annotations

from historykit.testing import HistoryConformance


class TestMemory(HistoryConformance):
    backend = "memory"
