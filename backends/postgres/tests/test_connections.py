"""Connections that end, are waited for, and are the caller's own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from backends.postgres.tests.conftest import CONNECTIONS
from historykit.errors import (
    ConfigError,
    ConflictError,
    InvalidRequestError,
    StorageUnavailableError,
    StoreClosedError,
)
from historykit.records import MessagePatch, Window
from historykit.session_records import SessionDraft, SessionKey, SessionPatch, SessionQuery
from historykit.testing.drafts import draft, drafts, texts
from historykit_postgres import PostgresConfig, PostgresStore, connections

pytestmark = pytest.mark.asyncio

Inside = Callable[..., list[Any]]
Make = Callable[..., PostgresStore]

END_ALL = f"SELECT pg_terminate_backend(pid) FROM {CONNECTIONS}"
COUNT = f"SELECT count(*) FROM {CONNECTIONS}"


def calls_of(store: PostgresStore, key: SessionKey) -> list[Callable[[], Awaitable[object]]]:
    """Return a call of each kind, none of which fails."""
    return [
        lambda: store.append(key, drafts("m", 2)),
        lambda: store.append(key, drafts("m", 20)),
        lambda: store.read(key),
        lambda: store.read_tail(key),
        lambda: store.update_message(key, "known", MessagePatch(reaction="LIKE")),
        lambda: store.create_session(key, SessionDraft(), if_exists="return"),
        lambda: store.patch_session(key, SessionPatch(status="x")),
        lambda: store.find_sessions(SessionQuery(namespace="app")),
        lambda: store.claim_run(key, "run", ttl=60),
        lambda: store.release_run(key, "run"),
        store.ping,
        lambda: store.delete_session(SessionKey("app", "", "other")),
    ]


async def all_ended(inside: Inside) -> None:
    """Wait until the server has no connection of ours any more."""
    async with asyncio.timeout(5):
        while inside(COUNT) != [(0,)]:  # noqa: ASYNC110  - the server tells nobody
            await asyncio.sleep(0.02)


@pytest_asyncio.fixture
async def engine(url: str, driver: str, postgres_schema: str) -> AsyncIterator[AsyncEngine]:
    """An engine of the caller's own."""
    name: dict[str, Any] = {"application_name": postgres_schema}
    arguments = name if driver == "psycopg" else {"server_settings": name}
    engine = create_async_engine(url, pool_size=3, max_overflow=0, connect_args=arguments)
    yield engine
    await engine.dispose()


async def test_connections_that_ended_while_they_idled_are_replaced(
    make: Make, key: SessionKey, inside: Inside
) -> None:
    """After the server ended all connections each kind of call works at once, and once only."""
    async with make() as store:
        await store.append(key, [draft("m", id="known")])
        for number in range(len(calls_of(store, key))):
            await asyncio.gather(*(store.read(key) for _ in range(4)))
            version = (await store.read_session(key)).version
            inside(END_ALL)
            await calls_of(store, key)[number]()
            assert (await store.read_session(key)).version <= version + 1


async def test_an_engine_whose_connections_ended_is_usable(
    make: Make, key: SessionKey, inside: Inside, engine: AsyncEngine
) -> None:
    """The same with an engine of the caller's, all of whose connections are dead."""
    async with make(url=None, engine=engine) as store:
        await store.append(key, [draft("m", id="known")])
        for number in range(len(calls_of(store, key))):
            await asyncio.gather(*(store.read(key) for _ in range(3)))
            inside(END_ALL)
            await calls_of(store, key)[number]()


async def test_a_transaction_that_is_ended_midway_is_done_again(
    make: Make, key: SessionKey, inside: Inside
) -> None:
    """A write whose connection ends while it waits for a lock is done on another connection."""
    async with make() as store:
        await store.append(key, drafts("m", 1))
        inside("BEGIN")
        inside("SELECT 1 FROM historykit_sessions FOR UPDATE")
        writing = [
            asyncio.create_task(store.patch_session(key, SessionPatch(status="x"))),
            asyncio.create_task(store.append(key, drafts("n", 1))),
        ]
        await asyncio.sleep(0.3)
        inside(END_ALL)
        await asyncio.sleep(0.1)
        inside("COMMIT")
        await asyncio.gather(*writing)
        record = await store.read_session(key)
        assert (record.revision, record.version, record.message_count) == (1, 2, 2)


