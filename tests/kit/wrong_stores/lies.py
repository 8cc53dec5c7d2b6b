"""How a wrong store is told: a class with one lie, and the tests that have to refute it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from historykit.capabilities import Capability, Guarantee
from historykit.memory import MemoryConfig, MemoryStore
from historykit.memory_sessions import MemorySession
from historykit.plugins import BackendSpec
from historykit.session_records import SessionKey

Store = TypeVar("Store", bound="type[Lie]")

WRONG_STORES: list[type[Lie]] = []
REFUTED_BY: dict[type[Lie], tuple[str, ...]] = {}


def wrong(*tests: str) -> Callable[[Store], Store]:
    """Register a wrong store with the tests that have to refute it."""

    def register(store: Store) -> Store:
        WRONG_STORES.append(store)
        REFUTED_BY[store] = tests
        return store

    return register


class Lie(MemoryStore):
    """A memory store, until a subclass says otherwise."""

    spec_name: ClassVar[str] = "memory"
    declares: ClassVar[frozenset[Capability | Guarantee]] = frozenset(Capability)
    config_class: ClassVar[type] = MemoryConfig
    settings: ClassVar[Mapping[str, object]] = {}


class SharedLie(Lie):
    """A store that shares its data with the others of this process."""

    declares = frozenset({*Capability, Guarantee.SHARED})
    guarantees = frozenset({Guarantee.SHARED})
    shared: ClassVar[dict[int, tuple[object, dict[SessionKey, MemorySession]]]] = {}

    def __init__(self, config: MemoryConfig, **options: Any) -> None:
        super().__init__(config, **options)
        _, self._sessions = self.shared.setdefault(id(config), (config, {}))


class KeyLie(Lie):
    """A store in which keys are equal that are not."""

    def __init__(self, config: MemoryConfig, **options: Any) -> None:
        super().__init__(config, **options)
        self._sessions = Folded(self.fold)

    @staticmethod
    def fold(key: SessionKey) -> object:
        raise NotImplementedError


class Folded(dict):
    """A dict that knows its keys by what a function makes of them."""

    def __init__(self, fold: Callable[[SessionKey], object]) -> None:
        self.fold = fold

    def __contains__(self, key) -> bool:
        return super().__contains__(self.fold(key))

    def __getitem__(self, key):
        return super().__getitem__(self.fold(key))

    def __setitem__(self, key, value) -> None:
        super().__setitem__(self.fold(key), value)

    def get(self, key, default=None):
        return super().get(self.fold(key), default)

    def pop(self, key, default=None):
        return super().pop(self.fold(key), default)


def spec_of(store: type[Lie]) -> BackendSpec:
    """Return the description of a wrong store's backend."""
    return BackendSpec(
        name=store.spec_name,
        store=lambda: store,
        config=lambda: store.config_class,
        capabilities=frozenset(need for need in store.declares if isinstance(need, Capability)),
        guarantees=frozenset(need for need in store.declares if isinstance(need, Guarantee)),
    )
