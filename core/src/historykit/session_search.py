"""Which sessions a search finds."""

from __future__ import annotations

import asyncio
import datetime as dt
import unicodedata
import warnings
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from historykit.errors import CorruptRecordError, ForbiddenError, InvalidRequestError
from historykit.ids import check_id
from historykit.loading import decode_messages
from historykit.moments import microseconds
from historykit.pages import TextHit
from historykit.records import StoredMessage, Window
from historykit.session_bodies import (
    Scalar,
    check_metadata,
    check_tags,
    decode_body,
    wanted_labels,
)
from historykit.session_fields import agent_id_of
from historykit.session_messages import decode_message, preview
from historykit.session_records import PAGE_SESSIONS, SessionKey, SessionQuery, SessionRecord
from historykit.statuses import SessionStatus
from historykit.suggestions import nearest

if TYPE_CHECKING:
    from historykit.history import History

__all__ = [
    "CONDITIONS",
    "MAX_PAGE_SIZE",
    "SEARCHED_MESSAGES",
    "SEARCHED_SESSIONS",
    "Found",
    "build_query",
    "check_page",
    "find_page",
    "find_texts",
    "meant",
    "previews",
    "walk",
]

MAX_PAGE_SIZE: Final = 1000
"""The most sessions on a page."""

SEARCHED_MESSAGES: Final = 100_000
"""After so many messages a text search ends with the session that it is at."""

SEARCHED_SESSIONS: Final = 2_000
"""After so many sessions a text search ends."""

AROUND: Final = 60
"""How many characters a snippet has before and after the text that was found."""

_FARTHEST: Final = 2**53
"""No store has so many sessions, and every database knows the number."""


@dataclass(frozen=True, slots=True)
class Found:
    """The sessions of a page, how many there are in all, and whether all were looked at."""

    records: Sequence[SessionRecord]
    total: int | None
    complete: bool = True
    hits: Sequence[TextHit] = ()


CONDITIONS: Final = (
    "agent",
    "status",
    "user_id",
    "created_after",
    "created_before",
    "memory_enabled",
    "metadata",
    "tags",
)
"""The conditions of a search, beside the text in question."""

_MEANT: Final = {
    "name": "query",
    "text": "query",
    "content": "query",
    "limit": "page_size",
    "page": "page_number",
    "offset": "page_number",
    "user": "user_id",
    "agent_id": "agent",
}
"""What others call a keyword of `Session.search`."""


def meant(names: Iterable[str], beside: Iterable[str]) -> str:
    """Return, for keywords that a search does not have, which ones were probably meant.

    `beside` are keywords that it has beside the conditions.
    """
    known = [*CONDITIONS, *beside]
    likely = {name: _MEANT.get(name) or nearest(name, known) for name in names}
    return "".join(
        f"; for {name}, did you mean {other}?" for name, other in likely.items() if other in known
    )


def build_query(
    history: History,
    *,
    agent: Any = None,
    status: str | None = None,
    user_id: str | None = None,
    created_after: str | dt.datetime | None = None,
    created_before: str | dt.datetime | None = None,
    memory_enabled: bool | None = None,
    metadata: Mapping[str, Scalar] | None = None,
    tags: Sequence[str] | None = None,
) -> SessionQuery:
    """Return the query of a search in a history; conditions that are None are not applied.

    Raises `ForbiddenError` for another user than the history's, `InvalidRequestError` for a value
    that no session can have, and `ResourceError` for an agent without an id.
    """
    if status is not None and status not in list(SessionStatus):
        raise InvalidRequestError(
            f"status must be one of {', '.join(SessionStatus)}; not {status!r}"
        )
    if memory_enabled is not None and not isinstance(memory_enabled, bool):
        raise InvalidRequestError(
            f"memory_enabled must be True, False or None, not {memory_enabled!r}"
        )
    return SessionQuery(
        namespace=history.namespace,
        user_id=_user(history, user_id),
        agent_id=None if agent is None else agent_id_of(agent),
        status=None if status is None else str(status),
        memory_enabled=memory_enabled,
        labels=wanted_labels(
            check_metadata({} if metadata is None else metadata),
            check_tags(() if tags is None else tags),
        ),
        created_from=microseconds(created_after, "created_after"),
        created_before=microseconds(created_before, "created_before"),
    )


async def find_page(
    history: History, query: SessionQuery, *, page_number: int, page_size: int, with_total: bool
) -> Found:
    """Return one page of the sessions that match a query."""
    first = await history.store.find_sessions(
        replace(
            query,
            offset=_offset(page_number, page_size),
            limit=min(page_size, PAGE_SESSIONS),
            with_total=with_total,
        )
    )
    records = list(first.records)
    if first.more and page_size > PAGE_SESSIONS:
        rest = replace(
            query,
            position=records[-1].position,
            limit=page_size - PAGE_SESSIONS,
            with_total=False,
        )
        records += (await history.store.find_sessions(rest)).records
    return Found(records, first.total)


