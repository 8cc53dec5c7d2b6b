"""The suite without a test module of one's own.

``pytest --pyargs historykit.testing.standalone --history-backend NAME --history-set KEY=VALUE``"""

from __future__ import annotations

from historykit.testing.conformance import HistoryConformance
from historykit.testing.selection import selected

__all__ = ["TestBackend"]


class TestBackend(HistoryConformance):
    """The backend that the options name."""

    backend = selected().backend
    config = selected().settings
    known_failures = selected().known_failures
