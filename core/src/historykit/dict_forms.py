"""Objects as dicts: written with names in camelCase, read with these or with Python's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

__all__ = ["SAYING", "camel_case", "is_chat_completions", "known_fields"]

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
