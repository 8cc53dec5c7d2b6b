"""redis-py's errors, and what they are in historykit."""

from __future__ import annotations

import asyncio
import struct
from typing import Final

from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    MaxConnectionsError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    TimeoutError,
    TryAgainError,
)

from historykit.errors import (
    HistoryKitError,
    InvalidRequestError,
    StorageError,
    StorageUnavailableError,
    WrongLoopError,
)
from historykit.session_records import SessionKey

__all__ = ["damaged", "translate"]

ONE_OF_MANY: Final = (
    "the server is part of a cluster; use a url of the form redis+cluster://host:port"
)
REFUSED: Final[tuple[tuple[type[Exception], str], ...]] = (
    (AuthenticationError, "the server refuses user or password; correct them in the url"),
    (
        NoPermissionError,
        "the server's access list does not allow it; grant the user the keys that begin with the "
        "prefix, and +@read +@write +@scripting",
    ),
    (
        MovedError,
        "the server is part of a cluster; use a url of the form redis+cluster://host:port",
    ),
)
UNAVAILABLE: Final[tuple[tuple[type[Exception], str], ...]] = (
    (OutOfMemoryError, "the server has no memory left; raise its maxmemory or make room"),
    (ReadOnlyError, "the server is a replica that takes no writes; connect to its primary"),
    (MaxConnectionsError, "all connections are in use; raise max_connections"),
    (BusyLoadingError, "the server is loading its data; try again"),
    (ClusterDownError, "the cluster is down"),
    (RedisClusterException, "the cluster cannot be reached"),
    (MasterDownError, "the replica has lost its primary"),
    (TryAgainError, "the cluster is moving the session; try again"),
    (ConnectionError, "the server cannot be reached"),
    (TimeoutError, "the server did not answer in time"),
    (asyncio.TimeoutError, "the server did not answer in time"),
    (OSError, "the server cannot be reached"),
)
UNAVAILABLE_CODES: Final = ("BUSY", "MISCONF", "NOREPLICAS")
"""How answers begin that another attempt may not get."""


def translate(error: Exception, operation: str) -> HistoryKitError:
    """Return the error of historykit that stands for one that was raised while using the server."""
    what = f"{operation} in Redis failed"
    for kind, reason in REFUSED:
        if isinstance(error, kind):
            return StorageError(f"{what}: {reason}")
    for kind, reason in UNAVAILABLE:
        if isinstance(error, kind):
            return StorageUnavailableError(f"{what}: {reason} ({_shown(error)})")
    if isinstance(error, UnicodeEncodeError):
        return InvalidRequestError(f"{operation}: Redis takes no surrogates in names; remove them")
    if isinstance(error, struct.error | OverflowError):
        return InvalidRequestError(f"{operation}: a time or a length is too large ({error})")
    if isinstance(error, RuntimeError) and "loop" in str(error):
        return WrongLoopError(
            f"{what}: the client belongs to another event loop; hand in one for each loop"
        )
    if str(error).startswith("MOVED"):  # older versions of the driver have no class for it here
        return StorageError(f"{what}: {ONE_OF_MANY}")
    if str(error).startswith(UNAVAILABLE_CODES):
        return StorageUnavailableError(f"{what}: {_shown(error)}")
    return StorageError(f"{what}: {_shown(error)}")


def damaged(key: SessionKey) -> StorageError:
    """Return the error for a session of which the server lost a part."""
    return StorageError(
        f"messages of session {key.session_id!r} are gone from Redis, evicted or deleted by hand; "
        "set maxmemory-policy to noeviction, and delete the session or restore it from a copy"
    )


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
