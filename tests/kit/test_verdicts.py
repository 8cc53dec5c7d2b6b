from __future__ import annotations

import pytest

from historykit.capabilities import Capability, Guarantee
from historykit.testing.verdicts import Outcome, Standing, Verdict, level, verdict

PASSED, REFUSED, FAILED, BROKEN = Outcome
EDIT, SHARED = Capability.EDIT, Guarantee.SHARED

TABLE = [
    # outcome, what is unmet, the verdict, and the one where the test is listed as a known failure
    (PASSED, None, Verdict.PASSED, Verdict.STALE),
    (PASSED, EDIT, Verdict.UNDECLARED, Verdict.STALE),
    (PASSED, SHARED, Verdict.KEPT, Verdict.STALE),
    (REFUSED, None, Verdict.FAILED, Verdict.KNOWN_FAILURE),
    (REFUSED, EDIT, Verdict.REFUSED, Verdict.STALE),
    (REFUSED, SHARED, Verdict.NOT_CLAIMED, Verdict.STALE),
    (FAILED, None, Verdict.FAILED, Verdict.KNOWN_FAILURE),
    (FAILED, EDIT, Verdict.FAILED, Verdict.KNOWN_FAILURE),
    (FAILED, SHARED, Verdict.NOT_CLAIMED, Verdict.STALE),
    (BROKEN, None, Verdict.ERROR, Verdict.ERROR),
    (BROKEN, EDIT, Verdict.ERROR, Verdict.ERROR),
    (BROKEN, SHARED, Verdict.ERROR, Verdict.ERROR),
]


@pytest.mark.parametrize(("outcome", "unmet", "expected", "listed"), TABLE)
def test_verdict(
    outcome: Outcome, unmet: Capability | Guarantee | None, expected: Verdict, listed: Verdict
) -> None:
    """Every outcome has its verdict, for every state of the requirement and of the list."""
    assert verdict(outcome, unmet=unmet) is expected
    assert verdict(outcome, unmet=unmet, known=True) is listed


def test_table_is_complete() -> None:
    """There is a row for each outcome and each state of the requirement."""
    rows = [(outcome, unmet) for outcome, unmet, _, _ in TABLE]
    assert len(set(rows)) == len(rows) == len(Outcome) * 3


def test_failing_verdicts() -> None:
    """Four verdicts keep a store from being conformant."""
    assert {each.name for each in Verdict if each.fails} == {
        "FAILED",
        "UNDECLARED",
        "STALE",
        "ERROR",
    }


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({}, "NOT RUN (0 of 3 tests ran)"),
        ({"of another class": Verdict.PASSED}, "NOT RUN (0 of 3 tests ran)"),
        ({"a": Verdict.PASSED}, "PARTIAL (1 of 3 tests ran)"),
        ({"a": Verdict.KNOWN_FAILURE}, "PARTIAL (1 of 3 tests ran)"),
        ({"a": Verdict.FAILED}, "NOT CONFORMANT (1 of 3 tests ran)"),
        (dict.fromkeys("abc", Verdict.PASSED), "CONFORMANT (3 of 3 tests ran)"),
        (
            {"a": Verdict.REFUSED, "b": Verdict.NOT_CLAIMED, "c": Verdict.KEPT},
            "CONFORMANT (3 of 3 tests ran)",
        ),
        (
            {"a": Verdict.PASSED, "b": Verdict.KNOWN_FAILURE, "c": Verdict.PASSED},
            "CONFORMANT, WITH 1 KNOWN FAILURE (3 of 3 tests ran)",
        ),
        (
            {"a": Verdict.PASSED, "b": Verdict.KNOWN_FAILURE, "c": Verdict.KNOWN_FAILURE},
            "CONFORMANT, WITH 2 KNOWN FAILURES (3 of 3 tests ran)",
        ),
        (
            {"a": Verdict.KNOWN_FAILURE, "b": Verdict.STALE, "c": Verdict.PASSED},
            "NOT CONFORMANT (3 of 3 tests ran)",
        ),
    ],
)
def test_level(verdicts: dict[str, Verdict], expected: str) -> None:
    """The level follows from what ran, not from what failed alone."""
    assert str(level(verdicts, ["a", "b", "c"])) == expected


def test_nothing_to_run_is_not_conformant() -> None:
    """A suite without tests proves nothing."""
    assert level({}, []).standing is Standing.NOT_RUN
