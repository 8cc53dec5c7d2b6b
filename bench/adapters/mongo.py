"""MongoDB: floors on bare PyMongo, historykit, and what peers offer.

Each adapter has a database of the server to itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

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
    HistoryKitHistory,
    HistoryKitProvider,
    LangChainHistory,
    LlamaIndexStore,
    OpenAISession,
)
from bench.plan import LAST, Plan

__all__ = ["ADAPTERS", "BOUNDS", "LEFT_OUT", "SERVER"]

SERVER: Final = "mongo"

LEFT_OUT: Final = {
    "agent-framework": "has no store for MongoDB",
    "google-adk": "has no store for MongoDB",
}

SYNCED: Final = "majority and journal"

OF_THE_DRIVER: Final = ("lsid", "$db", "$clusterTime", "$readPreference", "txnNumber")
"""What a driver adds to each command by itself."""


class _Database(Adapter):
    database = "mongo"

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self.place.settings["url"]

    @property
    def part(self) -> str:
        """The name of the adapter's own database."""
        return f"bench_{self.place.number}"

    def connect(self, **options: Any) -> Any:
        """Return a client."""
        return import_module("pymongo").AsyncMongoClient(self.url, **options)


class Floor(_Database, RecordedFloor):
    name = "floor: PyMongo, same commands"
    distributions = ("pymongo", "orjson")
    notes = "what moves messages behind the calls is done behind the calls here, too"

    async def open(self) -> None:
        self.read_script()
        self.client = self.connect()
        self.command = self.client[self.part].command
        self.moves: dict[str, asyncio.Task[None]] = {}

    async def close(self) -> None:
        if self.moves:
            await asyncio.wait(self.moves.values())
        await self.client.close()

    async def append(self, session: Any, messages: Any) -> None:
        if session in self.moves:  # what follows was recorded after it
            await self.moves.pop(session)
        command, *moves = messages
        answer = await self.command(command)
        if answer["value"] is None:
            raise RuntimeError("an append found nothing to change, other than when recorded")
        if moves:
            self.moves[session] = asyncio.create_task(self._move(moves))

    async def _move(self, commands: list[Any]) -> None:
        for command in commands:
            await self.command(command)

    async def fetch(self, page: Page) -> list[Any]:
        (command,) = page.requests
        found = (await self.command(command))["cursor"]["firstBatch"]
        bodies = [body for document in reversed(found) for body in _bodies(document)]
        decode = self.decode
        return [decode(body) for body in bodies[page.places]]

    async def record(self, plan: Plan) -> Script:
        copy = f"{self.part}_copy"
        core = import_module("historykit")
        async with core.open_history("mongo", url=self.url, database=self.part) as history:
            for session_id, size in plan.seeded(self.largest):
                await seed(history, session_id, size)
        async with self.connect() as client:
            await _copied(client[self.part], copy)
            recorder = CallRecorder(_page, lambda: history.store._connection.aclose())
            listener = _listener(recorder)
            async with self.connect(event_listeners=[listener]) as watched:
                history = core.open_history("mongo", client=watched, database=copy)
                async with history:
                    recorder.watch(history.store)
                    await record_rounds(recorder, history, plan, largest=self.largest)
            await client.drop_database(copy)
        return recorder.script


async def _copied(source: Any, target: str) -> None:
    """Copy the collections of a database into another one."""
    for name in await source.list_collection_names():
        cursor = await source[name].aggregate([{"$out": {"db": target, "coll": name}}])
        await cursor.to_list()


def _listener(recorder: CallRecorder) -> Any:
    """Return what PyMongo tells of each command, and of its answer."""
    monitoring = import_module("pymongo.monitoring")

    class Listener(monitoring.CommandListener):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.asked: dict[int, Any] = {}

        def started(self, event: Any) -> None:
            command = {
                name: value for name, value in event.command.items() if name not in OF_THE_DRIVER
            }
            self.asked[event.request_id] = command

        def succeeded(self, event: Any) -> None:
            recorder.hear(self.asked.pop(event.request_id), event.reply)

        def failed(self, event: Any) -> None:
            recorder.hear(self.asked.pop(event.request_id), None)

    return Listener()


def _bodies(document: Any) -> list[Any]:
    """Return the bodies in a document of the store, oldest first: a head has them in its tail."""
    if "tail" in document:
        return [row["b"] for row in document["tail"]]
    bodies: list[Any] = document["b"]
    return bodies


def _page(calls: list[tuple[Any, Any]], messages: Sequence[Any]) -> Page:
    ((command, answer),) = calls
    found = answer["cursor"]["firstBatch"]
    bodies = [bytes(body) for document in reversed(found) for body in _bodies(document)]
    end = bodies.index(messages[-1].body) + 1 if messages else 0
    places = slice(end - len(messages), end)
    if bodies[places] != [message.body for message in messages]:
        raise RuntimeError("the bodies of a page do not lie in its documents as expected")
    return Page([command], places)


