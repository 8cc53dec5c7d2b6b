"""MongoDB backend of historykit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from historykit_mongo.config import MongoConfig

if TYPE_CHECKING:
    from historykit_mongo.provider import MongoHistoryProvider
    from historykit_mongo.store import MongoStore

__all__ = ["MongoConfig", "MongoHistoryProvider", "MongoStore"]


def __getattr__(name: str) -> Any:
    # The plugin is in this package too, and it is listed where the driver is not installed.
    if name == "MongoStore":
        from historykit_mongo.store import MongoStore

        return MongoStore
    if name == "MongoHistoryProvider":
        from historykit_mongo.provider import MongoHistoryProvider

        return MongoHistoryProvider
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
