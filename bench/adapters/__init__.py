"""Every adapter, one module a database.

A module defines its `Adapter` classes, lists them in ``ADAPTERS``, and says in ``BOUNDS`` what
historykit is to reach. Where the database is a server it has a context manager ``serve`` too, which
the parent process enters for a run: it yields the settings that adapters find in their `Place`. A
module imports the libraries of its stores only where they are used, since each environment has its
own. To add a database, write its module and name it in `DATABASES`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Final

from bench.adapter import Adapter, Bounds

__all__ = ["DATABASES", "adapters_of", "bounds_of", "find_adapter", "serve"]

DATABASES: Final = ("sqlite",)


def adapters_of(database: str) -> list[type[Adapter]]:
    """Return the adapters of a database in the order of the tables."""
    adapters: list[type[Adapter]] = import_module(f"{__name__}.{database}").ADAPTERS
    return adapters


def bounds_of(database: str) -> Bounds:
    """Return what historykit is to reach on a database."""
    bounds: Bounds = import_module(f"{__name__}.{database}").BOUNDS
    return bounds


def find_adapter(database: str, name: str) -> type[Adapter]:
    """Return the adapter of that name."""
    return next(adapter for adapter in adapters_of(database) if adapter.name == name)


def serve(database: str, folder: Path) -> AbstractContextManager[dict[str, str]]:
    """Return a context in which the database runs, if it is a server."""
    module = import_module(f"{__name__}.{database}")
    served: AbstractContextManager[dict[str, str]] = (
        module.serve(folder) if hasattr(module, "serve") else nullcontext({})
    )
    return served
