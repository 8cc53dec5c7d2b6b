"""Operations on the messages of a session, each one script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from historykit.errors import ConflictError, StorageError
from historykit.planning import (
    check_version,
    cut_page,
    message_not_found,
    plan_append,
    role_mismatch,
    session_not_found,
)
from historykit.records import (
    PAGE_BYTES,
    TAIL_DIGESTS,
    AppendReceipt,
    AppendRequest,
    MessagePatch,
    MessageSelector,
    ReplaceRequest,
    Slice,
    StoredMessage,
    Tail,
    Window,
)
from historykit.session_records import SessionHead, SessionKey
from historykit_redis import catalogue, scripts
from historykit_redis.keys import pack_time
from historykit_redis.packing import (
    pack_messages,
    pack_number,
    pack_patch,
    pack_session,
    unpack_messages,
    unpack_scored,
)
from historykit_redis.server import Server, new_operation

__all__ = [
    "append",
    "delete",
    "read",
    "read_message",
    "read_newest",
    "read_tail",
    "replace",
    "update",
]

MOST = 1 << 53
"""Sequences stay below: the scripts calculate in floating point."""


async def append(server: Server, request: AppendRequest) -> AppendReceipt:
    """Add messages to a stream; where there is no session, make it in the same step.

    In a cluster a new session is put into the catalogue first.
    """
    answer = await _append(server, request, may_create=not server.is_split)
    if answer[0] == b"absent":
        answer = await server.finish(_append_first(server, request))
    return _refuse(request, answer) if answer[0] == b"refused" else _receipt(request, answer)


async def _append_first(server: Server, request: AppendRequest) -> Any:
    key = request.key
    session = pack_session(key, request.create, request.new_incarnation, request.now)
    await catalogue.announce(server, key, session)
    answer = await _append(server, request, may_create=True)
    await catalogue.settle(server, key, session)
    return answer


async def _append(server: Server, request: AppendRequest, *, may_create: bool) -> Any:
    key, stream = request.key, request.stream.encode()
    session = pack_session(key, request.create, request.new_incarnation, request.now)
    return await server.run(
        scripts.APPEND if request.retention is None else scripts.APPEND_AND_TRIM,
        key,
        stream,
        # Nothing says that none is named; an empty one is named, and no session has it.
        b"" if request.incarnation is None else request.incarnation.encode() or b"-",
        pack_number(request.expected_version),
        pack_number(None if request.retention is None else request.retention.max_messages),
        pack_number(request.now),
        b"".join(b"%d" % draft.external for draft in request.drafts),
        b"%d" % may_create,
        *session.values(),
        *server.index(key),
        *pack_messages(request.drafts),
        stream=stream,
    )


def _receipt(request: AppendRequest, answer: Sequence[Any]) -> AppendReceipt:
    _, incarnation, version, stored, created, sequences = answer
    return AppendReceipt(
        incarnation=incarnation.decode(),
        version=version,
        ids=tuple(draft.id for draft in request.drafts),
        sequences=tuple(sequences),
        stored=stored,
        created=bool(created),
    )


def _refuse(request: AppendRequest, answer: Sequence[Any]) -> AppendReceipt:
    """Raise the error for which the script refused: the same facts lead core's rules to it."""
    _, incarnation, version, next_sequence, memory, facts = answer
    head = incarnation and SessionHead(
        incarnation=incarnation.decode(),
        version=version,
        next_sequence=next_sequence,
        memory_enabled=memory == b"1",
    )
    known = {id.decode(): (sequence, digest) for id, sequence, digest in facts}
    plan_append(request, head, known)
    raise StorageError("append was refused by the script that stores it, but not by plan_append")


async def read(server: Server, key: SessionKey, window: Window, stream: str) -> Slice:
    """Return one page of a stream.

    Its messages come by a plain command, and what else belongs to it by a script before that. If
    the session changed between them, both are done again.
    """
    while True:
        head, messages, now = await _read_together(server, key, window, stream.encode())
        if head[1:3] == now:
            break
    if head[0] == b"absent":
        return Slice((), None, 0, 0, False)
    _, incarnation, version, epoch, sequences, contents, opening = head
    large = dict(zip(sequences, contents, strict=True))
    scored = unpack_scored(messages)
    page, _ = cut_page(unpack_messages(scored, large), window)
    more = len(page) < len(scored)
    return Slice(
        page,
        incarnation.decode(),
        int(version),
        int(epoch),
        more,
        _alone(*opening) if more and opening else None,
    )


