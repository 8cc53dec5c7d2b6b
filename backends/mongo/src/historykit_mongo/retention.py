"""What has to be known of a stream to trim it in the same step as an append."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from historykit.planning import INSTRUCTION_ROLES, retention_cut
from historykit_mongo.connection import Connection
from historykit_mongo.documents import BUCKET_ROWS, Document, span, stream_of

__all__ = ["Cut", "Oldest", "Place", "read_oldest"]


class Place(NamedTuple):
    """A message as retention sees it."""

    sequence: int
    turn_start: bool
    role: str


@dataclass(frozen=True, slots=True)
class Cut:
    """What an append leaves of a stream: all from `floor` on, and the opening, if there is one.

    `count` is how many messages that are, `removed` how many were trimmed by it.
    """

    floor: int
    opening: int
    count: int
    removed: int

    def keeps(self, sequence: int) -> bool:
        """Return whether a message stays."""
        return sequence >= self.floor or sequence == self.opening

    def stage(self, stream: str, field: str, tail: object) -> Document:
        """Return the part of an update that trims the stream of a head."""
        stays: list[Any] = [
            {"$ne": ["$$this.k", {"$literal": stream}]},
            {"$gte": ["$$this.n", self.floor]},
            {"$eq": ["$$this.n", self.opening]},
        ]
        return {
            "tail": {"$filter": {"input": tail, "cond": {"$or": stays}}},
            f"{field}.c": self.count,
            f"{field}.o": self.opening,
            f"{field}.f": self.floor,
            f"{field}.t": {"$add": [{"$ifNull": [f"${field}.t", 0]}, self.removed]},
        }


@dataclass(frozen=True, slots=True)
class Oldest:
    """The oldest messages of a stream, as they are at some version of the session.

    `places` ends with the stream's newest message where it is `complete`."""

    incarnation: str
    version: int
    next_sequence: int
    count: int
    places: tuple[Place, ...]
    complete: bool

    def cut(self, added: Sequence[Place], *, most: int) -> Cut | None:
        """Return what is left when messages are added and the stream is trimmed.

        None where that cannot be told from what is known.
        """
        places = self.places + tuple(added) if self.complete else self.places
        total = self.count + len(added)
        excess = max(total - most, 0)
        if excess >= len(places):
            return None
        first = places[0]
        removed = excess and retention_cut(
            (place.sequence for place in places[: excess + 1] if place.turn_start),
            oldest_wanted=places[excess].sequence,
            opening=(first.sequence, first.role),
        )
        begin, end = removed or (0, 0)
        left = [place for place in places if not begin <= place.sequence <= end]
        return Cut(
            floor=end + 1 if removed else 0,
            opening=left[0].sequence if left[0].role in INSTRUCTION_ROLES else 0,
            count=total - (len(places) - len(left)),
            removed=len(places) - len(left),
        )

    def after(self, added: Sequence[Place], cut: Cut) -> Oldest:
        """Return what is known when the append is done."""
        places = self.places + tuple(added) if self.complete else self.places
        return replace(
            self,
            version=self.version + 1,
            next_sequence=self.next_sequence + len(added),
            count=cut.count,
            places=tuple(place for place in places if cut.keeps(place.sequence)),
        )


async def read_oldest(
    db: Connection, place: bytes, head: Document, stream: str, *, wanted: int
) -> Oldest:
    """Return the oldest messages of a stream, `wanted` or more where there are so many."""
    count, _, floor, opening = stream_of(head, stream)
    most = wanted // BUCKET_ROWS + 4
    cursor = (
        db.collection.find(span(place, stream), {"n": 1, "t": 1, "r": 1, "incarnation": 1})
        .sort("_id", 1)
        .limit(most)
    )
    buckets = [
        bucket
        for bucket in await cursor.to_list(None)
        if bucket["incarnation"] == head["incarnation"]
    ]
    rows = [row for row in head["tail"] if row["k"] == stream]
    tail = [Place(row["n"], row["t"], row["r"]) for row in rows]
    before = tail[0].sequence if tail else head["next"]
    places = [
        Place(*values)
        for bucket in buckets
        for values in zip(bucket["n"], bucket["t"], bucket["r"], strict=True)
        if values[0] < before and (values[0] >= floor or values[0] == opening)
    ]
    complete = len(buckets) < most
    if complete:
        places += tail
    return Oldest(
        incarnation=head["incarnation"],
        version=head["version"],
        next_sequence=head["next"],
        count=count,
        places=tuple(places),
        complete=complete,
    )
