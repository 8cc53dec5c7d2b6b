"""What the Redis backend says about itself, readable without the driver."""

from __future__ import annotations

from historykit.capabilities import Capability, Guarantee
from historykit.plugins import BackendSpec, hookimpl
from historykit.store import HistoryStore


def store() -> type[HistoryStore]:
    """Return the store class."""
    from historykit_redis.store import RedisStore

    return RedisStore


def config() -> type:
    """Return the class of its settings."""
    from historykit_redis.config import RedisConfig

    return RedisConfig


@hookimpl
def historykit_backend() -> BackendSpec:
    """Describe the Redis backend."""
    return BackendSpec(
        name="redis",
        store=store,
        config=config,
        capabilities=frozenset({Capability.EDIT, Capability.CATALOGUE, Capability.RUNS}),
        guarantees=frozenset(
            {Guarantee.SHARED, Guarantee.SURVIVES_KILL, Guarantee.SURVIVES_POWER_LOSS}
        ),
        summary="Redis or Valkey: one server, Sentinel or Cluster, without modules",
    )
