"""Where connections come from: an engine of our own, or what the caller hands in."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from functools import partial
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from historykit.errors import StoreClosedError
from historykit.session_records import SessionKey
from historykit.tasks import ShieldedTasks
from historykit_postgres.config import DRIVERS, URL, PostgresConfig
from historykit_postgres.drivers import connect, driver_of
from historykit_postgres.errors import is_lost
from historykit_postgres.leases import Lease
from historykit_postgres.transactions import Work, atomically, in_transaction

__all__ = ["Connections", "connections_of"]

T = TypeVar("T")

PROBES: Final = 3
"""How often an engine of the caller's is asked for a connection that lives."""


class Connections(ABC):
    """What does work on connections."""

    can_repeat = True
    """Whether work is repeated where a connection turns out to be lost."""

    @abstractmethod
    async def run(self, work: Work[T], *, key: SessionKey | None = None) -> T:
        """Return what `work` returns, which is one statement, or may be done twice.

        What is done with a `key` is a write to that session, one after the other as asked for.
        """

    @abstractmethod
    async def transact(self, work: Work[T], *, key: SessionKey, repeatable: bool = False) -> T:
        """Do `work` fully or not at all and return what it returns.

        It is repeated where the connection was lost before the commit; if it is `repeatable`, where
        it was lost during the commit, too.
        """

    @abstractmethod
    async def set_up(self, work: Work[T]) -> T:
        """Return what `work` returns, which may take its time and is done once."""

    @abstractmethod
    async def close(self) -> None:
        """Close what is ours."""

    @abstractmethod
    def abandon(self, *, forked: bool) -> None:
        """Let go of what is ours, without its event loop, and in a forked process perhaps."""


class EngineConnections(Connections):
    """Connections of an engine: the caller's, to which each goes back after each piece of work."""

    def __init__(self, engine: AsyncEngine, config: PostgresConfig) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._timeout = config.timeout
        self._prepared = config.prepared_statements
        # Without preparing, asyncpg still sends a statement in two steps, between which PgBouncer
        # changes the connection to the server unless it is in a transaction.
        self._in_steps = not self._prepared and engine.dialect.driver == "asyncpg"
        self._returns = ShieldedTasks()
        self._discards: set[asyncio.Task[None]] = set()
        self._turns: WeakValueDictionary[SessionKey, asyncio.Lock] = WeakValueDictionary()

    async def run(self, work: Work[T], *, key: SessionKey | None = None) -> T:
        """Return what `work` returns, which is one statement, or may be done twice."""
        if self._in_steps:
            work = partial(in_transaction, work=work, repeatable=True)
        return await self._patiently(work, key)

    async def transact(self, work: Work[T], *, key: SessionKey, repeatable: bool = False) -> T:
        """Do `work` fully or not at all and return what it returns."""
        return await self._patiently(partial(in_transaction, work=work, repeatable=repeatable), key)

    async def set_up(self, work: Work[T]) -> T:
        """Return what `work` returns, which may take its time and is done once."""
        if self._in_steps:
            work = partial(in_transaction, work=work)
        return await self._on(await self._acquire(), work)

    async def close(self) -> None:
        """Close what is ours."""
        await self._returns.wait()
        if self._discards:
            await asyncio.wait(self._discards)

    def abandon(self, *, forked: bool) -> None:
        """The connections are the engine's, and the engine is the caller's."""

    async def _patiently(self, work: Work[T], key: SessionKey | None) -> T:
        async with asyncio.timeout(self._timeout):
            if key is None:
                return await self._repeatedly(work)
            # They would wait for each other on the server, and in the meantime hold connections
            # that others could use.
            async with self._turns.setdefault(key, asyncio.Lock()):
                return await self._repeatedly(work)

    async def _repeatedly(self, work: Work[T]) -> T:
        try:
            return await self._on(await self._acquire(), work)
        except Exception as error:
            if not is_lost(error):
                raise
        return await self._on(await self._acquire_anew(), work)

    async def _on(self, lease: Lease, work: Work[T]) -> T:
        try:
            result = await work(lease.driver)
        except BaseException as error:
            # After a cancellation a reply may still be on its way.
            if isinstance(error, Exception) and lease.is_usable and not is_lost(error):
                await self._release(lease)
            else:
                self._discard(lease)
            raise
        await self._release(lease)
        return result

    async def _acquire(self) -> Lease:
        """Return a connection for one piece of work."""
        connection = await self._engine.connect()
        fairy = await connection.get_raw_connection()
        driver = driver_of(fairy.driver_connection, prepared=self._prepared)
        return Lease(driver, connection, fairy)

    async def _acquire_anew(self) -> Lease:
        """Return a connection that is known to live, after one was lost."""
        for _ in range(PROBES):
            lease = await EngineConnections._acquire(self)
            try:
                # Where this fails, SQLAlchemy drops all connections that are as old.
                await lease.connection.exec_driver_sql("SELECT 1")
            except DBAPIError as error:
                await lease.connection.close()
                if not error.connection_invalidated:
                    raise
            else:
                return lease
        return await self._acquire()

    async def _release(self, lease: Lease) -> None:
        """Take a connection back."""
        await self._returns.run(lease.give_back())

    def _discard(self, lease: Lease) -> None:
        """Close a connection whose state is not known, without waiting for that."""
        task = asyncio.create_task(lease.discard())
        self._discards.add(task)
        task.add_done_callback(self._discards.discard)


