"""The names of the keys in Redis, and the places of sessions in the catalogue.

For the session ``s1`` of the user ``ada`` in the namespace ``support``::

    hk1:{support:ada:s1}:s          hash: the session's fields
    hk1:{support:ada:s1}:i          hash: where each message is, by id
    hk1:{support:ada:s1}:l          hash: contents of large messages, by sequence
    hk1:{support:ada:s1}:m:main     sorted set: the messages of a stream, by sequence
    hk1:{support:ada:s1}:w:main     sorted set: the large ones among them
    hk1:{support}:all               sorted set: the sessions of the namespace, in order
    hk1:{support}:user:ada          … and those that a condition finds: user, agent, status,
                                    memory, label

The part in braces chooses the slot in a cluster. ``hk1`` is the version of this layout. Fields of
the hash: ``inc`` incarnation, ``ver`` version, ``rev`` revision, ``edits`` edit epoch, ``seq`` the
next sequence, ``agent``, ``status``, ``mem`` whether it keeps messages, ``labels``, ``body``,
``place`` in the catalogue, ``touched`` when it was changed, ``last`` when its last message was
made, ``n:STREAM`` the messages in a stream, ``x:STREAM`` those that retention removed, ``t:STREAM``
where the last turn starts, ``run`` and ``until`` of a lease, ``done`` the latest changes by the
number that each was sent with."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from historykit.session_records import SessionKey, SessionPosition, SessionQuery

__all__ = [
    "EPOCH",
    "Keys",
    "pack_time",
    "pack_values",
    "place_of",
    "unpack_place",
    "unpack_time",
    "unpack_values",
]

LAYOUT: Final = "hk1"
EPOCH: Final = 1 << 63
"""Added to a time, so that the bytes of times before 1970 sort before the others."""

_ESCAPES: Final = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%:{}"})
_TIME: Final = struct.Struct(">Q")
_LENGTH: Final = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Keys:
    """Names keys under a prefix."""

    prefix: str

    def session(self, key: SessionKey) -> bytes:
        """Return the key of a session's hash."""
        return self._base(key) + b"s"

    def stream(self, key: SessionKey, stream: bytes) -> list[bytes]:
        """Return the keys of a session and of one of its streams, as the scripts take them."""
        base = self._base(key)
        return [
            base + b"s",
            base + b"i",
            base + b"l",
            base + b"m:" + stream,
            base + b"w:" + stream,
        ]

    def index(self, namespace: str) -> bytes:
        """Return what the keys of a namespace's catalogue begin with."""
        return f"{self.prefix}{LAYOUT}:{{{_escaped(namespace)}}}:".encode()

    def conditions(self, query: SessionQuery) -> list[bytes]:
        """Return the sets in all of which a session is that matches, its time aside."""
        index = self.index(query.namespace)
        named = {b"user:": query.user_id, b"agent:": query.agent_id, b"status:": query.status}
        keys = [index + name + value.encode() for name, value in named.items() if value is not None]
        if query.memory_enabled is not None:
            keys.append(index + b"memory:%d" % query.memory_enabled)
        keys += [index + b"label:" + label.encode() for label in sorted(query.labels)]
        return keys or [index + b"all"]

    def entries(self, key: SessionKey, fields: Mapping[bytes, bytes]) -> frozenset[bytes]:
        """Return the sets in which a session with these fields is to be found."""
        index = self.index(key.namespace)
        names = [
            b"all",
            b"user:" + key.user_id.encode(),
            b"agent:" + fields[b"agent"],
            b"status:" + fields[b"status"],
            b"memory:" + fields[b"mem"],
            *(b"label:" + label for label in unpack_values(fields[b"labels"])),
        ]
        return frozenset(index + name for name in names)

    def _base(self, key: SessionKey) -> bytes:
        parts = ":".join(map(_escaped, (key.namespace, key.user_id, key.session_id)))
        return f"{self.prefix}{LAYOUT}:{{{parts}}}:".encode()


def place_of(position: SessionPosition) -> bytes:
    """Return the bytes that sort as sessions do in a search."""
    session_id, user_id = position.session_id.encode(), position.user_id.encode()
    return pack_time(position.created_at) + session_id + b"\0" + user_id


def unpack_place(place: bytes) -> SessionPosition:
    """Return the position that `place_of` was given."""
    session_id, user_id = place[_TIME.size :].split(b"\0")
    return SessionPosition(unpack_time(place), session_id.decode(), user_id.decode())


def pack_time(time: int) -> bytes:
    """Return 8 bytes that sort as times do."""
    return _TIME.pack(time + EPOCH)


def unpack_time(packed: bytes) -> int:
    """Return the time that `pack_time` was given, from the beginning of `packed`."""
    time: int = _TIME.unpack_from(packed)[0]
    return time - EPOCH


def pack_values(values: Iterable[bytes]) -> bytes:
    """Return values as one, each with its length before it."""
    return b"".join(_LENGTH.pack(len(value)) + value for value in values)


def unpack_values(packed: bytes) -> list[bytes]:
    """Return the values that `pack_values` was given."""
    values = []
    while packed:
        end = _LENGTH.size + _LENGTH.unpack_from(packed)[0]
        values.append(packed[_LENGTH.size : end])
        packed = packed[end:]
    return values


def _escaped(part: str) -> str:
    """Return a part of a key without the marks that have a meaning in it."""
    return part.translate(_ESCAPES)
