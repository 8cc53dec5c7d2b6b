"""One item of a message: a text, a picture, a call of a tool, its result.

The dict shapes are those of agent_framework, so that a content crosses over both ways. A field or
a type that this version does not know is kept and written back as it came."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, Self, TypeVar, overload

from historykit.suggestions import nearest

__all__ = ["Content"]

T = TypeVar("T")

KNOWN_TYPES: Final = frozenset(
    {
        "code_interpreter_tool_call",
        "code_interpreter_tool_result",
        "computer_tool_call",
        "computer_tool_result",
        "data",
        "error",
        "function_approval_request",
        "function_approval_response",
        "function_call",
        "function_result",
        "hosted_file",
        "hosted_vector_store",
        "image_generation_tool_call",
        "image_generation_tool_result",
        "mcp_server_tool_call",
        "mcp_server_tool_result",
        "oauth_consent_request",
        "search_tool_call",
        "search_tool_result",
        "shell_command_output",
        "shell_tool_call",
        "shell_tool_result",
        "text",
        "text_reasoning",
        "uri",
        "usage",
    }
)
"""The types of contents that agent_framework has so far."""

_ATOMS: Final = frozenset({str, int, float, bool, bytes, type(None)})


def copied_dict(value: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a dict whose containers are copies too, however deep."""
    if not value:
        return {}
    copy = value.copy()
    for key, item in value.items():
        if type(item) not in _ATOMS:
            copy[key] = copied_dict(item) if type(item) is dict else _copied(item)
    return copy


def _copied(value: Any) -> Any:
    """Return a value with its containers copied; what is no container is shared."""
    if type(value) is list:
        return [item if type(item) in _ATOMS else _copied(item) for item in value]
    if isinstance(value, Content):
        return copied_dict(value._data)
    if isinstance(value, Mapping):
        return copied_dict(dict(value))
    if type(value) is tuple:
        return tuple(map(_copied, value))
    return set(value) if type(value) is set else value


def without(data: dict[str, Any], exclude: set[str] | None, exclude_none: bool | None) -> None:
    """Drop the excluded keys of a dict, in place, and those that are None where that is asked."""
    for key in list(data):
        if (exclude and key in exclude) or (exclude_none and data[key] is None):
            del data[key]


class _Field(Generic[T]):
    """A field of a content: reads None where it is absent, and is removed by assigning None."""

    __slots__ = ("_name",)

    def __set_name__(self, owner: type[Content], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, content: None, owner: type[Content]) -> Self: ...
    @overload
    def __get__(self, content: Content, owner: type[Content]) -> T | None: ...
    def __get__(self, content: Content | None, owner: type[Content]) -> Self | T | None:
        if content is None:
            return self
        value: T | None = content._data.get(self._name)
        return value

    def __set__(self, content: Content, value: T | None) -> None:
        if value is None:
            content._data.pop(self._name, None)
        else:
            content._data[self._name] = _as_data(value)


class _NestedField(_Field[T]):
    """A field that holds contents: reads as `Content` objects on the dicts within."""

    __slots__ = ()

    @overload
    def __get__(self, content: None, owner: type[Content]) -> Self: ...
    @overload
    def __get__(self, content: Content, owner: type[Content]) -> T | None: ...
    def __get__(self, content: Content | None, owner: type[Content]) -> Self | T | None:
        if content is None:
            return self
        value: T | None = _as_views(content._data.get(self._name))
        return value


