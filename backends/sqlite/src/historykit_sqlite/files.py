"""The database file, and how connections to it are opened."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from historykit.errors import StorageError
from historykit.records import ServerInfo
from historykit_sqlite.schema import Migration, bring_up_to_date, is_outdated

__all__ = ["DatabaseFile", "cut_log", "server_info"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFile:
    """One file. Connections to it raise `StorageError` where it cannot be used."""

    path: Path
    create: bool
    synchronous: Literal["full", "normal"]
    migrate: bool
    migrations: Sequence[Migration]

    def connect(self) -> sqlite3.Connection:
        """Return a connection for writing, to a file of the newest schema.

        Without write access to the file and its directory, it is a connection for reading.
        """
        writable = self._is_writable()
        db = self._connect(self._writing() if writable else self._reading())
        try:
            outdated = is_outdated(db, self.path, self.migrations, migrate=self.migrate)
            if writable:
                self._set_durability(db)
            if outdated:
                bring_up_to_date(db, self.path, self.migrations)
            # Not before: a migration that builds a table anew would cascade into the others.
            db.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            db.close()
            raise
        return db

    def connect_reader(self) -> sqlite3.Connection:
        """Return a connection that only reads, to a file that `connect` has opened."""
        db = self._connect("mode=rw" if self._is_writable() else self._reading())
        db.execute("PRAGMA query_only = ON")
        return db

    def _connect(self, parameters: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?{parameters}",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
        )

    def _set_durability(self, db: sqlite3.Connection) -> None:
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StorageError(
                f"{self.path} cannot have a write-ahead log, which needs a file system that shares "
                "memory between processes; put it on a local disk"
            )
        db.execute(f"PRAGMA synchronous = {self.synchronous}")
        if self.synchronous == "full":
            db.execute("PRAGMA fullfsync = ON")  # macOS: past the cache of the drive
        db.execute("PRAGMA secure_delete = ON")

    def _is_writable(self) -> bool:
        directory = self.path.parent
        if not directory.is_dir():
            raise StorageError(f"the directory {directory} does not exist; create it")
        if self.path.is_dir():
            raise StorageError(f"{self.path} is a directory; name a file")
        if not self.path.exists():
            if not self.create:
                raise StorageError(
                    f"the file {self.path} does not exist, and with create=False it is not made; "
                    "check the path"
                )
            return True
        return os.access(self.path, os.W_OK) and os.access(directory, os.W_OK)

    def _writing(self) -> str:
        return "mode=rwc" if self.create else "mode=rw"

    def _reading(self) -> str:
        # With a write-ahead log even a reader writes, to its index; without one, a file that nobody
        # changes needs none.
        log = self.path.with_name(f"{self.path.name}-wal")
        return "mode=ro" if log.exists() else "mode=ro&immutable=1"


def cut_log(db: sqlite3.Connection) -> bool:
    """Move all of the write-ahead log into the file and empty it, unless a reader needs it."""
    (in_use, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not in_use


def server_info(db: sqlite3.Connection) -> ServerInfo:
    """Return the version of SQLite and of the schema, and how the file is written."""
    (version,) = db.execute("SELECT sqlite_version()").fetchone()
    names = ("journal_mode", "user_version")
    settings = {name: str(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in names}
    return ServerInfo(product="SQLite", version=version, settings=settings)
