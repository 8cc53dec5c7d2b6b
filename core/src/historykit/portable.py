"""Conversations as lines of JSON, to move them from one store to another.

An export is JSONL in UTF-8, one object a line, of these types in this order::

    {"type": "historykit.export", "version": 1}
    {"type": "session", "id": "s1", "user_id": "ada", "agent_id": "helper", "status": "active",
     "memory_enabled": true, "labels": [], "created_at": 1764530000000000}
    {"type": "message", "id": "…", "created_at": 1764530000000000, "turn_start": true,
     "message": {"type": "message", "role": "user", "contents": […]}}
    {"type": "end", "sessions": 1, "messages": 1}

Each session is followed by its messages, oldest first. Times are microseconds since 1970-01-01 UTC.
`message` is what `Message.to_dict` gives. Fields that are empty are left out, among them a
message's `reaction` and what a session keeps beside it (`extra`, and `body` of the session itself).
Where JSON cannot hold a value exactly, `exact` lists the fields that have the tags of
`historykit.exact`. A file that does not end with the last line was cut off.

A line of the other form is a whole conversation of the chat-completions API::

    {"id": "s1", "agent": "helper", "messages": [{"role": "user", "content": "Hi"}]}
"""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Final, TypeAlias

import orjson

from historykit.chat_completions import from_chat_completions
from historykit.errors import InvalidRequestError
from historykit.messages import Message
from historykit.session_records import MAIN_STREAM

__all__ = [
    "FORMAT",
    "VERSION",
    "Conversation",
    "ExportEnd",
    "ExportStart",
    "ExportedMessage",
    "ExportedSession",
    "Line",
    "read_line",
    "write_line",
]

FORMAT: Final = "historykit.export"
"""The type of the first line of an export."""

VERSION: Final = 1
"""The version of the lines that this historykit writes; it reads no later one."""


@dataclass(frozen=True, slots=True)
class ExportStart:
    """The first line of an export."""

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedSession:
    """A session; the messages that follow are in it. `body` is what is kept with it."""

    id: str
    user_id: str = ""
    agent_id: str = ""
    status: str = "active"
    memory_enabled: bool = True
    labels: tuple[str, ...] = ()
    created_at: int
    body: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedMessage:
    """A message: `message` is its dict, `extra` what a session keeps beside it."""

    id: str
    stream: str = MAIN_STREAM
    created_at: int
    turn_start: bool = False
    reaction: str | None = None
    message: dict[str, Any] = field(repr=False)
    extra: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ExportEnd:
    """The last line of an export, with the numbers of sessions and messages before it."""

    sessions: int
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A whole conversation of the chat-completions API."""

    id: str
    agent: str = ""
    messages: list[Message] = field(default_factory=list)


Line: TypeAlias = ExportStart | ExportedSession | ExportedMessage | ExportEnd | Conversation
"""What a line of a file holds."""

_TYPES: Final[dict[str, type[Any]]] = {
    FORMAT: ExportStart,
    "session": ExportedSession,
    "message": ExportedMessage,
    "end": ExportEnd,
}
_ANY_VALUE: Final = ("message", "extra", "body")
_KINDS: Final[dict[str, tuple[type, str]]] = {
    "str": (str, "text"),
    "str | None": (str, "text"),
    "int": (int, "a whole number"),
    "bool": (bool, "true or false"),
    "tuple[str, ...]": (list, "a list"),
    "dict[str, Any]": (dict, "an object"),
    "Any": (object, "anything"),
}


def write_line(line: ExportStart | ExportedSession | ExportedMessage | ExportEnd) -> bytes:
    """Return a line of an export, with its line feed. `read_line` gives an equal object."""
    from historykit.exact import write_exact  # imports much that others do not need

    (kind,) = (name for name, cls in _TYPES.items() if isinstance(line, cls))
    document: dict[str, Any] = {"type": kind}
    exact = []
    for each in fields(line):
        value = getattr(line, each.name)
        if value == each.default:
            continue
        if each.name in _ANY_VALUE:
            value, tagged = write_exact(value)
            exact += [each.name] if tagged else []
        document[each.name] = value
    if exact:
        document["exact"] = exact
    return orjson.dumps(document) + b"\n"


def read_line(data: bytes) -> Line:
    """Return what a line holds. Raises `InvalidRequestError` that says what is wrong with it."""
    document = _document(data)
    kind = _TYPES.get(str(document.get("type")))
    if kind is not None:
        part: Line = _part(kind, document)
        return part
    if "messages" in document:
        return _conversation(document)
    raise InvalidRequestError(
        "it is neither a conversation ({id, agent, messages}) nor a part of an export; "
        "docs/commands.md describes the two forms"
    )


def _document(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except json.JSONDecodeError as error:
        raise InvalidRequestError(
            f"it is not JSON ({error.msg}, at character {error.pos}); write one object a line"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(
            f"it cannot be read as JSON ({type(error).__name__}); write JSON in UTF-8"
        ) from None
    if not isinstance(document, dict):
        raise InvalidRequestError("it is not a JSON object; write one object a line")
    return document


def _part(kind: type[Any], document: dict[str, Any]) -> Any:
    """Return one of the parts of an export."""
    exact = document.pop("exact", [])
    values = {}
    for each in fields(kind):
        if each.name in document:
            values[each.name] = _value(each, document.pop(each.name), exact)
        elif each.default is MISSING:
            raise InvalidRequestError(f"it has no {each.name!r}; export again")
    unknown = sorted(document.keys() - {"type"})
    if unknown:
        raise InvalidRequestError(
            f"it has unknown fields ({', '.join(unknown)}); import with a newer historykit"
        )
    return kind(**values)


def _value(each: Field[Any], value: Any, exact: Any) -> Any:
    kind: Any
    kind, name = _KINDS[str(each.type)]
    if isinstance(exact, list) and each.name in exact:
        value = _restored(value, each.name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidRequestError(f"{each.name} must be {name}; export again")
    return tuple(value) if kind is list else value


def _restored(tree: Any, name: str) -> Any:
    from historykit.exact import ExactReader

    try:
        # Types that this process does not know stay what they are on their way through.
        return ExactReader(strict=False).read(tree)
    except Exception as error:
        raise InvalidRequestError(
            f"{name} cannot be restored ({type(error).__name__}); export again"
        ) from error


def _conversation(document: dict[str, Any]) -> Conversation:
    id, agent, messages = (document.pop(name, None) for name in ("id", "agent", "messages"))
    if document:
        raise InvalidRequestError(
            f"it has unknown fields ({', '.join(sorted(document))}); a conversation has id, agent "
            "and messages"
        )
    if not isinstance(id, str):
        raise InvalidRequestError("its id must be text; each conversation needs one")
    if not isinstance(agent, str | None):
        raise InvalidRequestError("its agent must be text")
    if not isinstance(messages, list):
        raise InvalidRequestError("its messages must be a list")
    return Conversation(
        id=id, agent=agent or "", messages=[_message(*item) for item in enumerate(messages)]
    )


def _message(index: int, value: Any) -> Message:
    try:
        if isinstance(value, dict) and ("contents" in value or "text" in value):
            return Message.from_dict(value)
        return from_chat_completions(value)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(f"messages[{index}]: {error}") from error
