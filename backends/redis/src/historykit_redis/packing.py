"""Messages and sessions as Redis holds them. The layout of a message is that of messages.lua."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from historykit.records import UNCHANGED, MessageDraft, MessagePatch, StoredMessage, Unchanged
from historykit.session_records import (
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionPosition,
    SessionRecord,
)
from historykit_redis.keys import (
    EPOCH,
    pack_values,
    place_of,
    unpack_place,
    unpack_time,
    unpack_values,
)

__all__ = [
    "Fields",
    "flat",
    "pack_changes",
    "pack_messages",
    "pack_number",
    "pack_patch",
    "pack_session",
    "unpack_fields",
    "unpack_messages",
    "unpack_record",
    "unpack_scored",
]

Fields = Mapping[bytes, bytes]
"""The fields of a session's hash."""

TURN_START: Final = 1
HAS_EXTRA: Final = 2
HAS_REACTION: Final = 4
IS_LARGE: Final = 8

LARGE: Final = 4096
"""A message with more bytes than this keeps them apart, so that a page, which is read without a
script to count them, is 2 MB at most."""

_USUAL_ROLES: Final = {role.encode(): role for role in ("system", "user", "assistant", "tool")}

_make = tuple.__new__  # a load makes hundreds; the class's own __new__ takes twice as long

_MESSAGE: Final = struct.Struct(">16sQIIBHHH")


def pack_messages(drafts: Sequence[MessageDraft]) -> list[bytes]:
    """Return id, text, and content if it is large, of each message, as the scripts take them."""
    packed: list[bytes] = []
    for draft in drafts:
        id = draft.id.encode()
        role = _pack_role(draft.role)
        content = draft.body if draft.extra is None else draft.body + draft.extra
        flags = (
            TURN_START * draft.turn_start
            + HAS_EXTRA * (draft.extra is not None)
            + IS_LARGE * (len(content) > LARGE)
        )
        numbers = draft.created_at + EPOCH, len(draft.body), 0, flags, len(role), 0, len(id)
        message = _MESSAGE.pack(draft.digest, *numbers) + role + id
        packed += (id, message, content) if flags & IS_LARGE else (id, message + content, b"")
    return packed


def _pack_role(role: str) -> bytes:
    return role.encode("utf-8", "surrogatepass")


def _unpack_role(role: bytes) -> str:
    return role.decode("utf-8", "surrogatepass")


def unpack_scored(answer: Sequence[Any]) -> list[tuple[bytes, int]]:
    """Return members and scores of a sorted set."""
    if answer and isinstance(answer[0], list):  # version 3 of the protocol makes pairs
        return [(member, int(score)) for member, score in answer]
    return list(zip(answer[::2], map(int, answer[1::2]), strict=True))


def unpack_messages(
    scored: Iterable[tuple[bytes, int]], large: Mapping[int, bytes | None]
) -> Iterator[StoredMessage]:
    """Yield messages from what a stream's sorted set holds.

    It ends at the first one whose content is large and not in `large`, by sequence. The content is
    None where it should be in the server and is not; then the body is empty.
    """
    unpack, first = _MESSAGE.unpack_from, _MESSAGE.size
    for message, sequence in scored:
        _, created_at, size, revision, flags, role_length, _, id_length = unpack(message)
        if flags > TURN_START:
            row = _unpacked(message, sequence, large)
            if row is None:
                return
            yield row
            continue
        # By far the most are like this: nothing but a body, and that at hand.
        id_begin = first + role_length
        begin = id_begin + id_length
        role = message[first:id_begin]
        yield _make(
            StoredMessage,
            (
                sequence,
                message[id_begin:begin].decode(),
                _USUAL_ROLES.get(role) or _unpack_role(role),
                message[begin : begin + size],
                created_at - EPOCH,
                flags == TURN_START,
                None,
                None,
                revision,
            ),
        )