async def find_texts(
    history: History, query: SessionQuery, text: str, *, page_number: int, page_size: int
) -> Found:
    """Return one page of the sessions that match a query and in which a text occurs.

    Sessions are looked through from the newest on, until there were `SEARCHED_SESSIONS` or
    `SEARCHED_MESSAGES`. Raises `InvalidRequestError` for a text that is blank.
    """
    check_text(text)
    matches: list[tuple[SessionRecord, TextHit]] = []
    sessions = messages = 0
    complete = True
    wanted = folded(text)
    async with aclosing(_pages(history, replace(query, limit=PAGE_SESSIONS))) as pages:
        async for record in (record async for page in pages for record in page):
            if sessions == SEARCHED_SESSIONS or messages >= SEARCHED_MESSAGES:
                complete = False
                break
            sessions += 1
            messages += record.message_count
            hit = await _hit(history, record, wanted)
            if hit is not None:
                matches.append((record, hit))
    begin = _offset(page_number, page_size)
    page = matches[begin : begin + page_size]
    return Found([record for record, _ in page], len(matches), complete, [hit for _, hit in page])


async def walk(
    history: History, query: SessionQuery, text: str | None
) -> AsyncGenerator[list[SessionRecord], None]:
    """Yield all sessions that match, a page at a time; with `text` those in which it occurs.

    Raises `InvalidRequestError` for a text that is blank.
    """
    if text is not None:
        check_text(text)
    wanted = None if text is None else folded(text)
    async with aclosing(_pages(history, query)) as pages:
        async for page in pages:
            if wanted is None:
                yield page
            else:
                yield [record for record in page if await _hit(history, record, wanted)]


async def _pages(
    history: History, query: SessionQuery
) -> AsyncGenerator[list[SessionRecord], None]:
    """Yield all sessions that match, a page at a time, the newest first."""
    more = True
    query = replace(query, with_total=False)
    while more:
        page = await history.store.find_sessions(query)
        yield list(page.records)
        more = page.more
        if more:
            query = replace(query, position=page.records[-1].position)


async def previews(history: History, records: Sequence[SessionRecord]) -> list[str | None]:
    """Return a line for each session that says what its newest message is about."""
    keys = [record.key for record in records if record.message_count]
    newest = await history.store.read_newest(keys) if keys else []
    shown = {
        key: None if row is None else _preview(row, key, history)
        for key, row in zip(keys, newest, strict=True)
    }
    return [shown.get(record.key) for record in records]


def _preview(row: StoredMessage, key: SessionKey, history: History) -> str | None:
    """Return the preview of a message; None for one that cannot be read, which `messages` names."""
    try:
        with warnings.catch_warnings():
            # A type that this process does not know is no part of a preview.
            warnings.simplefilter("ignore", RuntimeWarning)
            return preview(decode_message(row, key, codec=history.codec, agent_id=""))
    except CorruptRecordError:
        return None


def check_page(page_number: object, page_size: object) -> None:
    """Raise `InvalidRequestError` for a number or a size that no page has."""
    if not _is_integer(page_number) or page_number < 0:
        raise InvalidRequestError(
            f"page_number must be an integer of 0 or more, not {page_number!r}"
        )
    if not _is_integer(page_size) or not 1 <= page_size <= MAX_PAGE_SIZE:
        raise InvalidRequestError(
            f"page_size must be an integer of 1 to {MAX_PAGE_SIZE}, not {page_size!r}"
        )


def check_text(text: object) -> None:
    """Raise `InvalidRequestError` for a text that nothing can be searched for by."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidRequestError(f"query must be a text that is not blank, or None; not {text!r}")


def folded(text: str) -> str:
    """Return a text without the differences that a text search does not see.

    These are those of case, and of the ways in which Unicode can write one character.
    """
    return unicodedata.normalize("NFC", text.casefold())


async def _hit(history: History, record: SessionRecord, wanted: str) -> TextHit | None:
    """Return where a text occurs in a session: in its name, or in which of its messages."""
    name = decode_body(record, history.codec).get("name") or ""
    if wanted in folded(name):
        return TextHit(None, _snippet(name, wanted))
    window, more = Window(after=0), record.message_count > 0
    while more:
        page = await history.store.read(record.key, window)
        for row in page.messages:
            for message in decode_messages([row], record.key, codec=history.codec, skipped=[]):
                if wanted in folded(message.text):
                    return TextHit(row.id, _snippet(message.text, wanted))
        more = page.more
        if more:
            window = Window(after=page.messages[-1].sequence)
            await asyncio.sleep(0)  # not every store waits for something when it reads
    return None


def _snippet(text: str, wanted: str) -> str:
    """Return what stands around the place where a text occurs, on one line."""
    # Folding may make a text longer: then this is about the place.
    begin = max(0, folded(text).index(wanted) - AROUND)
    return " ".join(text[begin : begin + len(wanted) + 2 * AROUND].split())


def _user(history: History, user_id: str | None) -> str | None:
    if user_id is None:
        return history.user_id or None
    if user_id != "":
        check_id(user_id, "user_id")
    if history.user_id and user_id != history.user_id:
        raise ForbiddenError(
            f"the history is of user {history.user_id!r} and cannot search the sessions of "
            f"{user_id!r}"
        )
    return user_id


def _offset(page_number: int, page_size: int) -> int:
    return min(page_number * page_size, _FARTHEST)


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
