"""Single messages: what it takes to read them, and what may happen in the meantime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Any

import pytest
from pymongo.collection import Collection

from backends.mongo.tests.conftest import Commands
from historykit.errors import NotFoundError
from historykit.records import MessageSelector, Window
from historykit.session_records import SessionKey
from historykit.testing.drafts import draft, drafts
from historykit_mongo import MongoStore
from historykit_mongo.connection import Connection
from historykit_mongo.documents import Document, place_of
from historykit_mongo.rolling import roll

pytestmark = pytest.mark.asyncio

Open = Callable[..., Any]

CHANGES = ["append", "roll", "delete", "append and delete", "replace", "delete_session"]


async def test_a_lookup_is_one_command(
    store: MongoStore, observed: MongoStore, commands: Commands
) -> None:
    """A message by its id is one command, in the head or in a bucket, and so is the newest of many
    sessions, wherever theirs are."""
    keys = [SessionKey("app", "ada", f"s{n}") for n in range(40)]
    for number, key in enumerate(keys):
        await store.append(key, drafts("n", number + 1))
    batch, last = drafts("m", 130), draft("last")
    await store.append(keys[0], batch)
    for key in keys[:20]:
        await roll(store._db, place_of(key))
    await store.append(keys[0], [last])
    for message in (batch[1], last):
        commands.names.clear()
        assert (await observed.read_message(keys[0], message.id)).body == message.body
        assert commands.names == ["aggregate"]
    commands.names.clear()
    found = await observed.read_newest(keys)
    assert commands.names == ["aggregate"]
    pages = [await store.read(key, Window(limit=1)) for key in keys]
    assert found == [page.messages[0] for page in pages]


async def test_newest_reads_one_bucket_of_a_session(
    store: MongoStore, inside: Collection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest messages of sessions whose heads hold none take one bucket of each, found by its
    id, however many there are."""
    keys = [SessionKey("app", "ada", f"s{n}") for n in range(10)]
    for key in keys:
        await store.append(key, drafts("m", 1000))
        await roll(store._db, place_of(key))
    pipelines: list[list[Document]] = []
    aggregate = store._db.aggregate

    async def noted(pipeline: list[Document]) -> list[Document]:
        pipelines.append(pipeline)
        return await aggregate(pipeline)

    monkeypatch.setattr(store._db, "aggregate", noted)
    assert {row and row.body for row in await store.read_newest(keys)} == {b"m 999"}
    command = {"aggregate": inside.name, "pipeline": pipelines[0], "cursor": {}}
    plan = inside.database.command("explain", command, verbosity="executionStats")
    lookup = next(stage for stage in plan["stages"] if "$lookup" in stage)
    assert lookup["totalDocsExamined"] == len(keys)
    assert lookup["collectionScans"] == 0


class Torn:
    """Reads a head, then lets a change happen, then reads all the rest; once."""

    def __init__(self, db: Connection, change: Callable[[], Awaitable[object]]) -> None:
        self._aggregate = db.aggregate
        self._change: Callable[[], Awaitable[object]] | None = change

    async def aggregate(self, pipeline: list[Document]) -> list[Document]:
        before = await self._aggregate(pipeline)
        if self._change is None:
            return before
        change, self._change = self._change, None
        await change()
        later = deepcopy(pipeline)
        lookups = [stage["$lookup"] for stage in later if "$lookup" in stage]
        if not lookups:
            return before[:1] + (await self._aggregate(later))[1:]
        lookups[0]["let"] = {"place": "$_id"}  # as the head was, there is none in it
        after = await self._aggregate(later) or [{}]
        rest = {name: after[0].get(name, []) for name in ("buckets", "again")}
        return [{**before[0], **rest}]


@pytest.fixture
def changes(open_store: Open, key: SessionKey) -> Callable[..., Any]:
    """Return a function that returns a change to a session of 100 messages in buckets."""

    async def changed(other: MongoStore, name: str) -> None:
        if name in ("append", "roll", "append and delete"):
            await other.append(key, drafts("n", 3))
        if name == "roll":
            await roll(other._db, place_of(key))
        if name in ("delete", "append and delete"):
            await other.delete_messages(key, MessageSelector(ids=("m 99",)))
        if name == "replace":
            await other.replace(key, [draft("new"), draft("m 7", id="m 7")], expected_version=1)
        if name == "delete_session":
            await other.delete_session(key)

    async def changes(store: MongoStore, name: str) -> MongoStore:
        other: MongoStore = await open_store()
        await other.append(key, [draft(f"m {n}", id=f"m {n}") for n in range(100)])
        await roll(other._db, place_of(key))
        torn = Torn(store._db, lambda: changed(other, name))
        store._db.aggregate = torn.aggregate  # type: ignore[method-assign]
        return other

    return changes


@pytest.mark.parametrize("change", CHANGES)
async def test_newest_is_one_that_was(
    store: MongoStore, key: SessionKey, changes: Callable[..., Any], change: str
) -> None:
    """Whatever happens between the looks at head and buckets, the newest message is one that was
    the newest before or after that."""
    other = await changes(store, change)
    (before,) = await other.read_newest([key])
    (found,) = await store.read_newest([key])
    (after,) = await other.read_newest([key])
    assert found in (before, after)


@pytest.mark.parametrize("change", CHANGES)
async def test_message_is_found_meanwhile(
    store: MongoStore, key: SessionKey, changes: Callable[..., Any], change: str
) -> None:
    """Whatever happens between the looks at head and buckets, a message that stays is found, and
    one that goes is not, or as it was."""
    await changes(store, change)
    if change == "delete_session":
        with pytest.raises(NotFoundError):
            await store.read_message(key, "m 7")
    else:
        assert (await store.read_message(key, "m 7")).body == b"m 7"
