"""The registry of state types, and session state as plain data.

A state type is a class whose objects may stand in a session's state or in a message: it has
`to_dict` and a classmethod `from_dict`, or it is a pydantic model. Its type id marks its data, and
the registry leads from the id back to the class. The registry belongs to the process."""

from __future__ import annotations

import math
import reprlib
import sys
import warnings
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from historykit.errors import DecodeError, EncodeError

__all__ = ["OpaqueValue", "deserialize_state", "register_state_type", "serialize_state"]

MAX_DEPTH = 200
"""How many containers may stand inside one another in what is stored."""

_OWN = {"message": "historykit.messages"}
"""The modules that register state types of historykit itself, by type id."""

_classes: dict[str, type[Any]] = {}
_type_ids: dict[type[Any], str] = {}


@dataclass(frozen=True, slots=True)
class OpaqueValue:
    """An object of a state type that this process cannot restore, kept as its data.

    A lenient read gives it in place of the object. Stored again it is the same record, so that a
    process that knows the type gets the original object. `data` is what `to_dict` gave, with values
    like dates restored; it is not to be changed.
    """

    type_id: str
    data: Any = field(hash=False, repr=False)


def register_state_type(cls: type[Any]) -> None:
    """Make objects of `cls` storable and restorable, in session state and in messages.

    The type id is what the classmethod `_get_type_identifier` returns, else the class's name in
    lower case (agent_framework Sessions API). Registering a class again does nothing; a class that
    was defined anew under its own name, as in a notebook, takes its own place.

    Raises `ValueError` when another class has the type id, or when `cls` neither has both `to_dict`
    and `from_dict` nor is a pydantic model; `TypeError` when `cls` is not a class.
    """
    if not isinstance(cls, type):
        raise TypeError(f"register_state_type takes a class, not a {type(cls).__name__} object")
    if not is_pydantic_model(cls) and not (_has(cls, "to_dict") and _has(cls, "from_dict")):
        raise ValueError(
            f"{_name(cls)} cannot be a state type: it needs a method to_dict and a classmethod "
            "from_dict, or to be a pydantic model"
        )
    type_id = _type_id(cls)
    owner = state_type(type_id) or _classes.setdefault(type_id, cls)
    if owner is not cls:
        if not _redefines(cls, owner):
            raise ValueError(
                f"state type {type_id!r} is already registered by {_name(owner)}; give "
                f"{_name(cls)} a classmethod _get_type_identifier that returns an id of its own"
            )
        _classes[type_id] = cls
    _type_ids[cls] = type_id


def serialize_state(value: Any, *, path: str = "state", strict: bool = False) -> Any:
    """Return `value` as plain data that `deserialize_state` restores.

    An object with `to_dict` becomes that dict, with the type id under ``type`` if its class is
    registered and `to_dict` left it out. A pydantic model is registered, never in place of another
    class, and dumped as JSON data. Lists, tuples (as lists) and dicts (with their keys as text) are
    rebuilt. Everything else stays as it is (agent_framework Sessions API).

    What JSON cannot hold, such as a set, bytes or a date, stays with a `RuntimeWarning` that names
    its path; with `strict` it is an `EncodeError`, and so is a number that is not finite. Always an
    `EncodeError`: a model with a field named ``type`` or with another class's type id, a failing
    `to_dict`, nesting over 200 levels. `path` is the name of `value` in all of these.
    """
    return _serialize(value, path, strict, 0)


def deserialize_state(value: Any, *, path: str = "state") -> Any:
    """Return `value` with the objects of registered types restored.

    A dict whose ``type`` is a registered id becomes an object of that class. One that the class
    does not accept stays a dict, with a `RuntimeWarning` that names its path. A dict of any other
    type is plain data. `value` itself is not changed.

    Raises `DecodeError` for nesting over 200 levels.
    """
    return _deserialize(value, path, 0)


def is_pydantic_model(cls: type[Any]) -> bool:
    """Return whether `cls` is a pydantic model, without importing pydantic."""
    base = getattr(sys.modules.get("pydantic"), "BaseModel", None)
    return base is not None and issubclass(cls, base)


def state_type(type_id: Any) -> type[Any] | None:
    """Return the class that is registered under `type_id`."""
    if not isinstance(type_id, str):
        return None
    if type_id not in _classes and type_id in _OWN:
        import_module(_OWN[type_id])
    return _classes.get(type_id)


def state_type_id(cls: type[Any]) -> str | None:
    """Return the id of a registered class, None for one that is not; register a pydantic model.

    Raises `ValueError` for a pydantic model whose id is another class's.
    """
    type_id = _type_ids.get(cls)
    if type_id is None and is_pydantic_model(cls):
        register_state_type(cls)
        return _type_ids[cls]
    return type_id


def dump_object(value: Any, *, json: bool = False) -> Any:
    """Return the data of an object of a state type, for `load_object`.

    `json` asks a pydantic model for its JSON data instead of Python's own types.
    """
    if _has(value, "to_dict"):
        return value.to_dict()
    # round_trip leaves out computed fields, which a model would not take back.
    return value.model_dump(mode="json" if json else "python", round_trip=True)


def load_object(cls: type[Any], data: Any) -> Any:
    """Return the object of the state type `cls` that `dump_object` gave `data` for."""
    if _has(cls, "from_dict"):
        return cls.from_dict(data)
    return cls.model_validate(data, **_field_names())


