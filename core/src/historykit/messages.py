"""The message of a conversation, in the dict shapes of agent_framework."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final, Self, TypeAlias

from historykit.contents import Content, copied_dict, without
from historykit.dict_forms import is_chat_completions
from historykit.serialization import register_state_type

__all__ = ["Message"]

ContentInput: TypeAlias = Content | str | Mapping[str, Any]
ContentsInput: TypeAlias = ContentInput | Iterable[ContentInput | None] | None

_ENVELOPE: Final = (
    "type",
    "role",
    "contents",
    "author_name",
    "message_id",
    "additional_properties",
)

_new = object.__new__


class Message:
    """One message: who speaks (`role`), and what is said (`contents`).

    `contents` takes texts, `Content` objects and dicts; a text alone is one text content, `text`
    is one more at the end, and None is left out. `role` is any value and is not checked.
    `additional_properties` is copied one level deep; `raw_representation` is the object of the
    model's client, which is never stored or written.

    Messages are mutable and compared by identity; compare `to_dict()` to compare what they say.
    Extra attributes are refused: `additional_properties` is the place for them.
    """

    __slots__ = ("__weakref__", "_data", "_raw", "contents")
    _data: dict[str, Any]
    _raw: Any
    contents: list[Content]

    def __init__(
        self,
        role: str,
        contents: ContentsInput = None,
        *,
        text: str | None = None,
        author_name: str | None = None,
        message_id: str | None = None,
        additional_properties: Mapping[str, Any] | None = None,
        raw_representation: Any = None,
    ) -> None:
        self.contents = as_contents(contents, text)
        self._data = {"type": "message", "role": role, "contents": None}
        if author_name is not None:
            self._data["author_name"] = author_name
        if message_id is not None:
            self._data["message_id"] = message_id
        self._data["additional_properties"] = dict(additional_properties or {})
        self._raw = raw_representation

    @property
    def role(self) -> str:
        """Who speaks: ``system``, ``user``, ``assistant`` or ``tool``, as a rule."""
        role: str = self._data["role"]
        return role

    @role.setter
    def role(self, value: str) -> None:
        self._data["role"] = value

    @property
    def author_name(self) -> str | None:
        """The name of the speaker, where known."""
        return self._data.get("author_name")

    @author_name.setter
    def author_name(self, value: str | None) -> None:
        self._set("author_name", value)

    @property
    def message_id(self) -> str | None:
        """The id that the message has outside of the store, where it has one."""
        return self._data.get("message_id")

    @message_id.setter
    def message_id(self, value: str | None) -> None:
        self._set("message_id", value)

    def _set(self, name: str, value: str | None) -> None:
        data = {**self._data, name: value}
        if value is None:
            del data[name]
        self._data = {key: data.pop(key) for key in _ENVELOPE if key in data} | data

    @property
    def additional_properties(self) -> dict[str, Any]:
        """A mutable dict of further data; keys are kept as they are."""
        properties: dict[str, Any] = self._data["additional_properties"]
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

    @property
    def text(self) -> str:
        """The texts of all text contents, with a space between them."""
        items = self._content_dicts()
        texts = [item.get("text") for item in items if item["type"] == "text"]
        return " ".join(text for text in texts if text is not None)

    @classmethod
    def _get_type_identifier(cls) -> str:
        return "message"

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Return the message that a dict describes; the dict is copied.

        Takes what any version of agent_framework writes, and more: unknown fields are kept and
        written back, contents may be texts or None, ``text`` is one more text content. Raises
        `ValueError` where ``type`` is another than ``message`` and for a dict of the
        chat-completions API, of which the content would be lost; `TypeError` without a role.
        """
        if not isinstance(value, Mapping):
            raise TypeError(f"a message is made from a dict, not from {type(value).__name__}")
        if value.get("type", "message") != "message":
            raise ValueError(f"the type of this dict is {value['type']!r}, expected 'message'")
        if "role" not in value:
            raise TypeError("a message needs a 'role', and this dict has none")
        if is_chat_completions(value):
            raise ValueError(
                "this dict is a message of the chat-completions API; "
                "historykit.chat_completions.from_chat_completions makes one of it"
            )
        data = {"type": "message"} | copied_dict({**value, "contents": None})
        if data.get("additional_properties") is None:
            data["additional_properties"] = {}
        message = object.__new__(cls)
        message.contents = as_contents(value.get("contents"), data.pop("text", None), copy=True)
        message._data = data
        return message

    @classmethod
    def _from_decoded(cls, data: dict[str, Any]) -> Self:
        """Adopt a dict that nobody else holds, such as a decoder makes, without copying it."""
        contents = []
        try:
            usual = data["type"] == "message" and type(data["additional_properties"]) is dict
            for item in data["contents"]:
                if type(item) is not dict or type(item["type"]) is not str:
                    usual = False
                content = _new(Content)
                content._data = item
                contents.append(content)
        except (KeyError, TypeError):
            usual = False
        if not usual or "role" not in data or "text" in data:
            return cls.from_dict(data)
        data["contents"] = None  # one list less for the garbage collector to look at
        message = _new(cls)
        message._data = data
        message.contents = contents
        return message

    @classmethod
    def from_json(cls, value: str | bytes) -> Self:
        """Return the message that a JSON text describes."""
        return cls.from_dict(json.loads(value))

    def to_dict(
        self, *, exclude: set[str] | None = None, exclude_none: bool | None = None
    ) -> dict[str, Any]:
        """Return the message as a dict of its own, without the excluded keys at any level.

        Values are kept as they are: one that JSON does not have is the encoder's to judge. A field
        that was never set is absent, one that came as an explicit None stays None; with
        `exclude_none` no field is None, and with `exclude_none=False` the message's own fields are
        there even if they were never set.
        """
        data = self._data.copy()
        data["contents"] = None
        data = copied_dict(data)
        data["contents"] = [copied_dict(item) for item in self._content_dicts()]
        if exclude or exclude_none is not None:
            return _filtered(data, exclude, exclude_none)
        return data

    def to_json(self, **options: Any) -> str:
        """Return the message as a JSON text; the options are those of `json.dumps`."""
        return json.dumps(self.to_dict(), **options)

    def _to_encode(self) -> dict[str, Any]:
        """Return the dict that the encoder writes: its nested values are the message's own."""
        data = self._data.copy()
        data["contents"] = self._content_dicts()
        return data

    def _content_dicts(self) -> list[dict[str, Any]]:
        try:
            return [content._data for content in self.contents]
        except (AttributeError, TypeError):
            self.contents = as_contents(self.contents, None)
            return [content._data for content in self.contents]

    def _snapshot(self) -> Self:
        """Return a message of its own with the same fields, without the raw representation."""
        return self._from_decoded(self.to_dict())

    def __copy__(self) -> Self:
        clone = object.__new__(type(self))
        clone._data = self._data.copy()
        clone._raw = self.raw_representation
        clone.contents = self.contents
        return clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        clone = self._snapshot()
        clone._raw = self.raw_representation
        return clone

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, {"_data": self._data, "contents": self.contents}

    def __repr__(self) -> str:
        kinds = ", ".join(content.type for content in self.contents)
        return f"Message({self.role!r}, [{kinds}])"


