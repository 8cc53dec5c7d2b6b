"""Clients, servers, settings and errors."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from bson.codec_options import CodecOptions
from bson.son import SON
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo import AsyncMongoClient, ReadPreference, WriteConcern
from pymongo.collection import Collection
from pymongo.errors import OperationFailure, WriteConcernError, WTimeoutError

from historykit import History, Message
from historykit.capabilities import Guarantee
from historykit.errors import (
    ConfigError,
    StorageError,
    StorageUnavailableError,
    TooLargeError,
)
from historykit.plugins import load_backend
from historykit.session_records import SessionKey, SessionQuery
from historykit.testing.drafts import draft, drafts, texts
from historykit_mongo import MongoConfig, MongoHistoryProvider, MongoStore
from historykit_mongo.errors import translate
from historykit_mongo.schema import INDEXES

pytestmark = pytest.mark.asyncio

Open = Callable[..., Any]


async def use(store: MongoStore, key: SessionKey) -> None:
    await store.append(key, [draft("m", id="m", created_at=1 << 50)])
    assert texts((await store.read(key)).messages) == ["m"]
    assert (await store.read_session(key)).message_count == 1
    assert (await store.find_sessions(SessionQuery(namespace=key.namespace))).total == 1
    await store.delete_session(key)


async def test_a_client_of_the_callers_own_stays_open(
    mongo_url: str, mongo_database: str, open_store: Open, key: SessionKey
) -> None:
    """Whatever its settings, a client that was handed in is used, and open afterwards."""
    client: AsyncMongoClient[Any] = AsyncMongoClient(
        mongo_url, document_class=SON, tz_aware=True, retryWrites=False, w=0
    )
    async with client:
        store = await open_store(client=client)
        await use(store, key)
        await store.aclose()
        assert (await client.admin.command("ping"))["ok"] == 1


async def test_a_motor_client_of_the_callers_own_stays_open(
    mongo_url: str, mongo_database: str, open_store: Open, key: SessionKey
) -> None:
    """The same with a client of motor."""
    client: AsyncIOMotorClient[Any] = AsyncIOMotorClient(mongo_url)
    store = await open_store(client=client)
    await use(store, key)
    await store.aclose()
    assert (await client.admin.command("ping"))["ok"] == 1
    client.close()


async def test_writes_wait_for_a_majority_and_the_journal(
    store: MongoStore, mongo_url: str
) -> None:
    """What the store asks for does not depend on the client."""
    collection = store._db.collection
    concern = WriteConcern("majority", 10_000, j=True)
    assert collection.write_concern == concern
    assert collection.read_concern.level == "majority"
    assert collection.read_preference == ReadPreference.PRIMARY
    assert collection.codec_options == CodecOptions()


async def test_guarantees_are_those_of_the_server(store: MongoStore) -> None:
    """A replica set survives a failover, a standalone server does not, and the ping says which."""
    server = await store.ping()
    is_set = server.settings["topology"] == "replica set"
    assert (Guarantee.SURVIVES_FAILOVER in store.guarantees) == is_set
    assert store.guarantees | {Guarantee.SURVIVES_FAILOVER} == set(Guarantee)


@pytest.mark.timeout(240)
async def test_eight_stores_on_an_empty_database(
    open_store: Open, inside: Collection[Any], key: SessionKey
) -> None:
    """Stores that are the first to open a database, eight at once, all work, twenty times over."""
    for _ in range(20):
        inside.drop()
        stores = await asyncio.gather(*(open_store() for _ in range(8)))
        await asyncio.gather(*(store.append(key, drafts("m", 1)) for store in stores))
        assert (await stores[0].read_tail(key)).count == 8
        assert {index["name"] for index in inside.list_indexes()} == {
            "_id_",
            *(index.document["name"] for index in INDEXES),
        }
        assert inside.count_documents({"_id": "historykit"}) == 1
        await asyncio.gather(*(store.aclose() for store in stores))


async def test_a_newer_collection_is_refused(
    open_store: Open, store: MongoStore, inside: Collection[Any]
) -> None:
    """A collection of another version is not opened, and the error says what to do."""
    inside.update_one({"_id": "historykit"}, {"$set": {"schema": 2}})
    with pytest.raises(StorageError, match="version 2"):
        await open_store()


async def test_an_index_that_is_missing_is_made(
    open_store: Open, store: MongoStore, inside: Collection[Any], key: SessionKey
) -> None:
    """A collection that an earlier version made, which lacks an index, gets it when it is opened,
    and keeps what is in it."""
    await store.append(key, drafts("m", 3))
    inside.drop_index("memory")
    other = await open_store()
    assert "memory" in inside.index_information()
    assert len((await other.read(key)).messages) == 3


async def test_a_server_that_is_not_there(key: SessionKey) -> None:
    """Opening without a server fails in time, and no password is in the error."""
    config = MongoConfig(url="mongodb://ada:s3cret@127.0.0.1:1/?directConnection=true", timeout=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the driver leaves a socket behind
        with pytest.raises(StorageUnavailableError) as caught:
            await MongoStore(config).open()
        shown = f"{caught.value!r} {config!r}"
        del caught  # whose traceback holds it
        gc.collect()
    assert "s3cret" not in shown


@pytest.mark.parametrize(
    "url", ["mongodb://ada:p@ss@host/", "mongodb://host:port/", "mongodb://:s3cret@/"]
)
async def test_a_wrong_url_is_a_config_error(url: str) -> None:
    """A url that the driver refuses is a ConfigError, whose text and cause do not show it."""
    with pytest.raises(ConfigError) as caught:
        await MongoStore(MongoConfig(url=url)).open()
    assert caught.value.__cause__ is None
    assert url not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (WTimeoutError("late", 64, {}), StorageUnavailableError, "majority"),
        (WriteConcernError("down", 91, {}), StorageUnavailableError, "in time"),
        (OperationFailure("no", 18), StorageError, "not permitted"),
        (OperationFailure("no", 13), StorageError, "not permitted"),
        (OperationFailure("full", 14031), StorageUnavailableError, "disk is full"),
        (OperationFailure("big", 17419), TooLargeError, "one document"),
        (OperationFailure("s3cret", 1), StorageError, "code 1"),
    ],
)
async def test_errors_of_the_server_are_told_apart(
    error: Exception, kind: type[Exception], text: str
) -> None:
    """Each error says what it is and what to do, and nothing of what the driver says."""
    found = translate(error, "append", "db.history")
    assert type(found) is kind
    assert text in str(found)
    assert "s3cret" not in str(found)


async def test_the_provider_owns_its_store(mongo_url: str, mongo_database: str) -> None:
    """The provider opens a store at first use and keeps an agent's messages in it."""
    config = MongoConfig(url=mongo_url, database=mongo_database)
    async with MongoHistoryProvider(config, window=2) as provider:
        await provider.save_messages("s", [Message("user", [text]) for text in "abc"])
        assert [message.text for message in await provider.get_messages("s")] == ["b", "c"]
    assert MongoHistoryProvider("mongodb://host").history.namespace == "default"


@pytest.mark.parametrize("driver", ["pymongo", "motor"])
async def test_settings_come_by_name(mongo_url: str, mongo_database: str, driver: str) -> None:
    """The backend is found by its name, and takes its settings."""
    spec = load_backend("mongo")
    assert spec.store() is MongoStore
    config = spec.config()(url=mongo_url, database=mongo_database, driver=driver)
    async with History(MongoStore(config)) as history:
        await history.append("s", [Message("user", ["hello"])])
        assert [message.text for message in await history.load("s")] == ["hello"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "localhost"),
        ("database", ""),
        ("database", "a$b"),
        ("collection", "system.x"),
        ("driver", "other"),
        ("timeout", 0),
        ("timeout", float("inf")),
    ],
)
async def test_wrong_settings_are_refused(field: str, value: object) -> None:
    """A setting that is wrong is a ConfigError that names its field."""
    with pytest.raises(ConfigError) as caught:
        MongoConfig(**{field: value})  # type: ignore[arg-type]
    assert caught.value.field == field
