"""What the backend says about itself. Reading this imports nothing that is not needed."""

from __future__ import annotations

from historykit.capabilities import Guarantee
from historykit.plugins import BackendSpec, hookimpl

__all__ = ["historykit_backend"]


def _store() -> type:
    from acme_history.store import AcmeStore

    return AcmeStore


def _config() -> type:
    from acme_history.config import AcmeConfig

    return AcmeConfig


@hookimpl
def historykit_backend() -> BackendSpec:
    """Describe the backend."""
    return BackendSpec(
        name="acme",
        store=_store,
        config=_config,
        guarantees=frozenset(
            {Guarantee.SHARED, Guarantee.SURVIVES_KILL, Guarantee.SURVIVES_POWER_LOSS}
        ),
        summary="plain files in a folder",
    )
