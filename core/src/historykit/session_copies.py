"""A session copied to another id, with its messages up to a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from historykit.attachment_folders import AttachmentFolder, relinked, texts_in
from historykit.attachment_writing import CopiedFirst
from historykit.codec import MessageCodec, content_digest
from historykit.drafting import external_id
from historykit.errors import CorruptRecordError, DecodeError, NotFoundError
from historykit.ids import new_id
from historykit.offloading import inlined
from historykit.planning import session_exists
from historykit.records import MessageDraft, MessageSelector, StoredMessage
from historykit.session_bodies import decode_body, encode_body, labels_of
from historykit.session_records import (
    MAIN_STREAM,
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionRecord,
)
from historykit.statuses import SessionStatus

if TYPE_CHECKING:
    from historykit.history import History

__all__ = ["fork_session"]


async def fork_session(
    history: History,
    record: SessionRecord,
    rows: Sequence[StoredMessage],
    *,
    session_id: str | None,
    name: str | None,
) -> SessionKey:
    """Create a session like another one, with messages of it: all in one step. Return its key.

    Copies of the attachments are stored before. Raises `ConflictError` where there is one of that
    id, and `CorruptRecordError`.
    """
    key = SessionKey(record.key.namespace, record.key.user_id, session_id or new_id())
    session = _forked(history, record, name)
    if not rows:
        await history.store.create_session(key, session)
        return key
    if session_id is not None and await _exists(history, key):
        raise session_exists(key)
    attached = await history._attached_to(record.key, rows)
    copies = CopiedFirst(history, key)
    try:
        urls = await copies.copy(attached)
        source = attached[0] if attached is not None else None
        receipt = await history.store.append(
            key,
            [await _copied(row, record.key, history.codec, source, urls) for row in rows],
            create=replace(session, memory_enabled=True),
            expected_version=0,
            new_incarnation=copies.incarnation,
        )
    except BaseException as error:
        await copies.give_up(error)
        raise
    if not receipt.created:  # made since, and still without messages
        await history.store.delete_messages(key, MessageSelector(ids=receipt.ids))
        await copies.delete()
        raise session_exists(key)
    if not session.memory_enabled:  # from now on: what was kept before is copied
        await history.store.patch_session(key, SessionPatch(memory_enabled=False))
    return key


def _forked(history: History, record: SessionRecord, name: str | None) -> SessionDraft:
    """Return the new session: what a service or a run noted of the old one is not its own."""
    body: dict[str, Any] = decode_body(record, history.codec)
    for key in ("service_session_id", "run_status"):
        body.pop(key, None)
    body["parent_id"] = record.key.session_id
    if name is not None:
        body["name"] = name
    return SessionDraft(
        agent_id=record.agent_id,
        status=SessionStatus.ACTIVE.value,
        memory_enabled=record.memory_enabled,
        labels=labels_of(body),
        body=encode_body(body, history.codec),
    )


async def _copied(
    row: StoredMessage,
    key: SessionKey,
    codec: MessageCodec,
    source: AttachmentFolder | None,
    urls: Mapping[str, str],
) -> MessageDraft:
    """Return a stored message as a draft for another session, with other URLs for attachments.

    One that is recognized by an id that it brought along keeps its id. Digests are over messages as
    they are loaded: with data in its place that is stored apart.
    """
    try:
        data = codec.decode(row.body, strict=False)
    except DecodeError as error:
        raise CorruptRecordError(
            f"message {row.sequence} of session {key.session_id!r} cannot be copied: {error}",
            session_id=key.session_id,
            sequence=row.sequence,
        ) from error
    whole = data if source is None else await inlined(data, source)
    digest = content_digest(whole)
    external = row.id == external_id(data.get("message_id"), MAIN_STREAM, digest)
    linked = not urls.keys().isdisjoint(texts_in(data))
    return MessageDraft(
        id=row.id if external else new_id(),
        role=row.role,
        body=codec.encode(relinked(data, urls)) if linked else row.body,
        digest=content_digest(relinked(whole, urls)) if linked else digest,
        created_at=row.created_at,
        turn_start=row.turn_start,
        external=external,
        extra=row.extra,
    )


async def _exists(history: History, key: SessionKey) -> bool:
    try:
        await history.store.read_session(key)
    except NotFoundError:
        return False
    return True
