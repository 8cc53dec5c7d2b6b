"""SQLite: floors that execute the store's own statements, historykit, and what peers offer."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bench.adapter import Adapter, Bounds
from bench.adapters.frameworks import (
    AdkSessions,
    AgentFrameworkProvider,
    HistoryKitHistory,
    HistoryKitProvider,
    LangChainHistory,
    LlamaIndexStore,
    OpenAISession,
)
from bench.adapters.sqlite_floors import AiosqliteFloor, ThreadFloor

__all__ = ["ADAPTERS", "BOUNDS", "LEFT_OUT"]

BOUNDS: Final = Bounds(
    subject="historykit provider",
    floor=AiosqliteFloor.name,
    append=1.3,
    load=1.5,
    last=1.3,
    throughput=0.75,
)

LEFT_OUT: Final[dict[str, str]] = {}

SYNCED: Final = "WAL, synchronous=FULL"
ROLLBACK: Final = "rollback journal, synchronous=FULL"


class _File(Adapter):
    database = "sqlite"

    @property
    def path(self) -> Path:
        """The file that holds the database."""
        return self.place.folder / "history.db"


class Provider(_File, HistoryKitProvider):
    name = "historykit provider"
    distributions = ("historykit", "historykit-sqlite", "aiosqlite", "orjson")
    durability = SYNCED
    synchronous = "full"

    async def open(self) -> None:
        backend = import_module("historykit_sqlite")
        config = backend.SQLiteConfig(path=self.path, synchronous=self.synchronous)
        self.provider = await backend.SQLiteHistoryProvider(config).open()


class RelaxedProvider(Provider):
    name = "historykit provider, normal"
    durability = "WAL, synchronous=NORMAL"
    durable = False
    synchronous = "normal"


class History(_File, HistoryKitHistory):
    name = "historykit History"
    durability = SYNCED

    async def open(self) -> None:
        core = import_module("historykit")
        self.history = await core.open_history("sqlite", path=self.path).open()


class OpenAISync(_File, OpenAISession):
    name = "openai-agents SQLiteSession"
    durability = SYNCED
    notes = "sqlite3 in asyncio.to_thread, a lock for each file within the process"

    async def open(self) -> None:
        self.session_class = import_module("agents").SQLiteSession
        self.other = await self.session("another")  # while one is open, the log of the file stays

    async def close(self) -> None:
        await self.leave(self.other)

    def make(self, session_id: str) -> Any:
        return self.session_class(session_id, self.path)

    async def leave(self, session: Any) -> None:
        session.close()


class OpenAIAsync(_File, OpenAISession):
    name = "openai-agents AsyncSQLiteSession"
    durability = SYNCED
    notes = "a connection and a thread for each session object"

    async def open(self) -> None:
        self.session_class = import_module("agents.extensions.memory").AsyncSQLiteSession
        self.other = await self.session("another")  # while one is open, the log of the file stays

    async def close(self) -> None:
        await self.leave(self.other)

    def make(self, session_id: str) -> Any:
        return self.session_class(session_id, self.path)

    async def leave(self, session: Any) -> None:
        await session.close()


class OpenAISQLAlchemy(_File, OpenAISession):
    name = "openai-agents SQLAlchemySession"
    durability = SYNCED
    seed_batch = 20  # it orders by whole seconds of the transaction: one large batch is one tie
    notes = "on SQLAlchemy's aiosqlite engine"

    async def open(self) -> None:
        engines = import_module("sqlalchemy.ext.asyncio")
        self.engine = engines.create_async_engine(f"sqlite+aiosqlite:///{self.path}")
        self.session_class = import_module("agents.extensions.memory").SQLAlchemySession

    async def close(self) -> None:
        await self.engine.dispose()

    def make(self, session_id: str) -> Any:
        return self.session_class(session_id, engine=self.engine, create_tables=True)


class AdkDatabase(_File, AdkSessions):
    name = "google-adk DatabaseSessionService"
    durability = ROLLBACK

    async def open(self) -> None:
        sessions = import_module("google.adk.sessions")
        self.service = sessions.DatabaseSessionService(f"sqlite+aiosqlite:///{self.path}")
        await self.service.prepare_tables()


class AdkSqlite(_File, AdkSessions):
    name = "google-adk SqliteSessionService"
    durability = ROLLBACK

    async def open(self) -> None:
        module = import_module("google.adk.sessions.sqlite_session_service")
        self.service = module.SqliteSessionService(str(self.path))


class LlamaIndex(_File, LlamaIndexStore):
    name = "llama-index SQLiteChatStore"
    distributions = ("llama-index-storage-chat-store-sqlite", "llama-index-core")
    durability = ROLLBACK

    async def open(self) -> None:
        module = import_module("llama_index.storage.chat_store.sqlite")
        self.store = module.SQLiteChatStore.from_params(database=str(self.path))


class LangChain(_File, LangChainHistory):
    name = "langchain-community SQLChatMessageHistory"
    distributions = ("langchain-community", "langchain-core", "sqlalchemy", "aiosqlite")
    durability = ROLLBACK
    notes = "on SQLAlchemy's aiosqlite engine, without an index; its package is being sunset"

    async def open(self) -> None:
        engines = import_module("sqlalchemy.ext.asyncio")
        self.engine = engines.create_async_engine(f"sqlite+aiosqlite:///{self.path}")
        histories = import_module("langchain_community.chat_message_histories")
        self.history_class = histories.SQLChatMessageHistory

    async def close(self) -> None:
        await self.engine.dispose()

    async def session(self, session_id: str) -> Any:
        session = self.history_class(session_id, connection=self.engine)
        await session._acreate_table_if_not_exists()  # as its first call does
        return session


class AgentFrameworkFile(AgentFrameworkProvider):
    name = "agent-framework FileHistoryProvider"
    database = "sqlite"  # no SQLite: it is what this framework has for a single machine
    durability = "a file for each session, not synced"
    durable = False

    async def open(self) -> None:
        self.provider = import_module("agent_framework").FileHistoryProvider(self.place.folder)


ADAPTERS: Final[list[type[Adapter]]] = [
    ThreadFloor,
    AiosqliteFloor,
    Provider,
    History,
    RelaxedProvider,
    OpenAISync,
    OpenAIAsync,
    OpenAISQLAlchemy,
    AdkDatabase,
    AdkSqlite,
    LangChain,
    LlamaIndex,
    AgentFrameworkFile,
]