def child_path(path: str, step: object) -> str:
    """Return the path of the value under the key or index `step` of the value at `path`."""
    if isinstance(step, str) and step.isidentifier() and len(step) < 40:
        return f"{path}.{step}" if path else step
    return f"{path}[{reprlib.repr(step)}]"


def _serialize(value: Any, path: str, strict: bool, depth: int) -> Any:
    if _has(value, "to_dict"):
        return _serialize_object(value, path, strict)
    if is_pydantic_model(type(value)):
        return _serialize_model(value, path)
    if isinstance(value, list | tuple | dict):
        if depth == MAX_DEPTH:
            raise EncodeError(_too_deep(path), path=path)
        if isinstance(value, dict):
            return _serialize_dict(value, path, strict, depth + 1)
        return [
            _serialize(item, f"{path}[{index}]", strict, depth + 1)
            for index, item in enumerate(value)
        ]
    if not _is_json(value, strict):
        _complain(f"{path} is a {type(value).__name__}, which JSON cannot hold", path, strict)
    return value


def _serialize_dict(value: dict[Any, Any], path: str, strict: bool, depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        text = key if isinstance(key, str) else str(key)
        item_path = child_path(path, text)
        if text in result:
            _complain(f"{item_path} stands for two keys that are equal as text", item_path, strict)
        result[text] = _serialize(item, item_path, strict, depth)
    return result


def _serialize_object(value: Any, path: str, strict: bool) -> Any:
    data = _dump(value, path)
    type_id = _type_ids.get(type(value))
    if type_id is None:
        return data
    if not isinstance(data, dict):
        raise EncodeError(
            f"{path}: to_dict of {_name(type(value))} returned a {type(data).__name__}, not a dict",
            path=path,
        )
    if "type" not in data:
        return {"type": type_id, **data}
    if data["type"] != type_id:
        _complain(
            f"{path}: to_dict of {_name(type(value))} writes another type than {type_id!r}, under "
            "which the class is registered, and will not be restored as one",
            path,
            strict,
        )
    return data


def _serialize_model(value: Any, path: str) -> dict[str, Any]:
    try:
        type_id = state_type_id(type(value))
    except ValueError as error:
        raise EncodeError(f"{path}: {error}", path=path) from error
    data = _dump(value, path)
    if not isinstance(data, dict) or "type" in data:
        raise EncodeError(
            f"{path}: {_name(type(value))} has a field named 'type' or no fields, which leaves no "
            "place for the type id; rename the field, or give the model to_dict and from_dict",
            path=path,
        )
    return {**data, "type": type_id}


def _deserialize(value: Any, path: str, depth: int) -> Any:
    if not isinstance(value, list | dict):
        return value
    if depth == MAX_DEPTH:
        raise DecodeError(_too_deep(path))
    if isinstance(value, list):
        return [
            _deserialize(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)
        ]
    cls = state_type(value.get("type"))
    if cls is not None:
        try:
            return _load_tagged(cls, value)
        except Exception as error:
            message = (
                f"{path} stays a dict: {_name(cls)}, the class of its type {value['type']!r}, does "
                f"not accept it ({type(error).__name__})"
            )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return {
        str(key): _deserialize(item, child_path(path, key), depth + 1)
        for key, item in value.items()
    }


def _load_tagged(cls: type[Any], value: dict[str, Any]) -> Any:
    if _has(cls, "from_dict"):
        return load_object(cls, dict(value))
    return load_object(cls, {key: item for key, item in value.items() if key != "type"})


def _dump(value: Any, path: str) -> Any:
    try:
        return dump_object(value, json=True)
    except Exception as error:
        name = _name(value if isinstance(value, type) else type(value))
        raise EncodeError(
            f"{path}: {name} could not be dumped ({type(error).__name__})", path=path
        ) from error


def _complain(message: str, path: str, strict: bool) -> None:
    if strict:
        raise EncodeError(message, path=path)
    warnings.warn(message, RuntimeWarning, stacklevel=2)


def _is_json(value: Any, strict: bool) -> bool:
    if isinstance(value, float):
        return not strict or math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _too_deep(path: str) -> str:
    return f"{path[:60]}… is nested over {MAX_DEPTH} levels deep, or holds itself"


def _type_id(cls: type[Any]) -> str:
    type_id = cls._get_type_identifier() if _has(cls, "_get_type_identifier") else None
    if type_id is None:
        return cls.__name__.lower()
    if not isinstance(type_id, str) or not type_id:
        raise ValueError(
            f"_get_type_identifier of {_name(cls)} must return a text, not {type_id!r}"
        )
    return type_id


def _redefines(cls: type[Any], owner: type[Any]) -> bool:
    return _name(cls) == _name(owner) and "<locals>" not in cls.__qualname__


def _name(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _has(value: object, method: str) -> bool:
    return callable(getattr(value, method, None))


def _field_names() -> dict[str, bool]:
    # A dump names fields, and a model with aliases takes names only since pydantic 2.11, if asked.
    major, minor = sys.modules["pydantic"].VERSION.split(".")[:2]
    return {"by_name": True} if (int(major), int(minor)) >= (2, 11) else {}
