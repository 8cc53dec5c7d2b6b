"""How messages are added to the end of a stream.

The first attempt is one command. Its filter says all that an append depends on: the session's life,
its version, that it keeps a memory, and that it has none of the ids; its update numbers the
messages. Ids in the tail are looked at by the filter. Those in buckets need not be read: ids that
grow with time are new if they are above the largest one in a bucket; others are put into the head's
`ids`, and the unique index refuses what a bucket has.

Where the filter does not match, the state is read, core decides, and the update depends on the
version that was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from pymongo.errors import DuplicateKeyError, PyMongoError

from historykit.errors import TooLargeError
from historykit.planning import AppendPlan, plan_append
from historykit.records import AppendReceipt, AppendRequest, MessageDraft
from historykit.session_records import MAIN_STREAM
from historykit_mongo.connection import Connection
from historykit_mongo.documents import (
    BUCKET_BYTES,
    BUCKET_ROWS,
    Document,
    fresh_head,
    is_timed,
    opens,
    place_of,
    planned_head,
    row_of,
    stream_field,
    stream_state,
)
from historykit_mongo.retention import Cut, Oldest, Place, read_oldest
from historykit_mongo.rolling import purge, roll, settle

__all__ = ["BATCH_BYTES", "Append", "Known", "check_batch", "find_known", "follow_up"]

BATCH_BYTES: Final = 8 << 20
"""The most bytes of one append: it has to fit into one document beside everything else."""

MANY_BYTES: Final = 2 * BUCKET_BYTES
"""A batch of more bytes goes on into buckets at once."""

CROWDED_BYTES: Final = 1 << 20
"""A tail of so many bytes takes no large batch before it has moved into buckets."""

Known = Mapping[str, tuple[int, bytes, str]]
"""Sequence, digest and stream of messages that are stored, by id."""


class Append:
    """One append on its way. Raises `TooLargeError` for a batch that is too large."""

    def __init__(self, db: Connection, request: AppendRequest) -> None:
        self.db = db
        self.request = request
        self.place = place_of(request.key)
        self.rows = [row_of(draft, request.stream) for draft in request.drafts]
        self.size = check_batch(self.rows)

    async def run(self) -> AppendReceipt:
        """Do the append: in one command, or with a look at the state before it."""
        async with self.db.lock(self.place):
            receipt = await self.db.persist(self._at_once)
            if receipt is None:
                receipt = await self.db.persist(self._planned)
        if self.size > MANY_BYTES and receipt.stored:
            with suppress(PyMongoError):  # it is stored, and the next append tries this again
                await self.db.finish(self.place)
                await roll(self.db, self.place)
        return receipt

    async def _at_once(self) -> AppendReceipt | None:
        """Return the receipt if one command did it, None where there is more to decide."""
        request, db = self.request, self.db
        conditions = self._conditions()
        oldest = db.trims.get(self._trimmed) if request.retention else None
        cut = None
        if oldest is not None:
            cut = self._cut(oldest, request.drafts)
            if cut is None or request.expected_version not in (None, oldest.version):
                return None
            conditions |= {"incarnation": oldest.incarnation, "version": oldest.version}
        elif request.retention is not None:
            room = request.retention.max_messages - len(self.rows)
            conditions[f"streams.{stream_field(request.stream)}.c"] = {"$not": {"$gt": room}}
            if room < 0:
                return None
        update = self._update(request.drafts, self.rows, cut)
        may_create = self._may_create()  # every append may, but it makes one a tenth dearer
        if may_create:
            update["$setOnInsert"] = self._beside(update)
        try:
            head, created = await db.change(self.place, conditions, update, upsert=may_create)
        except DuplicateKeyError:
            return None  # it exists and does not match, or a bucket has one of the ids
        if head is None:
            db.trims.pop(self._trimmed, None)
            return None
        follow_up(db, self.place, head)
        if oldest is not None and cut is not None:
            self._remember(oldest, request.drafts, cut)
        return self._receipt(head, created=created)

    async def _planned(self) -> AppendReceipt:
        """Do the append with a look at the state before it."""
        async for _ in self.db.attempts(self.request.key):
            head = await self.db.head(self.place, without=("body", "tail.b", "tail.x"))
            if head is None:
                self.db.seen.discard(self.place)
                receipt = await self._create()
            else:
                receipt = await self._go_on(head)
            if receipt is not None:
                return receipt
        raise AssertionError("unreachable")

    async def _go_on(self, head: Document) -> AppendReceipt | None:
        """Return the receipt of an append to a session, None where others came first."""
        db, request = self.db, self.request
        if await settle(db, self.place, head):
            return None
        known, left_over = await find_known(db, self.place, head, request.drafts)
        if any(sequence > head["last"] for sequence, _, _ in known.values()):
            return None
        if head["size"] > CROWDED_BYTES:
            await roll(db, self.place)
            return None
        plan = plan_append(
            request, planned_head(head), {id: found[:2] for id, found in known.items()}
        )
        if not plan.drafts:
            return plan.receipt
        if left_over:
            await purge(db, self.place, head)
        oldest = cut = None
        if request.retention is not None:
            oldest, cut = await self._cut_of(head, plan.drafts)
        update = self._update(plan.drafts, self._rows(plan), cut)
        conditions = {name: head[name] for name in ("incarnation", "version", "frozen")}
        changed, _ = await db.change(self.place, {**conditions, "memory_enabled": True}, update)
        if changed is None:
            return None
        follow_up(db, self.place, changed)
        if oldest is not None and cut is not None:
            self._remember(oldest, plan.drafts, cut)
        return plan.receipt

    async def _create(self) -> AppendReceipt | None:
        """Return the receipt of a first append, None where the session exists by now."""
        request, db = self.request, self.db
        plan = plan_append(request, None, {})
        incarnation = plan.receipt.incarnation
        head = fresh_head(request.key, request.create, incarnation, request.now)
        if plan.drafts:
            oldest = Oldest(incarnation, 0, 1, 0, (), complete=True)
            cut = self._cut(oldest, plan.drafts) if request.retention else None
            _fill(head, request, self._rows(plan), cut)
        try:
            await db.collection.insert_one(head)
        except DuplicateKeyError:
            return None
        follow_up(db, self.place, head)
        return plan.receipt

    def _conditions(self) -> Document:
        """Return what the first attempt depends on."""
        request = self.request
        ids = [row["i"] for row in self.rows]
        conditions: Document = {"memory_enabled": True, "tail.i": {"$nin": ids}}
        if timed := list(filter(is_timed, ids)):
            conditions["high"] = {"$lt": min(timed)}
        if request.incarnation is not None:
            conditions["incarnation"] = request.incarnation
        if request.expected_version is not None:
            conditions["version"] = request.expected_version
        if self.size > BUCKET_BYTES:
            conditions["size"] = {"$lt": CROWDED_BYTES}
        return conditions

    def _may_create(self) -> bool:
        request = self.request
        return (
            self.place not in self.db.seen
            and request.incarnation is None
            and request.expected_version in (None, 0)
            and request.create.memory_enabled
        )

    def _update(
        self, drafts: Sequence[MessageDraft], rows: Sequence[Document], cut: Cut | None
    ) -> Document:
        """Return the update of a head that adds rows to it."""
        field = f"streams.{stream_field(self.request.stream)}"
        others = [row["i"] for row in rows if not is_timed(row["i"])]
        adds: Document = {"version": 1, "last": len(rows), "size": sum(row["z"] for row in rows)}
        sets: Document = {"updated_at": self.request.now}
        pushes: Document = {"tail": {"$each": rows}}
        update: Document = {"$push": pushes, "$inc": adds, "$set": sets}
        if self.request.stream == MAIN_STREAM:
            sets["last_message_at"] = drafts[-1].created_at
        if cut is not None and cut.removed:
            sets |= {f"{field}.{name}": value for name, value in cut.fields().items()}
            adds[f"{field}.t"] = cut.removed
        else:
            adds[f"{field}.c"] = len(rows)
            # It sets what is not there yet: the array keeps the first element it ever had.
            pushes[f"{field}.o"] = {"$each": [opens(rows)], "$slice": 1}
        if others:
            sets["ids"] = others
        else:
            update["$unset"] = {"ids": ""}
        return update

    def _beside(self, update: Document) -> Document:
        """Return the fields of a new head that an update does not make itself."""
        request = self.request
        fresh = fresh_head(request.key, request.create, request.new_incarnation, request.now)
        made = {path.partition(".")[0] for part in update.values() for path in part}
        given = {"_id", "s", "memory_enabled"}  # by the filter
        return {name: value for name, value in fresh.items() if name not in made | given}

    def _rows(self, plan: AppendPlan) -> list[Document]:
        """Return the rows of those messages that a plan adds."""
        added = {draft.id for draft in plan.drafts}
        return [row for row in self.rows if row["i"] in added]

    async def _cut_of(
        self, head: Document, drafts: Sequence[MessageDraft]
    ) -> tuple[Oldest, Cut | None]:
        """Return what retention leaves of the stream, and what was read of it to know that."""
        buckets = 8
        while True:
            oldest = await read_oldest(
                self.db, self.place, head, self.request.stream, buckets=buckets
            )
            cut = self._cut(oldest, drafts)
            if cut is not None or oldest.complete:
                return oldest, cut
            buckets *= 4

    def _cut(self, oldest: Oldest, drafts: Sequence[MessageDraft]) -> Cut | None:
        assert self.request.retention is not None
        added = _places(drafts, oldest.next_sequence)
        return oldest.cut(added, most=self.request.retention.max_messages)

    @property
    def _trimmed(self) -> tuple[bytes, str]:
        return self.place, self.request.stream

    def _remember(self, oldest: Oldest, drafts: Sequence[MessageDraft], cut: Cut) -> None:
        """Keep what the next append needs to trim the stream, if nobody comes between."""
        trims = self.db.trims
        trims.pop(self._trimmed, None)
        trims[self._trimmed] = oldest.after(_places(drafts, oldest.next_sequence), cut)
        if len(trims) > REMEMBERED:
            del trims[next(iter(trims))]

    def _receipt(self, head: Document, *, created: bool) -> AppendReceipt:
        count = len(self.rows)
        return AppendReceipt(
            incarnation=head["incarnation"],
            version=head["version"],
            ids=tuple([draft.id for draft in self.request.drafts]),
            sequences=tuple(range(head["last"] - count + 1, head["last"] + 1)),
            stored=count,
            created=created,
        )


REMEMBERED: Final = 256
"""Of how many streams a store remembers what it needs to trim them."""

SEEN: Final = 10_000
"""Of how many sessions a store remembers that they exist. Where one is gone, that costs a trip."""


def check_batch(rows: Sequence[Document]) -> int:
    """Return how many bytes rows take. Raises `TooLargeError` for too many."""
    size: int = sum([row["z"] for row in rows])
    if size > BATCH_BYTES:
        raise TooLargeError(
            f"the messages take {size} bytes together; the mongo store takes at most {BATCH_BYTES} "
            "at once. Append them in several calls, and keep large content as attachments"
        )
    return size


async def find_known(
    db: Connection, place: bytes, head: Document, drafts: Sequence[MessageDraft]
) -> tuple[Known, bool]:
    """Return which of the drafts a session has already.

    Also whether ids of some are left over in buckets, from messages that were removed.
    """
    wanted = {draft.id for draft in drafts}
    known = {
        row["i"]: (row["n"], row["d"], row["k"])
        for row in head["tail"]
        if row["i"] in wanted and stream_state(head, row["k"]).counts(row["n"])
    }
    cursor = db.collection.find(
        {"s": place, "ids": {"$in": list(wanted)}, "incarnation": head["incarnation"]},
        {"ids": 1, "n": 1, "d": 1},
    )
    left_over = False
    for bucket in await cursor.to_list(None):
        if "n" not in bucket:
            continue  # the head itself: its rows were in the tail
        stream = bucket["_id"]["k"]
        state = stream_state(head, stream)
        for id, sequence, digest in zip(bucket["ids"], bucket["n"], bucket["d"], strict=True):
            if id in wanted and state.counts(sequence):
                known.setdefault(id, (sequence, digest, stream))
            elif id in wanted:
                left_over = True
    return known, left_over


def follow_up(db: Connection, place: bytes, head: Document) -> None:
    """Note that a session exists, and begin to move its rows into buckets where it is time to."""
    if len(db.seen) >= SEEN:
        db.seen.clear()
    db.seen.add(place)
    if head["last"] - head["base"] + 1 >= BUCKET_ROWS or head["size"] >= BUCKET_BYTES:
        db.begin(place, lambda: roll(db, place, base=head["base"]))


def _places(drafts: Sequence[MessageDraft], first: int) -> list[Place]:
    return [
        Place(sequence, draft.turn_start, draft.role)
        for sequence, draft in enumerate(drafts, start=first)
    ]


def _fill(
    head: Document, request: AppendRequest, rows: Sequence[Document], cut: Cut | None
) -> None:
    """Put the rows of a first append into a fresh head."""
    stream: Document = {"c": len(rows), "o": [opens(rows)]}
    if cut is not None and cut.removed:
        stream = {**cut.fields(), "t": cut.removed}
    head["streams"] = {stream_field(request.stream): stream}
    head["last"] = len(rows)
    head["version"] = 1
    head["tail"] = [
        row if cut is None or cut.keeps(sequence) else None
        for sequence, row in enumerate(rows, start=1)
    ]
    head["size"] = sum(row["z"] for row in rows)
    if request.stream == MAIN_STREAM:
        head["last_message_at"] = request.drafts[-1].created_at
