from __future__ import annotations

import pytest

from historykit import TranscriptDivergedError
from historykit.records import TAIL_DIGESTS, Tail
from historykit.transcripts import new_part
from tests.core.stored import KEY


def tail(stored, *, trimmed=0):
    return Tail(
        incarnation="i",
        version=1,
        count=len(stored),
        trimmed=trimmed,
        digests=tuple(stored[-TAIL_DIGESTS:]),
    )


LONG = [str(n) for n in range(20)]


@pytest.mark.parametrize(
    ("stored", "trimmed", "transcript", "begin"),
    [
        ("", 0, "abc", 0),
        ("ab", 0, "abc", 2),
        ("ab", 0, "ab", 2),
        ("abc", 0, "ab", 2),
        (LONG, 0, [*LONG, "x"], 20),
        (LONG, 0, LONG[:15], 15),
        ("cd", 2, "abcde", 4),
        ("cd", 2, "cde", 2),
        ("", 2, "abc", 2),
        ("", 2, "a", 1),
        ("aa", 0, "aaa", 2),
    ],
)
def test_the_new_part_begins_where_the_stored_ends(stored, trimmed, transcript, begin):
    """What is stored is left out, whether it was trimmed meanwhile or the transcript is a late
    one."""
    assert new_part(tail(list(stored), trimmed=trimmed), list(transcript), KEY) == begin


@pytest.mark.parametrize(
    ("stored", "transcript"),
    [("ab", "xbc"), ("ab", "ax"), ("ab", "ba"), (LONG, LONG[:12]), (LONG, ["x"]), ("ab", "xyab")],
)
def test_a_transcript_that_does_not_continue_the_stored_is_refused(stored, transcript):
    """A transcript that differs where both are known, or cannot be compared, is an error."""
    with pytest.raises(TranscriptDivergedError, match="does not continue"):
        new_part(tail(list(stored)), list(transcript), KEY)


def test_a_diverged_transcript_names_the_way_out():
    """The error says how a transcript takes the place of what is stored."""
    with pytest.raises(TranscriptDivergedError, match='set diverged="replace"'):
        new_part(tail("ab"), "xy", KEY)
