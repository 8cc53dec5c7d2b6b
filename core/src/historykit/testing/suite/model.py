"""Random operations on a store and on the reference give the same answers."""

from __future__ import annotations

from historykit.testing.rules import since
from historykit.testing.stateful import run_against_reference
from historykit.testing.subject import StoreSubject

__all__ = ["ModelTests"]


class ModelTests:
    """What no single test thought of."""

    @since("0.1")
    def test_any_operations_give_what_the_reference_gives(self, subject: StoreSubject) -> None:
        """Whatever is done to sessions, in whatever order, the store answers as the memory store
        does: the same messages, records, receipts and errors."""
        run_against_reference(subject)
