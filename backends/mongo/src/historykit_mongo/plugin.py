"""What the MongoDB backend says about itself: that its store is not there yet."""

from __future__ import annotations

from typing import NoReturn

from historykit.errors import BackendError
from historykit.plugins import BackendSpec, hookimpl


def refuse() -> NoReturn:
    """Raise `BackendError`, in the place of a store."""
    raise BackendError(
        "the MongoDB backend is not part of this release yet; use another one",
        backend="mongo",
    )


@hookimpl
def historykit_backend() -> BackendSpec:
    """Return the description of the backend, which lists it and refuses to load."""
    return BackendSpec(
        name="mongo", store=refuse, config=refuse, summary="MongoDB, not part of this release yet"
    )
