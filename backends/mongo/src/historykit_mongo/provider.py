"""The history provider that owns a MongoDB store."""

from __future__ import annotations

from typing import Any

from historykit.store import Clock, system_clock
from historykit.store_provider import OwningHistoryProvider
from historykit_mongo.config import MongoConfig
from historykit_mongo.store import MongoStore

__all__ = ["MongoHistoryProvider"]


class MongoHistoryProvider(OwningHistoryProvider):
    """Keeps an agent's history in the MongoDB at `url`, or as a `MongoConfig` says.

    The store is opened at first use; `aclose`, or ``async with``, closes it. `options` are the
    flags of `OwningHistoryProvider`. Raises `ConfigError` for a setting that is wrong.
    """

    def __init__(
        self,
        url: str | MongoConfig,
        source_id: str = "history",
        *,
        clock: Clock = system_clock,
        **options: Any,
    ) -> None:
        config = url if isinstance(url, MongoConfig) else MongoConfig(url=url)
        super().__init__(MongoStore(config, clock=clock), source_id, **options)