def _unpacked(
    message: bytes, sequence: int, large: Mapping[int, bytes | None]
) -> StoredMessage | None:
    _, created_at, size, revision, flags, role_length, reaction_length, id_length = (
        _MESSAGE.unpack_from(message)
    )
    role_end = _MESSAGE.size + role_length
    reaction_end = role_end + reaction_length
    content, start = message, reaction_end + id_length
    if flags & IS_LARGE:
        if sequence not in large:
            return None
        content, start = large[sequence] or b"", 0
    return StoredMessage(
        sequence,
        message[reaction_end : reaction_end + id_length].decode(),
        _unpack_role(message[_MESSAGE.size : role_end]),
        content[start : start + size],
        created_at - EPOCH,
        bool(flags & TURN_START),
        message[role_end:reaction_end].decode() if flags & HAS_REACTION else None,
        content[start + size :] if flags & HAS_EXTRA else None,
        revision,
    )


def pack_patch(patch: MessagePatch) -> list[bytes]:
    """Return required role, body, extra, reaction and digest, as update_message.lua takes them."""
    reaction = patch.reaction
    return [
        b"" if patch.required_role is None else b"=" + _pack_role(patch.required_role),
        b"" if patch.body is None else b"=" + patch.body,
        _change(patch.extra),
        _change(reaction.encode() if isinstance(reaction, str) else reaction),
        patch.digest or b"",
    ]


def _change(value: bytes | Unchanged | None) -> bytes:
    """Return nothing for what stays, ``none`` for what goes, else the value behind ``=``."""
    if value is UNCHANGED:
        return b""
    return b"none" if value is None else b"=" + value


def pack_session(
    key: SessionKey, draft: SessionDraft, incarnation: str, now: int
) -> dict[bytes, bytes]:
    """Return the fields of a new session, those that differ, in the order of creation.lua."""
    created_at = now if draft.created_at is None else draft.created_at
    return {
        b"inc": incarnation.encode(),
        b"agent": draft.agent_id.encode(),
        b"status": draft.status.encode(),
        b"mem": b"1" if draft.memory_enabled else b"0",
        b"labels": _pack_labels(draft.labels) if draft.labels else b"",
        b"body": draft.body,
        b"place": place_of(SessionPosition(created_at, key.session_id, key.user_id)),
    }


def pack_changes(patch: SessionPatch) -> dict[bytes, bytes]:
    """Return the fields that a patch sets."""
    fields: dict[bytes, bytes] = {}
    if patch.agent_id is not None:
        fields[b"agent"] = patch.agent_id.encode()
    if patch.status is not None:
        fields[b"status"] = patch.status.encode()
    if patch.memory_enabled is not None:
        fields[b"mem"] = b"%d" % patch.memory_enabled
    if patch.labels is not None:
        fields[b"labels"] = _pack_labels(patch.labels)
    if patch.body is not None:
        fields[b"body"] = patch.body
    return fields


def flat(fields: Fields) -> list[bytes]:
    """Return names and values in turn."""
    return [text for pair in fields.items() for text in pair]


def unpack_fields(answer: Sequence[bytes]) -> Fields:
    """Return the fields that a script answered: names and values in turn."""
    return dict(zip(answer[::2], answer[1::2], strict=True))


def unpack_record(key: SessionKey, fields: Fields) -> SessionRecord:
    """Return a session."""
    last, run_id = fields.get(b"last"), fields.get(b"run")
    return SessionRecord(
        key=key,
        incarnation=fields[b"inc"].decode(),
        agent_id=fields[b"agent"].decode(),
        status=fields[b"status"].decode(),
        memory_enabled=fields[b"mem"] == b"1",
        labels=frozenset(label.decode() for label in unpack_values(fields[b"labels"])),
        body=fields[b"body"],
        created_at=unpack_place(fields[b"place"]).created_at,
        updated_at=int(fields[b"touched"]),
        last_message_at=unpack_time(last) if last else None,
        streams=_streams(fields),
        version=int(fields[b"ver"]),
        revision=int(fields[b"rev"]),
        run_id=None if run_id is None else run_id.decode(),
        run_expires_at=None if run_id is None else int(fields[b"until"]),
    )


def _streams(fields: Fields) -> dict[str, int]:
    """Return how many messages each stream has that has any."""
    return {
        name[2:].decode(): int(count)
        for name, count in fields.items()
        if name.startswith(b"n:") and count != b"0"
    }


def _pack_labels(labels: frozenset[str]) -> bytes:
    return pack_values(label.encode() for label in sorted(labels))


def pack_number(value: int | None) -> bytes:
    """Return a number in digits, nothing for None."""
    return b"" if value is None else b"%d" % value
