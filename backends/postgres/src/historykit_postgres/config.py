"""The settings of the PostgreSQL backend."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from historykit.errors import ConfigError
from historykit.redaction import redacted_repr

__all__ = ["DRIVERS", "PostgresConfig"]

DRIVERS: Final = ("asyncpg", "psycopg")
"""The drivers that a URL may name. The first is taken where it names none."""

LONGEST_PREFIX: Final = 32
"""PostgreSQL cuts names at 63 bytes, and the longest of ours takes 27."""

LONGEST_SCHEMA: Final = 63

URL: Final = re.compile(r"(?:postgresql|postgres)(?:\+(?P<driver>\w+))?://")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresConfig:
    """Where a history lives, and how it is reached: by `url`, or by an engine or a connection.

    Raises `ConfigError` for a setting that is wrong.
    """

    url: str | None = None
    """``postgresql://user:password@host:port/database?parameters``, as libpq understands it.

    ``postgresql+psycopg://`` takes psycopg 3, any other URL asyncpg."""

    schema: str | None = None
    """The schema of the tables, created if it is not there. None: the first of the search path."""

    table_prefix: str = "historykit_"
    """What the names of all tables and indexes begin with."""

    prepared_statements: bool = True
    """Whether statements are prepared once for each connection. False is for PgBouncer in
    transaction mode before 1.21; psycopg needs one round trip then as ever, asyncpg four."""

    pool_size: int = 10
    """The most connections that are open at a time. Further calls wait for one."""

    timeout: float = 30.0
    """How many seconds a call may take, waiting included, before it fails as unavailable."""

    migrate: bool = False
    """Whether opening may upgrade tables that an older version made.

    Older versions cannot use them afterwards. New tables are made without asking."""

    engine: AsyncEngine | None = None
    """An engine of the caller's own, instead of a URL. It is never disposed of. `pool_size` and
    the driver are those of the engine."""

    connection: AsyncConnection | None = None
    """A connection of the caller's own, instead of a URL. Everything is done inside of its
    transaction, which the caller commits, and one call after the other. It is never closed."""

    def __post_init__(self) -> None:
        if [self.url, self.engine, self.connection].count(None) != 2:
            raise _wrong("url", "must be given, or instead of it an engine or a connection")
        if self.url is not None:
            _check_url(self.url)
        _check_name("schema", self.schema, LONGEST_SCHEMA)
        _check_name("table_prefix", self.table_prefix, LONGEST_PREFIX)
        if self.pool_size < 1:
            raise _wrong("pool_size", f"must be 1 or more, not {self.pool_size}")
        if not 0 < self.timeout < math.inf:
            raise _wrong("timeout", f"must be more than 0 seconds, not {self.timeout}")

    __repr__ = redacted_repr


def _check_url(url: str) -> None:
    found = URL.match(url)
    if found is None:
        raise _wrong("url", "must begin with postgresql:// (or postgresql+psycopg://)")
    driver = found["driver"]
    if driver is not None and driver not in DRIVERS:
        raise _wrong("url", f"names the driver {driver!r}; take {' or '.join(DRIVERS)}")


def _check_name(field: str, name: str | None, longest: int) -> None:
    if name is None:
        return
    if not name.isprintable() or (name == "" and field == "schema"):
        raise _wrong(field, f"must be a name of printable characters, not {name!r}")
    if len(name.encode()) > longest:
        raise _wrong(field, f"must be at most {longest} bytes long, not {len(name.encode())}")


def _wrong(field: str, what: str) -> ConfigError:
    return ConfigError(f"{field} of the postgres backend {what}", field=field)
