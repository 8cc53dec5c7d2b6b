"""What all tests of the workspace share, those of the backends included."""

from __future__ import annotations

import re

import pytest

pytest_plugins = ["tests.services.plugin"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse the id of a test that has an address in it, which each worker would call otherwise."""
    for item in items:
        if re.search(r" at 0x[0-9a-f]+", item.nodeid):
            raise pytest.UsageError(f"{item.nodeid} needs an id that is the same in each process")
