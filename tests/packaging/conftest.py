from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_collection_while_parsing() -> Iterator[None]:
    """What the collector ends may parse too, and CPython 3.11 fails at that (gh-106905)."""
    gc.disable()
    yield
    gc.enable()
