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
    SessionHead,
    SessionKey,
    Slice,
    StoredMessage,
    Tail,
    Window,
)
from historykit_redis import catalogue, scripts
from historykit_redis.keys import pack_time, pack_values
from historykit_redis.packing import (
    flat,
    pack_messages,
    pack_number,
    pack_patch,
    pack_session,
    unpack_identity,
    unpack_messages,
)
from historykit_redis.server import Server, new_operation

__all__ = ["append", "delete", "read", "read_tail", "replace", "update"]

MOST = 1 << 53
"""Sequences stay below: the scripts calculate in floating point."""


async def append(server: Server, request: AppendRequest) -> AppendReceipt:
    """Add messages to a stream; where there is no session, make it in the same step.

    In a cluster a new session is put into the catalogue first.
    """
    key, stream = request.key, request.stream.encode()
    session = pack_session(key, request.create, request.new_incarnation, request.now)
    before = [
        stream,
        # Nothing says that none is named; an empty one is named, and no session has it.
        b"" if request.incarnation is None else request.incarnation.encode() or b"-",
        pack_number(request.expected_version),
        pack_number(None if request.retention is None else request.retention.max_messages),
        pack_number(request.now),
        b"".join(b"%d" % draft.external for draft in request.drafts),
    ]
    after = [
        session[b"mem"],
        session[b"inc"],
        pack_values([*server.index(key), *flat(session)]),
        *pack_messages(request.drafts),
    ]
    may_create = b"%d" % (not server.is_split)
    answer = await server.run(scripts.APPEND, key, *before, may_create, *after, stream=stream)
    if answer[0] == b"absent":
        await catalogue.announce(server, key, session)
        answer = await server.run(scripts.APPEND, key, *before, b"1", *after, stream=stream)
        await catalogue.settle(server, key, session)
    return _receipt(request, answer)


def _receipt(request: AppendRequest, answer: Sequence[Any]) -> AppendReceipt:
    if answer[0] == b"refused":
        return _refuse(request, answer)
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
    known = {
        id.decode(): unpack_identity(message)
        for id, message in zip(facts[::2], facts[1::2], strict=True)
    }
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
    _, incarnation, version, epoch, sequences, contents, opening, opening_content = head
    large = dict(zip(sequences, contents, strict=True))
    page, _ = cut_page(unpack_messages(messages, large), window)
    more = len(page) < len(messages)
    return Slice(
        page,
        incarnation.decode(),
        int(version),
        int(epoch),
        more,
        _opening(opening, opening_content) if more else None,
    )


async def _read_together(
    server: Server, key: SessionKey, window: Window, stream: bytes
) -> list[Any]:
    """Return what the script says, the messages, nearest first, and incarnation and version."""
    session, _, _, order, *_ = server.keys.stream(key, stream)
    if window.after is not None:
        messages = ("ZRANGEBYSCORE", order, b"(%d" % window.after, b"+inf")
    else:
        start = b"+inf" if window.before is None else b"(%d" % window.before
        messages = ("ZREVRANGEBYSCORE", order, start, b"-inf")
    return await server.run_before(
        [(*messages, b"LIMIT", 0, window.page + 1), ("HMGET", session, b"inc", b"ver")],
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


def _opening(message: bytes | None, content: bytes | None) -> StoredMessage | None:
    if message is None:
        return None
    return next(unpack_messages([message], {unpack_identity(message)[0]: content}))


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
    _, message, content = answer
    return next(unpack_messages([message], {unpack_identity(message)[0]: content}))


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
