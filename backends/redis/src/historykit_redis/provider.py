"""The history provider that owns a connection to Redis."""

from __future__ import annotations

from typing import Any

from historykit.codec import MessageCodec
from historykit.history import DEFAULT_NAMESPACE, History
from historykit.store import Clock, system_clock
from historykit.store_provider import OwningHistoryProvider
from historykit_redis.config import RedisConfig
from historykit_redis.store import RedisStore

__all__ = ["RedisHistoryProvider"]


class RedisHistoryProvider(OwningHistoryProvider):
    """Keeps an agent's history in the Redis at `url`, or as a `RedisConfig` says.

    Nothing is connected before the first use; `aclose`, or ``async with``, closes the connections.
    `options` are the flags of `StoreHistoryProvider`. Raises `ConfigError` for a setting that is
    wrong.
    """

    def __init__(
        self,
        url: str | RedisConfig,
        source_id: str = "history",
        *,
        namespace: str = DEFAULT_NAMESPACE,
        user_id: str = "",
        codec: MessageCodec | None = None,
        clock: Clock = system_clock,
        **options: Any,
    ) -> None:
        config = url if isinstance(url, RedisConfig) else RedisConfig(url=url)
        store = RedisStore(config, clock=clock)
        history = History(store, namespace=namespace, user_id=user_id, codec=codec)
        super().__init__(history, source_id, **options)
