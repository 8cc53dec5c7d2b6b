"""Objects as dicts: written with names in camelCase, read with these or with Python's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["camel_case", "known_fields"]


def camel_case(name: str) -> str:
    """Return the name in camelCase of a field in snake_case."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def known_fields(data: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return what a dict says of the fields `names`, under these names; the rest is left out."""
    fields = {camel_case(name): name for name in names} | {name: name for name in names}
    return {fields[key]: value for key, value in data.items() if key in fields}
