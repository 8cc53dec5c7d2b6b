"""The message codec: a message's dict as bytes that are opaque to a database, and back.

The first byte of a body names its form, and the reader obeys it: ``{`` begins the message as plain
JSON; 0x01 is JSON with tags for what JSON cannot hold; any other byte names a `Codec` that was
applied to the rest, such as a compression. Hence rows that were written with other settings stay
readable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType, NoneType
from typing import Any, Protocol

import orjson

from historykit.errors import DecodeError, EncodeError
from historykit.serialization import MAX_DEPTH, OpaqueValue

__all__ = ["RESERVED_TAGS", "Codec", "MessageCodec", "OpaqueValue", "content_digest"]

RESERVED_TAGS: Mapping[int, str] = MappingProxyType(
    {0x01: "exact JSON", 0x02: "zlib", 0x03: "zstd", 0x04: "aes-gcm", 0x7B: "JSON"}
)
"""The first bytes that have a meaning. Those below 0x80 are historykit's, the rest anybody's."""

_EXACT = b"\x01"
_JSON_OBJECT = 0x7B
_JSON_FORMS = (0x01, _JSON_OBJECT)
_read_object: Callable[[bytes], dict[str, Any]] = orjson.loads
_MAX_LAYERS = 16
_EXACT_SCALARS = frozenset({int, bool, NoneType})


class Codec(Protocol):
    """A reversible change of bytes, such as a compression or an encryption.

    `tag` is the byte that marks what it wrote; tags from 0x80 to 0xff are free for applications.
    `decode` returns what `encode` was given, and raises on anything that `encode` did not write.
    """

    @property
    def tag(self) -> int:
        """The byte, as a number, that `MessageCodec` puts in front of what `encode` returns."""

    def encode(self, data: bytes, /) -> bytes:
        """Return `data` changed."""

    def decode(self, data: bytes, /) -> bytes:
        """Return what `encode` changed into `data`."""


class MessageCodec:
    """Writes messages with `transforms`, in that order, and reads whatever its bodies name.

    `readable` are codecs that are read and not written: those of older rows, or those that newer
    processes write already. Raises `ValueError` for a tag that is taken or reserved.
    """

    __slots__ = ("_known", "_transforms")

    def __init__(self, transforms: Sequence[Codec] = (), *, readable: Sequence[Codec] = ()) -> None:
        self._transforms = tuple(transforms)
        self._known: dict[int, Codec] = {}
        for codec in (*self._transforms, *readable):
            _check_tag(codec)
            if self._known.setdefault(codec.tag, codec) is not codec:
                raise ValueError(f"two codecs have the tag {codec.tag:#04x}; give one another tag")

    def encode(self, data: Mapping[str, Any]) -> bytes:
        """Return `data` as a body, from which `decode` makes an equal dict of the same types.

        Beside JSON's own types these are exact: integers of any size, all floats and texts, bytes,
        Decimal, UUID, datetime, date and time (with fold and a `ZoneInfo` or fixed offset), tuples,
        sets, dicts with keys of these types, and objects of state types. An object of a subclass,
        such as a StrEnum, is written as its plain value if it is equal to that.

        Raises `EncodeError` with the path to anything else, for nesting over 200 levels, and when a
        transform fails.
        """
        if type(data) is not dict:
            if not isinstance(data, Mapping):
                raise EncodeError(
                    f"a message is encoded from a mapping, not a {type(data).__name__}"
                )
            data = dict(data)
        body = _json(data, 0)
        for codec in self._transforms:
            try:
                body = codec.tag.to_bytes(1, "big") + codec.encode(body)
            except Exception as error:
                raise EncodeError(
                    f"codec {type(codec).__name__} could not encode the message"
                ) from error
        return body

    def decode(self, body: bytes, *, strict: bool = True) -> dict[str, Any]:
        """Return the dict that `body` was made from.

        An object whose state type is not registered, or whose class does not accept its data, is a
        `DecodeError`; without `strict` it is an `OpaqueValue`, with one `RuntimeWarning` for each
        such type. Raises `DecodeError`, and nothing else, for a body that is damaged or needs a
        codec that this one does not have.
        """
        try:
            if body[0] == _JSON_OBJECT:
                return _read_object(body)
            return self._decode_layers(body, strict)
        except (DecodeError, Warning):  # a warning is raised only where the user asked for that
            raise
        except Exception as error:
            raise DecodeError(f"the body is damaged ({type(error).__name__})") from error

    def _decode_layers(self, body: bytes, strict: bool) -> dict[str, Any]:
        for _ in range(_MAX_LAYERS):
            tag = body[0]
            if tag in _JSON_FORMS:
                return _read_json(body, strict)
            body = self._codec(tag).decode(body[1:])
        raise DecodeError(f"the body is damaged: it has more than {_MAX_LAYERS} layers")

    def _codec(self, tag: int) -> Codec:
        codec = self._known.get(tag)
        if codec is None:
            name = RESERVED_TAGS.get(tag)
            missing = f"the {name} codec" if name else "the codec with that tag, if there is one"
            raise DecodeError(
                f"the body starts with the unknown byte {tag:#04x}: either it is damaged or "
                f"MessageCodec needs {missing}"
            )
        return codec


def content_digest(data: Mapping[str, Any], *, exact: bool = False) -> bytes:
    """Return 16 bytes that are equal for messages with the same role and contents.

    The order of keys does not matter, nor whether a tuple became a list, nor whether empty
    ``additional_properties`` are left out; nor do the other fields of the message. With `exact` it
    is known that JSON holds the data as it is. Raises `EncodeError` where `MessageCodec.encode`
    does.
    """
    contents = data.get("contents") or []
    if isinstance(contents, (list, tuple)):  # a union would cost more than the check
        contents = [_without_empty_properties(content) for content in contents]
    value = {"contents": contents, "role": data.get("role")}
    if exact:
        form = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    else:
        form = _json(value, orjson.OPT_SORT_KEYS, canonical=True)
    return blake2b(_without_nested_empty_properties(form), digest_size=16).digest()


def _json(value: dict[str, Any], option: int, *, canonical: bool = False) -> bytes:
    try:
        form = orjson.dumps(value, option=option)
        if _is_exact(value):
            return form
    except orjson.JSONEncodeError:
        pass  # it needs the exact form, if there is one
    from historykit.exact import write_exact  # few messages need it, and what it imports is slow

    tree, tagged = write_exact(value, canonical=canonical)
    form = orjson.dumps(tree, option=option)
    return _EXACT + form if tagged else form


def _is_exact(value: dict[str, Any]) -> bool:
    """Return whether JSON holds `value` as it is, within 200 levels.

    It must be one that orjson has written: hence no circle, wide integer or lone surrogate.
    """
    containers: list[Any] = [value]
    levels, level_end = 1, 1
    for index, container in enumerate(containers):
        if index == level_end:
            levels, level_end = levels + 1, len(containers)
        for child in container.values() if type(container) is dict else container:
            kind = type(child)
            if kind is str:
                continue
            if kind is dict or kind is list:
                containers.append(child)
            elif kind is float:
                if child - child != 0.0:  # neither NaN nor an infinity gives zero
                    return False
            elif kind not in _EXACT_SCALARS:
                return False
    return levels <= MAX_DEPTH


def _read_json(body: bytes, strict: bool) -> dict[str, Any]:
    if body[:1] == _EXACT:
        from historykit.exact import read_exact

        value = read_exact(orjson.loads(body[1:]), strict=strict)
    else:
        value = orjson.loads(body)
    if not isinstance(value, dict):
        raise DecodeError(f"the body is damaged: it holds a {type(value).__name__}, not a dict")
    return value


def _without_empty_properties(content: Any) -> Any:
    if type(content) is dict and not content.get("additional_properties", True):
        return {key: content[key] for key in content if key != "additional_properties"}
    return content


def _without_nested_empty_properties(form: bytes) -> bytes:
    if b'"additional_properties":{}' in form:
        # In a text JSON escapes the quotation marks: only keys match here.
        form = form.replace(b'"additional_properties":{},', b"")
        form = form.replace(b',"additional_properties":{}', b"")
        form = form.replace(b'"additional_properties":{}', b"")
    return form


def _check_tag(codec: Codec) -> None:
    tag = codec.tag
    if tag in _JSON_FORMS or not (tag in RESERVED_TAGS or 0x80 <= tag <= 0xFF):
        raise ValueError(
            f"codec {type(codec).__name__} cannot have the tag {tag:#04x}; choose one from 0x80 to "
            "0xff"
        )
