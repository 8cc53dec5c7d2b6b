"""How a backend describes itself. Backend authors import this through `historykit.plugins`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pluggy

from historykit.capabilities import Capability, Guarantee
from historykit.errors import BackendError
from historykit.store import Clock, HistoryStore, system_clock

__all__ = ["API_VERSIONS", "BackendSpec", "BackendStatus", "Hooks", "hookimpl", "hookspec"]

API_VERSIONS: Final = frozenset({1})
"""The versions of the backend API that this historykit speaks."""

hookspec = pluggy.HookspecMarker("historykit")
"""Marks a hook of `Hooks`."""

hookimpl = pluggy.HookimplMarker("historykit")
"""Marks the function with which a backend's module implements a hook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSpec:
    """What a backend says about itself.

    `name` is the entry-point name. `store` and `config` import the driver and what else they need
    when they are called, and return the `HistoryStore` class and the frozen dataclass that
    configures it; the store is made as ``store_class(config_instance, clock=clock)``.
    `capabilities` and `guarantees` are the most that the backend can have; an opened store may have
    fewer. `api_version` is the version of the backend API that it was written for.
    """

    name: str
    store: Callable[[], type[HistoryStore]]
    config: Callable[[], type]
    capabilities: frozenset[Capability] = frozenset()
    guarantees: frozenset[Guarantee] = frozenset()
    api_version: int = 1
    summary: str = ""

    def make_store(self, config: object, *, clock: Clock = system_clock) -> HistoryStore:
        """Return a store that is configured and not opened yet."""
        store: Callable[..., HistoryStore] = self.store()
        return store(config, clock=clock)


class Hooks:
    """The hooks that a backend's module implements."""

    @hookspec
    def historykit_backend(self) -> BackendSpec:  # type: ignore[empty-body]  # a hook has no body
        """Return the description of the one backend that the module provides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendStatus:
    """One installed or registered backend.

    `spec` is None where it does not load, and `error` says why. `distribution` and `version` are
    None for a backend that was registered by the program itself.
    """

    name: str
    distribution: str | None = None
    version: str | None = None
    spec: BackendSpec | None = None
    error: BackendError | None = None
