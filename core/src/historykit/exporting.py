"""Conversations on their way out of a store, in a form that another store can take.

It takes memory for a page of messages, however long a conversation is."""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import Any, TypeAlias

from historykit.codec import MessageCodec
from historykit.errors import ConflictError, DecodeError
from historykit.history import History
from historykit.offloading import inlined
from historykit.portable import VERSION, ExportedMessage, ExportedSession, ExportEnd, ExportStart
from historykit.records import StoredMessage, Window
from historykit.session_records import (
    MAIN_STREAM,
    PAGE_SESSIONS,
    SessionKey,
    SessionQuery,
    SessionRecord,
)
from historykit.store import HistoryStore

__all__ = ["ExportedLine", "export_sessions", "find_all"]

ExportedLine: TypeAlias = ExportStart | ExportedSession | ExportedMessage | ExportEnd
"""What a line of an export holds."""


async def export_sessions(
    history: History, *, session_id: str | None = None
) -> AsyncIterator[ExportedLine]:
    """Yield the lines of an export: of one session, or of all that the history spans.

    A history of one user spans that user's sessions, any other one those of all users. Of each
    session the main stream comes first. Messages are those that are there when their page is read.
    All sessions need `Capability.CATALOGUE`. Raises `NotFoundError`, `ConflictError` where a
    session is deleted meanwhile, and `DecodeError` for a message that cannot be read. Data that is
    stored apart is in its place again; attachments are the links that their messages have.
    """
    only = None if session_id is None else await history.store.read_session(history.key(session_id))
    sessions = messages = 0
    yield ExportStart(VERSION)
    async for record in _records(history, only):
        async for line in _session(history, record):
            sessions += isinstance(line, ExportedSession)
            messages += isinstance(line, ExportedMessage)
            yield line
    yield ExportEnd(sessions, messages)


async def find_all(store: HistoryStore, query: SessionQuery) -> AsyncGenerator[SessionRecord, None]:
    """Yield all sessions that match a query, newest first, from its position on.

    Its `limit` is the size of the pages that are read. Needs `Capability.CATALOGUE`.
    """
    query = replace(query, with_total=False)
    while True:
        page = await store.find_sessions(query)
        for record in page.records:
            yield record
        if not page.more:
            return
        query = replace(query, position=page.records[-1].position, offset=0)


async def _records(history: History, only: SessionRecord | None) -> AsyncIterator[SessionRecord]:
    if only is not None:
        yield only
        return
    query = SessionQuery(
        namespace=history.namespace, user_id=history.user_id or None, limit=PAGE_SESSIONS
    )
    async for record in find_all(history.store, query):
        yield record


async def _session(
    history: History, record: SessionRecord
) -> AsyncIterator[ExportedSession | ExportedMessage]:
    """Yield a session and its messages; nothing where it is gone since it was found."""
    if (await history.store.read(record.key, Window(limit=0))).incarnation is None:
        return
    yield _exported_session(record, history.codec)
    for stream in (MAIN_STREAM, *sorted(record.streams.keys() - {MAIN_STREAM})):
        async for message in _messages(history, record, stream):
            yield message


async def _messages(
    history: History, record: SessionRecord, stream: str
) -> AsyncIterator[ExportedMessage]:
    window, more = Window(after=0), True
    folder = await history._folder_in(record)
    while more:
        page = await history.store.read(record.key, window, stream=stream)
        if page.incarnation != record.incarnation:
            raise ConflictError(
                f"session {record.key.session_id!r} was deleted while it was exported; export again"
            )
        for row in page.messages:
            message = _exported_message(row, record.key, stream, history.codec)
            if folder is not None:
                message = replace(message, message=await inlined(message.message, folder))
            yield message
        more = page.more
        if more:
            window = Window(after=page.messages[-1].sequence)


def _exported_session(record: SessionRecord, codec: MessageCodec) -> ExportedSession:
    return ExportedSession(
        id=record.key.session_id,
        user_id=record.key.user_id,
        agent_id=record.agent_id,
        status=record.status,
        memory_enabled=record.memory_enabled,
        labels=tuple(sorted(record.labels)),
        created_at=record.created_at,
        body=_opened(record.body, codec),
    )


def _exported_message(
    row: StoredMessage, key: SessionKey, stream: str, codec: MessageCodec
) -> ExportedMessage:
    try:
        message = _decoded(row.body, codec)
    except DecodeError as error:
        raise DecodeError(
            f"message {row.sequence} of session {key.session_id!r} cannot be read: {error}",
            session_id=key.session_id,
            sequence=row.sequence,
        ) from error
    return ExportedMessage(
        id=row.id,
        stream=stream,
        created_at=row.created_at,
        turn_start=row.turn_start,
        reaction=row.reaction,
        message=message,
        extra=_opened(row.extra, codec),
    )


def _decoded(body: bytes, codec: MessageCodec) -> dict[str, Any]:
    """Return what a body holds; objects of unknown state types pass through as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return codec.decode(body, strict=False)


def _opened(body: bytes | None, codec: MessageCodec) -> Any:
    """Return what is kept beside a message or a session: its dict, or bytes of another form."""
    if not body:
        return None
    try:
        return _decoded(body, codec)
    except DecodeError:
        return body