def _filtered(
    data: dict[str, Any], exclude: set[str] | None, exclude_none: bool | None
) -> dict[str, Any]:
    if exclude_none is False:
        data = {key: data.pop(key, None) for key in _ENVELOPE} | data
    for content in data["contents"]:
        without(content, exclude, exclude_none)
    without(data, exclude, exclude_none)
    return data


def as_contents(contents: Any, text: Any, *, copy: bool = False) -> list[Content]:
    """Return the contents that the arguments of a message describe, copies where asked."""
    items = [contents] if isinstance(contents, str | Content | Mapping) else contents
    if items is None:
        items = ()
    elif not isinstance(items, Iterable):
        raise TypeError(
            "the contents of a message are a text, a Content, a dict or a list of these, not "
            f"{type(items).__name__}"
        )
    return [_as_content(item, copy) for item in (*items, text) if item is not None]


def _as_content(item: Any, copy: bool) -> Content:
    if isinstance(item, str):
        return Content._from_decoded({"type": "text", "text": item, "additional_properties": {}})
    if isinstance(item, Content):
        return deepcopy(item) if copy else item
    if isinstance(item, Mapping):
        return Content.from_dict(item)
    raise TypeError(f"a content is a text, a Content or a dict, not {type(item).__name__}")


register_state_type(Message)
