"""SQLite's errors, and what they are in historykit."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from historykit.errors import (
    ConflictError,
    HistoryKitError,
    InvalidRequestError,
    StorageError,
    StorageUnavailableError,
    TooLargeError,
)

__all__ = ["is_busy", "translate"]

BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def is_busy(error: Exception) -> bool:
    """Return whether the error says that another connection is in the way."""
    return _code(error) in BUSY


def translate(error: Exception, operation: str, path: Path) -> HistoryKitError:
    """Return the error of historykit that stands for one that was raised while using the file."""
    if isinstance(error, OverflowError):
        return InvalidRequestError(f"{operation}: SQLite takes integers of 64 bits at most")
    if isinstance(error, UnicodeEncodeError):
        return InvalidRequestError(f"{operation}: SQLite takes no surrogates in names; remove them")
    if isinstance(error, sqlite3.DataError):
        return TooLargeError(f"{operation}: more than SQLite takes in one row ({error})")
    if isinstance(error, sqlite3.IntegrityError):
        return ConflictError(f"{operation}: a message of this id is stored already ({error})")
    return _failure(_code(error), f"{operation} in {path} failed", error)


def _failure(code: int, what: str, error: Exception) -> StorageError:
    if code in BUSY:
        return StorageUnavailableError(
            f"{what}: it is locked by another connection for longer than busy_timeout; try again, "
            "or find out who holds it"
        )
    if code == sqlite3.SQLITE_FULL:
        return StorageUnavailableError(f"{what}: the disk is full; make room and try again")
    if code == sqlite3.SQLITE_IOERR:
        return StorageUnavailableError(f"{what}: {error}; look at the disk it lies on")
    if code == sqlite3.SQLITE_READONLY:
        return StorageError(f"{what}: no write access; grant it to the file and its directory")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StorageError(f"{what}: {error}; grant access to the file and its directory")
    if code in DAMAGED:
        return StorageError(f"{what}: it is no SQLite database or damaged; restore it from a copy")
    return StorageError(f"{what}: {type(error).__name__}: {error}")


def _code(error: Exception) -> int:
    """Return SQLite's result code, without what an extended one adds to it; 0 where none is."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF
