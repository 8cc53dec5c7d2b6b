"""How single messages are read: one by its id, or the newest of each of many sessions.

As with a page, the head says what counts, buckets may be newer than it, and a second look at the
head shows whether messages were changed or removed in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from historykit.planning import message_not_found
from historykit.records import StoredMessage, Window
from historykit.session_records import SessionKey
from historykit_mongo.connection import Connection
from historykit_mongo.documents import (
    LARGEST,
    Document,
    at,
    is_bucket,
    message_of,
    place_of,
    stream_field,
)
from historykit_mongo.reading import View, read, sliced

__all__ = ["read_message", "read_newest"]

NEWEST: Final = Window(limit=1)

LIFE: Final = {"incarnation": 1, "epoch": 1}
HEAD: Final = {**LIFE, "base": 1, "redo": 1}


async def read_message(db: Connection, key: SessionKey, message_id: str) -> StoredMessage:
    """Return one message."""
    place = place_of(key)
    holding = {"s": place, "ids": message_id, "n": {"$exists": True}}
    pipeline = [
        {"$match": at(place)},
        {"$project": {**HEAD, "streams": 1, "tail": _numbered_rows("i", message_id)}},
        db.union({"$match": holding}),
        db.union({"$match": at(place)}, {"$project": {**LIFE, "again": {"$literal": True}}}),
    ]
    async for _ in db.attempts(key):
        found = await db.aggregate(pipeline)
        heads = [document for document in found if not is_bucket(document)]
        if not heads:
            break
        if "again" in heads[0]:
            continue
        for message in _messages(heads[0], filter(is_bucket, found)):
            if message.id == message_id:
                return message
        if len(heads) == 2 and _life(heads[0]) == _life(heads[1]):
            break
    raise message_not_found(key, message_id)


async def read_newest(
    db: Connection, keys: Sequence[SessionKey], stream: str
) -> list[StoredMessage | None]:
    """Return the newest message of each session, None where there is none.

    It takes one round trip, and one more for a session that is changed in the meantime, or whose
    newest messages were just deleted.
    """
    places = [place_of(key) for key in keys]
    these = {"$in": list(set(places))}
    of_stream = f"streams.{stream_field(stream)}"
    newest_row = {"$slice": [_numbered_rows("k", stream), -1]}
    found = await db.aggregate(
        [
            {"$match": {"_id": these, "s": these}},
            {"$project": {**HEAD, of_stream: 1, "tail": newest_row}},
            {"$lookup": _newest_bucket(db, stream)},
            {"$lookup": _second_look(db)},
        ]
    )
    heads = {head["_id"]: head for head in found}
    newest: list[StoredMessage | None] = []
    for key, place in zip(keys, places, strict=True):
        message, is_certain = _newest(heads.get(place), stream)
        if not is_certain:
            page = await read(db, key, NEWEST, stream)
            message = page.messages[-1] if page.messages else None
        newest.append(message)
    return newest


def _numbered_rows(name: str, value: str) -> Document:
    """Return the expression for the rows of a tail that have a value, with their sequences."""
    row = {"$arrayElemAt": ["$tail", "$$place"]}
    numbered = {
        "$map": {
            "input": {"$range": [0, {"$size": "$tail"}]},
            "as": "place",
            "in": {"$mergeObjects": [row, {"n": {"$add": ["$base", "$$place"]}}]},
        }
    }
    has_it = {"$eq": [f"$$this.{name}", {"$literal": value}]}
    return {"$filter": {"input": numbered, "as": "this", "cond": has_it}}


def _newest_bucket(db: Connection, stream: str) -> Document:
    """Return the stage's part that finds the end of a stream in buckets, if the tail has none."""
    begin, end = (
        {"s": "$$place", "k": {"$literal": stream}, "n": {"$literal": number}}
        for number in (0, LARGEST)
    )
    inside = {"$and": [{"$gte": ["$_id", begin]}, {"$lt": ["$_id", end]}]}
    return {
        "from": db.name,
        "let": {"place": {"$cond": [{"$eq": ["$tail", []]}, "$_id", None]}},
        "pipeline": [
            {"$match": {"$expr": inside}},
            {"$sort": {"_id": -1}},
            {"$limit": 1},
            sliced(-1),
        ],
        "as": "buckets",
    }


def _second_look(db: Connection) -> Document:
    return {
        "from": db.name,
        "localField": "_id",
        "foreignField": "_id",
        "pipeline": [{"$project": LIFE}],
        "as": "again",
    }


def _newest(head: Document | None, stream: str) -> tuple[StoredMessage | None, bool]:
    """Return the newest message of a stream, and whether that is certain."""
    if head is None:
        return None, True
    view = View.of(head, stream)
    if view.tail:
        return message_of(view.tail[-1]), True
    if view.state.count == 0:
        return None, True
    if head["tail"] or not head["again"] or _life(head) != _life(head["again"][0]):
        return None, False
    messages = [message for bucket in head["buckets"] for message in view.messages(bucket)]
    return (messages[-1], True) if messages else (None, False)


def _messages(head: Document, buckets: Iterable[Document]) -> Iterator[StoredMessage]:
    """Yield those messages of a head and of buckets that count."""
    for stream in {row["k"] for row in head["tail"]}:
        yield from map(message_of, View.of(head, stream).tail)
    for bucket in buckets:
        yield from View.of(head, bucket["_id"]["k"]).messages(bucket)


def _life(head: Document) -> tuple[Any, Any]:
    return head["incarnation"], head["epoch"]
