"""What is done with sessions. Each function runs in the connection's thread, in a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

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
    IfExists,
    RunLease,
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionRecord,
)
from historykit_sqlite.heads import Head, live_messages, read_head

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
SELECT row, namespace, user_id, session_id, incarnation, agent_id, status, memory_enabled,
       created_at, updated_at, last_message_at, version, revision, run_id, run_expires_at,
       streams, body
FROM sessions JOIN session_bodies ON session_bodies.session = sessions.row
"""
"""The beginning of a statement whose rows `session_record` takes."""

THIS: Final = "WHERE namespace = ? AND user_id = ? AND session_id = ?"

INSERT: Final = """
INSERT INTO sessions (namespace, user_id, session_id, incarnation, agent_id, status,
                      memory_enabled, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
UPDATE: Final = """
UPDATE sessions SET agent_id = ?, status = ?, memory_enabled = ?, updated_at = ?, revision = ?
WHERE row = ?
"""
DELETE: Final = "DELETE FROM sessions WHERE row = ?"
READ_LEASE: Final = f"SELECT run_id, run_expires_at FROM sessions {THIS}"
WRITE_LEASE: Final = f"UPDATE sessions SET run_id = ?, run_expires_at = ? {THIS}"
INSERT_BODY: Final = "INSERT INTO session_bodies (session, body) VALUES (?, ?)"
UPDATE_BODY: Final = "UPDATE session_bodies SET body = ? WHERE session = ?"
READ_LABELS: Final = "SELECT label FROM session_labels WHERE session = ?"
INSERT_LABEL: Final = "INSERT INTO session_labels (session, label) VALUES (?, ?)"
DELETE_LABELS: Final = "DELETE FROM session_labels WHERE session = ?"


def create_session(
    db: sqlite3.Connection,
    key: SessionKey,
    draft: SessionDraft,
    if_exists: IfExists,
    incarnation: str,
    now: int,
) -> SessionRecord:
    """Create a session, or do with the existing one what `if_exists` says, and return it."""
    if read_head(db, key) is None:
        insert_session(db, key, draft, incarnation, now)
    elif if_exists == "error":
        raise session_exists(key)
    elif if_exists == "update":
        return patch_session(db, key, draft.as_patch(), None, now)
    return read_session(db, key)


def insert_session(
    db: sqlite3.Connection, key: SessionKey, draft: SessionDraft, incarnation: str, now: int
) -> Head:
    """Create a session that does not exist and return its head."""
    created_at = now if draft.created_at is None else draft.created_at
    fields = (incarnation, draft.agent_id, draft.status, draft.memory_enabled, created_at, now)
    row = db.execute(INSERT, (*_place(key), *fields)).lastrowid
    assert row is not None, "an INSERT has one"
    db.execute(INSERT_BODY, (row, draft.body))
    _insert_labels(db, row, draft.labels)
    return Head(row=row, incarnation=incarnation, memory_enabled=draft.memory_enabled)


def read_session(db: sqlite3.Connection, key: SessionKey) -> SessionRecord:
    """Return a session."""
    return _find(db, key)[1]


def patch_session(
    db: sqlite3.Connection,
    key: SessionKey,
    patch: SessionPatch,
    if_revision: int | None,
    now: int,
) -> SessionRecord:
    """Change fields of a session and return it."""
    row, record = _find(db, key)
    changed = plan_patch(record, patch, if_revision, now=now)
    fields = (changed.agent_id, changed.status, changed.memory_enabled, now, changed.revision)
    db.execute(UPDATE, (*fields, row))
    if patch.body is not None:
        db.execute(UPDATE_BODY, (patch.body, row))
    if patch.labels is not None:
        db.execute(DELETE_LABELS, (row,))
        _insert_labels(db, row, patch.labels)
    return changed


def delete_session(db: sqlite3.Connection, key: SessionKey) -> DeleteReceipt:
    """Delete a session; what belongs to it goes by the foreign keys."""
    head = read_head(db, key)
    if head is None:
        return DeleteReceipt(sessions=0, messages=0)
    db.execute(DELETE, (head.row,))
    return DeleteReceipt(sessions=1, messages=sum(head.live.values()))


def claim_run(db: sqlite3.Connection, key: SessionKey, lease: RunLease, now: int) -> RunLease:
    """Hold a session for a run."""
    return _hold(db, key, plan_claim(key, _lease(db, key), lease, now=now))


def renew_run(db: sqlite3.Connection, key: SessionKey, lease: RunLease) -> RunLease:
    """Hold a session for longer."""
    return _hold(db, key, plan_renewal(key, _lease(db, key), lease))


def release_run(db: sqlite3.Connection, key: SessionKey, run_id: str) -> bool:
    """Let a session go and return whether the run held it."""
    if read_head(db, key) is None or not plan_release(_lease(db, key), run_id):
        return False
    db.execute(WRITE_LEASE, (None, None, *_place(key)))
    return True


def session_record(db: sqlite3.Connection, row: tuple[Any, ...]) -> SessionRecord:
    """Return the session that a row of `RECORDS` holds, with its labels."""
    (
        number,
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
        streams,
        body,
    ) = row
    return SessionRecord(
        key=SessionKey(namespace, user_id, session_id),
        incarnation=incarnation,
        agent_id=agent_id,
        status=status,
        memory_enabled=bool(memory_enabled),
        labels=frozenset(label for (label,) in db.execute(READ_LABELS, (number,))),
        body=body,
        created_at=created_at,
        updated_at=updated_at,
        last_message_at=last_message_at,
        streams=live_messages(streams),
        version=version,
        revision=revision,
        run_id=run_id,
        run_expires_at=run_expires_at,
    )


def _place(key: SessionKey) -> tuple[str, str, str]:
    return key.namespace, key.user_id, key.session_id


def _find(db: sqlite3.Connection, key: SessionKey) -> tuple[int, SessionRecord]:
    """Return the number of a session's row and the session."""
    row = db.execute(f"{RECORDS} {THIS}", _place(key)).fetchone()
    if row is None:
        raise session_not_found(key)
    return row[0], session_record(db, row)


def _insert_labels(db: sqlite3.Connection, row: int, labels: Iterable[str]) -> None:
    db.executemany(INSERT_LABEL, [(row, label) for label in labels])


def _lease(db: sqlite3.Connection, key: SessionKey) -> RunLease | None:
    row = db.execute(READ_LEASE, _place(key)).fetchone()
    if row is None:
        raise session_not_found(key)
    run_id, expires_at = row
    return None if run_id is None else RunLease(run_id=run_id, expires_at=expires_at)


def _hold(db: sqlite3.Connection, key: SessionKey, lease: RunLease) -> RunLease:
    db.execute(WRITE_LEASE, (lease.run_id, lease.expires_at, *_place(key)))
    return lease
