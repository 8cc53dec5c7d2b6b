"""Parts of a stream, said so that PostgreSQL finds them through the primary key of messages.

Asked for the newest messages of a stream, it may well take the other index, read the whole session
and sort it: where sessions are short on average, that looks as cheap. A range of sequences whose
bounds the planner cannot see is taken to be short, and only the primary key knows sequences."""

from __future__ import annotations

from typing import Final

__all__ = ["LARGEST", "fitting", "within"]

LARGEST: Final = (1 << 63) - 1
"""The largest integer of a bigint: above every sequence and every time."""


def within(session: str, stream: str, first: str = "0", last: str = str(LARGEST)) -> str:
    """Return the condition for the messages of a stream from the first to the last sequence."""
    return (
        f"session = {session} AND stream = {stream} "
        f"AND sequence BETWEEN (SELECT {first}::bigint) AND (SELECT {last}::bigint)"
    )


def fitting(number: int) -> int:
    """Return the bigint nearest to a bound: no stored number lies between the two."""
    return max(-LARGEST, min(number, LARGEST))
