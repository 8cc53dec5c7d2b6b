"""A connection of SQLAlchemy's that is in our hands."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.pool import PoolProxiedConnection

from historykit_postgres.drivers import Driver

__all__ = ["Lease"]


@dataclass(slots=True, eq=False)
class Lease:
    """A connection: as its driver made it, as SQLAlchemy hands it out, and as its pool does."""

    driver: Driver
    connection: AsyncConnection
    pooled: PoolProxiedConnection

    @property
    def is_usable(self) -> bool:
        """Whether the connection may serve somebody else."""
        return not self.driver.closed and not self.driver.in_transaction

    async def give_back(self) -> None:
        """Return the connection to its pool."""
        await self.connection.close()

    async def discard(self) -> None:
        """Close the connection, whatever it is doing."""
        with suppress(Exception):
            await self.connection.invalidate()
        with suppress(Exception):
            await self.connection.close()

    def abandon(self, *, forked: bool) -> None:
        """Drop the connection without a word to the server.

        A forked process shares its socket, and the registration of the socket with the event loop,
        with the parent. So the connection is never destroyed there: that would undo them for both.
        """
        raw = self.pooled.driver_connection
        self.pooled.detach()
        if forked:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(raw))
