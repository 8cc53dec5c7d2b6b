"""PostgreSQL backend of historykit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from historykit_postgres.config import PostgresConfig
    from historykit_postgres.provider import PostgresHistoryProvider
    from historykit_postgres.schema import ddl
    from historykit_postgres.store import PostgresStore

__all__ = ["PostgresConfig", "PostgresHistoryProvider", "PostgresStore", "ddl"]

_MODULES = {
    "PostgresConfig": "config",
    "PostgresHistoryProvider": "provider",
    "PostgresStore": "store",
    "ddl": "schema",
}


def __getattr__(name: str) -> Any:
    # The plugin is in this package too, and it is listed where the driver is not installed.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
