"""What an agent answers, whole and in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Self

from historykit.contents import Content, copied_dict, without
from historykit.messages import Message, as_contents

__all__ = ["AgentResponse", "AgentResponseUpdate"]

_OPTIONAL: Final = (
    "response_id",
    "agent_id",
    "created_at",
    "conversation_id",
    "usage_details",
    "continuation_token",
)


class AgentResponse:
    """The answer of an agent: its messages, calls and results of tools among them.

    `messages` takes one message or several, as `Message` objects or dicts. `conversation_id` is the
    id under which the model's service keeps the conversation, where it does. `value` is the
    structured value that the answer stands for, `response_format` what it was asked to be; they
    and `raw_representation` belong to the run and are not part of the dict.
    """

    __slots__ = (
        "__weakref__",
        "_unknown",
        "additional_properties",
        "agent_id",
        "continuation_token",
        "conversation_id",
        "created_at",
        "messages",
        "raw_representation",
        "response_format",
        "response_id",
        "usage_details",
        "value",
    )

    def __init__(
        self,
        *,
        messages: Message | Sequence[Message | Mapping[str, Any]] | None = None,
        response_id: str | None = None,
        agent_id: str | None = None,
        created_at: str | None = None,
        conversation_id: str | None = None,
        usage_details: Mapping[str, Any] | None = None,
        value: Any = None,
        response_format: Any = None,
        continuation_token: Any = None,
        raw_representation: Any = None,
        additional_properties: Mapping[str, Any] | None = None,
    ) -> None:
        given = [messages] if isinstance(messages, Message) else messages or ()
        self.messages = [_as_message(message) for message in given]
        self.response_id = response_id
        self.agent_id = agent_id
        self.created_at = created_at
        self.conversation_id = conversation_id
        self.usage_details = usage_details
        self.value = value
        self.response_format = response_format
        self.continuation_token = continuation_token
        self.raw_representation = raw_representation
        self.additional_properties: dict[str, Any] = dict(additional_properties or {})
        self._unknown: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The texts of all messages, one after the other."""
        return "".join(message.text for message in self.messages)

    @property
    def user_input_requests(self) -> list[Content]:
        """The contents that wait for the user, such as requests for an approval."""
        contents = [content for message in self.messages for content in message.contents]
        return [content for content in contents if content.user_input_request]

    @classmethod
    def from_updates(cls, updates: Iterable[AgentResponseUpdate]) -> Self:
        """Return the answer that the pieces of a stream make together.

        A piece with another role or message id than the one before it begins a message. Texts that
        follow each other become one, and so do the pieces of a call's arguments; counts of usage
        are added up.
        """
        pieces = list(updates)
        contents = [content for piece in pieces for content in piece.contents]
        usage = [content.usage_details for content in contents if content.type == "usage"]
        names = ("response_id", "agent_id", "created_at", "conversation_id")
        latest = {name: _first(reversed(pieces), name) for name in names}
        return cls(
            messages=_assembled(pieces),
            usage_details=added_usage(usage),
            additional_properties=_merged([piece.additional_properties for piece in pieces]),
            **latest,
        )

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Return the answer that a dict describes; the dict is copied, unknown fields are kept.

        Raises `ValueError` where ``type`` is another than ``agent_response``.
        """
        if value.get("type", "agent_response") != "agent_response":
            raise ValueError(
                f"the type of this dict is {value['type']!r}, expected 'agent_response'"
            )
        data = copied_dict({**value, "messages": None})
        del data["messages"]
        known = {name: data.pop(name, None) for name in (*_OPTIONAL, "additional_properties")}
        response = cls(messages=value.get("messages"), **known)
        response._unknown = data
        return response

    def to_dict(
        self, *, exclude: set[str] | None = None, exclude_none: bool = True
    ) -> dict[str, Any]:
        """Return the answer as a dict of its own, without the excluded keys at any level."""
        data: dict[str, Any] = {"type": "agent_response"}
        data["messages"] = [message.to_dict(exclude=exclude) for message in self.messages]
        data |= {name: getattr(self, name) for name in _OPTIONAL}
        data["additional_properties"] = self.additional_properties
        data = copied_dict(data)
        without(data, exclude, exclude_none)
        return data | copied_dict(self._unknown)

    def __repr__(self) -> str:
        return f"AgentResponse({self.messages!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResponseUpdate:
    """A piece of an answer, as it arrives in a stream.

    `contents` takes what the contents of a `Message` take. A `role` or a `message_id` of None
    continues the message before. A piece whose `raw_representation` is a `Message` is that whole
    message.
    """

    contents: Sequence[Content] = ()
    role: str | None = None
    author_name: str | None = None
    message_id: str | None = None
    response_id: str | None = None
    agent_id: str | None = None
    created_at: str | None = None
    conversation_id: str | None = None
    additional_properties: Mapping[str, Any] = field(default_factory=dict, repr=False)
    raw_representation: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "contents", as_contents(self.contents, None))

    @property
    def text(self) -> str:
        """The texts of the piece, one after the other."""
        texts = [content.text for content in self.contents if content.type == "text"]
        return "".join(text for text in texts if text is not None)

    @classmethod
    def from_message(cls, message: Message) -> Self:
        """Return the piece that is a whole message."""
        return cls(
            contents=message.contents,
            role=message.role,
            author_name=message.author_name,
            message_id=message.message_id,
            raw_representation=message,
        )

    def _begins_after(self, group: Sequence[AgentResponseUpdate]) -> bool:
        if isinstance(group[-1].raw_representation, Message):
            return True
        if isinstance(self.raw_representation, Message):
            return True
        role, message_id = _first(group, "role"), _first(group, "message_id")
        return self.role not in (None, role or "assistant") or (
            message_id is not None and self.message_id not in (None, message_id)
        )


def added_usage(parts: Iterable[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Return the sums of several counts of usage, None where there are none."""
    total: dict[str, Any] = {}
    for name, count in (item for part in parts for item in (part or {}).items()):
        known = total.get(name)
        total[name] = known + count if _is_count(known) and _is_count(count) else count
    return total or None


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float)


