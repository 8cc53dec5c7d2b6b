"""What the server says about itself, and what it promises by its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from historykit.capabilities import Guarantee
from historykit.errors import StorageError
from historykit.records import ServerInfo
from historykit_postgres.drivers import Driver

__all__ = ["check_encoding", "guarantees", "read_server"]

SETTINGS: Final = (
    "server_encoding",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "synchronous_standby_names",
    "transaction_read_only",
)
READ: Final = "SELECT current_setting('server_version'), " + ", ".join(
    f"current_setting('{name}')" for name in SETTINGS
)


async def read_server(driver: Driver) -> ServerInfo:
    """Return the version of the server and its settings."""
    ((version, *values),) = await driver.fetch(READ)
    settings = dict(zip(SETTINGS, values, strict=True))
    return ServerInfo(product="PostgreSQL", version=version.split()[0], settings=settings)


def check_encoding(settings: Mapping[str, str]) -> None:
    """Raise `StorageError` if the database cannot keep all names."""
    if settings["server_encoding"] != "UTF8":
        raise StorageError(
            f"the database has the encoding {settings['server_encoding']}, which cannot keep all "
            "ids; make one WITH ENCODING 'UTF8' TEMPLATE template0"
        )


def guarantees(settings: Mapping[str, str]) -> frozenset[Guarantee]:
    """Return what the settings promise about acknowledged writes."""
    promised = {Guarantee.SHARED}
    if settings["synchronous_commit"] != "off":
        promised.add(Guarantee.SURVIVES_KILL)
        if settings["fsync"] == settings["full_page_writes"] == "on":
            promised.add(Guarantee.SURVIVES_POWER_LOSS)
    waits = settings["synchronous_commit"] in ("on", "remote_apply", "remote_write")
    if waits and settings["synchronous_standby_names"].strip():
        promised.add(Guarantee.SURVIVES_FAILOVER)
    return frozenset(promised)
