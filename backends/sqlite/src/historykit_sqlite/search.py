"""How sessions are found. Runs in the connection's thread, in a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from historykit.records import SessionQuery, SessionSlice
from historykit_sqlite.sessions import RECORDS, session_record

__all__ = ["find_sessions"]

AMONG_LABELLED: Final = "row IN (SELECT session FROM session_labels WHERE label = ?)"
HAS_LABEL: Final = "EXISTS (SELECT * FROM session_labels WHERE session = row AND label = ?)"
BEHIND: Final = "(created_at, session_id, user_id) < (?, ?, ?)"
NEWEST_FIRST: Final = "ORDER BY created_at DESC, session_id DESC, user_id DESC"

Condition = tuple[str, tuple[object, ...]]
"""A condition in SQL, with its parameters."""


def find_sessions(db: sqlite3.Connection, query: SessionQuery) -> SessionSlice:
    """Return one page of the sessions that match."""
    conditions = list(_conditions(query))
    total = _count(db, conditions) if query.with_total else None
    if query.position is not None:
        conditions.append((BEHIND, query.position))
    where, parameters = _joined(conditions)
    rows = db.execute(
        f"{RECORDS} {where} {NEWEST_FIRST} LIMIT ? OFFSET ?",
        (*parameters, query.limit + 1, query.offset),
    ).fetchall()
    records = tuple(session_record(db, row) for row in rows[: query.limit])
    return SessionSlice(records=records, total=total, more=len(rows) > query.limit)


def _conditions(query: SessionQuery) -> Iterator[Condition]:
    labels = sorted(query.labels)
    if labels and query.user_id is None:
        # Labels tell more than anything else that is left; the plus keeps SQLite from beginning
        # with an index of sessions, all of which begin with the namespace.
        yield "+namespace = ?", (query.namespace,)
        yield AMONG_LABELLED, (labels.pop(),)
    else:
        yield "namespace = ?", (query.namespace,)
    for condition, value in (
        ("user_id = ?", query.user_id),
        ("agent_id = ?", query.agent_id),
        ("status = ?", query.status),
        ("memory_enabled = ?", query.memory_enabled),
        ("created_at >= ?", query.created_from),
        ("created_at < ?", query.created_before),
    ):
        if value is not None:
            yield condition, (value,)
    for label in labels:
        yield HAS_LABEL, (label,)


def _count(db: sqlite3.Connection, conditions: list[Condition]) -> int:
    where, parameters = _joined(conditions)
    (total,) = db.execute(f"SELECT count(*) FROM sessions {where}", parameters).fetchone()
    return int(total)


def _joined(conditions: list[Condition]) -> tuple[str, tuple[object, ...]]:
    where = "WHERE " + " AND ".join(condition for condition, _ in conditions)
    return where, tuple(value for _, values in conditions for value in values)
