"""The known word that somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["nearest", "suggest"]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the one of `known` that is most like `word`, None where none is like it.

    Upper and lower case are alike.
    """
    from difflib import get_close_matches  # only errors need it

    names = {name.casefold(): name for name in sorted(known)}
    matches = get_close_matches(word.casefold(), names, n=1)
    return names[matches[0]] if matches else None


def suggest(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the nearest of `known`, or all of them."""
    names = sorted(known)
    match = nearest(word, names)
    if match is not None:
        return f"did you mean {match!r}?"
    return f"known are {', '.join(map(repr, names))}" if names else "there are none"
