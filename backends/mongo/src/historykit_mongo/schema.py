"""The indexes of the collection, and how they come to be.

To shard the collection take the key ``{s: 1}``, by range: it is a digest, so that sessions spread
evenly, all of one session is on one shard, and the unique index has the key in front."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from pymongo import DESCENDING, IndexModel
from pymongo.errors import DuplicateKeyError

from historykit.errors import StorageError
from historykit_mongo.connection import Connection, resolved
from historykit_mongo.documents import Document

__all__ = ["SCHEMA", "set_up"]

SCHEMA: Final = 1
"""The version of what the documents look like."""

NEWEST: Final = (("created_at", DESCENDING), ("session_id", DESCENDING), ("user_id", DESCENDING))

INDEXES: Final = (
    IndexModel(
        [("s", 1), ("ids", 1), ("incarnation", 1)], name="message_ids", unique=True, sparse=True
    ),
    # Buckets have no namespace, so they are in none of these.
    IndexModel([("namespace", 1), *NEWEST], name="newest", sparse=True),
    IndexModel([("namespace", 1), ("user_id", 1), *NEWEST[:2]], name="user", sparse=True),
    IndexModel([("namespace", 1), ("agent_id", 1), *NEWEST], name="agent", sparse=True),
    IndexModel([("namespace", 1), ("status", 1), *NEWEST], name="status", sparse=True),
    IndexModel([("namespace", 1), ("memory_enabled", 1), *NEWEST], name="memory", sparse=True),
    IndexModel([("namespace", 1), ("labels", 1), *NEWEST], name="labels", sparse=True),
)

MARK: Final = "historykit"
"""The id of the document that says which version the collection has."""


async def set_up(db: Connection) -> None:
    """Make what is missing of the collection. Any number of processes may do so at once.

    Raises `StorageError` for a collection that a newer version wrote.
    """
    found = await db.collection.find_one({"_id": MARK})
    if found is not None and found["schema"] != SCHEMA:
        raise StorageError(
            f"the collection {db.name!r} has version {found['schema']} of historykit's documents, "
            f"this is made for version {SCHEMA}; install a historykit-mongo that knows it"
        )
    if found is not None and {index.document["name"] for index in INDEXES} <= await _names(db):
        return
    await db.collection.create_indexes(list(INDEXES))
    if found is None:
        with suppress(DuplicateKeyError):  # another process was first
            await db.collection.insert_one({"_id": MARK, "schema": SCHEMA})


async def _names(db: Connection) -> set[str]:
    cursor: Any = await resolved(db.collection.list_indexes())
    indexes: list[Document] = await cursor.to_list(None)
    return {index["name"] for index in indexes}
