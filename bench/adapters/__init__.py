"""Every adapter, one module a database.

A module defines its `Adapter` classes, lists them in ``ADAPTERS``, and says in ``BOUNDS`` what
historykit is to reach, and in ``LEFT_OUT`` who cannot be measured, and why. Where the database is a
server, ``SERVER`` is its name in `bench.servers`: it runs for as long as the run does, and adapters
find in their `Place` how it is reached. A module imports the libraries of its stores only where
they are used, since each environment has its own. To add a database, write its module and name it
in `DATABASES`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Final

from bench.adapter import Adapter, Bounds
from bench.servers import running

__all__ = ["DATABASES", "adapters_of", "bounds_of", "find_adapter", "left_out_of", "serve"]

DATABASES: Final = ("sqlite", "redis", "postgres", "mongo")


def adapters_of(database: str) -> list[type[Adapter]]:
    """Return the adapters of a database in the order of the tables."""
    adapters: list[type[Adapter]] = import_module(f"{__name__}.{database}").ADAPTERS
    return adapters


def bounds_of(database: str) -> Bounds:
    """Return what historykit is to reach on a database."""
    bounds: Bounds = import_module(f"{__name__}.{database}").BOUNDS
    return bounds


def left_out_of(database: str) -> dict[str, str]:
    """Return the peers that cannot be measured on a database, and why not."""
    left_out: dict[str, str] = import_module(f"{__name__}.{database}").LEFT_OUT
    return left_out


def find_adapter(database: str, name: str) -> type[Adapter]:
    """Return the adapter of that name."""
    return next(adapter for adapter in adapters_of(database) if adapter.name == name)


def serve(database: str, cache: Path, *, places: int) -> AbstractContextManager[dict[str, str]]:
    """Return a context in which the database runs, if it is a server, with room for adapters."""
    server = getattr(import_module(f"{__name__}.{database}"), "SERVER", None)
    return nullcontext({}) if server is None else running(server, cache, places=places)
