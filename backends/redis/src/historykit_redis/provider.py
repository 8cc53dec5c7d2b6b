"""The history provider that owns a connection to Redis."""

from __future__ import annotations

from typing import Any

from historykit.store import Clock, system_clock
from historykit.store_provider import OwningHistoryProvider
from historykit_redis.config import RedisConfig
from historykit_redis.store import RedisStore

__all__ = ["RedisHistoryProvider"]


class RedisHistoryProvider(OwningHistoryProvider):
    """Keeps an agent's history in the Redis at `url`, or as a `RedisConfig` says.

    Nothing is connected before the first use; `aclose`, or ``async with``, closes the connections.
    `options` are the flags of `OwningHistoryProvider`. Raises `ConfigError` for a setting that is
    wrong.
    """

    def __init__(
        self,
        url: str | RedisConfig,
        source_id: str = "history",
        *,
        clock: Clock = system_clock,
        **options: Any,
    ) -> None:
        config = url if isinstance(url, RedisConfig) else RedisConfig(url=url)
        super().__init__(RedisStore(config, clock=clock), source_id, **options)