class Bare(_Database, BareFloor):
    name = "floor: PyMongo, a document a turn"
    distributions = ("pymongo", "orjson")
    durability = SYNCED
    notes = "the client numbers the turns, which is safe for one writer only"

    async def open(self) -> None:
        self.decode = import_module("orjson").loads
        self.client = self.connect(w="majority", journal=True, readConcernLevel="majority")
        self.turns = self.client[self.part]["turns"]
        self.numbers: dict[str, int] = {}

    async def close(self) -> None:
        await self.client.close()

    async def session(self, session_id: str) -> Any:
        last = await self.turns.find_one(_of(session_id), {"_id": 1}, sort=[("_id", -1)])
        self.numbers[session_id] = last["_id"]["n"] if last else 0
        return session_id

    async def append(self, session: Any, messages: Any) -> None:
        number = self.numbers[session] = self.numbers[session] + 1
        await self.turns.insert_one({"_id": {"s": session, "n": number}, "b": messages})

    async def seed(self, session: Any, messages: list[Any]) -> None:
        turns = [
            {"_id": {"s": session, "n": begin // 2 + 1}, "b": messages[begin : begin + 2]}
            for begin in range(0, len(messages), 2)
        ]
        await self.turns.insert_many(turns)

    async def load(self, session: Any) -> Sequence[Any]:
        cursor = self.turns.find(_of(session), sort=[("_id", 1)], batch_size=10_000)
        decode = self.decode
        return [decode(body) for turn in await cursor.to_list() for body in turn["b"]]

    async def last(self, session: Any, count: int) -> Sequence[Any]:
        turns = await self.turns.find(_of(session), sort=[("_id", -1)], limit=count // 2).to_list()
        return [self.decode(body) for turn in reversed(turns) for body in turn["b"]]


def _of(session: str) -> Any:
    """Return the filter for the turns of a session, which the index of all ids answers."""
    return {"_id": {"$gte": {"s": session, "n": 0}, "$lt": {"s": session, "n": 1 << 40}}}


class Provider(_Database, HistoryKitProvider):
    name = "historykit provider"
    distributions = ("historykit", "historykit-mongo", "pymongo", "orjson")
    durability = SYNCED

    async def open(self) -> None:
        backend = import_module("historykit_mongo")
        config = backend.MongoConfig(url=self.url, database=self.part)
        self.provider = await backend.MongoHistoryProvider(config).open()


class History(_Database, HistoryKitHistory):
    name = "historykit History"
    durability = SYNCED

    async def open(self) -> None:
        core = import_module("historykit")
        history = core.open_history("mongo", url=self.url, database=self.part)
        self.history = await history.open()


class OpenAI(_Database, OpenAISession):
    name = "openai-agents MongoDBSession"
    distributions = ("openai-agents", "pymongo")
    durability = SYNCED
    seed_batch = 2  # a batch is a document: as an application would have written them
    largest = 1_000
    notes = "a counter, then a document a turn"

    async def open(self) -> None:
        self.session_class = import_module("agents.extensions.memory").MongoDBSession
        self.client = self.connect()

    async def close(self) -> None:
        await self.client.close()

    def make(self, session_id: str) -> Any:
        return self.session_class(session_id, client=self.client, database=self.part)


class LangChain(_Database, LangChainHistory):
    name = "langchain-mongodb MongoDBChatMessageHistory"
    distributions = ("langchain-mongodb", "langchain-core", "pymongo")
    durability = SYNCED
    reads_last = True
    largest = 1_000  # a trip to the disk for each message
    notes = "no coroutines, so in threads; a document a message"

    async def open(self) -> None:
        self.history_class = import_module("langchain_mongodb").MongoDBChatMessageHistory
        self.client = import_module("pymongo").MongoClient(self.url)

    async def close(self) -> None:
        self.client.close()

    def make(self, session_id: str, **options: Any) -> Any:
        """Return a history object."""
        return self.history_class(None, session_id, self.part, client=self.client, **options)

    async def session(self, session_id: str) -> Any:
        session = await asyncio.to_thread(self.make, session_id)
        session.newest = self.make(session_id, create_index=False, history_size=LAST)
        return session

    async def last(self, session: Any, count: int) -> Sequence[Any]:
        messages: Sequence[Any] = await session.newest.aget_messages()
        return messages


class LlamaIndex(_Database, LlamaIndexStore):
    name = "llama-index MongoChatStore"
    distributions = ("llama-index-storage-chat-store-mongo", "llama-index-core", "pymongo")
    durability = SYNCED
    largest = 1_000
    notes = "two messages a turn, a document each, and no index"

    async def open(self) -> None:
        module = import_module("llama_index.storage.chat_store.mongo.base")
        # It asks for the version of a distribution that it does not require.
        vars(module)["version"] = lambda name: "0"
        self.store = module.MongoChatStore(self.url, db_name=self.part)


BOUNDS: Final = Bounds(
    subject=Provider.name,
    floor=Floor.name,
    bare=Bare.name,
    append=1.5,
    load=1.5,
    last=1.5,
    throughput=0.7,
)

ADAPTERS: Final[list[type[Adapter]]] = [
    Bare,
    Floor,
    Provider,
    History,
    OpenAI,
    LangChain,
    LlamaIndex,
]
