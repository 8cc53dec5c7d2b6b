"""Callers that resend the whole conversation each time, and what of it is new."""

from __future__ import annotations

from collections.abc import Sequence

from historykit.errors import TranscriptDivergedError
from historykit.records import Tail
from historykit.session_records import SessionKey

__all__ = ["new_part", "place_of_new"]


def new_part(tail: Tail, digests: Sequence[bytes], key: SessionKey) -> int:
    """Return the index from which on a transcript is new, given the end of what is stored.

    `digests` are those of the transcript's messages. A transcript that ends within what is stored
    has nothing new: it was sent late. Where retention removed messages, the transcript may hold
    them or not.

    Raises `TranscriptDivergedError` for one that does not continue the history.
    """
    if tail.count == 0:
        return min(tail.trimmed, len(digests))
    for length in dict.fromkeys((tail.count + tail.trimmed, tail.count)):
        if _agrees(tail.digests, digests, length):
            return min(length, len(digests))
    raise TranscriptDivergedError(
        f"the transcript of {len(digests)} messages does not continue the {tail.count} messages "
        f"stored in session {key.session_id!r}; send one that does, or set "
        'diverged="replace" to have it take their place'
    )


def place_of_new(
    tail: Tail, digests: Sequence[bytes], key: SessionKey, *, replacing: bool
) -> int | None:
    """Return what `new_part` returns, and None where the transcript replaces what is stored."""
    try:
        return new_part(tail, digests, key)
    except TranscriptDivergedError:
        if not replacing:
            raise
        return None


def _agrees(stored: Sequence[bytes], digests: Sequence[bytes], length: int) -> bool:
    """Return whether the stored end, which ends at `length`, agrees with the transcript there."""
    begin = length - len(stored)
    overlap = digests[max(begin, 0) : length]
    return bool(overlap) and all(
        stored[index - begin] == digest for index, digest in enumerate(overlap, start=max(begin, 0))
    )
