"""PostgreSQL: floors on bare asyncpg, historykit, and what peers offer.

Each adapter has a database of the server to itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ClassVar, Final

from bench.adapter import Adapter, Bounds
from bench.adapters.floors import (
    BareFloor,
    CallRecorder,
    Page,
    RecordedFloor,
    Script,
    record_rounds,
    seed,
)
from bench.adapters.frameworks import (
    AdkSessions,
    HistoryKitHistory,
    HistoryKitProvider,
    LangChainHistory,
    LlamaIndexStore,
    OpenAISession,
)
from bench.plan import Plan

__all__ = ["ADAPTERS", "BOUNDS", "LEFT_OUT", "SERVER"]

SERVER: Final = "postgres"

LEFT_OUT: Final = {"agent-framework": "has no store for PostgreSQL"}

SYNCED: Final = "fsync and synchronous_commit on"

CONNECTIONS: Final = 10
"""As many connections has a store of ours, and a floor as well."""


class _Database(Adapter):
    database = "postgres"

    @property
    def url(self) -> str:
        """The URL of the adapter's own database."""
        return f"postgresql://{self._path}"

    def url_for(self, driver: str) -> str:
        """Return the same as SQLAlchemy has it."""
        return f"postgresql+{driver}://{self._path}"

    @property
    def _path(self) -> str:
        server: str = self.place.settings["url"].rpartition("/")[0].partition("://")[2]
        return f"{server}/bench_{self.place.number}"


