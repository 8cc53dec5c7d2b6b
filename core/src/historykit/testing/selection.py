"""Which backend `historykit.testing.standalone` tests: what the options of pytest say."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from historykit.config import Text, load_config
from historykit.errors import ConfigError

__all__ = ["Selection", "known_failures", "select", "selected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A backend, its settings and its known failures."""

    backend: str
    settings: Mapping[str, object] = field(repr=False)
    known_failures: Mapping[str, str] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the selection to a file, for another process of the same user."""
        settings = {
            name: [value.value, value.origin] if isinstance(value, Text) else [value]
            for name, value in self.settings.items()
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps([self.backend, settings, dict(self.known_failures)]), "utf-8")

    @classmethod
    def load(cls, path: Path) -> Selection:
        """Return the selection that was written to a file."""
        backend, saved, failures = json.loads(path.read_text("utf-8"))
        settings = {
            name: value[0] if len(value) == 1 else Text(*value) for name, value in saved.items()
        }
        return cls(backend=backend, settings=settings, known_failures=failures)


_selection: Selection | None = None


def select(options: object) -> None:
    """Take the options of pytest. Raises `pytest.UsageError` where they make no sense."""
    global _selection
    backend = getattr(options, "history_backend", None)
    saved = getattr(options, "history_selection", None)
    try:
        if saved is not None:
            _selection = Selection.load(Path(saved))
        elif backend is not None:
            settings = _settings(getattr(options, "history_set", ()))
            _selection = Selection(
                backend=backend,
                settings=load_config(backend=backend, **settings).settings,
                known_failures=known_failures(getattr(options, "history_known_failures", None)),
            )
    except (OSError, ValueError) as error:
        raise pytest.UsageError(str(error)) from error


def selected() -> Selection:
    """Return what was selected. Raises `pytest.UsageError` where nothing was."""
    if _selection is None:
        raise pytest.UsageError("name the backend to test: --history-backend NAME")
    return _selection


def known_failures(path: str | Path | None) -> dict[str, str]:
    """Return the known failures in a TOML file: for each test the reason.

    Raises `OSError`, and `ConfigError` for what is no such file.
    """
    if path is None:
        return {}
    try:
        failures = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path} is no TOML file: {error}") from error
    for test, reason in failures.items():
        if not isinstance(reason, str) or not reason.strip():
            raise ConfigError(f"{path} needs a reason for {test}, as a text: why does it fail?")
    return failures


def _settings(assignments: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not name or not equals:
            raise ConfigError(f"--history-set takes KEY=VALUE, and {name!r} has no value")
        settings[name.replace("-", "_")] = Text(value, origin=f"--history-set {name}")
    return settings
