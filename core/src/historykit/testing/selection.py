"""Which backend `historykit.testing.standalone` tests: what the options of pytest say."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from historykit.config import Text

__all__ = ["Selection", "known_failures", "select", "selected", "settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A backend, its settings and its known failures."""

    backend: str
    settings: Mapping[str, object] = field(repr=False)
    known_failures: Mapping[str, str]


_selection: Selection | None = None


def select(backend: str, assignments: Sequence[str], failures: str | None) -> None:
    """Take the options of pytest. Raises `pytest.UsageError` where they make no sense."""
    global _selection
    try:
        _selection = Selection(
            backend=backend,
            settings=settings(assignments, "--history-set"),
            known_failures=known_failures(failures),
        )
    except (OSError, ValueError) as error:
        raise pytest.UsageError(str(error)) from error


def selected() -> Selection:
    """Return what was selected. Raises `pytest.UsageError` where nothing was."""
    if _selection is None:
        raise pytest.UsageError("name the backend to test: --history-backend NAME")
    return _selection


def settings(assignments: Sequence[str], option: str) -> dict[str, object]:
    """Return the settings that texts like ``key=value`` make. Raises `ValueError`."""
    found: dict[str, object] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not name or not equals:
            raise ValueError(f"{option} takes KEY=VALUE, and {name!r} has no value")
        found[name] = Text(value, origin=f"{option} {name}")
    return found


def known_failures(path: str | None) -> dict[str, str]:
    """Return the known failures in a TOML file, id and reason. Raises `OSError`, `ValueError`."""
    if path is None:
        return {}
    failures = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    for test, reason in failures.items():
        if not isinstance(reason, str):
            raise ValueError(f"{path} needs a reason for {test}, as text")
    return failures
