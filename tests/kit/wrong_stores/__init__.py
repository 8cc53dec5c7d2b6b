"""Stores that lie about one thing each."""

from tests.kit.wrong_stores import (
    appends,
    catalogue,
    contract,
    edits,
    faults,
    keys,
    lifecycle,
    lookups,
    messages,
    pages,
    retention,
    scopes,
    sessions,
)
from tests.kit.wrong_stores.lies import REFUTED_BY, WRONG_STORES, Lie, spec_of

__all__ = [
    "REFUTED_BY",
    "WRONG_STORES",
    "Lie",
    "appends",
    "catalogue",
    "contract",
    "edits",
    "faults",
    "keys",
    "lifecycle",
    "lookups",
    "messages",
    "pages",
    "retention",
    "scopes",
    "sessions",
    "spec_of",
]
