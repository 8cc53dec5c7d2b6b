from __future__ import annotations

import pytest

from bench import searches


def test_searches_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """A run prints for each search the time among few and among many, and their ratio; its exit
    code says whether the bound holds."""
    code = searches.main(["sqlite", "--rounds", "10", "--many", "200"])
    printed = capsys.readouterr()
    rows = [line.split(" | ") for line in printed.out.splitlines() if line.startswith("| sqlite")]
    assert [row[1] for row in rows] == [cell.name for cell in searches.CELLS]
    bounded = rows[: len([cell for cell in searches.CELLS if cell.is_bound])]
    largest = max(float(row[place].strip(" |")) for row in bounded for place in (5, 8))
    assert f"at most {largest:.2f} times" in printed.err
    assert code == (largest > searches.BOUND)
