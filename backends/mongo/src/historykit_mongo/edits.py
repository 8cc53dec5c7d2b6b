"""How messages change, go and are replaced.

Each is decided by one step on the head, which depends on the version that was read. What it does to
messages in buckets is noted in the head by that step, done afterwards, and seen by readers from the
step on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from historykit.errors import TooLargeError
from historykit.planning import (
    message_not_found,
    plan_replace,
    plan_update,
    session_not_found,
)
from historykit.records import (
    AppendReceipt,
    MessagePatch,
    MessageSelector,
    ReplaceRequest,
    StoredMessage,
)
from historykit.session_records import MAIN_STREAM, SessionKey
from historykit_mongo.appends import (
    BATCH_BYTES,
    check_batch,
    find_known,
    follow_up,
)
from historykit_mongo.connection import Connection
from historykit_mongo.documents import (
    LARGEST,
    Document,
    message_of,
    opens,
    place_of,
    planned_head,
    row_of,
    row_size,
    rows_of,
    span,
    stream_field,
    stream_state,
    times_of,
)
from historykit_mongo.rolling import Redo, purge, ranges_of, settle

__all__ = ["delete_messages", "replace", "update_message"]


async def update_message(
    db: Connection, key: SessionKey, message_id: str, patch: MessagePatch, now: int
) -> StoredMessage:
    """Change a message in its place and return it."""
    place = place_of(key)
    async with db.lock(place):
        async for _ in db.attempts(key):
            head = await db.head(place, without=("body",))
            if head is None:
                raise session_not_found(key)
            if await settle(db, place, head):
                continue
            row, neighbours = await _find(db, place, head, message_id)
            if row is None:
                raise message_not_found(key, message_id)
            changed = _patched(row, patch)
            if neighbours + changed["z"] > BATCH_BYTES:
                raise TooLargeError(
                    f"message {message_id!r} would take {changed['z']} bytes, beside others of "
                    f"{neighbours}; the mongo store keeps at most {BATCH_BYTES} together. Keep "
                    "large content as an attachment"
                )
            if await _store_row(db, place, head, changed, now):
                return message_of(changed)
    raise AssertionError("unreachable")


async def delete_messages(
    db: Connection, key: SessionKey, selector: MessageSelector, now: int
) -> int:
    """Delete what is selected and return how many messages that were."""
    place = place_of(key)
    async with db.lock(place):
        async for _ in db.attempts(key):
            head = await db.head(place, without=("body", "tail.b", "tail.x"))
            if head is None:
                return 0
            if await settle(db, place, head):
                continue
            doomed, ranges = await _selected(db, place, head, selector)
            if not doomed:
                return 0
            fields = await _fields_without(db, place, head, selector.stream, doomed)
            note = {"stream": selector.stream, "ranges": ranges}
            fields |= {f"tail.{n - head['base']}": None for n in doomed if n >= head["base"]}
            update: Document = {
                "$set": {"updated_at": now, **fields, **({"redo": note} if ranges else {})},
                "$inc": {"version": 1, "epoch": 1},
            }
            if await db.edit(place, head, update) is None:
                continue
            if ranges:
                await Redo(note).apply(db, place, head["incarnation"])
            return len(doomed)
    raise AssertionError("unreachable")


async def replace(db: Connection, request: ReplaceRequest) -> AppendReceipt:
    """Put other messages in the place of all those of a stream."""
    place = place_of(request.key)
    rows = [row_of(draft, request.stream) for draft in request.drafts]
    check_batch(rows)
    async with db.lock(place):
        async for _ in db.attempts(request.key):
            head = await db.head(place, without=("body", "tail.b", "tail.x"))
            if head is None:
                raise session_not_found(request.key)
            if await settle(db, place, head):
                continue
            known, left_over = await find_known(db, place, head, request.drafts)
            elsewhere = [id for id, (_, _, stream) in known.items() if stream != request.stream]
            receipt = plan_replace(request, planned_head(head), elsewhere)
            if left_over:
                await purge(db, place, head)
            changed = await db.edit(place, head, [{"$set": _replaced(head, request, rows)}])
            if changed is None:
                continue
            await purge(db, place, changed)
            follow_up(db, place, changed)
            return receipt
    raise AssertionError("unreachable")


async def _find(
    db: Connection, place: bytes, head: Document, message_id: str
) -> tuple[Document | None, int]:
    """Return the row of a message, and how many bytes those take that are stored with it."""
    rows = [row for row in head["tail"] if stream_state(head, row["k"]).counts(row["n"])]
    if not any(row["i"] == message_id for row in rows):
        wanted = {"s": place, "ids": message_id, "incarnation": head["incarnation"]}
        rows = []
        for bucket in await db.collection.find({**wanted, "n": {"$exists": True}}).to_list(None):
            state = stream_state(head, bucket["_id"]["k"])
            rows += [row for row in rows_of(bucket) if state.counts(row["n"])]
    found = [row for row in rows if row["i"] == message_id]
    if not found:
        return None, 0
    return found[0], sum(row_size(row) for row in rows) - row_size(found[0])


def _patched(row: Document, patch: MessagePatch) -> Document:
    """Return a row as a patch leaves it."""
    message = plan_update(message_of(row), patch)
    changed = {name: row[name] for name in ("n", "k", "i", "r", "c", "t")}
    changed |= {"b": message.body, "d": patch.digest or row["d"], "v": message.revision}
    if message.reaction is not None:
        changed["e"] = message.reaction
    if message.extra is not None:
        changed["x"] = message.extra
    return {**changed, "z": row_size(changed)}


async def _store_row(db: Connection, place: bytes, head: Document, row: Document, now: int) -> bool:
    """Return whether a row was changed, which it is not if others came first."""
    if row["n"] >= head["base"]:
        change: Document = {f"tail.{row['n'] - head['base']}": row}
    else:
        change = {"redo": {"row": row}}
    update = {"$set": {**change, "updated_at": now}, "$inc": {"version": 1, "epoch": 1}}
    if await db.edit(place, head, update) is None:
        return False
    if "redo" in change:
        await Redo(change["redo"]).apply(db, place, head["incarnation"])
    return True


async def _selected(
    db: Connection, place: bytes, head: Document, selector: MessageSelector
) -> tuple[set[int], list[list[int]]]:
    """Return the sequences that are selected, and those of them in buckets as ranges."""
    stream = selector.stream
    state = stream_state(head, stream)
    tail = [row for row in head["tail"] if row["k"] == stream and state.counts(row["n"])]
    doomed = {row["n"] for row in tail if _selects(selector, row)}
    ranges: list[list[int]] = []
    wanted = span(place, stream, before=_fitting(selector.last, LARGEST - 1) + 1)
    wanted["incarnation"] = head["incarnation"]
    if selector.ids is not None:
        wanted["ids"] = {"$in": list(selector.ids)}
    if selector.first is not None:
        wanted["n"] = {"$gte": _fitting(selector.first, 0)}
    cursor = db.collection.find(wanted, {"n": 1, "c": 1, "ids": 1}).sort("_id", 1)
    for bucket in await cursor.to_list(None):
        rows = [
            {"n": n, "c": c, "i": i}
            for n, c, i in zip(bucket["n"], times_of(bucket), bucket["ids"], strict=False)
            if state.counts(n)
        ]
        chosen = {row["n"] for row in rows if _selects(selector, row)}
        doomed |= chosen
        ranges += ranges_of([row["n"] for row in rows], chosen)
    return doomed, ranges


def _selects(selector: MessageSelector, row: Document) -> bool:
    return (
        (selector.ids is None or row["i"] in selector.ids)
        and (selector.first is None or row["n"] >= selector.first)
        and (selector.last is None or row["n"] <= selector.last)
        and (selector.created_before is None or row["c"] < selector.created_before)
    )


async def _fields_without(
    db: Connection, place: bytes, head: Document, stream: str, doomed: set[int]
) -> Document:
    """Return what a head says of a stream once some of its messages are gone."""
    state = stream_state(head, stream)
    left = [
        row
        for row in head["tail"]
        if row["k"] == stream and row["n"] not in doomed and state.counts(row["n"])
    ]
    oldest = _rows(db, place, head, stream, doomed, direction=1)
    first = await anext(oldest, left[0] if left else None)
    await oldest.aclose()
    field = f"streams.{stream_field(stream)}"
    fields: Document = {
        f"{field}.c": state.count - len(doomed),
        f"{field}.o": [opens([first])] if first else [],
    }
    if stream == MAIN_STREAM:
        newest = _rows(db, place, head, stream, doomed, direction=-1)
        last = left[-1] if left else await anext(newest, None)
        fields["last_message_at"] = None if last is None else last["c"]
        await newest.aclose()
    return fields


async def _rows(
    db: Connection,
    place: bytes,
    head: Document,
    stream: str,
    doomed: set[int],
    *,
    direction: int,
) -> Any:
    """Yield sequence, role and time of the messages in buckets that stay."""
    state = stream_state(head, stream)
    wanted = {**span(place, stream), "incarnation": head["incarnation"]}
    cursor = db.collection.find(wanted, {"n": 1, "r": 1, "c": 1}).sort("_id", direction)
    try:
        async for bucket in cursor.batch_size(4):
            for n, r, c in list(zip(bucket["n"], bucket["r"], times_of(bucket), strict=True))[
                ::direction
            ]:
                if n not in doomed and state.counts(n):
                    yield {"n": n, "r": r, "c": c}
    finally:
        await cursor.close()


def _replaced(head: Document, request: ReplaceRequest, rows: Sequence[Document]) -> Document:
    """Return what a head becomes by a replacement. What was there is below the floor."""
    replaced = {"$eq": ["$$this.k", {"$literal": request.stream}]}
    others = {"$map": {"input": "$tail", "in": {"$cond": [replaced, None, "$$this"]}}}
    field = f"streams.{stream_field(request.stream)}"
    stage: Document = {
        "tail": {"$concatArrays": [others, {"$literal": list(rows)}]},
        "last": {"$add": ["$last", len(rows)]},
        "size": {"$add": ["$size", sum(row["z"] for row in rows)]},
        "version": {"$add": ["$version", 1]},
        "epoch": {"$add": ["$epoch", 1]},
        "updated_at": request.now,
        "ids": "$$REMOVE",
        f"{field}.c": len(rows),
        f"{field}.o": [opens(rows)] if rows else [],
        f"{field}.f": head["last"] + 1,
        f"{field}.p": 0,
    }
    if request.stream == MAIN_STREAM:
        stage["last_message_at"] = request.drafts[-1].created_at if request.drafts else None
    return stage


def _fitting(number: int | None, otherwise: int) -> int:
    """Return the integer of BSON nearest to a bound."""
    return otherwise if number is None else max(0, min(number, LARGEST - 1))
