"""What the PostgreSQL backend says about itself, readable without the driver."""

from __future__ import annotations

from historykit.capabilities import Capability, Guarantee
from historykit.plugins import BackendSpec, hookimpl
from historykit.store import HistoryStore


def store() -> type[HistoryStore]:
    """Return the store class."""
    from historykit_postgres.store import PostgresStore

    return PostgresStore


def config() -> type:
    """Return the class of its settings."""
    from historykit_postgres.config import PostgresConfig

    return PostgresConfig


@hookimpl
def historykit_backend() -> BackendSpec:
    """Describe the PostgreSQL backend."""
    return BackendSpec(
        name="postgres",
        store=store,
        config=config,
        capabilities=frozenset({Capability.EDIT, Capability.CATALOGUE, Capability.RUNS}),
        guarantees=frozenset(Guarantee),
        summary="PostgreSQL 15 or newer, for any number of processes and machines",
    )
