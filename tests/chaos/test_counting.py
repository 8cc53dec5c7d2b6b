from __future__ import annotations

from tests.chaos.counting import Count, count_session

GOOD = ["w0 0 0", "w0 0 1", "w1 0 0", "w1 0 1", "w0 1 0", "w0 1 1"]


def found(texts: list[str], *told: str) -> Count:
    return count_session(texts, set(told or ("w0 0", "w1 0", "w0 1")))


def test_whole_turns_in_order_are_good() -> None:
    """Turns that are there, whole, once and in the order of their writer are good."""
    assert found(GOOD) == Count(
        acknowledged=3, stored=3, messages=6, missing=0, torn=0, doubled=0, disordered=0
    )
    assert found(GOOD).is_good


def test_a_turn_that_nobody_was_told_of_may_be_there() -> None:
    """A turn that was stored without anybody learning about it is none of the faults."""
    assert found(GOOD, "w0 0").is_good


def test_a_missing_turn_is_seen() -> None:
    """A turn that was acknowledged and is not there is missing."""
    assert found(GOOD[:4]).missing == 1


def test_a_torn_turn_is_seen() -> None:
    """A turn is torn without its second message, without its first, and around another one."""
    assert found(GOOD[:5]).torn == 1
    assert found(GOOD[1:]).torn == 1
    assert found([GOOD[0], *GOOD[2:4], GOOD[1], *GOOD[4:]]).torn == 1
    assert found([GOOD[1], GOOD[0], *GOOD[2:]]).torn == 1


def test_a_doubled_turn_is_seen() -> None:
    """A turn that is there twice, or one message of it, is doubled."""
    assert found([*GOOD, *GOOD[4:]]).doubled == 1
    assert found([*GOOD, GOOD[5]]).doubled == 1


def test_turns_out_of_order_are_seen() -> None:
    """A later turn of a writer before an earlier one is out of order."""
    assert found([*GOOD[4:], *GOOD[:4]]).disordered == 1
