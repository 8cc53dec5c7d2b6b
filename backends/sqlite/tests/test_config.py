from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from historykit.errors import ConfigError
from historykit.plugins import load_backend
from historykit_sqlite import SQLiteConfig, SQLiteStore


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_a_history_in_memory_is_another_backend(path: str) -> None:
    """A path without a file is refused, and the error names the backend for it."""
    with pytest.raises(ConfigError, match="backend 'memory'") as caught:
        SQLiteConfig(path=path)
    assert caught.value.field == "path"


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("path", {"path": "a\0b"}),
        ("synchronous", {"synchronous": "off"}),
        ("busy_timeout", {"busy_timeout": -1}),
        ("busy_timeout", {"busy_timeout": float("inf")}),
        ("busy_timeout", {"busy_timeout": float("nan")}),
    ],
)
def test_a_setting_that_is_wrong_is_named(field: str, settings: dict[str, Any]) -> None:
    """A setting outside of its bounds is refused before a file is touched."""
    with pytest.raises(ConfigError, match=f"{field} of the sqlite backend") as caught:
        SQLiteConfig(**{"path": "chat.db", **settings})
    assert caught.value.field == field


def test_a_relative_path_is_that_of_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path counts from the working directory in which the store was made."""
    monkeypatch.chdir(tmp_path)
    store = SQLiteStore(SQLiteConfig(path="chat.db"))
    monkeypatch.chdir("/")
    assert repr(store) == f"SQLiteStore({str(tmp_path / 'chat.db')!r})"


def test_the_plugin_says_what_the_store_has() -> None:
    """The backend is found by its name and declares the capabilities of its store."""
    spec = load_backend("sqlite")
    assert (spec.store(), spec.config()) == (SQLiteStore, SQLiteConfig)
    assert spec.capabilities == SQLiteStore.capabilities


def test_a_name_that_the_package_does_not_have() -> None:
    """The package loads its store late, and still has no attributes that it does not have."""
    import historykit_sqlite

    with pytest.raises(AttributeError, match="no attribute 'SQLStore'"):
        historykit_sqlite.SQLStore  # noqa: B018
