"""What the MongoDB backend says about itself, readable without the driver."""

from __future__ import annotations

from historykit.capabilities import Capability, Guarantee
from historykit.plugins import BackendSpec, hookimpl
from historykit.store import HistoryStore


def store() -> type[HistoryStore]:
    """Return the store class."""
    from historykit_mongo.store import MongoStore

    return MongoStore


def config() -> type:
    """Return the class of its settings."""
    from historykit_mongo.config import MongoConfig

    return MongoConfig


@hookimpl
def historykit_backend() -> BackendSpec:
    """Describe the MongoDB backend."""
    return BackendSpec(
        name="mongo",
        store=store,
        config=config,
        capabilities=frozenset({Capability.EDIT, Capability.CATALOGUE, Capability.RUNS}),
        guarantees=frozenset(Guarantee),
        summary="MongoDB 6 or later, through PyMongo's asynchronous client or motor",
    )
