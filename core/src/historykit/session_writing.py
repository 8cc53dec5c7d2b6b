"""How sessions and their messages are written: in one step of the store, or not at all."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from historykit.drafting import draft_messages
from historykit.errors import (
    ConflictError,
    EncodeError,
    InvalidRequestError,
    NotFoundError,
    SessionDeletedError,
    VersionConflictError,
)
from historykit.messages import Message
from historykit.planning import session_not_found
from historykit.records import AppendReceipt, MessageDraft, Retention
from historykit.session_bodies import decode_body, encode_body, labels_of
from historykit.session_messages import encode_extra
from historykit.session_records import (
    MAIN_STREAM,
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionRecord,
)

if TYPE_CHECKING:
    from historykit.history import History

__all__ = [
    "append_messages",
    "change_body",
    "change_session",
    "create_or_change",
    "read_asked",
    "read_life",
]

ATTEMPTS: Final = 50
"""How often a change is made anew because another writer changed the session meanwhile."""

PAUSE: Final = 0.005
"""Seconds by which the pause before another attempt may grow."""

Change = Callable[[SessionRecord], SessionPatch]
"""Returns the change to make of a session as it is stored now."""


async def read_asked(history: History, key: SessionKey) -> SessionRecord:
    """Return a session that somebody asks for by its id.

    Raises `NotFoundError`, which says what may have been meant: it is the same for an id that
    nobody has and for one of another user.
    """
    try:
        return await history.store.read_session(key)
    except NotFoundError as error:
        hint = "Session.get_or_create, or save() of a Session with this id, creates it"
        if not key.user_id:
            hint += "; sessions of a user are in History.as_user"
        raise NotFoundError(f"{error}; {hint}") from error


async def read_life(history: History, key: SessionKey, incarnation: str | None) -> SessionRecord:
    """Return a session in the life that is named, in any life where none is.

    Raises `NotFoundError`, and `SessionDeletedError` where it is in another life.
    """
    record = await history.store.read_session(key)
    if incarnation not in (None, record.incarnation):
        raise SessionDeletedError(
            f"session {key.session_id!r} was deleted and made anew since it was read; refresh it "
            "or get it again"
        )
    return record


async def change_session(
    history: History, key: SessionKey, change: Change, *, incarnation: str | None = None
) -> SessionRecord:
    """Change a session, on what is stored at that time: nobody else's change is lost.

    Raises `NotFoundError`, and `SessionDeletedError` where the session is not in the life that
    `incarnation` names.
    """
    attempt = 0
    while True:
        record = await read_life(history, key, incarnation)
        patch = change(record)
        try:
            return await history.store.patch_session(key, patch, if_revision=record.revision)
        except VersionConflictError:
            attempt += 1
            if attempt == ATTEMPTS:
                raise
            await asyncio.sleep(random.random() * PAUSE * attempt)


async def change_body(
    history: History,
    key: SessionKey,
    change: Callable[[dict[str, Any]], Mapping[str, Any]],
    *,
    incarnation: str | None = None,
) -> SessionRecord:
    """Change what is kept with a session: `change` gets its body and returns the new parts.

    Raises what `change_session` raises.
    """

    def patch(record: SessionRecord) -> SessionPatch:
        body = decode_body(record, history.codec)
        return body_patch(record, body, {**body, **change(body)}, history)

    return await change_session(history, key, patch, incarnation=incarnation)


def body_patch(
    record: SessionRecord, body: Mapping[str, Any], new: Mapping[str, Any], history: History
) -> SessionPatch:
    """Return the change that gives a session another body, and the labels that go with it."""
    labels = (record.labels - labels_of(body)) | labels_of(new)
    return SessionPatch(
        body=encode_body(new, history.codec), labels=None if labels == record.labels else labels
    )


async def create_or_change(
    history: History, key: SessionKey, draft: SessionDraft, change: Change
) -> SessionRecord:
    """Create a session, or change it where there is one."""
    while True:
        try:
            return await change_session(history, key, change)
        except NotFoundError:
            pass
        try:
            return await history.store.create_session(key, draft)
        except ConflictError:  # made since the attempt to change it
            continue


async def append_messages(
    history: History,
    key: SessionKey,
    messages: Sequence[Message],
    extras: Sequence[Mapping[str, Any]],
    *,
    incarnation: str,
    retention: Retention | None = None,
    offload_data_over: int | None = None,
) -> tuple[tuple[MessageDraft, ...], AppendReceipt]:
    """Add messages to a session, each with what is kept beside it: all of them or none.

    `retention` and `offload_data_over` are those of `History.append`. Raises `NotFoundError` where
    the session is gone, and `InvalidRequestError` for a message that comes twice, or for what
    cannot be kept beside one.
    """
    drafts = draft_messages(
        messages, codec=history.codec, stream=MAIN_STREAM, now=history.store.now()
    )
    if len(drafts) < len(messages):
        raise InvalidRequestError("a message with a message_id of its own comes twice in the batch")
    drafts = tuple(
        replace(draft, extra=_extra(extra, history))
        for draft, extra in zip(drafts, extras, strict=True)
    )

    async def write(drafts: Sequence[MessageDraft], life: str | None) -> AppendReceipt:
        return await history.store.append(key, drafts, incarnation=life, retention=retention)

    try:
        if offload_data_over is None:
            receipt = await write(drafts, incarnation)
        else:
            receipt = await history._offloaded(
                write,
                drafts,
                messages,
                key,
                over=offload_data_over,
                incarnation=incarnation,
                create=None,
            )
    except SessionDeletedError as error:
        raise session_not_found(key) from error
    return drafts, receipt


def _extra(extra: Mapping[str, Any], history: History) -> bytes | None:
    try:
        return encode_extra(extra, history.codec)
    except EncodeError as error:
        raise InvalidRequestError(f"what is kept beside a message: {error}") from error
