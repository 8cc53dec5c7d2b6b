from __future__ import annotations

import pytest

from historykit.suggestions import nearest, suggest


def test_nearest_finds_the_word_that_was_meant() -> None:
    """A word with a slip in it finds the known word that it is most like."""
    assert nearest("reddis", ["sqlite", "redis", "mongo"]) == "redis"


def test_nearest_takes_upper_and_lower_case_as_alike() -> None:
    """A word in other case finds the known word, in the case that this has."""
    assert nearest("SQLITE", ["sqlite", "redis"]) == "sqlite"
    assert nearest("sqlite", ["SQLite", "redis"]) == "SQLite"


def test_nearest_gives_none_where_nothing_is_like_it() -> None:
    """A word that is like none of the known ones has no nearest."""
    assert nearest("cassandra", ["sqlite", "redis"]) is None


@pytest.mark.parametrize(
    ("word", "known", "ending"),
    [
        ("pathh", ["path", "url"], "did you mean 'path'?"),
        ("colour", ["url", "path"], "known are 'path', 'url'"),
        ("colour", [], "there are none"),
    ],
)
def test_suggest_ends_an_error_message(word: str, known: list[str], ending: str) -> None:
    """The end of the message names the nearest word, or all known ones, or says there are none."""
    assert suggest(word, known) == ending
