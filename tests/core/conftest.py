from __future__ import annotations

from typing import Any

import pytest

from historykit import serialization


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, type[Any]]:
    """A registry of state types for one test: its classes by type id."""
    classes = dict(serialization._classes)
    monkeypatch.setattr(serialization, "_classes", classes)
    monkeypatch.setattr(serialization, "_type_ids", dict(serialization._type_ids))
    return classes
