"""What is done with sessions: each is one step on the head, or a look at it."""

from __future__ import annotations

from typing import Final

from pymongo.errors import DuplicateKeyError

from historykit.errors import TooLargeError
from historykit.planning import (
    check_revision,
    plan_claim,
    plan_renewal,
    session_exists,
    session_not_found,
)
from historykit.records import DeleteReceipt
from historykit.session_records import (
    IfExists,
    RunLease,
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionRecord,
)
from historykit_mongo.connection import Connection
from historykit_mongo.documents import (
    Document,
    at,
    fresh_head,
    held_by,
    place_of,
    session_record,
)
from historykit_mongo.rolling import settle

__all__ = [
    "FIELDS",
    "claim_run",
    "create_session",
    "delete_session",
    "patch_session",
    "read_session",
    "release_run",
    "renew_run",
]

FIELDS: Final[Document] = {"tail": 0, "ids": 0, "redo": 0}
"""A projection: all that `session_record` takes."""

BODY_BYTES: Final = 4 << 20
"""The most bytes that a session's own body takes."""


async def create_session(
    db: Connection,
    key: SessionKey,
    draft: SessionDraft,
    if_exists: IfExists,
    incarnation: str,
    now: int,
) -> SessionRecord:
    """Create a session, or do with the existing one what `if_exists` says, and return it."""
    _check_body(draft.body)
    async for _ in db.attempts(key):
        head = fresh_head(key, draft, incarnation, now)
        try:
            await db.collection.insert_one(head)
        except DuplicateKeyError:
            if if_exists == "error":
                raise session_exists(key) from None
            found = await _existing(db, key, draft, if_exists, now)
            if found is not None:
                return session_record(found)
        else:
            return session_record(head)
    raise AssertionError("unreachable")


async def read_session(db: Connection, key: SessionKey) -> SessionRecord:
    """Return a session."""
    return session_record(await _head(db, key))


async def patch_session(
    db: Connection, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
) -> SessionRecord:
    """Change fields of a session and return it."""
    _check_body(patch.body or b"")
    async for _ in db.attempts(key):
        head = await _patch(db, key, patch, if_revision, now)
        if head is not None:
            return session_record(head)
        check_revision(key, if_revision, (await _head(db, key))["revision"])
    raise AssertionError("unreachable")


async def delete_session(db: Connection, key: SessionKey) -> DeleteReceipt:
    """Delete a session with all its messages.

    Messages of former lives that were left over by a crash go with it: what lives is told from them
    by the order of the steps, since a life that begins after the first of them is not in its list.
    """
    place = place_of(key)
    async with db.lock(place):
        await db.finish(place)
        head = await db.head(place, without=("body", "tail.b", "tail.x"))
        if head is not None:
            await settle(db, place, head)
        lives = await db.collection.distinct("incarnation", {"s": place})
        removed = await db.collection.find_one_and_delete(at(place), FIELDS)
        if removed is not None:
            lives.append(removed["incarnation"])
        if lives:
            await db.collection.delete_many({"s": place, "incarnation": {"$in": lives}})
        db.seen.discard(place)
    if removed is None:
        return DeleteReceipt(sessions=0, messages=0)
    messages = sum(stream["c"] for stream in removed["streams"].values())
    return DeleteReceipt(sessions=1, messages=messages)


async def claim_run(db: Connection, key: SessionKey, lease: RunLease, now: int) -> RunLease:
    """Hold a session for a run."""
    free = [{"run": None}, {"run.id": lease.run_id}, {"run.expires_at": {"$lte": now}}]
    async for _ in db.attempts(key):
        if await _hold(db, key, {"$or": free}, lease):
            return lease
        plan_claim(key, held_by(await _head(db, key)), lease, now=now)
    raise AssertionError("unreachable")


async def renew_run(db: Connection, key: SessionKey, lease: RunLease) -> RunLease:
    """Hold a session for longer."""
    async for _ in db.attempts(key):
        if await _hold(db, key, {"run.id": lease.run_id}, lease):
            return lease
        plan_renewal(key, held_by(await _head(db, key)), lease)
    raise AssertionError("unreachable")


async def release_run(db: Connection, key: SessionKey, run_id: str) -> bool:
    """Let a session go and return whether the run held it."""
    place = place_of(key)
    this = {"run.id": run_id}
    return (await db.update(place, this, {"$unset": {"run": ""}}, fields={"_id": 1})) is not None


async def _hold(db: Connection, key: SessionKey, conditions: Document, lease: RunLease) -> bool:
    run = {"id": lease.run_id, "expires_at": lease.expires_at}
    place = place_of(key)
    return (
        await db.update(place, conditions, {"$set": {"run": run}}, fields={"_id": 1})
    ) is not None


async def _head(db: Connection, key: SessionKey) -> Document:
    head = await db.head(place_of(key), without=tuple(FIELDS))
    if head is None:
        raise session_not_found(key)
    return head


async def _existing(
    db: Connection, key: SessionKey, draft: SessionDraft, if_exists: IfExists, now: int
) -> Document | None:
    """Return the session that exists, changed if it is to be; None if it is gone."""
    if if_exists == "update":
        return await _patch(db, key, draft.as_patch(), None, now)
    return await db.head(place_of(key), without=tuple(FIELDS))


async def _patch(
    db: Connection, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
) -> Document | None:
    changes: Document = {
        "agent_id": patch.agent_id,
        "status": patch.status,
        "memory_enabled": patch.memory_enabled,
        "labels": None if patch.labels is None else sorted(patch.labels),
        "body": patch.body,
        "updated_at": now,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    conditions = {} if if_revision is None else {"revision": if_revision}
    update = {"$set": changes, "$inc": {"revision": 1}}
    return await db.update(place_of(key), conditions, update, fields=FIELDS)


def _check_body(body: bytes) -> None:
    if len(body) > BODY_BYTES:
        raise TooLargeError(
            f"the fields of the session take {len(body)} bytes; the mongo store takes at most "
            f"{BODY_BYTES}. Keep large content as an attachment"
        )
