"""What is done with sessions. Each function is for a transaction unless it says otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from historykit.planning import (
    plan_claim,
    plan_patch,
    plan_release,
    plan_renewal,
    session_exists,
    session_not_found,
)
from historykit.records import DeleteReceipt
from historykit.session_records import (
    MAIN_STREAM,
    IfExists,
    RunLease,
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionRecord,
)
from historykit_postgres.drivers import Driver, Row
from historykit_postgres.heads import Head
from historykit_postgres.names import Names, digest

__all__ = [
    "RECORDS",
    "claim_run",
    "create_session",
    "delete_session",
    "insert_session",
    "patch_session",
    "read_session",
    "release_run",
    "renew_run",
    "session_record",
]

RECORDS: Final = """
SELECT s.id, s.namespace, s.user_id, s.session_id, s.incarnation, s.agent_id, s.status,
       s.memory_enabled, s.created_at, s.updated_at, s.last_message_at, s.version, s.revision,
       s.run_id, s.run_expires_at, s.live::text,
       coalesce((SELECT b.body FROM {session_bodies} AS b WHERE b.session = s.id), ''::bytea)
           AS body,
       ARRAY(SELECT l.label FROM {session_labels} AS l WHERE l.session = s.id) AS labels
FROM {sessions} AS s
"""
"""The beginning of a statement whose rows `session_record` takes."""


READ: Final = f"{RECORDS} WHERE key = $1"
LOCK: Final = "SELECT id FROM {sessions} WHERE key = $1 FOR UPDATE"
INSERT: Final = """
INSERT INTO {sessions} (key, namespace, user_id, session_id, incarnation, agent_id, status,
                        memory_enabled, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (key) DO NOTHING
RETURNING id
"""
UPDATE: Final = """
UPDATE {sessions} SET agent_id = $2, status = $3, memory_enabled = $4, updated_at = $5,
                      revision = $6
WHERE id = $1
"""
DELETE: Final = """
WITH gone AS (DELETE FROM {messages} WHERE session = $1 RETURNING 1),
     bodies AS (DELETE FROM {session_bodies} WHERE session = $1),
     labels AS (DELETE FROM {session_labels} WHERE session = $1),
     sessions AS (DELETE FROM {sessions} WHERE id = $1)
SELECT count(*) FROM gone
"""
WRITE_BODY: Final = """
INSERT INTO {session_bodies} (session, body) VALUES ($1, $2)
ON CONFLICT (session) DO UPDATE SET body = excluded.body
"""
DELETE_LABELS: Final = "DELETE FROM {session_labels} WHERE session = $1"
INSERT_LABELS: Final = """
INSERT INTO {session_labels} (session, label) SELECT $1::bigint, unnest($2::text[])
"""
LEASE: Final = """
SELECT id, run_id, run_expires_at FROM {sessions} WHERE key = $1 FOR UPDATE
"""
WRITE_LEASE: Final = "UPDATE {sessions} SET run_id = $2, run_expires_at = $3 WHERE id = $1"


async def create_session(
    driver: Driver,
    names: Names,
    key: SessionKey,
    draft: SessionDraft,
    if_exists: IfExists,
    incarnation: str,
    now: int,
) -> SessionRecord:
    """Create a session, or do with the existing one what `if_exists` says, and return it."""
    while await insert_session(driver, names, key, draft, incarnation, now) is None:
        row = await driver.fetch(names(LOCK), digest(key))
        if not row:
            continue  # it was deleted meanwhile
        if if_exists == "error":
            raise session_exists(key)
        if if_exists == "update":
            return await patch_session(driver, names, key, draft.as_patch(), None, now)
        break
    return await read_session(driver, names, key)


async def insert_session(
    driver: Driver,
    names: Names,
    key: SessionKey,
    draft: SessionDraft,
    incarnation: str,
    now: int,
    *,
    stream: str = MAIN_STREAM,
) -> Head | None:
    """Create a session and return its head, None where there is one already."""
    created_at = now if draft.created_at is None else draft.created_at
    fields = (incarnation, draft.agent_id, draft.status, draft.memory_enabled, created_at, now)
    ids = (key.namespace, key.user_id, key.session_id)
    rows = await driver.fetch(names(INSERT), digest(key), *ids, *fields)
    if not rows:
        return None
    ((id,),) = rows
    if draft.body:
        await driver.fetch(names(WRITE_BODY), id, draft.body)
    await _insert_labels(driver, names, id, draft.labels)
    return Head(stream, id, incarnation, draft.memory_enabled)


async def read_session(driver: Driver, names: Names, key: SessionKey) -> SessionRecord:
    """Return a session. It needs no transaction."""
    return (await _find(driver, names, key))[1]


async def patch_session(
    driver: Driver,
    names: Names,
    key: SessionKey,
    patch: SessionPatch,
    if_revision: int | None,
    now: int,
) -> SessionRecord:
    """Change fields of a session and return it."""
    await driver.fetch(names(LOCK), digest(key))
    id, record = await _find(driver, names, key)
    changed = plan_patch(record, patch, if_revision, now=now)
    row = (changed.agent_id, changed.status, changed.memory_enabled, now, changed.revision)
    await driver.fetch(names(UPDATE), id, *row)
    if patch.body is not None:
        await driver.fetch(names(WRITE_BODY), id, patch.body)
    if patch.labels is not None:
        await driver.fetch(names(DELETE_LABELS), id)
        await _insert_labels(driver, names, id, patch.labels)
    return changed


async def delete_session(driver: Driver, names: Names, key: SessionKey) -> DeleteReceipt:
    """Delete a session with all that belongs to it."""
    rows = await driver.fetch(names(LOCK), digest(key))
    if not rows:
        return DeleteReceipt(sessions=0, messages=0)
    ((messages,),) = await driver.fetch(names(DELETE), rows[0][0])
    return DeleteReceipt(sessions=1, messages=messages)


async def claim_run(
    driver: Driver, names: Names, key: SessionKey, lease: RunLease, now: int
) -> RunLease:
    """Hold a session for a run."""
    id, held = await _lease(driver, names, key)
    return await _hold(driver, names, id, plan_claim(key, held, lease, now=now))


async def renew_run(driver: Driver, names: Names, key: SessionKey, lease: RunLease) -> RunLease:
    """Hold a session for longer."""
    id, held = await _lease(driver, names, key)
    return await _hold(driver, names, id, plan_renewal(key, held, lease))


async def release_run(driver: Driver, names: Names, key: SessionKey, run_id: str) -> bool:
    """Let a session go and return whether the run held it."""
    rows = await driver.fetch(names(LEASE), digest(key))
    if not rows or not plan_release(_held(rows[0]), run_id):
        return False
    await driver.fetch(names(WRITE_LEASE), rows[0][0], None, None)
    return True


def session_record(row: Row) -> SessionRecord:
    """Return the session that a row of `RECORDS` holds."""
    (
        _,
        namespace,
        user_id,
        session_id,
        incarnation,
        agent_id,
        status,
        memory_enabled,
        created_at,
        updated_at,
        last_message_at,
        version,
        revision,
        run_id,
        run_expires_at,
        live,
        body,
        labels,
    ) = row
    return SessionRecord(
        key=SessionKey(namespace, user_id, session_id),
        incarnation=incarnation,
        agent_id=agent_id,
        status=status,
        memory_enabled=memory_enabled,
        labels=frozenset(labels),
        body=body,
        created_at=created_at,
        updated_at=updated_at,
        last_message_at=last_message_at,
        streams={name: count for name, count in json.loads(live).items() if count},
        version=version,
        revision=revision,
        run_id=run_id,
        run_expires_at=run_expires_at,
    )


async def _find(driver: Driver, names: Names, key: SessionKey) -> tuple[int, SessionRecord]:
    """Return the number of a session's row and the session."""
    rows = await driver.fetch(names(READ), digest(key))
    if not rows:
        raise session_not_found(key)
    return rows[0][0], session_record(rows[0])


async def _insert_labels(driver: Driver, names: Names, id: int, labels: Iterable[str]) -> None:
    if labels:
        await driver.fetch(names(INSERT_LABELS), id, list(labels))


async def _lease(driver: Driver, names: Names, key: SessionKey) -> tuple[int, RunLease | None]:
    """Lock a session and return the number of its row and the lease on it."""
    rows = await driver.fetch(names(LEASE), digest(key))
    if not rows:
        raise session_not_found(key)
    return rows[0][0], _held(rows[0])


def _held(row: Row) -> RunLease | None:
    _, run_id, expires_at = row
    return None if run_id is None else RunLease(run_id=run_id, expires_at=expires_at)


async def _hold(driver: Driver, names: Names, id: int, lease: RunLease) -> RunLease:
    await driver.fetch(names(WRITE_LEASE), id, lease.run_id, lease.expires_at)
    return lease