async def test_a_lock_that_is_held_too_long_is_an_error_in_time(
    make: Make, key: SessionKey, inside: Inside
) -> None:
    """After `timeout` a write that waits for a lock fails as unavailable, and is not done later."""
    async with make() as store:
        await store.append(key, drafts("m", 1))
    async with make(timeout=0.5) as store:
        inside("BEGIN")
        inside("SELECT 1 FROM historykit_sessions FOR UPDATE")
        outcomes = await asyncio.gather(
            store.append(key, drafts("n", 1)),
            store.append(key, drafts("n", 1)),
            store.patch_session(key, SessionPatch(status="x")),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [StorageUnavailableError] * 3
        assert "timeout" in str(outcomes[0])
        await store._connections.close()  # the connections that were given up are closed now
        inside("COMMIT")
    async with make() as store:
        assert texts((await store.read(key)).messages) == ["m 0"]
        assert (await store.read_session(key)).revision == 0


async def test_writers_of_a_locked_session_do_not_stop_the_others(
    make: Make, key: SessionKey, inside: Inside
) -> None:
    """While many writes wait for one session, other sessions are read and written."""
    async with make(pool_size=2, timeout=5) as store:
        await store.append(key, drafts("m", 1))
        inside("BEGIN")
        inside("SELECT 1 FROM historykit_sessions FOR UPDATE")
        waiting = [asyncio.create_task(store.append(key, drafts("n", 1))) for _ in range(10)]
        await asyncio.sleep(0.1)
        async with asyncio.timeout(2):
            await store.append(SessionKey("app", "", "other"), drafts("m", 1))
            await store.read(key)
        inside("COMMIT")
        await asyncio.gather(*waiting)
        assert len((await store.read(key)).messages) == 11


async def test_more_calls_than_connections_take_turns(
    make: Make, key: SessionKey, inside: Inside
) -> None:
    """With a pool of two, a hundred calls at once are served by two connections."""
    async with make(pool_size=2) as store:
        await store.append(key, drafts("m", 3))
        pages = await asyncio.gather(*(store.read(key, Window(limit=n % 4)) for n in range(100)))
        assert [len(page.messages) for page in pages] == [n % 4 for n in range(100)]
        ((connections,),) = inside(COUNT)
        assert connections <= 2


async def test_cancelled_reads_leave_no_connection_behind(
    make: Make, key: SessionKey, inside: Inside
) -> None:
    """After a storm of cancelled reads the pool is whole, nobody got what was meant for another,
    and closing returns."""
    async with make(pool_size=3) as store:
        keys = [SessionKey("app", "", f"s{number}") for number in range(3)]
        for each in keys:
            await store.append(each, drafts(each.session_id, 100))
        for moment in range(60):
            reads = [asyncio.create_task(store.read(each)) for each in keys]
            for _ in range(moment % 20):
                await asyncio.sleep(0)
            reads[moment % 3].cancel()
            for read, each in zip(reads, keys, strict=True):
                with contextlib.suppress(asyncio.CancelledError):
                    found = texts((await read).messages)
                    assert found == [f"{each.session_id} {i}" for i in range(100)]
        await asyncio.gather(*(store.read(each) for each in keys))
    await all_ended(inside)


async def test_a_read_under_way_is_finished_before_closing(make: Make, key: SessionKey) -> None:
    """Closing waits for reads under way; one that comes later finds the store closed."""
    store = make(pool_size=1)
    await store.open()
    await store.append(key, drafts("m", 300))
    reads = [asyncio.create_task(store.read(key)) for _ in range(3)]
    await asyncio.sleep(0)
    await store.aclose()
    outcomes = await asyncio.gather(*reads, return_exceptions=True)
    for outcome in outcomes:
        assert isinstance(outcome, StoreClosedError) or len(outcome.messages) == 300
    assert not isinstance(outcomes[0], StoreClosedError)


async def test_an_engine_of_the_callers_own_is_left_open(
    make: Make, key: SessionKey, engine: AsyncEngine
) -> None:
    """A store works with an engine that it is given, gives each connection back at once, and
    leaves the engine usable."""
    async with make(url=None, engine=engine) as store:
        await asyncio.gather(*(store.append(key, drafts(str(i), 2)) for i in range(10)))
        assert len((await store.read(key)).messages) == 20
        with pytest.raises(ConflictError):
            await store.create_session(key, SessionDraft())
        assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]  # of a QueuePool
    async with engine.connect() as connection:
        result = await connection.exec_driver_sql("SELECT 1")
        assert result.scalar() == 1
        assert not await is_autocommit(connection)


async def is_autocommit(connection: Any) -> bool:
    return (await connection.get_isolation_level()) == "AUTOCOMMIT"


async def test_an_engine_of_another_database_is_refused(key: SessionKey) -> None:
    """An engine for anything but PostgreSQL, or for a driver that is not known, is refused."""
    engine = create_async_engine("sqlite+aiosqlite://")
    with pytest.raises(ConfigError, match="asyncpg and psycopg, not with aiosqlite"):
        await PostgresStore(PostgresConfig(engine=engine)).open()
    await engine.dispose()


