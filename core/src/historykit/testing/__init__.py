"""The conformance suite: proves or refutes a store, or a provider that somebody wrote by hand.

The author of a backend writes three lines, and pytest does the rest::

    from historykit.testing import HistoryConformance

    class TestAcme(HistoryConformance):
        backend, config = "acme", {"url": "acme://localhost:9000"}

`NetworkConformance` is the suite for what a store makes of a network between it and its server,
`ProviderConformance` the smaller suite for a bare `BaseHistoryProvider`. All need the extra
``historykit[conformance]``. Without a test module, ``historykit conformance acme`` does the
same."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from historykit.testing.conformance import HistoryConformance
    from historykit.testing.network_conformance import NetworkConformance
    from historykit.testing.provider_conformance import ProviderConformance

__all__ = ["HistoryConformance", "NetworkConformance", "ProviderConformance"]

_MODULES = {
    "HistoryConformance": "historykit.testing.conformance",
    "NetworkConformance": "historykit.testing.network_conformance",
    "ProviderConformance": "historykit.testing.provider_conformance",
}

_EXTRA = ("hypothesis", "pytest", "pytest_asyncio")


def _import(module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        raise ModuleNotFoundError(
            f"historykit.testing needs {error.name}; install it with: "
            "pip install 'historykit[conformance]'",
            name=error.name,
        ) from error


# pytest before 9 does not do this for a plugin that is installed editable, and its asserts would
# explain nothing.
_import("pytest").register_assert_rewrite(
    "historykit.testing.suite", "historykit.testing.comparison"
)


def __getattr__(name: str) -> object:
    """Import the suite when it is asked for: this package is imported by every run of pytest."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import(_MODULES[name]), name)
