"""The history provider that owns its connections to PostgreSQL."""

from __future__ import annotations

from typing import Any

from historykit.store import Clock, system_clock
from historykit.store_provider import OwningHistoryProvider
from historykit_postgres.config import PostgresConfig
from historykit_postgres.store import PostgresStore

__all__ = ["PostgresHistoryProvider"]


class PostgresHistoryProvider(OwningHistoryProvider):
    """Keeps an agent's history in the PostgreSQL database at `url`, or as a `PostgresConfig` says.

    It connects at first use; `aclose`, or ``async with``, closes the connections that it made.
    `options` are the flags of `OwningHistoryProvider`. Raises `ConfigError` for a setting that is
    wrong.
    """

    def __init__(
        self,
        url: str | PostgresConfig,
        source_id: str = "history",
        *,
        clock: Clock = system_clock,
        **options: Any,
    ) -> None:
        config = url if isinstance(url, PostgresConfig) else PostgresConfig(url=url)
        super().__init__(PostgresStore(config, clock=clock), source_id, **options)