class _Connections:
    """Bare connections of asyncpg, lent to one at a time.

    asyncpg's own pool asks the server for a reset whenever one comes back.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._free = asyncio.Semaphore(CONNECTIONS)
        self._idle: list[Any] = []

    async def fetch(self, statement: str, *arguments: Any) -> list[Any]:
        """Return the rows of a statement."""
        async with self._free:
            connection = self._idle.pop() if self._idle else await _connect(self._url)
            rows: list[Any] = await connection.fetch(statement, *arguments)
            self._idle.append(connection)
        return rows

    async def close(self) -> None:
        """Disconnect."""
        for connection in self._idle:
            await connection.close()


async def _connect(url: str) -> Any:
    return await import_module("asyncpg").connect(url)


class Floor(_Database, RecordedFloor):
    name = "floor: asyncpg, same statements"
    distributions = ("asyncpg", "orjson")

    async def open(self) -> None:
        self.read_script()
        self.connections = _Connections(self.url)

    async def close(self) -> None:
        await self.connections.close()

    async def append(self, session: Any, messages: Any) -> None:
        ((statement, arguments),) = messages
        if not await self.connections.fetch(statement, *arguments):
            raise RuntimeError("an append did nothing, other than when it was recorded")

    async def fetch(self, page: Page) -> list[Any]:
        ((statement, arguments),) = page.requests
        rows = await self.connections.fetch(statement, *arguments)
        decode, body = self.decode, page.places[0]
        return [decode(rows[place][body]) for place in page.places[1]]

    async def record(self, plan: Plan) -> Script:
        core = import_module("historykit")
        async with core.open_history("postgres", url=self.url) as history:
            for session_id, size in plan.seeded(self.largest):
                await seed(history, session_id, size)
        server = await _connect(self.place.settings["url"])
        seeded = f"bench_{self.place.number}"
        await server.execute(f"CREATE DATABASE {seeded}_copy TEMPLATE {seeded}")
        recorder = CallRecorder(_page)
        with _listening(recorder):
            async with core.open_history("postgres", url=f"{self.url}_copy") as history:
                recorder.watch(history.store)
                await record_rounds(recorder, history, plan, largest=self.largest)
        await server.execute(f"DROP DATABASE {seeded}_copy")
        await server.close()
        return recorder.script


@contextmanager
def _listening(recorder: CallRecorder) -> Iterator[None]:
    """Listen to every connection that is made meanwhile."""
    kind = import_module("asyncpg").Connection
    fetch = kind.fetch

    async def heard(connection: Any, statement: str, *arguments: Any) -> Any:
        rows = await fetch(connection, statement, *arguments)
        recorder.hear((statement, arguments), rows)
        return rows

    kind.fetch = heard
    try:
        yield
    finally:
        kind.fetch = fetch


def _page(calls: list[tuple[Any, Any]], messages: Sequence[Any]) -> Page:
    ((request, rows),) = calls
    names = list(rows[0].keys())
    body, sequence = names.index("body"), names.index("sequence")
    places = {row[sequence]: place for place, row in enumerate(rows) if row[body] is not None}
    return Page([request], (body, [places[message.sequence] for message in messages]))


class Bare(_Database, BareFloor):
    name = "floor: asyncpg, counter and rows"
    distributions = ("asyncpg", "orjson")
    durability = SYNCED
    notes = (
        "the least that keeps an order: one statement counts in a row of the session and inserts"
    )

    TABLES: Final = """
    CREATE TABLE IF NOT EXISTS sessions (id text PRIMARY KEY, last bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS messages (
        session text, sequence bigint, body bytea NOT NULL, PRIMARY KEY (session, sequence)
    );
    """
    APPEND: Final = """
    WITH counted AS (
        INSERT INTO sessions VALUES ($1, $3)
        ON CONFLICT (id) DO UPDATE SET last = sessions.last + $3 RETURNING last
    )
    INSERT INTO messages
    SELECT $1, counted.last - $3 + d.place, d.body
    FROM counted, unnest($2::bytea[]) WITH ORDINALITY AS d (body, place)
    """
    LOAD: Final = "SELECT body FROM messages WHERE session = $1 ORDER BY sequence"
    LAST: Final = "SELECT body FROM messages WHERE session = $1 ORDER BY sequence DESC LIMIT $2"

    async def open(self) -> None:
        self.decode = import_module("orjson").loads
        self.connections = _Connections(self.url)
        connection = await _connect(self.url)
        await connection.execute(f"SELECT pg_advisory_lock(1); {self.TABLES}")
        await connection.close()

    async def close(self) -> None:
        await self.connections.close()

    async def append(self, session: Any, messages: Any) -> None:
        await self.connections.fetch(self.APPEND, session, messages, len(messages))

    async def load(self, session: Any) -> Sequence[Any]:
        decode = self.decode
        return [decode(row[0]) for row in await self.connections.fetch(self.LOAD, session)]

    async def last(self, session: Any, count: int) -> Sequence[Any]:
        rows = await self.connections.fetch(self.LAST, session, count)
        return [self.decode(row[0]) for row in reversed(rows)]


class Provider(_Database, HistoryKitProvider):
    name = "historykit provider"
    distributions: ClassVar[tuple[str, ...]] = (
        *("historykit", "historykit-postgres"),
        *("asyncpg", "sqlalchemy", "orjson"),
    )
    durability = SYNCED

    async def open(self) -> None:
        backend = import_module("historykit_postgres")
        self.provider = await backend.PostgresHistoryProvider(self.url).open()


class History(_Database, HistoryKitHistory):
    name = "historykit History"
    durability = SYNCED

    async def open(self) -> None:
        core = import_module("historykit")
        self.history = await core.open_history("postgres", url=self.url).open()


class PsycopgProvider(Provider):
    name = "historykit provider, psycopg"
    distributions = ("historykit", "historykit-postgres", "psycopg", "orjson")

    async def open(self) -> None:
        backend = import_module("historykit_postgres")
        url = self.url_for("psycopg")
        self.provider = await backend.PostgresHistoryProvider(url).open()


class OpenAI(_Database, OpenAISession):
    name = "openai-agents SQLAlchemySession"
    distributions = ("openai-agents", "sqlalchemy", "asyncpg")
    durability = SYNCED
    seed_batch = 20  # it orders by the time of the transaction: one large batch is one tie
    notes = "on SQLAlchemy's asyncpg engine"

    async def open(self) -> None:
        engines = import_module("sqlalchemy.ext.asyncio")
        self.engine = engines.create_async_engine(self.url_for("asyncpg"))
        self.session_class = import_module("agents.extensions.memory").SQLAlchemySession

    async def close(self) -> None:
        await self.engine.dispose()

    def make(self, session_id: str) -> Any:
        return self.session_class(session_id, engine=self.engine, create_tables=True)


class LangChain(_Database, LangChainHistory):
    name = "langchain-postgres PostgresChatMessageHistory"
    distributions = ("langchain-postgres", "langchain-core", "psycopg")
    durability = SYNCED
    notes = "is given a connection: here a pool of 10 lends one for each call"

    async def open(self) -> None:
        self.history_class = import_module("langchain_postgres").PostgresChatMessageHistory
        pools = import_module("psycopg_pool")
        self.pool = pools.AsyncConnectionPool(
            self.url, min_size=CONNECTIONS, max_size=CONNECTIONS, open=False
        )
        await self.pool.open(wait=True)
        async with self.pool.connection() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(1)")
            await self.history_class.acreate_tables(connection, "history")

    async def close(self) -> None:
        await self.pool.close()

    async def append(self, session: Any, messages: Any) -> None:
        async with self.pool.connection() as connection:
            history = self.history_class("history", session, async_connection=connection)
            await history.aadd_messages(messages)

    async def load(self, session: Any) -> Sequence[Any]:
        async with self.pool.connection() as connection:
            history = self.history_class("history", session, async_connection=connection)
            messages: Sequence[Any] = await history.aget_messages()
            return messages


class Adk(_Database, AdkSessions):
    name = "google-adk DatabaseSessionService"
    distributions = ("google-adk", "sqlalchemy", "asyncpg")
    durability = SYNCED

    async def open(self) -> None:
        sessions = import_module("google.adk.sessions")
        self.service = sessions.DatabaseSessionService(self.url_for("asyncpg"))
        await self.service.prepare_tables()


class LlamaIndex(_Database, LlamaIndexStore):
    name = "llama-index PostgresChatStore"
    distributions = ("llama-index-storage-chat-store-postgres", "llama-index-core", "asyncpg")
    durability = SYNCED
    notes = "a session is one row, which each message writes anew; two messages a turn"

    async def open(self) -> None:
        module = import_module("llama_index.storage.chat_store.postgres")
        self.store = module.PostgresChatStore.from_params(
            connection_string=self.url_for("psycopg"),
            async_connection_string=self.url_for("asyncpg"),
        )


BOUNDS: Final = Bounds(
    subject=Provider.name,
    floor=Floor.name,
    bare=Bare.name,
    append=1.6,
    load=1.5,
    last=2.0,
    throughput=0.7,
)

ADAPTERS: Final[list[type[Adapter]]] = [
    Bare,
    Floor,
    Provider,
    History,
    PsycopgProvider,
    OpenAI,
    LangChain,
    Adk,
    LlamaIndex,
]
