"""The documents of the collection, and what they hold.

A session is one head document and any number of buckets. The head's `tail` holds the newest
messages, a row each; when it is long enough they move into buckets, where each property of the
messages is an array of its own, because that is read several times faster.

Names are short, since every message carries them: n sequence (in buckets), k stream, i id, r role,
b body, c created_at, t turn_start, d digest, z size; and where there are any, x extra, e reaction,
v revision."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote, unquote

from historykit.planning import INSTRUCTION_ROLES
from historykit.records import MessageDraft, StoredMessage
from historykit.session_records import (
    RunLease,
    SessionDraft,
    SessionHead,
    SessionKey,
    SessionRecord,
)

__all__ = [
    "BUCKET_BYTES",
    "BUCKET_ROWS",
    "LARGEST",
    "Document",
    "StreamState",
    "at",
    "bucket_messages",
    "buckets_of",
    "fresh_head",
    "held_by",
    "is_bucket",
    "is_timed",
    "message_of",
    "number_rows",
    "opens",
    "place_of",
    "planned_head",
    "rewritten",
    "row_of",
    "row_size",
    "rows_of",
    "session_record",
    "span",
    "stream_field",
    "stream_state",
    "times_of",
]

Document = dict[str, Any]

BUCKET_ROWS: Final = 64
"""So many messages of one stream make a bucket, unless they are large."""

BUCKET_BYTES: Final = 128 << 10
"""So many bytes of messages make a bucket."""

LARGEST: Final = (1 << 63) - 1
"""The largest integer of BSON: above every sequence."""

COLUMNS: Final = (("n", "n"), ("ids", "i"), ("r", "r"), ("b", "b"), ("t", "t"), ("d", "d"))
"""The columns of a bucket that are arrays, and what a row calls their values."""

RARE: Final = ("x", "e", "v")
TIMED: Final = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
ROW_BYTES: Final = 100
"""About what a row takes beside its body."""


def place_of(key: SessionKey) -> bytes:
    """Return what stands for a key in the database: a digest of its parts and their lengths."""
    digest = blake2b(digest_size=20)
    for part in (key.namespace, key.user_id, key.session_id):
        data = part.encode()
        digest.update(len(data).to_bytes(4, "big"))
        digest.update(data)
    return digest.digest()


def at(place: bytes) -> Document:
    """Return the filter for a head. It has the shard key `s` in it."""
    return {"_id": place, "s": place}


def span(place: bytes, stream: str, *, first: int = 0, before: int = LARGEST) -> Document:
    """Return the filter for the buckets of a stream that begin at `first` and below `before`."""
    begin, end = ({"s": place, "k": stream, "n": number} for number in (first, before))
    return {"_id": {"$gte": begin, "$lt": end}, "s": place}


def is_bucket(document: Document) -> bool:
    """Return whether a document of the collection is a bucket, and not a head."""
    return isinstance(document["_id"], dict)


def is_timed(id: str) -> bool:
    """Return whether an id is one of those that grow with time: a UUID of version 7."""
    return len(id) == 36 and id[14] == "7" and TIMED.fullmatch(id) is not None


def stream_field(stream: str) -> str:
    """Return the name of a stream as the name of a field, which has no dot and no dollar."""
    return quote(stream, safe="").replace(".", "%2E")


@dataclass(frozen=True, slots=True)
class StreamState:
    """What a head says about one stream.

    It has `count` messages, `trimmed` more were removed by retention. What is below the `floor` is
    dead, except `kept`, a system message that opens the stream. `opens` says whether the first
    message is one.
    """

    count: int = 0
    trimmed: int = 0
    floor: int = 0
    kept: int = 0
    opens: bool = False

    def counts(self, sequence: int) -> bool:
        """Return whether a message is above the floor, or kept."""
        return sequence >= self.floor or sequence == self.kept


def stream_state(head: Document, stream: str) -> StreamState:
    """Return what a head says about a stream."""
    found = head["streams"].get(stream_field(stream), {})
    return StreamState(
        count=found.get("c", 0),
        trimmed=found.get("t", 0),
        floor=found.get("f", 0),
        kept=found.get("p", 0),
        opens=found.get("o") == [True],
    )


def number_rows(head: Document) -> Document:
    """Return a head whose rows have their sequences, and none in the place of those deleted.

    A row's sequence is told by its place in the tail, which begins with that of `base`.
    """
    base = head["base"]
    for index, row in enumerate(head["tail"]):
        if row is not None:
            row["n"] = base + index
    head["tail"] = [row for row in head["tail"] if row is not None]
    return head


def fresh_head(key: SessionKey, draft: SessionDraft, incarnation: str, now: int) -> Document:
    """Return the head of a session without messages.

    `last` is the last sequence that was given, `base` that of the first place in the tail, `frozen`
    that of the last row on its way into a bucket, or 0. `size` is about how many bytes the tail
    has. `high` is the largest in buckets of the ids that grow with time: one above it is in none.
    """
    place = place_of(key)
    return {
        **at(place),
        "namespace": key.namespace,
        "user_id": key.user_id,
        "session_id": key.session_id,
        "incarnation": incarnation,
        "agent_id": draft.agent_id,
        "status": draft.status,
        "memory_enabled": draft.memory_enabled,
        "labels": sorted(draft.labels),
        "body": draft.body,
        "created_at": now if draft.created_at is None else draft.created_at,
        "updated_at": now,
        "last_message_at": None,
        "version": 0,
        "revision": 0,
        "epoch": 0,
        "last": 0,
        "base": 1,
        "frozen": 0,
        "size": 0,
        "high": "",
        "streams": {},
        "tail": [],
    }


def planned_head(head: Document) -> SessionHead:
    """Return the part of a head that the plan of an append needs."""
    return SessionHead(
        incarnation=head["incarnation"],
        version=head["version"],
        next_sequence=head["last"] + 1,
        memory_enabled=head["memory_enabled"],
    )


def held_by(head: Document) -> RunLease | None:
    """Return the hold of a run on the session, expired or not."""
    run = head.get("run")
    return None if run is None else RunLease(run_id=run["id"], expires_at=int(run["expires_at"]))


def session_record(head: Document) -> SessionRecord:
    """Return the session that a head describes."""
    lease, last = held_by(head), head["last_message_at"]
    return SessionRecord(
        key=SessionKey(head["namespace"], head["user_id"], head["session_id"]),
        incarnation=head["incarnation"],
        agent_id=head["agent_id"],
        status=head["status"],
        memory_enabled=head["memory_enabled"],
        labels=frozenset(head["labels"]),
        body=head["body"],
        created_at=int(head["created_at"]),
        updated_at=int(head["updated_at"]),
        last_message_at=None if last is None else int(last),
        streams={
            unquote(field): stream["c"] for field, stream in head["streams"].items() if stream["c"]
        },
        version=head["version"],
        revision=head["revision"],
        run_id=lease.run_id if lease else None,
        run_expires_at=lease.expires_at if lease else None,
    )


def row_of(draft: MessageDraft, stream: str) -> Document:
    """Return the row of a message; its sequence is given in the database."""
    row: Document = {
        "k": stream,
        "i": draft.id,
        "r": draft.role,
        "b": draft.body,
        "c": draft.created_at,
        "t": draft.turn_start,
        "d": draft.digest,
    }
    if draft.extra is not None:
        row["x"] = draft.extra
    row["z"] = row_size(row)
    return row


def row_size(row: Document) -> int:
    """Return about how many bytes a row takes."""
    return len(row.get("b", b"")) + len(row.get("x", b"")) + len(row["i"]) + ROW_BYTES


def message_of(row: Document) -> StoredMessage:
    """Return the message that a row holds."""
    return StoredMessage(
        row["n"],
        row["i"],
        row["r"],
        row["b"],
        int(row["c"]),  # the driver has a class of its own for integers of 64 bits
        row["t"],
        row.get("e"),
        row.get("x"),
        row.get("v", 0),
    )


def opens(rows: Sequence[Document]) -> bool:
    """Return whether the first of the rows instructs the model."""
    return bool(rows) and rows[0]["r"] in INSTRUCTION_ROLES


def buckets_of(head: Document, rows: Iterable[Document]) -> Iterator[Document]:
    """Yield the buckets for rows that leave the tail.

    Which buckets there are, and what they are called, does not depend on which rows are dead.
    """
    place, incarnation = head["_id"], head["incarnation"]
    for stream, group in groupby(sorted(rows, key=_by_stream), key=lambda row: row["k"]):
        state = stream_state(head, stream)
        for chunk in _chunks(group):
            alive = [row for row in chunk if state.counts(row["n"])]
            if alive:
                yield {
                    "_id": {"s": place, "k": stream, "n": chunk[0]["n"], "i": incarnation},
                    "s": place,
                    "incarnation": incarnation,
                    "changes": 0,
                    **_columns(alive),
                }


def rewritten(bucket: Document, rows: Sequence[Document]) -> Document:
    """Return a bucket with other rows in it.

    One without rows stays, so that nobody who was slow to roll puts the old one in its place. It
    has an id that no message can have, since no two buckets may have none.
    """
    named = {name: bucket[name] for name in ("_id", "s", "incarnation")}
    changed = {**named, "changes": bucket["changes"] + 1, **_columns(rows)}
    return changed if rows else {**changed, "ids": [f"\0{bucket['_id']['n']}"]}


def rows_of(bucket: Document) -> list[Document]:
    """Return the rows of a bucket."""
    if not bucket["n"]:
        return []
    stream = bucket["_id"]["k"]
    columns = [bucket[column] for column, _ in COLUMNS]
    names = [name for _, name in COLUMNS]
    rare = {each["n"]: each for each in bucket.get("rare", ())}
    return [
        {
            "k": stream,
            "c": c,
            **dict(zip(names, values, strict=True)),
            **rare.get(values[0], {}),
        }
        for c, *values in zip(times_of(bucket), *columns, strict=False)
    ]


def times_of(bucket: Document) -> tuple[int, ...]:
    """Return when the messages of a bucket were created.

    A bucket that was read in part has the last of its messages, or as an `edge` the first.
    """
    data, count = bucket["c"], len(bucket["n"])
    times = struct.unpack(f"<{len(data) // 8}q", data)
    return times[:count] if "edge" in bucket else times[len(times) - count :]


def bucket_messages(bucket: Document) -> list[StoredMessage]:
    """Return the messages of a bucket, oldest first."""
    if "rare" in bucket or not bucket["n"]:
        return [message_of(row) for row in rows_of(bucket)]
    named = (bucket[column] for column in ("n", "ids", "r", "b"))
    return list(map(StoredMessage, *named, times_of(bucket), bucket["t"]))


def _columns(rows: Sequence[Document]) -> Document:
    columns: Document = {column: [row[name] for row in rows] for column, name in COLUMNS}
    # The driver reads an integer of 64 bits as a class of its own, one at a time.
    columns["c"] = struct.pack(f"<{len(rows)}q", *[row["c"] for row in rows])
    rare = [
        {"n": row["n"], **{name: row[name] for name in RARE if name in row}}
        for row in rows
        if not row.keys().isdisjoint(RARE)
    ]
    return {**columns, "rare": rare} if rare else columns


def _chunks(rows: Iterable[Document]) -> list[list[Document]]:
    """Return rows in parts that make a bucket each; a small rest goes with the part before it."""
    chunks: list[list[Document]] = []
    count, size = BUCKET_ROWS, 0
    for row in rows:
        if count >= BUCKET_ROWS or size >= BUCKET_BYTES:
            chunks.append([])
            count = size = 0
        chunks[-1].append(row)
        count += 1
        size += row["z"]
    if len(chunks) > 1 and count < BUCKET_ROWS // 2 and size < BUCKET_BYTES // 2:
        rest = chunks.pop()
        chunks[-1] += rest
    return chunks


def _by_stream(row: Document) -> tuple[str, int]:
    return row["k"], row["n"]
