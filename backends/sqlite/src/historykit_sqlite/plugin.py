"""What the SQLite backend says about itself, readable without the driver."""

from __future__ import annotations

from historykit.capabilities import Capability, Guarantee
from historykit.plugins import BackendSpec, hookimpl
from historykit.store import HistoryStore


def store() -> type[HistoryStore]:
    """Return the store class."""
    from historykit_sqlite.store import SQLiteStore

    return SQLiteStore


def config() -> type:
    """Return the class of its settings."""
    from historykit_sqlite.config import SQLiteConfig

    return SQLiteConfig


@hookimpl
def historykit_backend() -> BackendSpec:
    """Describe the SQLite backend."""
    return BackendSpec(
        name="sqlite",
        store=store,
        config=config,
        capabilities=frozenset({Capability.EDIT, Capability.CATALOGUE, Capability.RUNS}),
        guarantees=frozenset(
            {Guarantee.SHARED, Guarantee.SURVIVES_KILL, Guarantee.SURVIVES_POWER_LOSS}
        ),
        summary="one SQLite file, for any number of processes of one machine",
    )
