"""The two drivers, made alike: one connection, statements with ``$1``, rows that are tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from historykit.errors import ConfigError

if TYPE_CHECKING:
    from psycopg import AsyncConnection as PsycopgConnection

__all__ = ["Driver", "Row", "connect", "driver_of"]

Row = Sequence[Any]


class Driver(Protocol):
    """One connection, as its driver made it, without what SQLAlchemy puts around it.

    Outside of a transaction each statement is one of its own, and takes one round trip once the
    connection has prepared it.
    """

    async def fetch(self, statement: str, /, *arguments: object) -> Sequence[Row]:
        """Return the rows of a statement."""

    async def fetch_planned(self, statement: str, /, *arguments: object) -> Sequence[Row]:
        """Return the rows of a statement that is planned for these very arguments."""

    async def execute(self, statement: str, /) -> object:
        """Execute a statement without arguments and rows."""

    @property
    def closed(self) -> bool:
        """Whether the connection is known to be gone."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended."""


class AsyncpgDriver:
    """A connection of asyncpg, whose rows are `asyncpg.Record`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.fetch = connection.fetch  # not one call more: this is the hot path
        self.execute = connection.execute

    async def fetch_planned(self, statement: str, /, *arguments: object) -> Sequence[Row]:
        """Return the rows of a statement that is planned for these very arguments."""
        # A named statement has a plan for any arguments from its sixth execution on.
        prepared = await self._connection.prepare(statement, name="")
        rows: Sequence[Row] = await prepared.fetch(*arguments)
        return rows

    @property
    def closed(self) -> bool:
        """Whether the connection is known to be gone."""
        return bool(self._connection.is_closed())

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return bool(self._connection.is_in_transaction())


class PsycopgDriver:
    """A connection of psycopg 3."""

    def __init__(self, connection: PsycopgConnection[Any], *, prepared: bool) -> None:
        from psycopg import AsyncRawCursor
        from psycopg.pq import TransactionStatus
        from psycopg.rows import tuple_row

        self._connection = connection
        self._prepared = prepared
        self._cursor = AsyncRawCursor
        self._row_factory = tuple_row
        self._idle = TransactionStatus.IDLE

    async def fetch(self, statement: str, /, *arguments: object) -> Sequence[Row]:
        """Return the rows of a statement."""
        return await self._fetch(statement, arguments, prepared=self._prepared)

    async def fetch_planned(self, statement: str, /, *arguments: object) -> Sequence[Row]:
        """Return the rows of a statement that is planned for these very arguments."""
        return await self._fetch(statement, arguments, prepared=False)

    async def execute(self, statement: str, /) -> object:
        """Execute a statement without arguments and rows."""
        return await self._cursor(self._connection).execute(statement, prepare=False)

    @property
    def closed(self) -> bool:
        """Whether the connection is known to be gone."""
        return self._connection.closed

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._connection.info.transaction_status != self._idle

    async def _fetch(
        self, statement: str, arguments: Sequence[object], *, prepared: bool
    ) -> Sequence[Row]:
        cursor = self._cursor(self._connection, row_factory=self._row_factory)
        # In its binary form a body has half the bytes.
        await cursor.execute(statement, arguments, prepare=prepared, binary=True)
        return await cursor.fetchall() if cursor.description else ()


def driver_of(connection: Any, *, prepared: bool) -> Driver:
    """Return the `Driver` for a connection that SQLAlchemy calls its driver connection."""
    package = type(connection).__module__.partition(".")[0]
    if package == "asyncpg":
        return AsyncpgDriver(connection)
    if package == "psycopg":
        return PsycopgDriver(connection, prepared=prepared)
    raise ConfigError(
        f"the postgres backend works with asyncpg and psycopg, not with {package}; "
        "make the engine with postgresql+asyncpg:// or postgresql+psycopg://",
        field="engine",
    )


async def connect(driver: str, url: str, *, prepared: bool, timeout: float) -> Any:
    """Return a new connection of the driver.

    The drivers read the URL themselves, as libpq does, where SQLAlchemy would not know ``sslmode``.
    """
    if driver == "asyncpg":
        import asyncpg  # type: ignore[import-untyped]  # it has no types

        lifetime = {"max_cached_statement_lifetime": 0, "statement_cache_size": 100 * prepared}
        return await asyncpg.connect(url, timeout=timeout, **lifetime)
    import psycopg

    return await psycopg.AsyncConnection.connect(
        url, autocommit=True, connect_timeout=max(2, round(timeout))
    )
