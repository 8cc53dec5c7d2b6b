"""How rows get from the tail of a head into buckets, and how buckets change.

The order of the steps is what keeps a reader and a crash harmless:

- Rows are frozen in the head, which notes the last of them; copied into buckets; and only then
  removed from the head. While rows are frozen no edit is let in, so that all who copy them copy the
  same; a bucket that is there already is left alone.
- An edit of rows in buckets is first noted in the head, as `redo`, in the step that counts it; then
  done in the buckets; then the note is removed. Readers do what the note says.
- What retention or a replacement removed is below the floor of its stream, in the same step; the
  buckets are cleared of it afterwards."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any
from urllib.parse import unquote

from pymongo import ReturnDocument
from pymongo.errors import BulkWriteError

from historykit_mongo.connection import Connection
from historykit_mongo.documents import (
    Document,
    StreamState,
    at,
    buckets_of,
    is_timed,
    number_rows,
    rewritten,
    rows_of,
    span,
    stream_state,
)

__all__ = ["Redo", "purge", "ranges_of", "roll", "settle"]


async def roll(db: Connection, place: bytes, *, base: int | None = None) -> None:
    """Move the rows of a head into buckets: those that are frozen, else all.

    With a `base`, only where the tail still begins there: what is gone need not move again.
    """
    this = {} if base is None else {"base": base}
    head: Document | None = await db.collection.find_one_and_update(
        {**at(place), "frozen": 0, **this},
        [{"$set": {"frozen": "$last", "ids": "$$REMOVE"}}],
        projection={"body": 0},
        return_document=ReturnDocument.AFTER,
    )
    head = await db.head(place, without=("body",)) if head is None else number_rows(head)
    if head is not None and head["frozen"]:
        await _finish(db, place, head)


async def _finish(db: Connection, place: bytes, head: Document) -> None:
    """Move the frozen rows of a head into buckets."""
    await purge(db, place, head)
    last = head["frozen"]
    rows = [row for row in head["tail"] if row["n"] <= last]
    if buckets := list(buckets_of(head, rows)):
        await _insert(db, buckets)
    count = last - head["base"] + 1
    beyond = {"$slice": ["$tail", count, {"$max": [1, {"$size": "$tail"}]}]}
    high = max([head["high"], *(row["i"] for row in rows if is_timed(row["i"]))])
    update = [
        {"$set": {"tail": beyond, "base": last + 1, "frozen": 0, "high": high}},
        {"$set": {"size": {"$sum": "$tail.z"}}},
    ]
    this = {"incarnation": head["incarnation"], "frozen": last}
    await db.persist(lambda: db.change(place, this, update))


async def settle(db: Connection, place: bytes, head: Document) -> bool:
    """Finish what others began and may have left, and return whether there was anything."""
    if head["frozen"]:
        await roll(db, place)
    if "redo" in head:
        await Redo(head["redo"]).apply(db, place, head["incarnation"])
    return bool(head["frozen"] or "redo" in head)


async def purge(db: Connection, place: bytes, head: Document) -> None:
    """Clear the buckets of rows that are below the floor of their stream."""
    for field in head["streams"]:
        stream = unquote(field)
        state = stream_state(head, stream)
        if state.floor:
            await _purge_stream(db, span(place, stream, before=state.floor), head, state)


async def _purge_stream(
    db: Connection, below: Document, head: Document, state: StreamState
) -> None:
    def alive(rows: list[Document]) -> list[Document]:
        return [row for row in rows if state.counts(row["n"])]

    below = {**below, "incarnation": head["incarnation"]}
    kept = [{"n": {"$gte": state.floor}}, {"n": state.kept}]
    await db.collection.delete_many({**below, "$nor": kept})
    for bucket in await db.collection.find(below, {"_id": 1}).to_list(None):
        await _rewrite(db, bucket["_id"], alive)


class Redo:
    """The note of an edit that is done in the buckets: a row that changed, or ranges of a stream
    that are gone."""

    def __init__(self, note: Document | None) -> None:
        self.row: Document | None = note.get("row") if note else None
        self.stream: str | None = note.get("stream") if note else None
        self.ranges: list[list[int]] = note.get("ranges", []) if note else []

    def __bool__(self) -> bool:
        return self.row is not None or self.stream is not None

    def removes(self, stream: str, sequence: int) -> bool:
        """Return whether a message is gone."""
        if stream != self.stream:
            return False
        index = bisect_right(self.ranges, sequence, key=lambda each: each[0]) - 1
        return index >= 0 and sequence <= self.ranges[index][1]

    def replaces(self, row: Document) -> bool:
        """Return whether `row` takes the place of another: not of one that was changed since."""
        return (
            self.row is not None and self.row["n"] == row["n"] and self.row["v"] > row.get("v", 0)
        )

    def rows(self, rows: Iterable[Document]) -> list[Document]:
        """Return rows as the edit leaves them."""
        return [
            self.row if self.row is not None and self.replaces(row) else row
            for row in rows
            if not self.removes(row["k"], row["n"])
        ]

    async def apply(self, db: Connection, place: bytes, incarnation: str) -> None:
        """Do the edit in the buckets, and remove the note."""
        for bucket in await self._buckets(db, place, incarnation):
            await _rewrite(db, bucket["_id"], self.rows)
        note = {"row": self.row} if self.row else {"stream": self.stream, "ranges": self.ranges}
        await db.collection.update_one(
            {**at(place), "incarnation": incarnation, "redo": note}, {"$unset": {"redo": ""}}
        )

    async def _buckets(self, db: Connection, place: bytes, incarnation: str) -> list[Any]:
        if self.row is not None:
            wanted: Document = {"s": place, "ids": self.row["i"]}
        else:
            assert self.stream is not None
            wanted = span(place, self.stream, before=self.ranges[-1][1] + 1)
            wanted["n"] = {"$elemMatch": {"$gte": self.ranges[0][0], "$lte": self.ranges[-1][1]}}
        cursor = db.collection.find({**wanted, "incarnation": incarnation}, {"_id": 1})
        found: list[Any] = await cursor.to_list(None)
        return found


def ranges_of(sequences: list[int], chosen: set[int]) -> list[list[int]]:
    """Return the chosen ones of ascending sequences, as ranges of neighbours: first and last."""
    groups = groupby(sequences, key=chosen.__contains__)
    lists = [list(group) for wanted, group in groups if wanted]
    return [[group[0], group[-1]] for group in lists]


async def _insert(db: Connection, buckets: Iterable[Document]) -> None:
    """Insert buckets, as far as nobody else did."""
    try:
        await db.collection.insert_many(buckets, ordered=False)
    except BulkWriteError as error:
        failures = error.details["writeErrors"]
        if not failures or any(each.get("keyPattern") != {"_id": 1} for each in failures):
            raise


async def _rewrite(
    db: Connection, id: Document, change: Callable[[list[Document]], list[Document]]
) -> None:
    """Change the rows of a bucket, whatever others do to it meanwhile."""
    while True:
        bucket = await db.collection.find_one({"_id": id, "s": id["s"]})
        if bucket is None:
            return
        before = rows_of(bucket)
        after = change(before)
        if after == before:
            return
        this = {"_id": id, "s": id["s"], "changes": bucket["changes"]}
        if (await db.collection.replace_one(this, rewritten(bucket, after))).matched_count:
            return
