"""PostgreSQL's errors, and what they are in historykit.

Only the main text of a server's error is shown: its detail may hold the row, and with it messages;
and an error of a connection may hold a password."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from historykit.errors import (
    ConflictError,
    HistoryKitError,
    InvalidRequestError,
    StorageError,
    StorageUnavailableError,
    TooLargeError,
)
from historykit.redaction import redact_url

__all__ = ["is_lost", "is_overtaken", "translate"]

UNIQUE_VIOLATION: Final = "23505"
SERIALIZATION_FAILURE: Final = "40001"
DEADLOCK: Final = "40P01"

LOST: Final = frozenset({"57P01", "57P02", "57P05", "25P03"})
"""The server ends the connection, and says so: on command, after a crash, after idling."""

UNAVAILABLE: Final = {
    "40001": "another transaction was faster; run this one again",
    "40P01": "another transaction waits for this one, and the reverse; run it again",
    "53100": "the server's disk is full; make room and try again",
    "53200": "the server is out of memory; try again later",
    "53300": "the server has no connection left; lower pool_size, or raise max_connections",
    "55P03": "a lock was not free for longer than lock_timeout; try again, or find who holds it",
    "57014": "the server cancelled it, after statement_timeout or on command; try again",
    "57P01": "the server was shut down, or the connection ended by an administrator; try again",
    "57P02": "the server crashed and recovers; try again",
    "57P03": "the server starts or stops; try again",
}
"""What to do where a later try may succeed."""

UNPREPARED: Final = (
    "something between here and the server changes connections; where that is PgBouncer in "
    "transaction mode, set prepared_statements=False, or max_prepared_statements there"
)

REFUSED: Final = {
    "25006": "the server only reads, as a standby does; name the primary in the URL",
    "25P02": "the transaction has failed before; roll it back",
    "26000": UNPREPARED,
    "3D000": "the database does not exist; create it",
    "3F000": "the schema does not exist; create it, or name another one",
    "42501": "the role may not do that; grant it USAGE on the schema and SELECT, INSERT, UPDATE "
    "and DELETE on the tables, or let another role make them: historykit_postgres.ddl(config) "
    "returns the statements",
    "42P05": UNPREPARED,
    "42P01": "the tables are gone; close the store and open it again to make new ones",
}
"""What to do where no try will succeed until something is changed."""


def is_lost(error: BaseException) -> bool:
    """Return whether the error says that the connection is gone."""
    if isinstance(error, HistoryKitError):
        return False
    code = _code(error)
    if code is not None:
        return code in LOST or code.startswith("08")
    return _unreachable(error)


def is_overtaken(error: Exception) -> bool:
    """Return whether a write met one of its messages, or another write that came first."""
    return _code(error) in (UNIQUE_VIOLATION, SERIALIZATION_FAILURE, DEADLOCK)


def translate(error: Exception, operation: str, place: str) -> HistoryKitError:
    """Return the error of historykit that stands for one that was raised while using `place`."""
    code = _code(error)
    what = f"{operation} in {place} failed"
    if (code or "").startswith("22") or _named(error, "DataError", "UnicodeEncodeError"):
        return InvalidRequestError(
            f"{operation}: PostgreSQL takes no NUL and no surrogates in names, and integers of 64 "
            "bits at most"
        )
    if code is not None:
        return _of_server(code, f"{what}: {_text(error)}", operation)
    if isinstance(error, TimeoutError):
        return StorageUnavailableError(
            f"{what}: no answer within the timeout; the server may be overloaded, a row locked by "
            "another transaction, or every connection of the pool in use"
        )
    if _unreachable(error):
        return StorageUnavailableError(
            f"{what}: no connection, or it was lost ({_farewell(error)}); check the URL, and that "
            "the server runs and lets this machine in"
        )
    return StorageError(f"{what}: {type(error).__name__}; its cause says more")


def _of_server(code: str, what: str, operation: str) -> HistoryKitError:
    if code == UNIQUE_VIOLATION:
        return ConflictError(f"{operation}: a message of this id is stored already")
    if code.startswith("54"):
        return TooLargeError(f"{what}; it is more than PostgreSQL takes at a time")
    if code in UNAVAILABLE:
        return StorageUnavailableError(f"{what}; {UNAVAILABLE[code]}")
    if code.startswith("08"):
        return StorageUnavailableError(f"{what}; the connection is gone, try again")
    if code.startswith("28"):
        return StorageError(f"{what}; check user and password in the URL, and pg_hba.conf")
    if code in REFUSED:
        return StorageError(f"{what}; {REFUSED[code]}")
    return StorageError(f"{what} (SQLSTATE {code})")


def _unreachable(error: BaseException) -> bool:
    return not _named(error, "DataError") and (
        any(isinstance(each, OSError) for each in _chain(error))
        or _named(error, "OperationalError", "InterfaceError", "TimeoutError")
    )


def _named(error: BaseException, *names: str) -> bool:
    """Return whether the error is of a class with one of these names.

    Both drivers have them, and so has SQLAlchemy; a driver that is not used is not imported.
    """
    return any(parent.__name__ in names for each in _chain(error) for parent in type(each).__mro__)


def _code(error: BaseException) -> str | None:
    """Return the SQLSTATE, None where the server did not say one."""
    for each in _chain(error):
        code = getattr(each, "sqlstate", None)
        if isinstance(code, str):
            return code
    return None


def _text(error: Exception) -> str:
    """Return the main text of a server's error."""
    for each in _chain(error):
        diagnosis = getattr(each, "diag", None)
        text = getattr(diagnosis, "message_primary", None) or getattr(each, "message", None)
        if isinstance(text, str):
            return redact_url(text)
    return type(error).__name__


def _farewell(error: Exception) -> str:
    """Return what the server said when it refused a connection, else the kind of the error.

    psycopg has no SQLSTATE for that.
    """
    _, fatal, said = str(error).rpartition("FATAL: ")
    return said.strip() if fatal else type(error).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and those that it was made of, as SQLAlchemy makes them."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = getattr(seen, "orig", None) or seen.__cause__
