"""Bounds of what is loaded and what is kept."""

from __future__ import annotations

from historykit.errors import InvalidRequestError

__all__ = ["check_bound"]


def check_bound(value: object, what: str) -> int | None:
    """Return `value` if it is None or an integer of 0 or more, named `what` in the error.

    Raises `InvalidRequestError`.
    """
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise InvalidRequestError(f"{what} must be None or an integer of 0 or more, not {value!r}")
