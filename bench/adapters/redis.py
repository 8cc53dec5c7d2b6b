"""Redis: a floor that sends the store's own commands, historykit, and what peers offer.

Each adapter has a database of the server to itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from bench.adapter import Adapter, Bounds
from bench.adapters.floors import CallRecorder, Page, RecordedFloor, Script, record_rounds, seed
from bench.adapters.frameworks import (
    AgentFrameworkProvider,
    HistoryKitHistory,
    HistoryKitProvider,
    LangChainHistory,
    LlamaIndexStore,
    OpenAISession,
)
from bench.plan import Plan

__all__ = ["ADAPTERS", "BOUNDS", "LEFT_OUT", "SERVER"]

SERVER: Final = "redis"

LEFT_OUT: Final = {
    "langchain-redis": "needs the module RediSearch, which the server does not have",
    "google-adk": "has no store for Redis",
}

SYNCED: Final = "appendfsync always"


class _Database(Adapter):
    database = "redis"

    @property
    def url(self) -> str:
        """The URL of the adapter's own database."""
        return self.url_of(self.place.number)

    def url_of(self, number: int) -> str:
        """Return the URL of a database."""
        server: str = self.place.settings["url"].rpartition("/")[0]
        return f"{server}/{number}"


class Floor(_Database, RecordedFloor):
    name = "floor: redis-py, same commands"
    distributions = ("redis", "hiredis", "orjson")
    notes = "execute_command, or a pipeline for each page"

    async def open(self) -> None:
        self.read_script()
        self.client = self.connect(self.place.number)

    def connect(self, number: int) -> Any:
        """Return a client that speaks as the store's."""
        return import_module("redis.asyncio").Redis.from_url(self.url_of(number), protocol=2)

    async def close(self) -> None:
        await self.client.aclose()

    async def append(self, session: Any, messages: Any) -> None:
        ((command,),) = messages
        answer = await self.client.execute_command(*command)
        if answer[0] != b"ok":
            raise RuntimeError(f"an append was answered {answer[0]!r}, other than when recorded")

    async def fetch(self, page: Page) -> list[Any]:
        (commands,) = page.requests
        pipeline = self.client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        members = (await pipeline.execute())[1]
        decode = self.decode
        return [decode(members[place][begin:end]) for place, begin, end in page.places]

    async def record(self, plan: Plan) -> Script:
        copy = self.place.number + int(self.place.settings["places"])
        core = import_module("historykit")
        async with core.open_history("redis", url=self.url) as history:
            for session_id, size in plan.seeded(self.largest):
                await seed(history, session_id, size)
        source, target = self.connect(self.place.number), self.connect(copy)
        async for key in source.scan_iter(count=1_000):
            await source.copy(key, key, destination_db=copy)
        recorder = CallRecorder(_page)
        async with core.open_history("redis", url=self.url_of(copy)) as history:
            _listen(recorder, history.store._server._exchange)
            recorder.watch(history.store)
            await record_rounds(recorder, history, plan, largest=self.largest)
        await target.flushdb()
        await source.aclose()
        await target.aclose()
        return recorder.script


def _listen(recorder: CallRecorder, exchange: Any) -> None:
    send = exchange.send

    async def heard(commands: Sequence[Any]) -> Any:
        answers = await send(commands)
        recorder.hear(list(commands), answers)
        return answers

    exchange.send = heard


def _page(calls: list[tuple[Any, Any]], messages: Sequence[Any]) -> Page:
    ((commands, answers),) = calls
    members, places = answers[1], []
    for back, message in enumerate(reversed(messages)):  # they come newest first, with scores
        begin = members[2 * back].index(message.body)
        places.append((2 * back, begin, begin + len(message.body)))
    return Page([commands], places[::-1])


class Provider(_Database, HistoryKitProvider):
    name = "historykit provider"
    distributions = ("historykit", "historykit-redis", "redis", "hiredis", "orjson")
    durability = SYNCED

    async def open(self) -> None:
        backend = import_module("historykit_redis")
        self.provider = await backend.RedisHistoryProvider(self.url).open()


class History(_Database, HistoryKitHistory):
    name = "historykit History"
    durability = SYNCED

    async def open(self) -> None:
        core = import_module("historykit")
        self.history = await core.open_history("redis", url=self.url).open()


class AgentFramework(_Database, AgentFrameworkProvider):
    name = "agent-framework RedisHistoryProvider"
    distributions = ("agent-framework-core", "agent-framework-redis", "redis", "hiredis")
    durability = SYNCED

    async def open(self) -> None:
        module = import_module("agent_framework.redis")
        self.provider = module.RedisHistoryProvider(redis_url=self.url, application_id="bench")

    async def close(self) -> None:
        await self.provider.aclose()


class OpenAI(_Database, OpenAISession):
    name = "openai-agents RedisSession"
    distributions = ("openai-agents", "redis", "hiredis")
    durability = SYNCED
    notes = "WATCH, two times TYPE, then a transaction"

    async def open(self) -> None:
        self.session_class = import_module("agents.extensions.memory").RedisSession
        self.client = import_module("redis.asyncio").Redis.from_url(self.url)

    async def close(self) -> None:
        await self.client.aclose()

    def make(self, session_id: str) -> Any:
        return self.session_class(session_id, redis_client=self.client)


class LangChain(_Database, LangChainHistory):
    name = "langchain-community RedisChatMessageHistory"
    distributions = ("langchain-community", "langchain-core", "redis", "hiredis")
    durability = SYNCED
    notes = "no coroutines, so in threads; a command a message; its package is being sunset"

    async def open(self) -> None:
        histories = import_module("langchain_community.chat_message_histories")
        self.history_class = histories.RedisChatMessageHistory

    async def close(self) -> None:
        """Nothing: each history has a client of its own."""

    async def session(self, session_id: str) -> Any:
        return self.history_class(session_id, url=self.url)

    async def leave(self, session: Any) -> None:
        session.redis_client.close()


class LlamaIndex(_Database, LlamaIndexStore):
    name = "llama-index RedisChatStore"
    distributions = ("llama-index-storage-chat-store-redis", "llama-index-core", "redis")
    durability = SYNCED
    notes = "two messages a turn, a command each"

    async def open(self) -> None:
        module = import_module("llama_index.storage.chat_store.redis")
        self.store = module.RedisChatStore(self.url)

    async def close(self) -> None:
        await self.store._aredis_client.aclose()


BOUNDS: Final = Bounds(
    subject=Provider.name, floor=Floor.name, append=1.3, load=1.5, last=1.5, throughput=0.7
)

ADAPTERS: Final[list[type[Adapter]]] = [
    Floor,
    Provider,
    History,
    AgentFramework,
    OpenAI,
    LangChain,
    LlamaIndex,
]
