"""Redis backend of historykit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from historykit_redis.config import RedisConfig

if TYPE_CHECKING:
    from historykit_redis.provider import RedisHistoryProvider
    from historykit_redis.store import RedisStore

__all__ = ["RedisConfig", "RedisHistoryProvider", "RedisStore"]


def __getattr__(name: str) -> Any:
    # The plugin is in this package too, and it is listed where the driver is not installed.
    if name == "RedisStore":
        from historykit_redis.store import RedisStore

        return RedisStore
    if name == "RedisHistoryProvider":
        from historykit_redis.provider import RedisHistoryProvider

        return RedisHistoryProvider
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
