from __future__ import annotations

from historykit.plugins import list_backends
from tests.packaging.workspace import BACKENDS, CORE


def test_each_backend_of_the_checkout_loads() -> None:
    """Core's own backend and the others are found by name and load, each from its distribution."""
    listed = {status.name: (status.distribution, status.error) for status in list_backends()}
    expected = {backend.folder.name: (backend.name, None) for backend in BACKENDS}
    assert {"memory": (CORE.name, None), **expected}.items() <= listed.items()
