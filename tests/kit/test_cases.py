"""The page of cases is about tests that there are, on the stores that it says."""

from __future__ import annotations

import pytest

from tests.kit.cases import CASES, NAMES, PAGE, Case, missing, page, stores_of


def test_page_is_current() -> None:
    """The page is what `python -m tests.kit.cases` makes."""
    assert PAGE.read_text("utf-8") == page()


def test_tests_exist() -> None:
    """Every test that a case names is there, and runs on a store or in core."""
    assert missing() == []


def test_tests_that_do_not_exist_are_missed() -> None:
    """A name that no test has is found out, wherever it should be."""
    for name in ("test_x", "Wording.test_x", "Nobody.test_x", "core test_ids.test_x", "x test_y.z"):
        assert stores_of(name) == set()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case_is_held_on_every_store(case: Case) -> None:
    """The tests of a case cover all stores together, or core alone, or the stores that have a
    schema, or a database to look into."""
    covered = set().union(*(stores_of(test) for test in case.tests)) - {"core"}
    alone = {"Schema upgrades": {"sqlite", "postgres", "mongo"}}
    assert covered in (set(), set(NAMES), alone.get(case.name))
