"""The history provider that owns a SQLite file."""

from __future__ import annotations

from os import PathLike
from typing import Any

from historykit.store import Clock, system_clock
from historykit.store_provider import OwningHistoryProvider
from historykit_sqlite.config import SQLiteConfig
from historykit_sqlite.store import SQLiteStore

__all__ = ["SQLiteHistoryProvider"]


class SQLiteHistoryProvider(OwningHistoryProvider):
    """Keeps an agent's history in the SQLite file at `path`, or as a `SQLiteConfig` says.

    The file is opened at first use; `aclose`, or ``async with``, closes it. `options` are the flags
    of `OwningHistoryProvider`. Raises `ConfigError` for a setting that is wrong.
    """

    def __init__(
        self,
        path: str | PathLike[str] | SQLiteConfig,
        source_id: str = "history",
        *,
        clock: Clock = system_clock,
        **options: Any,
    ) -> None:
        config = path if isinstance(path, SQLiteConfig) else SQLiteConfig(path=path)
        super().__init__(SQLiteStore(config, clock=clock), source_id, **options)
