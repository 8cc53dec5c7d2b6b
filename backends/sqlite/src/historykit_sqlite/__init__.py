"""SQLite backend of historykit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from historykit_sqlite.config import SQLiteConfig

if TYPE_CHECKING:
    from historykit_sqlite.provider import SQLiteHistoryProvider
    from historykit_sqlite.store import SQLiteStore

__all__ = ["SQLiteConfig", "SQLiteHistoryProvider", "SQLiteStore"]


def __getattr__(name: str) -> Any:
    # The plugin is in this package too, and it is listed where the driver is not installed.
    if name == "SQLiteStore":
        from historykit_sqlite.store import SQLiteStore

        return SQLiteStore
    if name == "SQLiteHistoryProvider":
        from historykit_sqlite.provider import SQLiteHistoryProvider

        return SQLiteHistoryProvider
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
