"""How sessions are found. Runs in the connection's thread, in a transaction.

SQLite keeps no statistics unless somebody asks for them, so each search names what to begin with:
a plus before a column keeps SQLite from the indexes of that column."""

from __future__ import annotations

import sqlite3
from typing import Final

from historykit.session_records import SessionQuery, SessionSlice
from historykit_sqlite.sessions import RECORDS, session_record

__all__ = ["find_sessions"]

AMONG_LABELLED: Final = "row IN (SELECT session FROM session_labels WHERE label = ?)"
HAS_LABEL: Final = "EXISTS (SELECT * FROM session_labels WHERE session = row AND label = ?)"
BEHIND: Final = "(created_at, session_id, user_id) < (?, ?, ?)"
NEWEST_FIRST: Final = "ORDER BY created_at DESC, session_id DESC, user_id DESC"

MANY: Final = 1000
"""Labels that more sessions have than this are taken to be equally frequent."""

LABELLED: Final = (
    f"SELECT count(*) FROM (SELECT 1 FROM session_labels WHERE label = ? LIMIT {MANY})"
)

Condition = tuple[str, tuple[object, ...]]
"""A condition in SQL, with its parameters."""


def find_sessions(db: sqlite3.Connection, query: SessionQuery) -> SessionSlice:
    """Return one page of the sessions that match."""
    conditions = _conditions(query, _rarest_last(db, query))
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


def _conditions(query: SessionQuery, labels: list[str]) -> list[Condition]:
    """Return the conditions of a query, which say what to begin with.

    That is the user, else the rarest label, else the agent, the status, the memory or the time.
    """
    conditions: list[Condition] = []
    is_begun = query.user_id is None and bool(labels)
    if is_begun:
        conditions.append((AMONG_LABELLED, (labels.pop(),)))
    # The index of the time begins with the namespace, too.
    conditions.append(("+namespace = ?" if is_begun else "namespace = ?", (query.namespace,)))
    for name, value in (
        ("user_id", query.user_id),
        ("agent_id", query.agent_id),
        ("status", query.status),
        ("memory_enabled", query.memory_enabled),
    ):
        if value is not None:
            conditions.append((f"+{name} = ?" if is_begun else f"{name} = ?", (value,)))
            is_begun = True
    if query.created_from is not None:
        conditions.append(("created_at >= ?", (query.created_from,)))
    if query.created_before is not None:
        conditions.append(("created_at < ?", (query.created_before,)))
    conditions += [(HAS_LABEL, (label,)) for label in labels]
    return conditions


def _rarest_last(db: sqlite3.Connection, query: SessionQuery) -> list[str]:
    """Return the labels of a query, the one that the fewest sessions have at the end."""
    ordered = sorted(query.labels)
    if len(ordered) < 2 or query.user_id is not None:
        return ordered
    counts = {label: db.execute(LABELLED, (label,)).fetchone()[0] for label in ordered}
    return sorted(ordered, key=lambda label: -int(counts[label]))


def _count(db: sqlite3.Connection, conditions: list[Condition]) -> int:
    where, parameters = _joined(conditions)
    (total,) = db.execute(f"SELECT count(*) FROM sessions {where}", parameters).fetchone()
    return int(total)


def _joined(conditions: list[Condition]) -> tuple[str, tuple[object, ...]]:
    where = "WHERE " + " AND ".join(condition for condition, _ in conditions)
    return where, tuple(value for _, values in conditions for value in values)
