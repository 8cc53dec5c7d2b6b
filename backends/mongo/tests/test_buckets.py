"""Messages that move from the head of a session into buckets, and what may go wrong meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import bson
import pytest
from pymongo.collection import Collection
from pymongo.errors import AutoReconnect

from historykit.errors import StorageUnavailableError, TooLargeError
from historykit.records import MessagePatch, MessageSelector, Retention, StoredMessage, Window
from historykit.session_records import SessionKey
from historykit.testing.drafts import conversation, draft, drafts, numbered, texts
from historykit.testing.subject import read_all
from historykit_mongo import MongoStore, rolling
from historykit_mongo.documents import place_of

pytestmark = pytest.mark.asyncio

Open = Callable[..., Any]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that lets a step of `rolling` fail from now on."""

    def broken(step: str) -> None:
        async def fail(*arguments: Any, **options: Any) -> None:
            raise AutoReconnect("the connection is gone")

        monkeypatch.setattr(rolling, step, fail)

    return broken


async def test_documents_stay_small(
    store: MongoStore, inside: Collection[Any], key: SessionKey
) -> None:
    """Whatever the length of a session, its documents have some hundred kilobytes at most."""
    for number in range(40):
        await store.append(key, [draft("x" * 1000) for _ in range(2 + number)])
    await store.append(key, [draft("x" * 1000) for _ in range(3000)])
    await store.aclose()
    sizes = [len(bson.encode(document)) for document in inside.find()]
    assert len(sizes) > 50
    assert max(sizes) < 300_000


async def test_a_reader_sees_only_more_at_the_end(
    small_buckets: None, open_store: Open, key: SessionKey
) -> None:
    """While 50 writers append and messages move, whoever has seen a message never meets a new one
    below it, and never misses one."""
    stores = [await open_store() for _ in range(2)]
    reader = await open_store()

    async def write(store: MongoStore, number: int) -> None:
        for turn in range(4):
            await store.append(key, drafts(f"{number} {turn}", 2))

    writing = asyncio.gather(*(write(stores[number % 2], number) for number in range(50)))
    seen: list[StoredMessage] = []
    done = False
    while not done:
        done = writing.done()
        rows = await read_all(reader, key)
        assert rows[: len(seen)] == seen
        seen = rows
    await writing
    assert [row.sequence for row in seen] == list(range(1, 401))
    found = texts(seen)
    turns = [text.rpartition(" ")[0] for text in found[::2]]
    assert len(set(turns)) == 200
    assert found == [text for turn in turns for text in numbered(turn, 2)]


