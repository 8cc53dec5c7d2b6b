"""Messages in the form of the chat-completions API: both ways, and the same after the trip.

Texts, pictures, calls of functions and their results become the contents that an agent knows. What
has no place there (fields of a vendor, an explicit null) is noted beside it under
``additional_properties["chat_completions"]``, so that `to_chat_completions` gives every message
back as it came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final

from historykit.contents import Content
from historykit.dict_forms import SAYING
from historykit.errors import InvalidRequestError
from historykit.messages import Message
from historykit.suggestions import nearest

__all__ = ["NOTE", "from_chat_completions", "to_chat_completions"]

NOTE: Final = "chat_completions"
"""The key in ``additional_properties`` for what has no place in a message or a content."""


def from_chat_completions(message: Mapping[str, Any]) -> Message:
    """Return the message that a dict of the chat-completions API describes; the dict is copied.

    `name` becomes the author's name. A message that answers a call (`tool_call_id`) becomes one
    function result. A part of a type that is not known is kept as it is. Raises
    `InvalidRequestError` for a dict that is no such message.
    """
    if not isinstance(message, Mapping):
        raise InvalidRequestError(f"a message must be an object; it is {_kind(message)}")
    original = deepcopy(dict(message))
    _check(original)
    contents = _parts(original.get("content"))
    if original.get("tool_call_id") is not None:
        answer = contents or [Content.from_text("")]
        contents = [Content.from_function_result(original["tool_call_id"], result=answer)]
    contents += [_call(call) for call in original.get("tool_calls") or []]
    converted = Message(original["role"], contents, author_name=original.get("name"))
    as_list = isinstance(original.get("content"), list)
    if as_list and not isinstance(_plain(converted)["content"], list):
        converted.additional_properties[NOTE] = {"parts": True}
    _note(converted, _plain, original)
    return converted


def to_chat_completions(message: Message) -> list[dict[str, Any]]:
    """Return a message as dicts of the chat-completions API.

    They are one, but for a message with the results of several calls: that is one for each. A
    content for which that API has no form becomes a part that is the content's own dict.
    """
    results = [content for content in message.contents if content.type == "function_result"]
    if len(results) < 2:
        return [_noted(message, _plain)]
    return [
        _plain(Message(message.role, [result], author_name=message.author_name))
        for result in results
    ]


def _check(message: dict[str, Any]) -> None:
    """Refuse what cannot be read as a message, naming the place."""
    _expect(message.get("role") or None, str, "role")
    for name in ("name", "tool_call_id"):
        if message.get(name) is not None:
            _expect(message[name], str, name)
    if not any(name in message for name in SAYING):
        _check_meant(message)
    content = message.get("content")
    if isinstance(content, list):
        for index, part in enumerate(content):
            _expect(part, dict, f"content[{index}]")
            _check_part(part, f"content[{index}]")
    elif content is not None:
        _expect(content, str, "content")
    for index, call in enumerate(_expect(message.get("tool_calls") or [], list, "tool_calls")):
        _expect(call, dict, f"tool_calls[{index}]")


def _check_meant(message: dict[str, Any]) -> None:
    """Refuse a message that says nothing and has something else that was meant to be said.

    One with nothing at all is an empty answer: some servers leave out what is null.
    """
    problem = "a message needs content or tool_calls, and this one has none"
    if "contents" in message or "text" in message:
        raise InvalidRequestError(f"{problem}; Message.from_dict takes one with contents or text")
    for name in message.keys() - {"role", "name", "tool_call_id"}:
        meant = nearest(str(name), SAYING)
        if meant is not None:
            raise InvalidRequestError(f"{problem}, but {name!r}; did you mean {meant!r}?")


def _check_part(part: dict[str, Any], place: str) -> None:
    kind = _expect(part.get("type") or None, str, f"{place}.type")
    if kind == "text":
        _expect(part.get("text"), str, f"{place}.text")
    if kind in ("function_call", "function_result"):
        raise InvalidRequestError(f"{place} is a {kind}; it belongs in tool_calls or tool_call_id")


def _expect(value: Any, kind: type, place: str) -> Any:
    if not isinstance(value, kind):
        raise InvalidRequestError(f"{place} must be {_NAMES[kind]}; it is {_kind(value)}")
    return value


def _kind(value: object) -> str:
    return "missing" if value is None else _NAMES.get(type(value), type(value).__name__)


_NAMES: Final[dict[type, str]] = {str: "text", list: "a list", dict: "an object"}


def _parts(content: str | list[dict[str, Any]] | None) -> list[Content]:
    if content is None:
        return []
    if isinstance(content, str):
        return [Content.from_text(content)]
    return [_part_content(part) for part in content]


def _part_content(part: dict[str, Any]) -> Content:
    url = part.get("image_url")
    if part["type"] == "text":
        content = Content.from_text(part["text"])
    elif part["type"] == "image_url" and isinstance(url, dict) and isinstance(url.get("url"), str):
        content = Content.from_uri(url["url"])
        content.media_type = content.media_type or "image/*"
        if "detail" in url:
            content.additional_properties["detail"] = url["detail"]
    else:
        content = Content.from_dict(part)
    _note(content, _plain_part, part)
    return content


def _call(call: dict[str, Any]) -> Content:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    content = Content.from_function_call(
        call.get("id") or "", function.get("name") or "", arguments=function.get("arguments")
    )
    _note(content, _plain_call, call)
    return content


def _plain(message: Message) -> dict[str, Any]:
    """Return what a message is in the other form, but for its note."""
    plain: dict[str, Any] = {"role": message.role, "content": None}
    if message.author_name is not None:
        plain["name"] = message.author_name
    contents: list[Content] = []
    calls: list[Content] = []
    for content in message.contents:
        if content.type == "function_result":
            plain["tool_call_id"] = content.call_id
            contents += content.items or [Content.from_text(str(content.result or ""))]
        else:
            (calls if content.type == "function_call" else contents).append(content)
    parts = [_noted(content, _plain_part) for content in contents]
    as_list = _note_of(message).get("parts", False)
    if parts or as_list:
        alone = len(parts) == 1 and parts[0].keys() == {"type", "text"} and not as_list
        plain["content"] = parts[0]["text"] if alone else parts
    if calls:
        plain["tool_calls"] = [_noted(call, _plain_call) for call in calls]
    return plain


def _plain_part(content: Content) -> dict[str, Any]:
    if content.type == "text":
        return {"type": "text", "text": content.text}
    if content.type in ("uri", "data") and (content.media_type or "").startswith("image/"):
        properties = content.to_dict().get("additional_properties") or {}
        detail = {"detail": properties["detail"]} if "detail" in properties else {}
        return {"type": "image_url", "image_url": {"url": content.uri} | detail}
    part = content.to_dict()
    properties = part.get("additional_properties")
    if isinstance(properties, dict):
        properties.pop(NOTE, None)
        if not properties:
            del part["additional_properties"]
    return part


def _plain_call(content: Content) -> dict[str, Any]:
    function = {"name": content.name, "arguments": content.arguments}
    return {"id": content.call_id, "type": "function", "function": function}


def _note(subject: Any, plain: Callable[[Any], dict[str, Any]], original: dict[str, Any]) -> None:
    """Note on a message or a content in what the original differs from its plain form."""
    form = plain(subject)
    fields = {
        key: value
        for key, value in original.items()
        if key not in form or not _same(form[key], value)
    }
    absent = [key for key in form if key not in original]
    if fields or absent:
        note = subject.additional_properties.setdefault(NOTE, {})
        note.update({"fields": fields, "absent": absent})


def _noted(subject: Any, plain: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Return the plain form of a message or a content, changed as its note says."""
    note = _note_of(subject)
    absent = note.get("absent", ())
    form = {key: value for key, value in plain(subject).items() if key not in absent}
    return form | dict(note.get("fields", {}))


def _note_of(subject: Message | Content) -> dict[str, Any]:
    """Return a copy of the note, empty where there is none."""
    properties = subject.to_dict().get("additional_properties") or {}
    return dict(properties.get(NOTE, {}))


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal and of the same types, at any depth."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
