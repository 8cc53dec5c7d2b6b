"""Faults that a test can bring about in a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from historykit.store import HistoryStore

__all__ = ["OPERATIONS", "Outage", "failing", "simulated_outage"]

Outage = Callable[[HistoryStore], AbstractAsyncContextManager[None]]
"""Makes the server of an opened store unreachable for the time of an ``async with`` block."""

OPERATIONS: Final = (
    "_append",
    "_claim_run",
    "_create_session",
    "_delete_messages",
    "_delete_session",
    "_find_sessions",
    "_patch_session",
    "_ping",
    "_read",
    "_read_session",
    "_read_tail",
    "_release_run",
    "_renew_run",
    "_replace",
    "_update_message",
)
"""The methods of a store that talk to its server."""


@asynccontextmanager
async def failing(store: HistoryStore, error: Exception) -> AsyncIterator[None]:
    """Make every operation of a store fail with an error, as its driver may raise it."""

    async def fail(*arguments: Any) -> Any:
        raise error

    for name in OPERATIONS:
        setattr(store, name, fail)
    try:
        yield
    finally:
        for name in OPERATIONS:
            delattr(store, name)


@asynccontextmanager
async def simulated_outage(store: HistoryStore) -> AsyncIterator[None]:
    """Make a store behave as if its server had gone away."""
    async with failing(store, ConnectionResetError("the server has gone away")):
        yield
