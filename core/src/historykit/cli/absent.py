"""What commands say of sessions that are not there."""

from __future__ import annotations

import shlex
from contextlib import aclosing

from historykit.capabilities import Capability
from historykit.errors import NotFoundError
from historykit.exporting import find_all
from historykit.history import History
from historykit.session_records import PAGE_SESSIONS, SessionQuery, SessionRecord

__all__ = ["find_record", "no_sessions"]

SEARCHED = 5_000
"""Among how many sessions, the newest, the owner of one is looked for that was not found."""


async def no_sessions(history: History, found: str = "no sessions") -> str:
    """Say where nothing was found, and where else there is something to be found."""
    place = f"{found} in namespace {history.namespace!r}"
    if history.user_id:
        place += f" of user {history.user_id!r}"
        query = SessionQuery(namespace=history.namespace, limit=1)
        others = (await history.store.find_sessions(query)).total
        if others:
            return f"{place}; other users have {others:,} there"
    return f"{place}; --namespace names another one"


async def find_record(history: History, session: str) -> SessionRecord:
    """Return a session. Raises `NotFoundError` that says how it can be found."""
    try:
        return await history.store.read_session(history.key(session))
    except NotFoundError:
        remedy = await _owner(history, session)
    raise NotFoundError(f"session {session!r} not found; {remedy}")


async def _owner(history: History, session: str) -> str:
    """Say how the session can be found: another user may have one of that id."""
    listing = "`historykit sessions` lists those that are there"
    if Capability.CATALOGUE not in history.store.capabilities:
        return listing
    query = SessionQuery(namespace=history.namespace, limit=PAGE_SESSIONS)
    seen = 0
    async with aclosing(find_all(history.store, query)) as found:
        async for record in found:
            if record.key.session_id == session:
                return _as_owner(record.key.user_id)
            seen += 1
            if seen == SEARCHED:
                break
    return listing


def _as_owner(user_id: str) -> str:
    if user_id == "":
        return "there is one of no user: leave out --user and HISTORYKIT_USER_ID"
    return f"user {user_id!r} has one: add --user {shlex.quote(user_id)}"
