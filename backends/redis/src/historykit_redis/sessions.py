"""Operations on sessions. On one server each is one script; in a cluster the catalogue is apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from historykit_redis import catalogue, scripts
from historykit_redis.packing import (
    flat,
    pack_changes,
    pack_number,
    pack_session,
    unpack_fields,
    unpack_record,
)
from historykit_redis.server import Server, new_operation

__all__ = ["claim", "create", "delete", "patch", "read", "release", "renew"]


async def create(
    server: Server,
    key: SessionKey,
    draft: SessionDraft,
    if_exists: IfExists,
    incarnation: str,
    now: int,
) -> SessionRecord:
    """Make a session, or deal with the one that is there, and return it."""
    work = _create(server, key, draft, if_exists, incarnation, now)
    return await (server.finish(work) if server.is_split else work)


async def _create(
    server: Server,
    key: SessionKey,
    draft: SessionDraft,
    if_exists: IfExists,
    incarnation: str,
    now: int,
) -> SessionRecord:
    fields = pack_session(key, draft, incarnation, now)
    await catalogue.announce(server, key, fields)
    answer = await server.run(
        scripts.CREATE_SESSION,
        key,
        new_operation(),
        pack_number(now),
        if_exists.encode(),
        *fields.values(),
        *server.index(key),
        *flat(pack_changes(draft.as_patch())),
    )
    states = [unpack_fields(state) for state in answer[1:]]
    await catalogue.settle(server, key, fields, *states)
    if answer[0] == b"exists":
        raise session_exists(key)
    return unpack_record(key, states[0])


async def read(server: Server, key: SessionKey) -> SessionRecord:
    """Return a session."""
    (fields,) = await server.read_sessions([key])
    if not fields:
        raise session_not_found(key)
    return unpack_record(key, fields)


async def patch(
    server: Server, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
) -> SessionRecord:
    """Change fields of a session and return it."""
    work = _patch(server, key, patch, if_revision, now)
    return await (server.finish(work) if server.is_split else work)


async def _patch(
    server: Server, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
) -> SessionRecord:
    changes = pack_changes(patch)
    if server.is_split:
        (fields,) = await server.read_sessions([key])
        await catalogue.announce(server, key, {**fields, **changes})
    answer = await server.run(
        scripts.PATCH_SESSION,
        key,
        new_operation(),
        pack_number(now),
        pack_number(if_revision),
        *server.index(key),
        *flat(changes),
    )
    match answer[0]:
        case b"absent":
            raise session_not_found(key)
        case b"revision":
            check_revision(key, if_revision, int(answer[1]))
    states = [unpack_fields(state) for state in answer[1:]]
    await catalogue.settle(server, key, *states)
    return unpack_record(key, states[0])


async def delete(server: Server, key: SessionKey) -> DeleteReceipt:
    """Delete a session with all its messages."""
    return await server.finish(_delete(server, key))


async def _delete(server: Server, key: SessionKey) -> DeleteReceipt:
    # The life to end is looked up, so that a deletion that is sent twice cannot end the next one.
    (fields,) = await server.read_sessions([key])
    incarnation = fields.get(b"inc", b"")
    answer = await server.run(scripts.DELETE_SESSION, key, incarnation, *server.index(key))
    if answer[0] == b"absent":
        return DeleteReceipt(sessions=0, messages=0)
    _, messages, deleted = answer
    await catalogue.settle(server, key, unpack_fields(deleted))
    return DeleteReceipt(sessions=1, messages=messages)


async def claim(server: Server, key: SessionKey, lease: RunLease, now: int) -> RunLease:
    """Hold a session that no other run holds."""
    answer = await _hold(server, key, b"claim", lease.run_id, lease.expires_at, now)
    if answer[0] == b"absent":
        raise session_not_found(key)
    return plan_claim(key, _held(answer), lease, now=now)


async def renew(server: Server, key: SessionKey, lease: RunLease) -> RunLease:
    """Hold a session for longer."""
    answer = await _hold(server, key, b"renew", lease.run_id, lease.expires_at, 0)
    if answer[0] == b"absent":
        raise session_not_found(key)
    return plan_renewal(key, _held(answer), lease)


async def release(server: Server, key: SessionKey, run_id: str) -> bool:
    """Let a session go and return whether the run held it."""
    answer = await _hold(server, key, b"release", run_id, 0, 0)
    return bool(answer[0] == b"ok")


async def _hold(
    server: Server, key: SessionKey, action: bytes, run_id: str, until: int, now: int
) -> Any:
    return await server.run(
        scripts.HOLD_SESSION,
        key,
        new_operation(),
        action,
        run_id.encode(),
        pack_number(until),
        pack_number(now),
    )


def _held(answer: Sequence[Any]) -> RunLease | None:
    """Return the lease that a session has after a script."""
    _, run_id, expires_at = answer
    if run_id is None:
        return None
    return RunLease(run_id=run_id.decode(), expires_at=int(expires_at))
