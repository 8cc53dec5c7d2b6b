"""How sessions are found.

BSON compares strings by their bytes in UTF-8, which is the order that a search wants."""

from __future__ import annotations

import asyncio
from typing import Any

from historykit.records import SessionQuery, SessionSlice
from historykit_mongo.connection import Connection
from historykit_mongo.documents import Document, session_record
from historykit_mongo.schema import NEWEST
from historykit_mongo.sessions import FIELDS

__all__ = ["find_sessions"]


async def find_sessions(db: Connection, query: SessionQuery) -> SessionSlice:
    """Return one page of the sessions that match."""
    conditions = _conditions(query)
    behind = {**conditions, **_behind(query)}
    cursor = db.collection.find(behind, FIELDS).sort(list(NEWEST))
    page = cursor.skip(query.offset).limit(query.limit + 1).to_list(None)
    if query.with_total:
        heads, total = await asyncio.gather(page, db.collection.count_documents(conditions))
    else:
        heads, total = await page, None
    return SessionSlice(
        records=tuple(map(session_record, heads[: query.limit])),
        total=total,
        more=len(heads) > query.limit,
    )


def _conditions(query: SessionQuery) -> Document:
    conditions: Document = {
        "namespace": query.namespace,
        "user_id": query.user_id,
        "agent_id": query.agent_id,
        "status": query.status,
        "memory_enabled": query.memory_enabled,
        "labels": {"$all": sorted(query.labels)} if query.labels else None,
        "created_at": _period(query) or None,
    }
    return {name: value for name, value in conditions.items() if value is not None}


def _period(query: SessionQuery) -> Document:
    bounds = {"$gte": query.created_from, "$lt": query.created_before}
    return {name: value for name, value in bounds.items() if value is not None}


def _behind(query: SessionQuery) -> Document:
    """Return the condition for what comes after the position of a query."""
    if query.position is None:
        return {}
    created_at, session_id, user_id = query.position
    same: dict[str, Any] = {"created_at": created_at}
    return {
        "$or": [
            {"created_at": {"$lt": created_at}},
            {**same, "session_id": {"$lt": session_id}},
            {**same, "session_id": session_id, "user_id": {"$lt": user_id}},
        ]
    }
