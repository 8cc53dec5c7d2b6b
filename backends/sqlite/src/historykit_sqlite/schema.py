"""The tables, and how a file gets from one version of them to the next.

Names and times are compared as SQLite does by default, byte for byte. What is read often and small
stands first in a row and bodies stand last, so that looking at the former does not load the latter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from historykit.errors import StorageError
from historykit_sqlite.transactions import look, transact

__all__ = ["APPLICATION_ID", "MIGRATIONS", "Migration", "bring_up_to_date", "is_outdated"]

Migration = Sequence[str]
"""The statements that lead from one version to the next, none of them a BEGIN or COMMIT."""

APPLICATION_ID: Final = int.from_bytes(b"hkit", "big")
"""Marks a file as ours, in the place that SQLite's file format has for it."""

SESSIONS: Final = """
CREATE TABLE sessions (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    status TEXT NOT NULL,
    memory_enabled INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_message_at INTEGER,
    version INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 0,
    next_sequence INTEGER NOT NULL DEFAULT 1,
    streams TEXT NOT NULL DEFAULT '[{}, {}]',
    run_id TEXT,
    run_expires_at INTEGER,
    UNIQUE (namespace, user_id, session_id)
)
"""
"""One row a session. AUTOINCREMENT, so that no session ever gets the number of one that is gone.

Every append rewrites the row: so it is small, and no index holds a column that an append changes.
`streams` holds two JSON objects from the names of streams to numbers: of the messages that are
there, and of those that retention removed."""

BODIES: Final = """
CREATE TABLE session_bodies (
    session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    body BLOB NOT NULL
)
"""

LABELS: Final = """
CREATE TABLE session_labels (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    label TEXT NOT NULL,
    PRIMARY KEY (session, label)
) WITHOUT ROWID
"""

MESSAGES: Final = """
CREATE TABLE messages (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    stream TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    turn_start INTEGER NOT NULL,
    reaction TEXT,
    revision INTEGER NOT NULL DEFAULT 0,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    extra BLOB,
    UNIQUE (session, stream, sequence),
    UNIQUE (session, id)
)
"""

MIGRATIONS: Final[tuple[Migration, ...]] = (
    (
        SESSIONS,
        BODIES,
        LABELS,
        MESSAGES,
        "CREATE INDEX sessions_by_time ON sessions (namespace, created_at, session_id, user_id)",
        "CREATE INDEX sessions_by_user ON sessions (namespace, user_id, created_at, session_id)",
        "CREATE INDEX sessions_by_agent "
        "ON sessions (namespace, agent_id, created_at, session_id, user_id)",
        "CREATE INDEX sessions_by_status "
        "ON sessions (namespace, status, created_at, session_id, user_id)",
        "CREATE INDEX sessions_by_label ON session_labels (label, session)",
        "CREATE INDEX turns ON messages (session, stream, sequence) WHERE turn_start",
    ),
    (
        "CREATE INDEX sessions_by_memory "
        "ON sessions (namespace, memory_enabled, created_at, session_id, user_id)",
    ),
)
"""The way from an empty file to version 1, from version 1 to version 2, and so on."""


def is_outdated(
    db: sqlite3.Connection, path: Path, migrations: Sequence[Migration], *, migrate: bool
) -> bool:
    """Return whether the file is new, or older than `migrations` and may be upgraded.

    Raises `StorageError` for a file that is not ours, is newer than `migrations`, or is older where
    `migrate` is False. Changes nothing.
    """
    found = look(db, lambda db: _schema_version(db, path, migrations))
    if 0 < found < len(migrations) and not migrate:
        raise StorageError(
            f"{path} has schema version {found}, and this version of historykit-sqlite needs "
            f"{len(migrations)}; make a copy of it, then open it once with migrate=True"
        )
    return found < len(migrations)


def bring_up_to_date(db: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Give the file the newest schema, in one transaction however many steps it takes.

    Killed midway, it stays at the version that it had. Of several processes at once, one does it
    and the others find it done.
    """

    def work(db: sqlite3.Connection) -> None:
        for step in migrations[_schema_version(db, path, migrations) :]:
            for statement in step:
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(migrations)}")

    transact(db, work)


def _schema_version(db: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> int:
    """Return the version that the file has, 0 for an empty one."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (entries,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (application or version or entries):
        raise StorageError(
            f"{path} is the database of another application; give historykit a file of its own"
        )
    if version > len(migrations):
        raise StorageError(
            f"{path} has schema version {version}, and this version of historykit-sqlite knows "
            f"{len(migrations)} at most; upgrade historykit-sqlite"
        )
    return int(version)
