"""The history provider that owns a SQLite file."""

from __future__ import annotations

from os import PathLike
from typing import Any

from historykit.codec import MessageCodec
from historykit.history import DEFAULT_NAMESPACE, History
from historykit.store import Clock, system_clock
from historykit.store_provider import OwningHistoryProvider
from historykit_sqlite.config import SQLiteConfig
from historykit_sqlite.store import SQLiteStore

__all__ = ["SQLiteHistoryProvider"]


class SQLiteHistoryProvider(OwningHistoryProvider):
    """Keeps an agent's history in the SQLite file at `path`, or as a `SQLiteConfig` says.

    The file is opened at first use; `aclose`, or ``async with``, closes it. `options` are the flags
    of `StoreHistoryProvider`. Raises `ConfigError` for a setting that is wrong.
    """

    def __init__(
        self,
        path: str | PathLike[str] | SQLiteConfig,
        source_id: str = "history",
        *,
        namespace: str = DEFAULT_NAMESPACE,
        user_id: str = "",
        codec: MessageCodec | None = None,
        clock: Clock = system_clock,
        **options: Any,
    ) -> None:
        config = path if isinstance(path, SQLiteConfig) else SQLiteConfig(path=path)
        store = SQLiteStore(config, clock=clock)
        history = History(store, namespace=namespace, user_id=user_id, codec=codec)
        super().__init__(history, source_id, **options)