async def _read_together(
    server: Server, key: SessionKey, window: Window, stream: bytes
) -> list[Any]:
    """Return what the script says, the messages, nearest first, and incarnation and version."""
    session, _, _, order, _ = server.keys.stream(key, stream)
    if window.after is not None:
        messages = ("ZRANGEBYSCORE", order, b"(%d" % window.after, b"+inf")
    else:
        start = b"+inf" if window.before is None else b"(%d" % window.before
        messages = ("ZREVRANGEBYSCORE", order, start, b"-inf")
    return await server.run_before(
        [
            (*messages, b"WITHSCORES", b"LIMIT", 0, window.page + 1),
            ("HMGET", session, b"inc", b"ver"),
        ],
        scripts.READ,
        key,
        stream,
        pack_number(window.page),
        pack_number(window.before),
        pack_number(window.after),
        pack_number(PAGE_BYTES),
        b"%d" % (bool(window.limit) and window.after is None),
        stream=stream,
    )


def _alone(message: bytes, sequence: bytes | int, content: bytes | None = None) -> StoredMessage:
    """Return one message that came by itself."""
    return next(unpack_messages([(message, int(sequence))], {int(sequence): content}))


async def read_tail(server: Server, key: SessionKey, stream: str) -> Tail:
    """Return the end of a stream."""
    name = stream.encode()
    answer = await server.run(scripts.READ_TAIL, key, name, pack_number(TAIL_DIGESTS), stream=name)
    if answer[0] == b"absent":
        return Tail(incarnation=None, version=0, count=0, trimmed=0, digests=())
    _, incarnation, version, count, trimmed, digests = answer
    return Tail(
        incarnation=incarnation.decode(),
        version=int(version),
        count=int(count),
        trimmed=int(trimmed),
        digests=tuple(digests),
    )


async def read_message(server: Server, key: SessionKey, message_id: str) -> StoredMessage:
    """Return one message."""
    answer = await server.run(scripts.READ_MESSAGE, key, message_id.encode())
    if answer[0] == b"no message":
        raise message_not_found(key, message_id)
    return _alone(*answer[1:])


async def read_newest(
    server: Server, keys: Sequence[SessionKey], stream: str
) -> list[StoredMessage | None]:
    """Return the newest message of each session, None where there is none."""
    name = stream.encode()
    answers = await server.run_on_each(scripts.READ_NEWEST, keys, name, stream=name)
    return [None if answer[0] == b"no message" else _alone(*answer[1:]) for answer in answers]


async def update(
    server: Server, key: SessionKey, message_id: str, patch: MessagePatch, now: int
) -> StoredMessage:
    """Change one message and return it."""
    answer = await server.run(
        scripts.UPDATE_MESSAGE,
        key,
        new_operation(),
        pack_number(now),
        message_id.encode(),
        *pack_patch(patch),
    )
    match answer[0]:
        case b"absent":
            raise session_not_found(key)
        case b"no message":
            raise message_not_found(key, message_id)
        case b"role":
            raise role_mismatch(answer[1].decode(), str(patch.required_role))
    return _alone(*answer[1:])


async def delete(server: Server, key: SessionKey, selector: MessageSelector, now: int) -> int:
    """Delete the messages selected and return their number."""
    stream, before = selector.stream.encode(), selector.created_before
    answer = await server.run(
        scripts.DELETE_MESSAGES,
        key,
        new_operation(),
        pack_number(now),
        stream,
        pack_number(max(selector.first or 0, 0)),
        pack_number(MOST if selector.last is None else min(selector.last, MOST)),
        b"" if before is None else pack_time(before),
        b"%d" % (selector.ids is not None),
        *(id.encode() for id in selector.ids or ()),
        stream=stream,
    )
    deleted: int = answer[1]
    return deleted


async def replace(server: Server, request: ReplaceRequest) -> AppendReceipt:
    """Put messages in the place of all those of a stream."""
    key, stream = request.key, request.stream.encode()
    answer = await server.run(
        scripts.REPLACE,
        key,
        new_operation(),
        pack_number(request.now),
        stream,
        pack_number(request.expected_version),
        *pack_messages(request.drafts),
        stream=stream,
    )
    match answer[0]:
        case b"absent":
            raise session_not_found(key)
        case b"version":
            check_version(key, request.expected_version, int(answer[1]))
        case b"elsewhere":
            raise ConflictError(
                f"message id {answer[1].decode()!r} of session {key.session_id!r} belongs to the "
                f"stream {answer[2].decode()!r}; give the message another id"
            )
    _, incarnation, version, first = answer
    return AppendReceipt(
        incarnation=incarnation.decode(),
        version=version,
        ids=tuple(draft.id for draft in request.drafts),
        sequences=tuple(range(first, first + len(request.drafts))),
        stored=len(request.drafts),
    )
