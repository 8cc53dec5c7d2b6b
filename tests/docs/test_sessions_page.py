"""Looks whether the tables of the page of sessions are about tests that there are."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.packaging.workspace import ROOT

PAGE = (ROOT / "docs" / "sessions.md").read_text("utf-8")
TABLES = PAGE.partition("## What holds what is documented")[2]
ROWS = re.findall(r"(?m)^\| (.+?) \| .+ \| (`.+`) \|$", TABLES)


@cache
def known_tests(folder: str) -> set[str]:
    """The tests of a folder: with their module, or their class where they have one."""
    found = set()
    for path in (ROOT / "tests" / folder).glob("*.py"):
        body = ast.parse(path.read_text("utf-8")).body
        found |= {f"{path.stem}.{name}" for name in names(body)}
        for node in body:
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{name}" for name in names(node.body)}
    return found


def names(body: list[ast.stmt]) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name for each in body if isinstance(each, kinds) and each.name[:4] == "test"}


def test_every_row_has_a_test() -> None:
    """No row of the two tables is left out by the test below."""
    lines = [line for line in TABLES.splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(lines) - 2 * 2 > 60


def test_the_differences_are_numbered() -> None:
    """There are thirty, and none is missing."""
    numbers = [item.partition(".")[0] for item, _ in ROWS if item[0].isdigit()]
    assert numbers == [str(number) for number in range(1, 31)]


@pytest.mark.parametrize(("item", "tests"), ROWS, ids=[item for item, _ in ROWS])
def test_the_tests_of_an_item_exist(item: str, tests: str) -> None:
    """Each test that the table names is one of the suite."""
    known = known_tests("core") | known_tests("catalogue")
    assert set(re.findall(r"`([^`]+)`", tests)) <= known
