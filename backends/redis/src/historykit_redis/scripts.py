"""The scripts that run in the server: each operation on a session is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha1
from importlib.resources import files
from typing import Final

__all__ = [
    "APPEND",
    "APPEND_AND_TRIM",
    "CREATE_SESSION",
    "DELETE_MESSAGES",
    "DELETE_SESSION",
    "FIND_SESSIONS",
    "HOLD_SESSION",
    "PATCH_SESSION",
    "READ",
    "READ_MESSAGE",
    "READ_NEWEST",
    "READ_TAIL",
    "REPLACE",
    "SCRIPTS",
    "UPDATE_MESSAGE",
    "Script",
]


@dataclass(frozen=True, slots=True)
class Script:
    """A script in Lua and the name by which a server remembers it."""

    text: bytes = field(repr=False)
    digest: bytes


def _script(*parts: str) -> Script:
    folder = files("historykit_redis") / "lua"
    text = b"\n".join((folder / f"{part}.lua").read_bytes() for part in parts)
    return Script(text, sha1(text, usedforsecurity=False).hexdigest().encode())


_MESSAGES: Final = ("session", "messages")
_SESSIONS: Final = ("session", "packing", "index")

APPEND: Final = _script(*_SESSIONS, "creation", "messages", "finding", "storing", "append")
APPEND_AND_TRIM: Final = _script(
    *_SESSIONS,
    "creation",
    "messages",
    "finding",
    "storing",
    "removing",
    "trimming",
    "append",
)
CREATE_SESSION: Final = _script(*_SESSIONS, "creation", "change", "create_session")
DELETE_MESSAGES: Final = _script(*_MESSAGES, "finding", "removing", "editing", "delete_messages")
DELETE_SESSION: Final = _script(*_SESSIONS, "delete_session")
FIND_SESSIONS: Final = _script("find_sessions")
HOLD_SESSION: Final = _script("session", "hold_session")
PATCH_SESSION: Final = _script(*_SESSIONS, "change", "patch_session")
READ: Final = _script(*_MESSAGES, "read")
READ_MESSAGE: Final = _script(*_MESSAGES, "finding", "read_message")
READ_NEWEST: Final = _script(*_MESSAGES, "read_newest")
READ_TAIL: Final = _script(*_MESSAGES, "read_tail")
REPLACE: Final = _script(*_MESSAGES, "storing", "removing", "editing", "replace")
UPDATE_MESSAGE: Final = _script(*_MESSAGES, "finding", "editing", "update_message")

SCRIPTS: Final = tuple(value for value in list(vars().values()) if isinstance(value, Script))