async def test_everything_is_done_in_the_callers_transaction(
    make: Make, key: SessionKey, engine: AsyncEngine
) -> None:
    """With a connection of the caller's, what the store does is there when the caller commits and
    gone when not, the making of the tables included."""
    async with engine.connect() as connection:
        async with make(url=None, connection=connection) as store:
            await store.append(key, drafts("m", 2))
            assert texts((await store.read(key)).messages) == ["m 0", "m 1"]
        await connection.rollback()
        async with make(url=None, connection=connection) as store:
            assert (await store.read(key)).incarnation is None
            await store.append(key, drafts("n", 2))
        await connection.commit()
        async with make(url=None, connection=connection) as store:
            await store.append(key, drafts("o", 2))
        await connection.rollback()
    async with make() as store:
        assert texts((await store.read(key)).messages) == ["n 0", "n 1"]


async def test_a_transaction_of_the_callers_that_has_begun(
    make: Make, key: SessionKey, engine: AsyncEngine
) -> None:
    """The store joins a transaction that began before it, whatever was done in it."""
    async with make() as store:
        await store.append(key, [draft("m", id="known")])
    with contextlib.suppress(KeyError):
        async with engine.begin() as connection:
            await connection.exec_driver_sql("CREATE TEMPORARY TABLE t (x int) ON COMMIT DROP")
            async with make(url=None, connection=connection) as store:
                await asyncio.gather(*(call() for call in calls_of(store, key)))
                assert (await store.read_session(key)).message_count == 23
            raise KeyError
    async with make() as store:
        assert texts((await store.read(key)).messages) == ["m"]


async def test_a_refused_write_leaves_the_callers_transaction_usable(
    make: Make, key: SessionKey, engine: AsyncEngine
) -> None:
    """Where the store refuses something, or the server does, the caller can go on and commit."""
    async with engine.connect() as connection:
        async with make(url=None, connection=connection) as store:
            await store.append(key, [draft("m", id="known")])
            with pytest.raises(ConflictError):
                await store.append(key, [draft("n"), draft("o", id="known")])
            with pytest.raises(InvalidRequestError):
                await store.append(key, [draft("n", role="no\0role")])
            await store.append(key, [draft("n")])
        await connection.commit()
    async with make() as store:
        assert texts((await store.read(key)).messages) == ["m", "n"]


async def test_a_connection_that_commits_each_statement(
    make: Make, key: SessionKey, engine: AsyncEngine
) -> None:
    """A connection of the caller's without transactions is used as one of our own."""
    async with engine.connect() as plain:
        connection = await plain.execution_options(isolation_level="AUTOCOMMIT")
        async with make(url=None, connection=connection) as store:
            await store.append(key, drafts("m", 2))
            with pytest.raises(ConflictError):
                await store.create_session(key, SessionDraft())
            async with make() as other:
                assert texts((await other.read(key)).messages) == ["m 0", "m 1"]


async def test_without_prepared_statements(make: Make, key: SessionKey, inside: Inside) -> None:
    """With `prepared_statements=False` a store never needs what another transaction prepared, as
    behind PgBouncer, and works as ever."""
    async with make(prepared_statements=False) as store:
        await store.append(key, [draft("m", id="known")])
        for call in calls_of(store, key) * 2:
            for lease in store._connections._leases:  # type: ignore[attr-defined]  # our own
                await lease.driver.execute("DEALLOCATE ALL")
            await call()
        batch = drafts("n", 2)
        assert [(await store.append(key, batch)).stored for _ in range(2)] == [2, 0]
        await asyncio.gather(*(store.append(key, drafts(str(i), 2)) for i in range(20)))
        with pytest.raises(ConflictError):
            await store.append(key, [draft("x", id="known")])
    await all_ended(inside)


async def test_asyncpg_sends_no_statement_by_itself_unless_it_prepares(
    make: Make, key: SessionKey, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without prepared statements asyncpg sends each one in two steps; a transaction around them
    keeps PgBouncer from changing the connection to the server in between."""
    alone: list[bool] = []
    driver_of = connections.driver_of

    def watched(connection: Any, *, prepared: bool) -> Any:
        found: Any = driver_of(connection, prepared=prepared)
        fetch = found.fetch

        async def watch(statement: str, *arguments: object) -> Any:
            alone.append(not found.in_transaction)
            return await fetch(statement, *arguments)

        found.fetch = watch
        return found

    monkeypatch.setattr(connections, "driver_of", watched)
    async with make(prepared_statements=False) as store:
        await store.append(key, [draft("m", id="known")])
        for call in calls_of(store, key):
            await call()
    assert any(alone) is (driver == "psycopg")
