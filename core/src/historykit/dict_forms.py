"""Objects as dicts: written with names in camelCase, read with these or with Python's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

__all__ = ["SAYING", "camel_case", "is_chat_completions", "is_same", "known_fields"]

SAYING: Final = ("content", "tool_calls", "function_call", "refusal", "audio")
"""The fields in which a message of the chat-completions API says something."""


def is_chat_completions(data: object) -> bool:
    """Return whether a dict is a message of the chat-completions API, and not one of our own."""
    return (
        isinstance(data, Mapping)
        and not {"contents", "text"} & data.keys()
        and any(name in data for name in SAYING)
    )


def camel_case(name: str) -> str:
    """Return the name in camelCase of a field in snake_case."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def known_fields(data: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return what a dict says of the fields `names`, under these names; the rest is left out."""
    fields = {camel_case(name): name for name in names} | {name: name for name in names}
    return {fields[key]: value for key, value in data.items() if key in fields}


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values of dict forms would be stored as the same.

    For Python, 1, 1.0 and True are equal, and NaN is not equal to itself.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return repr(float(one)) == repr(float(other))
    alike = all(isinstance(one, kind) == isinstance(other, kind) for kind in (bool, float))
    return alike and bool(one == other)
