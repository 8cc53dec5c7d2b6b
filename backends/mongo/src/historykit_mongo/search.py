"""How sessions are found.

BSON compares strings by their bytes in UTF-8, which is the order that a search wants."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from historykit.session_records import SessionQuery, SessionSlice
from historykit_mongo.connection import Connection
from historykit_mongo.documents import Document, session_record
from historykit_mongo.schema import NEWEST
from historykit_mongo.sessions import FIELDS

__all__ = ["find_sessions"]

MANY: Final = 1000
"""Labels that more sessions have than this are taken to be equally frequent."""


async def find_sessions(db: Connection, query: SessionQuery) -> SessionSlice:
    """Return one page of the sessions that match."""
    conditions = _conditions(query, await _rarest_first(db, query))
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


async def _rarest_first(db: Connection, query: SessionQuery) -> list[str]:
    """Return the labels of a query, the one that the fewest sessions have at the beginning.

    MongoDB looks into an index for the first of several values, whatever the others are.
    """
    labels = sorted(query.labels)
    if len(labels) < 2 or query.user_id is not None:
        return labels
    count = db.collection.count_documents
    counts = await asyncio.gather(
        *(count({"namespace": query.namespace, "labels": each}, limit=MANY) for each in labels)
    )
    return [label for _, label in sorted(zip(counts, labels, strict=True))]


def _conditions(query: SessionQuery, labels: Sequence[str]) -> Document:
    conditions: Document = {
        "namespace": query.namespace,
        "user_id": query.user_id,
        "agent_id": query.agent_id,
        "status": query.status,
        "memory_enabled": query.memory_enabled,
        "labels": {"$all": labels} if labels else None,
        "created_at": _period(query) or None,
    }
    return {name: value for name, value in conditions.items() if value is not None}


def _period(query: SessionQuery) -> Document:
    bounds = {"$gte": query.created_from, "$lt": query.created_before}
    return {name: value for name, value in bounds.items() if value is not None}


def _behind(query: SessionQuery) -> Document:
    """Return the condition for what comes after the position of a query.

    It is said so that every index of a search can begin there: an alternative would be looked for
    by itself, in an index of the time.
    """
    if query.position is None:
        return {}
    created_at, session_id, user_id = query.position
    same: Document = {"created_at": created_at}
    return {
        "created_at": {**_period(query), "$lte": created_at},
        "$nor": [
            {**same, "session_id": {"$gt": session_id}},
            {**same, "session_id": session_id, "user_id": {"$gte": user_id}},
        ],
    }