class OwnConnections(EngineConnections):
    """Connections of an engine of our own, kept from one piece of work to the next.

    Taking a connection out of a pool of SQLAlchemy's and putting it back takes half as long as an
    append. So these stay here, up to `pool_size`, and the engine only makes them.
    """

    def __init__(self, url: str, config: PostgresConfig) -> None:
        driver, plain_url = _split(url)
        creator = partial(
            connect,
            driver,
            plain_url,
            prepared=config.prepared_statements,
            timeout=config.timeout,
        )
        engine = create_async_engine(
            f"postgresql+{driver}://", async_creator=creator, poolclass=NullPool
        )
        super().__init__(engine, config)
        self._size = config.pool_size
        self._free = asyncio.Semaphore(config.pool_size)
        self._idle: list[Lease] = []
        self._leases: set[Lease] = set()
        self._closed = False

    async def close(self) -> None:
        """Close what is ours, once the work under way is done."""
        for _ in range(self._size):
            await self._free.acquire()
        self._closed = True
        await asyncio.gather(*(lease.give_back() for lease in self._idle))
        await super().close()
        for _ in range(self._size):
            self._free.release()

    def abandon(self, *, forked: bool) -> None:
        """Let go of what is ours, without its event loop, and in a forked process perhaps."""
        for lease in self._leases:
            lease.abandon(forked=forked)
        self._leases.clear()

    async def _acquire(self) -> Lease:
        await self._free.acquire()
        try:
            if self._closed:
                raise StoreClosedError("the store was closed meanwhile; open it again")
            while self._idle:
                lease = self._idle.pop()
                if not lease.driver.closed:
                    return lease
                self._forget(lease)
            lease = await super()._acquire()
        except BaseException:
            self._free.release()
            raise
        self._leases.add(lease)
        return lease

    async def _acquire_anew(self) -> Lease:
        while self._idle:  # they are as dead as the one that was lost
            self._forget(self._idle.pop())
        return await self._acquire()

    async def _release(self, lease: Lease) -> None:
        self._idle.append(lease)
        self._free.release()

    def _discard(self, lease: Lease) -> None:
        self._forget(lease)
        self._free.release()

    def _forget(self, lease: Lease) -> None:
        self._leases.discard(lease)
        super()._discard(lease)


class CallersConnection(Connections):
    """One connection of the caller's, inside of whose transaction everything is done."""

    can_repeat = False

    def __init__(self, connection: AsyncConnection, config: PostgresConfig) -> None:
        self._connection = connection
        self._prepared = config.prepared_statements
        self._turn = asyncio.Lock()

    async def run(self, work: Work[T], *, key: SessionKey | None = None) -> T:
        """Return what `work` returns."""
        async with self._turn:
            lease = await self._joined()
            return await work(lease.driver)

    async def transact(self, work: Work[T], *, key: SessionKey, repeatable: bool = False) -> T:
        """Do `work` fully or not at all and return what it returns."""
        async with self._turn:
            lease = await self._joined()
            return await atomically(lease.driver, work)

    async def set_up(self, work: Work[T]) -> T:
        """Return what `work` returns, which may take its time and is done once."""
        return await self.run(work)

    async def close(self) -> None:
        """The connection is the caller's."""

    def abandon(self, *, forked: bool) -> None:
        """The connection is the caller's."""

    async def _joined(self) -> Lease:
        """Return the connection, in a transaction unless it commits each statement by itself."""
        fairy = await self._connection.get_raw_connection()
        driver = driver_of(fairy.driver_connection, prepared=self._prepared)
        if not driver.in_transaction:
            # SQLAlchemy begins with the first statement, and it has to know that it did.
            await self._connection.exec_driver_sql("SELECT 1")
        return Lease(driver, self._connection, fairy)


def connections_of(config: PostgresConfig) -> Connections:
    """Return the connections that a configuration asks for, none of them opened yet."""
    if config.connection is not None:
        return CallersConnection(config.connection, config)
    if config.engine is not None:
        return EngineConnections(config.engine, config)
    assert config.url is not None, "the configuration has checked it"
    return OwnConnections(config.url, config)


def _split(url: str) -> tuple[str, str]:
    """Return the driver that a URL names, and the URL without it."""
    found = URL.match(url)
    assert found is not None, "the configuration has checked it"
    return found["driver"] or DRIVERS[0], f"postgresql://{url[found.end() :]}"
