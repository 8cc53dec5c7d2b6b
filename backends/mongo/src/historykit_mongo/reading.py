"""How pages are read: head, buckets, and the head again, in one round trip.

The head comes first and says what counts; buckets may be newer than it. What moved into them
meanwhile is in the head's tail too, or beyond its end. Where messages were removed meanwhile, or
the session itself, the second look at the head shows it, and the page is read anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from historykit.planning import cut_page
from historykit.records import PAGE_BYTES, TAIL_DIGESTS, Slice, StoredMessage, Tail, Window
from historykit.session_records import SessionKey
from historykit_mongo.connection import Connection
from historykit_mongo.documents import (
    LARGEST,
    Document,
    StreamState,
    at,
    bucket_messages,
    is_bucket,
    message_of,
    number_rows,
    place_of,
    rows_of,
    span,
    stream_field,
    stream_state,
)
from historykit_mongo.rolling import Redo

__all__ = ["View", "read", "read_tail", "sliced"]

ARRAYS: Final = ("n", "ids", "r", "b", "t", "d")
USUAL_ROWS: Final = 62
"""A bucket has so many messages or more, unless they are large."""

REMEMBERED: Final = 1000
"""Of how many streams a store remembers that they begin with a system message."""


@dataclass(frozen=True, slots=True)
class View:
    """What a head says about one stream: which messages count, and the newest of them.

    Messages in buckets count below `base` only: the others are in the `tail`."""

    stream: str
    incarnation: str
    state: StreamState
    base: int
    tail: Sequence[Document]
    redo: Redo

    @classmethod
    def of(cls, head: Document, stream: str) -> View:
        """Return what a head says about a stream."""
        state = stream_state(head, stream)
        return cls(
            stream=stream,
            incarnation=head["incarnation"],
            state=state,
            base=head["base"],
            tail=[row for row in head["tail"] if row["k"] == stream and state.counts(row["n"])],
            redo=Redo(head.get("redo")),
        )

    def counts(self, sequence: int) -> bool:
        """Return whether a message that is in a bucket counts."""
        return (
            sequence < self.base
            and self.state.counts(sequence)
            and not self.redo.removes(self.stream, sequence)
        )

    def messages(self, bucket: Document) -> list[StoredMessage]:
        """Return the messages of a bucket that count, oldest first."""
        if bucket["incarnation"] != self.incarnation or not bucket["n"]:
            return []
        if self.redo:
            rows = [row for row in rows_of(bucket) if self.counts(row["n"])]
            return [message_of(row) for row in self.redo.rows(rows)]
        messages = bucket_messages(bucket)
        if messages[0].sequence >= self.state.floor and messages[-1].sequence < self.base:
            return messages
        return [message for message in messages if self.counts(message.sequence)]


@dataclass(frozen=True, slots=True)
class Found:
    """What one round trip brought: a head, buckets in the direction of the window, and the bucket
    that begins the stream, if it was asked for. `whole` says that there are no more buckets."""

    head: Document
    buckets: list[Document]
    whole: bool
    edge: Document | None


async def read(db: Connection, key: SessionKey, window: Window, stream: str) -> Slice:
    """Return one page of a stream."""
    async for _ in db.attempts(key):
        page = await _read_once(db, place_of(key), window, stream)
        if page is not None:
            return page
    raise AssertionError("unreachable")


async def read_tail(db: Connection, key: SessionKey, stream: str) -> Tail:
    """Return count and digests of a stream's end."""
    place, most = place_of(key), TAIL_DIGESTS
    async for _ in db.attempts(key):
        found = await db.aggregate(
            [
                {"$match": at(place)},
                {"$unset": ["body", "tail.b", "tail.x"]},
                db.union(
                    {"$match": span(place, stream)},
                    {"$sort": {"_id": -1}},
                    {"$limit": most},
                    {"$unset": ["b", "c", "t"]},
                ),
                _second_look(db, place, stream),
            ]
        )
        head, buckets, agrees = _parted(found, stream)
        if head is None:
            return Tail(incarnation=None, version=0, count=0, trimmed=0, digests=())
        view = View.of(head, stream)
        digests = list(_digests(view, buckets))[:TAIL_DIGESTS]
        if not agrees:
            continue
        if len(digests) < min(view.state.count, TAIL_DIGESTS) and len(buckets) == most:
            most *= 4
            continue
        return Tail(
            incarnation=view.incarnation,
            version=head["version"],
            count=view.state.count,
            trimmed=view.state.trimmed,
            digests=tuple(reversed(digests)),
        )
    raise AssertionError("unreachable")


