"""Values that JSON cannot hold, as JSON that can be read back exactly.

Such a value is written as a list that starts with a tag, as in ``["!decimal", "0.10"]``. A list of
the user's own whose first item is a text in ``!`` is written behind the tag ``!list``. A tag that
was released keeps its meaning, since it is part of what is stored."""

from __future__ import annotations

import base64
import datetime as dt
import functools
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson

from historykit.errors import DecodeError, EncodeError
from historykit.serialization import (
    MAX_DEPTH,
    OpaqueValue,
    child_path,
    dump_object,
    is_pydantic_model,
    load_object,
    state_type,
    state_type_id,
)

_Tree = Any  # what orjson writes and reads without a change

_INSIDE = object()  # the step from an object to its data: a level, and no part of the path
_MICROSECOND = dt.timedelta(microseconds=1)


class ExactWriter:
    """Turns a value into a tree of JSON, and notes in `tagged` whether a tag was needed.

    A `canonical` tree is made for comparing: tuples count as lists, and the order of the pairs of
    a dict does not count. Keys of text are for the caller to sort.
    """

    __slots__ = ("canonical", "path", "tagged")

    def __init__(self, *, canonical: bool = False) -> None:
        self.canonical = canonical
        self.path: list[object] = []
        self.tagged = False

    def write(self, value: Any) -> _Tree:
        """Return the tree of `value`; raise `EncodeError` where there is none."""
        write = _WRITERS.get(type(value))
        return self._write_other(value) if write is None else write(self, value)

    def _write_same(self, value: Any) -> _Tree:
        return value

    def _write_int(self, value: int) -> _Tree:
        return value if -(2**63) <= value < 2**64 else self._tag("!int", hex(value))

    def _write_float(self, value: float) -> _Tree:
        return value if math.isfinite(value) else self._tag("!float", repr(value))

    def _write_str(self, value: str) -> _Tree:
        try:
            value.encode()
        except UnicodeEncodeError:
            return self._tag("!str", value.encode("unicode_escape").decode("ascii"))
        return value

    def _write_list(self, value: Iterable[Any]) -> _Tree:
        items = self._items(value)
        return self._tag("!list", *items) if items and _is_tag(items[0]) else items

    def _write_tuple(self, value: tuple[Any, ...]) -> _Tree:
        if self.canonical:
            return self._write_list(value)
        return self._tag("!tuple", *self._items(value))

    def _write_set(self, value: set[Any]) -> _Tree:
        return self._tag("!set", *sorted(self._items(value), key=_sort_key))

    def _write_frozenset(self, value: frozenset[Any]) -> _Tree:
        return self._tag("!frozenset", *sorted(self._items(value), key=_sort_key))

    def _write_dict(self, value: Mapping[Any, Any]) -> _Tree:
        self._check_depth()
        pairs = []
        for key, item in value.items():
            self.path.append(key)
            pairs.append((self.write(key), self.write(item)))
            self.path.pop()
        if all(type(key) is str for key, _ in pairs):
            return dict(pairs)
        if self.canonical:
            pairs.sort(key=lambda pair: _sort_key(pair[0]))
        return self._tag("!dict", *(part for pair in pairs for part in pair))

    def _write_bytes(self, value: bytes) -> _Tree:
        return self._tag("!bytes", base64.b64encode(value).decode("ascii"))

    def _write_decimal(self, value: Decimal) -> _Tree:
        return self._tag("!decimal", str(value))

    def _write_uuid(self, value: UUID) -> _Tree:
        return self._tag("!uuid", str(value))

    def _write_date(self, value: dt.date) -> _Tree:
        return self._tag("!date", value.isoformat())

    def _write_time(self, value: dt.time) -> _Tree:
        return self._write_moment("!time", value)

    def _write_datetime(self, value: dt.datetime) -> _Tree:
        return self._write_moment("!datetime", value)

    def _write_opaque(self, value: OpaqueValue) -> _Tree:
        return self._write_object(value.type_id, value.data)

    def _write_moment(self, tag: str, value: dt.time | dt.datetime) -> _Tree:
        clock = value.replace(tzinfo=None).isoformat()
        return self._tag(tag, clock, value.fold, *self._zone(value.tzinfo))

    def _zone(self, zone: dt.tzinfo | None) -> list[Any]:
        """Return nothing for a naive value, the key of a zone, or a fixed offset and its name."""
        if zone is None:
            return []
        if isinstance(zone, ZoneInfo) and zone.key:
            return [zone.key]
        offset = _fixed_offset(zone)
        if offset is None:
            raise self._error(
                f"has a time zone of the type {type(zone).__qualname__}; use ZoneInfo"
            )
        name = zone.tzname(None)
        default = dt.timezone(offset).tzname(None)
        return [offset // _MICROSECOND, *([] if name in (None, default) else [name])]

    def _write_other(self, value: Any) -> _Tree:
        try:
            type_id = state_type_id(type(value))
        except ValueError as error:
            raise self._error(f"cannot be stored: {error}") from error
        if type_id is not None:
            return self._write_state(type_id, value)
        for base in type(value).__mro__:
            if base in _CONTAINERS:
                return _CONTAINERS[base](self, value)
            if base in _SCALARS:
                return self._write_as(base, value)
        raise self._error(
            f"is {_a(type(value))}, which cannot be stored; turn it into plain data, or "
            "make its class a state type with register_state_type"
        )

    def _write_as(self, base: type[Any], value: Any) -> _Tree:
        """Write an object of a subclass as one of `base`, if it is equal to that."""
        plain = _PLAIN[base](value) if base in _PLAIN else value
        tree = _SCALARS[base](self, plain)
        if not _stands_for(tree, value):
            raise self._error(f"is {_a(type(value))} that is not equal to a plain {base.__name__}")
        return tree

    def _write_state(self, type_id: str, value: Any) -> _Tree:
        depth = len(self.path)
        try:
            return self._write_object(type_id, self._dump(value))
        except EncodeError:
            if not is_pydantic_model(type(value)):
                raise
        # A model may hold what only pydantic itself knows how to write, such as an URL.
        del self.path[depth:]
        return self._write_object(type_id, self._dump(value, json=True))

    def _write_object(self, type_id: str, data: Any) -> _Tree:
        self.path.append(_INSIDE)
        tree = self._tag("!object", type_id, self.write(data))
        self.path.pop()
        return tree

    def _dump(self, value: Any, *, json: bool = False) -> Any:
        try:
            return dump_object(value, json=json)
        except Exception as error:
            raise self._error(
                f"is {_a(type(value))} that could not be dumped ({type(error).__name__})"
            ) from error

    def _items(self, values: Iterable[Any]) -> list[_Tree]:
        self._check_depth()
        trees = []
        for index, item in enumerate(values):
            self.path.append(index)
            trees.append(self.write(item))
            self.path.pop()
        return trees

    def _tag(self, tag: str, *parts: _Tree) -> _Tree:
        self.tagged = True
        return [tag, *parts]

    def _check_depth(self) -> None:
        if len(self.path) >= MAX_DEPTH:
            raise self._error(f"is nested over {MAX_DEPTH} levels deep, or holds itself", steps=3)

    def _error(self, problem: str, *, steps: int = MAX_DEPTH) -> EncodeError:
        visible = (step for step in self.path[:steps] if step is not _INSIDE)
        path = functools.reduce(child_path, visible, "")
        return EncodeError(f"{path or 'the value'} {problem}", path=path)


def _a(kind: type[Any]) -> str:
    """Return the name of a type with its article."""
    name = kind.__qualname__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


class ExactReader:
    """Turns a tree of `ExactWriter` into the value again.

    `unknown` collects the ids of the state types that a lenient reading could not restore.
    """

    __slots__ = ("strict", "unknown")

    def __init__(self, *, strict: bool = True) -> None:
        self.strict = strict
        self.unknown: set[str] = set()

    def read(self, tree: _Tree) -> Any:
        """Return the value of `tree`; raise `DecodeError`, or what a damaged tree leads to."""
        if type(tree) is list:
            if tree and _is_tag(tree[0]):
                return self._read_tagged(*tree)
            return [self.read(item) for item in tree]
        if type(tree) is dict:
            return {key: self.read(item) for key, item in tree.items()}
        return tree

    def _read_dict(self, *parts: _Tree) -> dict[Any, Any]:
        keys, items = map(self.read, parts[::2]), map(self.read, parts[1::2])
        return dict(zip(keys, items, strict=True))

    def _read_object(self, type_id: str, tree: _Tree) -> Any:
        data = self.read(tree)
        cls = state_type(type_id)
        if cls is not None:
            try:
                return load_object(cls, data)
            except Exception as error:
                if self.strict:
                    raise DecodeError(
                        f"{cls.__qualname__} does not accept the stored data of its state type "
                        f"{type_id!r} ({type(error).__name__}); "
                        "a read with strict=False keeps it opaque"
                    ) from error
        if self.strict:
            raise DecodeError(
                f"state type {type_id!r} is not registered; call register_state_type with its "
                "class before reading, or read with strict=False, which keeps it opaque"
            )
        self.unknown.add(type_id)
        # `data` may have been changed by a from_dict that then failed.
        return OpaqueValue(type_id, self.read(tree))

    def _read_tagged(self, tag: str, *parts: _Tree) -> Any:
        read = _READERS.get(tag)
        if read is None:
            raise DecodeError(f"unknown tag {tag!r}; a newer historykit may have written it")
        return read(self, *parts)


def write_exact(value: Any, *, canonical: bool = False) -> tuple[_Tree, bool]:
    """Return the JSON tree of `value`, and whether only `read_exact` understands it.

    Without tags the tree is the value itself as plain JSON. Raises `EncodeError` with the path to
    what cannot be written, before anything is.
    """
    writer = ExactWriter(canonical=canonical)
    return writer.write(value), writer.tagged


def read_exact(tree: _Tree, *, strict: bool = True) -> Any:
    """Return the value that `write_exact` made `tree` from.

    An object whose state type is not registered, or whose class does not accept its data, is a
    `DecodeError`; without `strict` it is an `OpaqueValue`, with one `RuntimeWarning` for each such
    type. A tree that `write_exact` did not make may raise anything.
    """
    reader = ExactReader(strict=strict)
    value = reader.read(tree)
    for type_id in sorted(reader.unknown):
        warnings.warn(
            f"objects of the state type {type_id!r} could not be restored and are opaque; call "
            "register_state_type with their class before reading",
            RuntimeWarning,
            stacklevel=2,
        )
    return value


def _is_tag(tree: _Tree) -> bool:
    return type(tree) is str and tree.startswith("!")


def _stands_for(tree: _Tree, value: Any) -> bool:
    try:
        return bool(read_exact(tree) == value or value != value)  # NaN is not equal to itself
    except Exception:  # of a subclass whose text its base class does not read
        return False


def _fixed_offset(zone: dt.tzinfo) -> dt.timedelta | None:
    try:
        return zone.utcoffset(None)
    except Exception:  # of a zone that cannot do without a date
        return None


def _sort_key(tree: _Tree) -> bytes:
    return orjson.dumps(tree, option=orjson.OPT_SORT_KEYS)


def _read_zone(zone: str | int | None = None, name: str | None = None) -> dt.tzinfo | None:
    if zone is None:
        return None
    if isinstance(zone, str):
        return ZoneInfo(zone)
    offset = dt.timedelta(microseconds=zone)
    return dt.timezone(offset) if name is None else dt.timezone(offset, name)


def _read_time(_: ExactReader, clock: str, fold: int, *zone: Any) -> dt.time:
    return dt.time.fromisoformat(clock).replace(fold=fold, tzinfo=_read_zone(*zone))


def _read_datetime(_: ExactReader, clock: str, fold: int, *zone: Any) -> dt.datetime:
    return dt.datetime.fromisoformat(clock).replace(fold=fold, tzinfo=_read_zone(*zone))


_Write = Callable[[ExactWriter, Any], _Tree]

_CONTAINERS: dict[type[Any], _Write] = {
    dict: ExactWriter._write_dict,
    list: ExactWriter._write_list,
    tuple: ExactWriter._write_tuple,
    set: ExactWriter._write_set,
    frozenset: ExactWriter._write_frozenset,
}
_SCALARS: dict[type[Any], _Write] = {
    str: ExactWriter._write_str,
    int: ExactWriter._write_int,
    float: ExactWriter._write_float,
    bytes: ExactWriter._write_bytes,
    Decimal: ExactWriter._write_decimal,
    UUID: ExactWriter._write_uuid,
    dt.datetime: ExactWriter._write_datetime,
    dt.date: ExactWriter._write_date,
    dt.time: ExactWriter._write_time,
}
_WRITERS: dict[type[Any], _Write] = {
    **_CONTAINERS,
    **_SCALARS,
    type(None): ExactWriter._write_same,
    bool: ExactWriter._write_same,
    OpaqueValue: ExactWriter._write_opaque,
}
_PLAIN: dict[type[Any], Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
}
_READERS: dict[str, Callable[..., Any]] = {
    "!int": lambda _, digits: int(digits, 16),
    "!float": lambda _, name: float(name),
    "!str": lambda _, text: text.encode("ascii").decode("unicode_escape"),
    "!bytes": lambda _, text: base64.b64decode(text, validate=True),
    "!decimal": lambda _, text: Decimal(text),
    "!uuid": lambda _, text: UUID(text),
    "!date": lambda _, text: dt.date.fromisoformat(text),
    "!time": _read_time,
    "!datetime": _read_datetime,
    "!list": lambda reader, *items: list(map(reader.read, items)),
    "!tuple": lambda reader, *items: tuple(map(reader.read, items)),
    "!set": lambda reader, *items: set(map(reader.read, items)),
    "!frozenset": lambda reader, *items: frozenset(map(reader.read, items)),
    "!dict": ExactReader._read_dict,
    "!object": ExactReader._read_object,
}