@pytest.mark.parametrize("step", ["_insert", "_finish"])
async def test_a_roll_that_breaks_off_loses_nothing(
    small_buckets: None,
    store: MongoStore,
    open_store: Open,
    inside: Collection[Any],
    key: SessionKey,
    broken: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    """Where a store dies while it moves messages, all are there, once; others append, edit and
    move on."""
    with monkeypatch.context():
        broken(step)
        first, second = drafts("m", 5), drafts("n", 5)
        await store.append(key, first)
        await store.append(key, second)
        await asyncio.sleep(0.05)
        assert texts(await read_all(store, key)) == [*numbered("m", 5), *numbered("n", 5)]
    monkeypatch.undo()
    other = await open_store()
    patch = MessagePatch(body=b"new", digest=b"n" * 16)
    assert (await other.update_message(key, first[1].id, patch)).body == b"new"
    assert await other.delete_messages(key, MessageSelector(ids=(second[4].id,))) == 1
    assert (await other.append(key, first[-1:])).stored == 0
    await other.append(key, drafts("o", 5))
    expected = ["m 0", "new", *numbered("m", 5)[2:], *numbered("n", 4), *numbered("o", 5)]
    assert texts(await read_all(store, key)) == expected
    await other.aclose()
    assert inside.count_documents({"namespace": {"$exists": False}, "s": place_of(key)}) > 0


async def test_a_bucket_that_is_there_already_is_left_alone(
    store: MongoStore, inside: Collection[Any], key: SessionKey
) -> None:
    """Stores that move the same messages at the same time make the same buckets, once."""
    await store.append(key, drafts("m", 50))
    await asyncio.gather(*(rolling.roll(store._db, place_of(key)) for _ in range(8)))
    assert texts(await read_all(store, key)) == numbered("m", 50)
    assert inside.count_documents({"n": {"$exists": True}}) == 1
    head = inside.find_one({"_id": place_of(key)})
    assert head is not None
    assert (head["tail"], head["base"], head["frozen"]) == ([], 51, 0)


async def test_an_edit_counts_from_its_first_step(
    small_buckets: None,
    store: MongoStore,
    open_store: Open,
    key: SessionKey,
    broken: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An edit of messages in buckets that breaks off is seen whole by everybody, and finished by
    the next one."""
    batch = drafts("m", 12)
    await store.append(key, batch)
    await rolling.roll(store._db, place_of(key))
    patch = MessagePatch(body=b"new", digest=b"n" * 16)
    edits: list[Callable[[MongoStore], Awaitable[object]]] = [
        lambda store: store.update_message(key, batch[1].id, patch),
        lambda store: store.delete_messages(key, MessageSelector(first=5, last=9)),
    ]
    expected = numbered("m", 12)
    for edit, change in zip(edits, (["m 1"], numbered("m", 12)[4:9]), strict=True):
        with monkeypatch.context():
            broken("_rewrite")
            with pytest.raises(StorageUnavailableError):
                await edit(store)
        monkeypatch.undo()
        if change == ["m 1"]:
            expected[1] = "new"
        else:
            del expected[4:9]
        other = await open_store()
        assert texts((await other.read(key)).messages) == expected
        assert (await other.read(key, Window(limit=1, before=5))).messages[0].body == b"m 3"
        tail = await other.read_tail(key)
        assert (tail.count, len(tail.digests)) == (len(expected), min(8, len(expected)))
        head = await other._db.head(place_of(key))
        assert head is not None
        assert await rolling.settle(other._db, place_of(key), head)
        assert texts(await read_all(store, key)) == expected
    assert (await store.read(key)).epoch == 2


async def test_a_late_repeat_of_an_edit_undoes_no_later_one(
    small_buckets: None, store: MongoStore, key: SessionKey
) -> None:
    """A store that was slow to finish an edit does not overwrite the one that came after it."""
    batch = drafts("m", 6)
    await store.append(key, batch)
    await rolling.roll(store._db, place_of(key))
    notes = []
    for body in (b"first", b"second"):
        await store.update_message(key, batch[0].id, MessagePatch(body=body, digest=b"n" * 16))
        row = {"n": 1, "k": "main", "i": batch[0].id, "r": "user", "b": body, "c": 1, "t": False}
        notes.append(rolling.Redo({"row": {**row, "d": b"n" * 16, "v": len(notes) + 1}}))
    incarnation = (await store.read(key)).incarnation
    assert incarnation is not None
    await notes[0].apply(store._db, place_of(key), incarnation)
    assert (await store.read(key)).messages[0].body == b"second"


async def test_what_was_trimmed_leaves_the_database(
    small_buckets: None, store: MongoStore, inside: Collection[Any], key: SessionKey
) -> None:
    """Messages that retention removed are gone from the buckets when the next ones move."""
    rules = draft("rules", role="system")
    await store.append(key, [rules, *conversation(50)])
    await rolling.roll(store._db, place_of(key))
    for _ in range(20):
        await store.append(key, conversation(1), retention=Retention(4))
        assert len((await store.read(key)).messages) == 5
        await asyncio.sleep(0.01)
    await store.aclose()
    buckets = list(inside.find({"n": {"$exists": True}}))
    assert sum(len(bucket["n"]) for bucket in buckets) <= 1 + 4 + 12
    assert 1 in [sequence for bucket in buckets for sequence in bucket["n"]]


async def test_replaced_messages_leave_the_database(
    small_buckets: None, store: MongoStore, inside: Collection[Any], key: SessionKey
) -> None:
    """After a replacement nothing of what was replaced is in the database, and the ids are free."""
    batch = [draft(f"old {n}", id=f"id {n}", external=True) for n in range(10)]
    await store.append(key, batch)
    await rolling.roll(store._db, place_of(key))
    again = [draft(f"new {n}", id=f"id {n}", external=True) for n in range(10)]
    await store.replace(key, again, expected_version=1)
    await rolling.roll(store._db, place_of(key))
    assert texts((await store.read(key)).messages) == numbered("new", 10)
    await store.aclose()
    assert b"old" not in b"".join(bson.encode(document) for document in inside.find())


async def test_a_deleted_session_leaves_nothing(
    small_buckets: None, store: MongoStore, inside: Collection[Any], key: SessionKey
) -> None:
    """After a deletion the session's documents are gone, those of its former lives included."""
    await store.append(key, drafts("m", 30))
    await rolling.roll(store._db, place_of(key))
    orphan = inside.find_one({"n": {"$exists": True}})
    assert orphan is not None
    assert (await store.delete_session(key)).messages == 30
    assert inside.count_documents({"s": place_of(key)}) == 0
    inside.insert_one(orphan)
    await store.append(key, drafts("n", 30))
    assert texts((await store.read(key)).messages) == numbered("n", 30)
    await store.delete_session(key)
    assert inside.count_documents({"s": place_of(key)}) == 0


async def test_large_messages_and_batches_are_refused_or_kept(
    store: MongoStore, inside: Collection[Any], key: SessionKey
) -> None:
    """A message of 4 MB is kept, a larger one or a batch of more than 8 MB is refused, and nothing
    of it is written."""
    largest = 4 << 20
    for batch in ([draft("x" * (largest + 1))], [draft("x" * largest) for _ in range(3)]):
        with pytest.raises(TooLargeError):
            await store.append(key, batch)
    assert inside.count_documents({"s": place_of(key)}) == 0
    for number in range(6):
        await store.append(key, [draft(f"{number}" + "x" * (largest - 1000))])
    rows = await read_all(store, key)
    assert [row.body[:1] for row in rows] == [b"0", b"1", b"2", b"3", b"4", b"5"]


async def test_many_large_batches_at_once(store: MongoStore, key: SessionKey) -> None:
    """Large batches that come together wait for each other, and all are kept."""
    await asyncio.gather(
        *(store.append(key, [draft("x" * 1_000_000) for _ in range(3)]) for _ in range(8))
    )
    assert len(await read_all(store, key)) == 24