def _first(pieces: Iterable[AgentResponseUpdate], name: str) -> Any:
    values = (getattr(piece, name) for piece in pieces)
    return next((value for value in values if value is not None), None)


def _as_message(value: Message | Mapping[str, Any]) -> Message:
    return value if isinstance(value, Message) else Message.from_dict(value)


def _assembled(pieces: Sequence[AgentResponseUpdate]) -> list[Message]:
    groups: list[list[AgentResponseUpdate]] = []
    for piece in pieces:
        if not groups or piece._begins_after(groups[-1]):
            groups.append([])
        groups[-1].append(piece)
    return [message for message in map(_message_of, groups) if message is not None]


def _message_of(group: Sequence[AgentResponseUpdate]) -> Message | None:
    if isinstance(group[0].raw_representation, Message):
        return group[0].raw_representation
    contents = [content for piece in group for content in piece.contents]
    contents = [content for content in contents if content.type != "usage"]
    if not contents:
        return None
    return Message(
        _first(group, "role") or "assistant",
        _coalesced(contents),
        author_name=_first(group, "author_name"),
        message_id=_first(group, "message_id"),
    )


def _coalesced(contents: Iterable[Content]) -> list[Content]:
    runs: list[list[Content]] = []
    for content in contents:
        if not runs or not _continues(runs[-1][0], content):
            runs.append([])
        runs[-1].append(content)
    return [run[0] if len(run) == 1 else _joined(run) for run in runs]


def _continues(first: Content, content: Content) -> bool:
    if content.type != first.type:
        return False
    if content.type == "function_call":
        texts = isinstance(first.arguments, str) and isinstance(content.arguments, str)
        return texts and content.call_id in (first.call_id, None, "")
    if content.type == "text_reasoning":
        return content.id in (first.id, None)
    return content.type == "text"


def _joined(run: Sequence[Content]) -> Content:
    columns: dict[str, list[Any]] = {}
    for content in run:
        for name, value in content.to_dict(exclude_none=True).items():
            columns.setdefault(name, []).append(value)
    return Content.from_dict(
        {name: _JOINS.get(name, _first_filled)(values) for name, values in columns.items()}
    )


def _first_filled(values: Sequence[Any]) -> Any:
    return next(filter(None, values), values[0])


def _merged(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for properties in values for name, value in properties.items()}


_JOINS: Final[Mapping[str, Callable[[Sequence[Any]], Any]]] = {
    "text": "".join,
    "arguments": "".join,
    "annotations": lambda values: list(chain.from_iterable(values)),
    "additional_properties": _merged,
}