async def _read_once(db: Connection, place: bytes, window: Window, stream: str) -> Slice | None:
    """Return a page, None where it has to be read anew."""
    first = await _fetch(db, place, window, stream, beyond=None)
    if first is None:
        return None
    if first.head is NOTHING:
        return Slice((), None, 0, 0, False)
    head, view, found = first.head, View.of(first.head, stream), first
    rows = _within(_tail(view), window) if window.after is None else []
    while True:
        rows += _within(_messages(view, found.buckets, window), window)
        complete = found.whole or (window == WHOLE and len(rows) == view.state.count)
        if complete or _suffices(rows, window):
            break
        following = await _fetch(db, place, window, stream, beyond=found.buckets[-1]["_id"]["n"])
        if following is None or _life(following.head, stream) != _life(head, stream):
            return None
        found = following
    if window.after is not None and complete:
        rows += _within(reversed(_tail(view)), window)
    page, more = cut_page(rows, window)
    limited = more and window.limit and window.after is None and view.state.opens
    opening = await _opening(db, place, view, first) if limited else None
    return Slice(page, view.incarnation, head["version"], head["epoch"], more, opening)


WHOLE: Final = Window()
NOTHING: Final[Document] = {}
"""In the place of a head where there is no session."""


async def _fetch(
    db: Connection, place: bytes, window: Window, stream: str, *, beyond: int | None
) -> Found | None:
    """Return what one round trip brings, None where it does not agree with itself.

    `beyond` is where the last bucket of the round trip before begins.
    """
    most = window.page // USUAL_ROWS + (1 if beyond is None else 8)
    edge = bool(window.limit) and window.after is None
    if edge and (place, stream) not in db.opened:
        edge = False
    if db.snapshots and window.after is None and not edge:
        return await _fetch_newest(db, place, _below(window, stream, place, beyond), most)
    pipeline: list[Document] = [{"$match": at(place)}, {"$unset": "body"}]
    if window.after is None:
        pipeline.append(_buckets(db, _below(window, stream, place, beyond), -1, most))
    else:
        begin = _fitting(window.after if beyond is None else beyond)
        if beyond is None:
            pipeline.append(_buckets(db, span(place, stream, before=begin + 1), -1, 1))
        pipeline.append(_buckets(db, span(place, stream, first=begin + 1), 1, most))
    if edge:
        mark = {"$set": {"edge": {"$literal": True}}}
        pipeline.append(_buckets(db, span(place, stream), 1, 1, sliced(1), mark))
    pipeline.append(_second_look(db, place, stream))
    head, buckets, agrees = _parted(await db.aggregate(pipeline), stream)
    if not agrees:
        return None
    if head is None:
        return Found(NOTHING, [], whole=True, edge=None)
    edges = [bucket for bucket in buckets if "edge" in bucket]
    buckets = [bucket for bucket in buckets if "edge" not in bucket]
    return Found(head, buckets, len(buckets) < most, edges[0] if edges else None)


async def _fetch_newest(db: Connection, place: bytes, below: Document, most: int) -> Found:
    """Return the same for the newest buckets: all of one moment, so that it agrees with itself.

    The id of a head sorts before those of buckets, newest first.
    """
    both = {"s": place, "$or": [{"_id": place}, {"_id": below["_id"]}]}
    found = await db.snapshot(both, most=most + 1)
    if not found or is_bucket(found[0]):
        return Found(NOTHING, [], whole=True, edge=None)
    return Found(number_rows(found[0]), found[1:], len(found) <= most, None)


def _below(window: Window, stream: str, place: bytes, beyond: int | None) -> Document:
    """Return the filter for the buckets that a window to the newest messages goes on with."""
    before = window.before if beyond is None else beyond
    return span(place, stream, before=LARGEST if before is None else _fitting(before))