def _is_content(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _as_views(value: Any) -> Any:
    if _is_content(value):
        return Content._from_decoded(value)
    if isinstance(value, list) and all(map(_is_content, value)):
        return [Content._from_decoded(item) for item in value]
    return value


def _as_data(value: Any) -> Any:
    if isinstance(value, Content):
        return value._data
    if isinstance(value, list | tuple):
        return [_as_data(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


class Content:
    """One typed item of a message.

    A content is a view on a dict of its own: every field of agent_framework's contents is a
    property that reads None where it is absent. `Content(type, **fields)` makes one; fields of a
    known type that no content has are a `TypeError`, a type without name is a `ValueError`.

    The fields that hold contents (`function_call`, `screenshot`, `inputs`, `outputs`, `items`,
    `output`) read as views on the dicts within, so that changing such a content changes this one.
    Their lists are made anew each time: assign a list to change which contents are in it.

    Contents are equal when their dicts are.
    """

    __slots__ = ("_data", "_raw")
    _data: dict[str, Any]
    _raw: Any

    text = _Field[str]()
    protected_data = _Field[str]()
    uri = _Field[str]()
    media_type = _Field[str]()
    message = _Field[str]()
    error_code = _Field[str]()
    error_details = _Field[str]()
    usage_details = _Field[dict[str, Any]]()
    call_id = _Field[str]()
    name = _Field[str]()
    arguments = _Field[str | Mapping[str, Any]]()
    exception = _Field[str]()
    informational_only = _Field[bool]()
    result = _Field[Any]()
    items = _NestedField["list[Content]"]()
    file_id = _Field[str]()
    vector_store_id = _Field[str]()
    inputs = _NestedField["list[Content]"]()
    outputs = _NestedField[Any]()
    image_id = _Field[str]()
    commands = _Field[Sequence[str]]()
    timeout_ms = _Field[int]()
    max_output_length = _Field[int]()
    status = _Field[str]()
    actions = _Field[Sequence[Any]]()
    screenshot = _NestedField["Content"]()
    pending_safety_checks = _Field[Sequence[Any]]()
    acknowledged_safety_checks = _Field[Sequence[Any]]()
    stdout = _Field[str]()
    stderr = _Field[str]()
    exit_code = _Field[int]()
    timed_out = _Field[bool]()
    tool_name = _Field[str]()
    server_name = _Field[str]()
    output = _NestedField[Any]()
    hosted = _Field[bool]()
    function_call = _NestedField["Content"]()
    user_input_request = _Field[bool]()
    approved = _Field[bool]()
    id = _Field[str]()
    consent_link = _Field[str]()
    merge_mode = _Field[str]()
    annotations = _Field[Sequence[Any]]()

    def __init__(self, type: str, *, raw_representation: Any = None, **fields: Any) -> None:
        kind = _checked_type(type)
        unknown = [name for name in fields if name not in _RANKS and kind in KNOWN_TYPES]
        if unknown:
            raise TypeError(f"a content has no field {', '.join(unknown)}; {_remedy(unknown[0])}")
        fields["additional_properties"] = fields.get("additional_properties") or {}
        self._data = {"type": kind}
        for name in sorted(fields, key=lambda name: _RANKS.get(name, _RANKS[_UNKNOWN])):
            if fields[name] is not None:
                self._data[name] = _as_data(fields[name])
        self._raw = raw_representation

    @property
    def type(self) -> str:
        """The name of the kind of content, such as ``text`` or ``function_call``."""
        kind: str = self._data["type"]
        return kind

    @property
    def additional_properties(self) -> dict[str, Any]:
        """A mutable dict of further data; keys are kept as they are."""
        properties: dict[str, Any] | None = self._data.get("additional_properties")
        if properties is None:
            properties = self._data["additional_properties"] = {}
        return properties

    @additional_properties.setter
    def additional_properties(self, value: dict[str, Any] | None) -> None:
        self._data["additional_properties"] = {} if value is None else value

    @property
    def raw_representation(self) -> Any:
        """The object of the model's client that this was made from; never stored."""
        return getattr(self, "_raw", None)

    @raw_representation.setter
    def raw_representation(self, value: Any) -> None:
        self._raw = value

    @classmethod
    def from_text(cls, text: str, **fields: Any) -> Self:
        """Return a text."""
        return cls("text", text=text, **fields)

    @classmethod
    def from_text_reasoning(cls, text: str | None = None, **fields: Any) -> Self:
        """Return a piece of reasoning: a text, `protected_data`, or both."""
        return cls("text_reasoning", text=text, **fields)

    @classmethod
    def from_data(cls, data: bytes, media_type: str, **fields: Any) -> Self:
        """Return bytes of a media type, held as a data URI."""
        return cls("data", uri=_data_uri(data, media_type), media_type=media_type, **fields)

    @classmethod
    def from_uri(cls, uri: str, *, media_type: str | None = None, **fields: Any) -> Self:
        """Return a link, or data where the URI is a data URI, whose media type is then read."""
        if not uri.startswith("data:"):
            return cls("uri", uri=uri, media_type=media_type, **fields)
        declared = uri[len("data:") :].partition(",")[0].partition(";")[0]
        return cls("data", uri=uri, media_type=media_type or declared or None, **fields)

    @classmethod
    def from_error(cls, message: str | None = None, **fields: Any) -> Self:
        """Return an error: a message, and `error_code` and `error_details` where known."""
        return cls("error", message=message, **fields)

    @classmethod
    def from_function_call(
        cls,
        call_id: str,
        name: str,
        *,
        arguments: str | Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Self:
        """Return a call of a tool. Arguments are a JSON text, a mapping, or absent."""
        return cls("function_call", call_id=call_id, name=name, arguments=arguments, **fields)

    @classmethod
    def from_function_result(cls, call_id: str, *, result: Any = None, **fields: Any) -> Self:
        """Return the result of a call of a tool.

        `items` are the contents that the result is, or one text: the result itself where it is a
        text, else its JSON. `result` is the text of all items, a line each. None is an empty text.
        """
        items = _result_items(result)
        text = "\n".join(item.text or "" for item in items if item.type == "text")
        return cls("function_result", call_id=call_id, result=text, items=items, **fields)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Return the content that a dict describes; the dict is copied.

        Types and fields that this version does not know are kept. Bytes under ``data`` of a
        ``data`` content become its data URI. Raises `ValueError` where there is no type.
        """
        if not isinstance(value, Mapping):
            raise TypeError(f"a content is made from a dict, not from {type(value).__name__}")
        data = copied_dict(dict(value))
        kind = _checked_type(data.get("type"))
        if kind == "data" and isinstance(data.get("data"), bytes):
            data["uri"] = _data_uri(data.pop("data"), data.get("media_type") or "")
        if kind in KNOWN_TYPES and data.get("additional_properties") is None:
            data["additional_properties"] = {}
        return cls._from_decoded(data)

    @classmethod
    def _from_decoded(cls, data: dict[str, Any]) -> Self:
        """Adopt a dict that nobody else holds, or that this content shall be a view on."""
        content = object.__new__(cls)
        content._data = data
        return content

    def to_dict(
        self, *, exclude: set[str] | None = None, exclude_none: bool | None = None
    ) -> dict[str, Any]:
        """Return the content as a dict of its own, without the excluded keys.

        A field that was never set is absent; one that came as an explicit None stays None, unless
        `exclude_none` is true.
        """
        data = copied_dict(self._data)
        if exclude or exclude_none:
            without(data, exclude, exclude_none)
        return data

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Content):
            return NotImplemented
        return self._data == other._data

    def __copy__(self) -> Self:
        clone = self._from_decoded(self._data.copy())
        clone._raw = self.raw_representation
        return clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        clone = self._from_decoded(copied_dict(self._data))
        clone._raw = self.raw_representation
        return clone

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, {"_data": self._data}

    def __repr__(self) -> str:
        return f"Content({self.type!r})"


*_FIELDS, _LAST_FIELD = [name for name, field in vars(Content).items() if isinstance(field, _Field)]
_UNKNOWN: Final = "unknown fields"
_ORDER: Final = (*_FIELDS, _UNKNOWN, "additional_properties", _LAST_FIELD)
_RANKS: Final = {name: rank for rank, name in enumerate(_ORDER)}


def _remedy(field: str) -> str:
    meant = nearest(field, _FIELDS)
    if meant is not None:
        return f"did you mean {meant!r}?"
    return "Content.from_dict keeps fields that this version does not know"


def _checked_type(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"the 'type' of a content is a non-empty text, not {value!r}")
    return value


def _data_uri(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def _result_items(result: Any) -> list[Content]:
    if isinstance(result, Content):
        return [result]
    if result and isinstance(result, list | tuple) and isinstance(result[0], Content):
        return list(result)
    if result is None or isinstance(result, str):
        return [Content.from_text(result or "")]
    return [Content.from_text(json.dumps(result, ensure_ascii=False, default=str))]
