"""What the tests of the MongoDB backend share: stores, what they send, and a look behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio
from pymongo import AsyncMongoClient
from pymongo.collection import Collection
from pymongo.monitoring import CommandListener

from historykit.session_records import SessionKey
from historykit_mongo import MongoConfig, MongoStore, appends, documents
from tests.services.mongo import connect

QUIET = ("hello", "endSessions", "killCursors")


class Commands(CommandListener):
    """The names of the commands that a client sends."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def started(self, event: Any) -> None:
        """Note a command."""
        if event.command_name not in QUIET:
            self.names.append(event.command_name)

    def succeeded(self, event: Any) -> None:
        """It was noted before."""

    def failed(self, event: Any) -> None:
        """It was noted before."""


@pytest.fixture
def key() -> SessionKey:
    return SessionKey("app", "ada", "s1")


@pytest_asyncio.fixture
async def open_store(mongo_url: str, mongo_database: str) -> AsyncIterator[Callable[..., Any]]:
    """Return a function that opens a store with settings: by default on a database of its own."""
    async with AsyncExitStack() as stack:

        async def open_store(**settings: Any) -> MongoStore:
            settings = {"url": mongo_url, "database": mongo_database, **settings}
            return await stack.enter_async_context(MongoStore(MongoConfig(**settings)))

        yield open_store


@pytest_asyncio.fixture
async def store(open_store: Callable[..., Any]) -> MongoStore:
    """A store."""
    opened: MongoStore = await open_store()
    return opened


@pytest.fixture
def commands() -> Commands:
    return Commands()


@pytest_asyncio.fixture
async def observed(
    open_store: Callable[..., Any], mongo_url: str, commands: Commands
) -> AsyncIterator[MongoStore]:
    """A store whose commands are noted."""
    client: AsyncMongoClient[Any] = AsyncMongoClient(mongo_url, event_listeners=[commands])
    async with client:
        opened: MongoStore = await open_store(client=client)
        commands.names.clear()
        yield opened
        await opened.aclose()


@pytest.fixture
def inside(mongo_url: str, mongo_database: str) -> Iterator[Collection[Any]]:
    """The collection, past the store."""
    with connect(mongo_url) as client:
        yield client[mongo_database]["history"]


@pytest.fixture
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three messages make a bucket."""
    for module in (appends, documents):
        monkeypatch.setattr(module, "BUCKET_ROWS", 3)