def _buckets(
    db: Connection, wanted: Document, direction: int, most: int, *stages: Document
) -> Document:
    order = {"$sort": {"_id": direction}}
    return db.union({"$match": wanted}, order, {"$limit": most}, *stages)


def sliced(count: int) -> Document:
    """Return the stage that leaves the first messages of a bucket, or the last if negative."""
    return {"$set": {name: {"$slice": [f"${name}", count]} for name in ARRAYS}}


def _second_look(db: Connection, place: bytes, stream: str) -> Document:
    field = f"streams.{stream_field(stream)}.f"
    fields = {"incarnation": 1, "epoch": 1, field: 1, "again": {"$literal": True}}
    return db.union({"$match": at(place)}, {"$project": fields})


def _parted(found: list[Document], stream: str) -> tuple[Document | None, list[Document], bool]:
    """Return the head, the buckets, and whether the second look at the head agrees with it."""
    buckets = [document for document in found if is_bucket(document)]
    heads = [document for document in found if not is_bucket(document)]
    looks = [_life(head, stream) for head in heads]
    head = number_rows(heads[0]) if heads and "again" not in heads[0] else None
    agrees = not heads or (len(heads) == 2 and looks[0] == looks[1])
    return head, buckets, agrees


def _life(head: Document, stream: str) -> tuple[str, int, int]:
    """Return what changes when messages of a stream are changed or removed."""
    field = head.get("streams", {}).get(stream_field(stream), {})
    return head["incarnation"], head["epoch"], field.get("f", 0)


def _tail(view: View) -> list[StoredMessage]:
    """Return the messages in the head, newest first."""
    return [message_of(row) for row in reversed(view.tail)]


def _messages(view: View, buckets: Iterable[Document], window: Window) -> Iterator[StoredMessage]:
    """Yield the messages of buckets, in the direction of the window."""
    for bucket in buckets:
        messages = view.messages(bucket)
        yield from reversed(messages) if window.after is None else messages


def _within(messages: Iterable[StoredMessage], window: Window) -> list[StoredMessage]:
    """Return those messages that the bounds of a window allow."""
    if window.before is not None:
        return [message for message in messages if message.sequence < window.before]
    if window.after is not None:
        return [message for message in messages if message.sequence > window.after]
    return list(messages)


def _suffices(rows: Sequence[StoredMessage], window: Window) -> bool:
    """Return whether rows fill a page and show that there is more."""
    if len(rows) > window.page:
        return True
    return len(rows) > 1 and sum(len(row.body) for row in rows) > PAGE_BYTES


async def _opening(db: Connection, place: bytes, view: View, found: Found) -> StoredMessage | None:
    """Return the system message that opens the stream."""
    known = (place, view.stream) in db.opened
    if len(db.opened) > REMEMBERED:
        db.opened.clear()
    db.opened.add((place, view.stream))
    for message in view.messages(found.edge) if found.edge is not None else ():
        return message
    if known and view.tail and (found.edge is None or found.edge["_id"]["n"] >= view.base):
        return message_of(view.tail[0])  # there is nothing in buckets
    cursor = db.collection.find(span(place, view.stream)).sort("_id", 1).batch_size(4)
    try:
        async for bucket in cursor:
            for message in view.messages(bucket):
                return message
    finally:
        await cursor.close()
    return message_of(view.tail[0]) if view.tail else None


def _digests(view: View, buckets: Iterable[Document]) -> Iterator[bytes]:
    """Yield the digests of a stream, newest first."""
    for row in reversed(view.tail):
        yield row["d"]
    for bucket in buckets:
        if bucket["incarnation"] != view.incarnation:
            continue
        rare = {row["n"]: row.get("v", 0) for row in bucket.get("rare", ())}
        for sequence, digest in reversed(list(zip(bucket["n"], bucket["d"], strict=True))):
            if view.counts(sequence):
                row = {"n": sequence, "d": digest, "v": rare.get(sequence, 0)}
                changed = view.redo.row if view.redo.replaces(row) else None
                yield (changed or row)["d"]


def _fitting(number: int) -> int:
    """Return the integer of BSON nearest to a bound: no sequence lies between the two."""
    return max(-1, min(number, LARGEST - 1))
