"""What has to be known of a stream to trim it in the same step as an append."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from historykit.planning import INSTRUCTION_ROLES, retention_cut
from historykit_mongo.connection import Connection
from historykit_mongo.documents import Document, span, stream_state

__all__ = ["Cut", "Oldest", "Place", "read_oldest"]


class Place(NamedTuple):
    """A message as retention sees it."""

    sequence: int
    turn_start: bool
    role: str


@dataclass(frozen=True, slots=True)
class Cut:
    """What an append leaves of a stream: all from `floor` on, and `kept`, if it is not 0.

    `count` is how many messages that are, `removed` how many were trimmed by it, and `opens` says
    whether the first one instructs the model.
    """

    floor: int
    kept: int
    count: int
    removed: int
    opens: bool

    def keeps(self, sequence: int) -> bool:
        """Return whether a message stays."""
        return sequence >= self.floor or sequence == self.kept

    def fields(self) -> Document:
        """Return what it sets of a stream in the head."""
        return {"c": self.count, "f": self.floor, "p": self.kept, "o": [self.opens]}


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
        if not removed:
            return Cut(floor=0, kept=0, count=total, removed=0, opens=False)
        return Cut(
            floor=end + 1,
            kept=left[0].sequence if left[0].sequence <= end else 0,
            count=total - (len(places) - len(left)),
            removed=len(places) - len(left),
            opens=left[0].role in INSTRUCTION_ROLES,
        )

    def after(self, added: Sequence[Place], cut: Cut) -> Oldest:
        """Return what is known when the append is done."""
        places = self.places + tuple(added) if self.complete else self.places
        return replace(
            self,
            version=self.version + 1,
            next_sequence=self.next_sequence + len(added),
            count=cut.count,
            places=tuple([place for place in places if cut.keeps(place.sequence)]),
        )


async def read_oldest(
    db: Connection, place: bytes, head: Document, stream: str, *, buckets: int
) -> Oldest:
    """Return the oldest messages of a stream: those in so many buckets."""
    state = stream_state(head, stream)
    cursor = (
        db.collection.find(span(place, stream), {"n": 1, "t": 1, "r": 1, "incarnation": 1})
        .sort("_id", 1)
        .limit(buckets)
    )
    found = await cursor.to_list(None)
    places = [
        Place(*values)
        for bucket in found
        if bucket["incarnation"] == head["incarnation"]
        for values in zip(bucket["n"], bucket["t"], bucket["r"], strict=True)
        if values[0] < head["base"]
    ]
    complete = len(found) < buckets
    if complete:
        rows = [row for row in head["tail"] if row["k"] == stream]
        places += [Place(row["n"], row["t"], row["r"]) for row in rows]
    return Oldest(
        incarnation=head["incarnation"],
        version=head["version"],
        next_sequence=head["last"] + 1,
        count=state.count,
        places=tuple(place for place in places if state.counts(place.sequence)),
        complete=complete,
    )
