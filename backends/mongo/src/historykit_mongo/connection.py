"""The collection, seen in the same way through either driver."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from bson.codec_options import DEFAULT_CODEC_OPTIONS
from pymongo import ReadPreference, ReturnDocument, WriteConcern
from pymongo.errors import (
    AutoReconnect,
    ConnectionFailure,
    PyMongoError,
    WriteConcernError,
    WTimeoutError,
)
from pymongo.read_concern import ReadConcern
from pymongo.uri_parser import parse_uri

from historykit.errors import ConfigError, ConflictError
from historykit.session_records import SessionKey
from historykit.tasks import ShieldedTasks
from historykit_mongo.config import MongoConfig
from historykit_mongo.documents import Document, at, number_rows

__all__ = ["Connection", "make_client", "resolved"]

T = TypeVar("T")

ATTEMPTS: Final = 200
"""How often an operation begins again because others came first."""


def make_client(config: MongoConfig) -> Any:
    """Return a new client, bound to the running loop. Raises `ConfigError` for a wrong url.

    The error has no cause, because the driver's texts may show parts of the url.
    """
    try:
        given = parse_uri(config.url, validate=False, normalize=False)["options"]
    except (PyMongoError, ValueError):
        given = {}  # the client says the same
    milliseconds = int(config.timeout * 1000)
    waits = ("serverSelectionTimeoutMS", "connectTimeoutMS", "socketTimeoutMS")
    options: dict[str, Any] = {
        name: milliseconds for name in waits if name.lower() not in map(str.lower, given)
    }
    try:
        if config.driver == "motor":
            from motor.motor_asyncio import AsyncIOMotorClient

            return AsyncIOMotorClient(config.url, io_loop=asyncio.get_running_loop(), **options)
        from pymongo import AsyncMongoClient

        return AsyncMongoClient(config.url, **options)
    except ImportError:
        raise ConfigError(
            "driver 'motor' of the mongo backend is not installed; "
            "pip install 'historykit-mongo[motor]'",
            field="driver",
        ) from None
    except (PyMongoError, ValueError):
        raise ConfigError(
            "url of the mongo backend is no connection string that the driver takes; look at its "
            "options, and percent-encode special characters in user name and password",
            field="url",
        ) from None


async def resolved(value: Awaitable[T] | T) -> T:
    """Return a value, awaited where one driver has a coroutine and the other does not."""
    return await value if inspect.isawaitable(value) else value


class Connection:
    """One collection through one client: reads and writes by majority, on the primary.

    It gives out a lock for each session, and keeps account of the work that goes on behind the
    calls. What it saw, and may be wrong by now: `seen` holds sessions that exist, `trims` what is
    known of streams that are trimmed, `opened` streams that begin with a system message.
    `snapshots` says whether the server reads several documents of one moment.
    """

    def __init__(self, client: Any, config: MongoConfig) -> None:
        self.client = client
        self.timeout = config.timeout
        self.snapshots = False
        self.seen: set[bytes] = set()
        milliseconds = int(config.timeout * 1000)
        self._wait = {"w": "majority", "j": True, "wtimeout": milliseconds}
        self._database = client.get_database(
            config.database,
            codec_options=DEFAULT_CODEC_OPTIONS,
            read_preference=ReadPreference.PRIMARY,
            read_concern=ReadConcern("majority"),
            write_concern=WriteConcern("majority", milliseconds, j=True),
        )
        self.collection = self._database.get_collection(config.collection)
        self.name = config.collection
        self.trims: dict[tuple[bytes, str], Any] = {}
        self.opened: set[tuple[bytes, str]] = set()
        self._locks: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()
        self._guarded = ShieldedTasks()
        self._tasks: dict[object, asyncio.Task[None]] = {}

    async def aggregate(self, pipeline: list[Document]) -> list[Document]:
        """Return all documents that a pipeline gives."""
        cursor: Any = await resolved(self.collection.aggregate(pipeline, batchSize=1000))
        found: list[Document] = await cursor.to_list(None)
        return found

    async def snapshot(self, filter: Document, *, most: int) -> list[Document]:
        """Return what a filter finds, at most so many, by descending id and all of one moment.

        Only where `snapshots` says that the server can do that. A session's own body is left out.
        """
        reply = await self.persist(
            lambda: self._database.command(
                "find",
                self.name,
                filter=filter,
                sort={"_id": -1},
                limit=most,
                batchSize=most,
                projection={"body": 0},
                readConcern={"level": "snapshot"},
            )
        )
        found: list[Document] = reply["cursor"]["firstBatch"]
        while reply["cursor"]["id"]:
            more = {"getMore": reply["cursor"]["id"], "collection": self.name}
            reply = await self._database.command(more)
            found += reply["cursor"]["nextBatch"]
        return found

    def union(self, *stages: Document) -> Document:
        """Return the stage that adds what other stages find in the collection."""
        return {"$unionWith": {"coll": self.name, "pipeline": list(stages)}}

    async def head(self, place: bytes, *, without: tuple[str, ...] = ()) -> Document | None:
        """Return the head of a session, without some of its fields."""
        fields = dict.fromkeys(without, 0) or None
        found: Document | None = await self.collection.find_one(at(place), fields)
        return found if found is None or "tail" not in found else number_rows(found)

    async def change(
        self,
        place: bytes,
        conditions: Document,
        update: Document | list[Document],
        *,
        upsert: bool = False,
    ) -> tuple[Document | None, bool]:
        """Change a head that meets conditions, in one step, and return its numbers.

        Also whether the head was made by it. It is a bare command, because the driver's own method
        is sent as a retryable write, for which the server keeps a copy of the whole head each time:
        who calls this makes sure that a repeat is harmless.
        """
        reply = await self._database.command(
            "findAndModify",
            self.name,
            query={**at(place), **conditions},
            update=update,
            fields=NUMBERS,
            new=True,
            upsert=upsert,
            writeConcern=self._wait,
        )
        if "writeConcernError" in reply:
            failure = reply["writeConcernError"]
            kind = WTimeoutError if failure.get("code") == 64 else WriteConcernError
            raise kind(failure.get("errmsg", ""), failure.get("code"), failure)
        return reply["value"], "upserted" in reply["lastErrorObject"]

    async def edit(
        self, place: bytes, head: Document, update: Document | list[Document]
    ) -> Document | None:
        """Change a head that is as it was read and return its numbers, None if it is not.

        Rows that went into buckets since, or are on their way, count as a difference.
        """
        conditions = {name: head[name] for name in ("incarnation", "version", "base")}
        return await self.update(place, {**conditions, "frozen": 0}, update, fields=NUMBERS)

    async def update(
        self,
        place: bytes,
        conditions: Document,
        update: Document | list[Document],
        *,
        fields: Document,
    ) -> Document | None:
        """Change a head that meets conditions, once, and return some of its fields."""
        changed: Document | None = await self.collection.find_one_and_update(
            {**at(place), **conditions},
            update,
            projection=fields,
            return_document=ReturnDocument.AFTER,
        )
        return changed

    async def persist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return what an attempt gives; where the connection breaks or the primary moves, again.

        For as long as a call may wait. The attempt has to be harmless when it is repeated.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return await attempt()
            except (AutoReconnect, WriteConcernError) as error:
                if isinstance(error, WTimeoutError) or time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(0.05)

    def lock(self, place: bytes) -> asyncio.Lock:
        """Return the lock of a session in this process, for those who write messages.

        What is right does not depend on it. But writers of one process come in the order of their
        calls, and none of them too late.
        """
        return self._locks.setdefault(place, asyncio.Lock())

    async def attempts(self, key: SessionKey) -> AsyncIterator[int]:
        """Yield numbers, for each attempt of an operation that others may have come before."""
        for number in range(ATTEMPTS):
            yield number
            await asyncio.sleep(min(0.001 * number, 0.05))
        raise ConflictError(
            f"session {key.session_id!r} is being written to faster than it can be changed; "
            "try again"
        )

    async def guarded(self, work: Awaitable[T]) -> T:
        """Return what some work gives; it goes on to its end if the caller is cancelled."""
        return await self._guarded.run(work)

    def begin(self, name: object, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do some work behind the calls, unless work of that name is under way.

        Nobody waits for it. Where the connection fails, it is begun again by a later call; another
        error is told to the event loop.
        """
        if name not in self._tasks:
            task = self._tasks[name] = asyncio.create_task(work())
            task.add_done_callback(lambda _: self._tasks.pop(name, None))
            task.add_done_callback(_report)

    async def finish(self, name: object) -> None:
        """Wait for the work of that name."""
        if name in self._tasks:
            await asyncio.wait([self._tasks[name]])

    async def aclose(self) -> None:
        """Wait for all work behind the calls. The client stays open."""
        await self._guarded.wait()
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))


def _report(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, ConnectionFailure):
        message = "messages could not be moved within MongoDB"
        task.get_loop().call_exception_handler(
            {"message": message, "exception": error, "task": task}
        )


NUMBERS: Final = dict.fromkeys(
    ("incarnation", "version", "last", "base", "size", "frozen", "streams"), 1
)
