from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import cli, report, runs
from bench.adapters import bounds_of
from bench.plan import Plan
from bench.results import Results

COMMAND = "python -m bench run sqlite"

PLAN = Plan(run="tiny", sizes=(0, 100), rounds=1, passes=1, appends=2, session_turns=2)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A tiny run of our own adapters and the floors, as its file has it."""
    cache = tmp_path_factory.mktemp("cache")
    chosen = runs.choose("sqlite", ["floor", "historykit provider"])
    data = runs.run("sqlite", chosen, PLAN, cache=cache, command=COMMAND)
    assert not list(cache.glob("runs/*"))
    return Results(json.loads(json.dumps(data)))


def test_a_run_measures_floors_and_historykit(results: Results) -> None:
    """Each adapter that was asked for has samples of each cell and met no trouble."""
    assert results.names() == [
        "floor: sqlite3 in a thread",
        "floor: one aiosqlite hop",
        "historykit provider",
        "historykit provider, normal",
    ]
    for name in results.names():
        assert results.adapters[name]["troubles"] == []
        for label in ("append 0", "append 100", "load 100", "last 100", "throughput"):
            assert results.value(name, label), (name, label)


def test_a_run_counts_what_writers_of_one_session_leave(results: Results) -> None:
    """All messages of all writers are there, and each turn is whole."""
    for found in results.adapters["historykit provider"]["contention"].values():
        assert (found["kept"], found["whole"], found["errors"]) == (400, 200, {})


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("redis_url")  # to be left out where Redis is
def test_the_floor_of_redis_does_again_what_the_store_did(tmp_path: Path) -> None:
    """It sends the store's commands with constants, and has its messages back."""
    _check_floors("redis", ["floor: redis-py, same commands"], tmp_path)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("postgres_url")
def test_the_floors_of_postgres_do_again_what_the_store_did(tmp_path: Path) -> None:
    """One sends the store's statements with constants, the other its own, on bare asyncpg."""
    names = ["floor: asyncpg, counter and rows", "floor: asyncpg, same statements"]
    _check_floors("postgres", names, tmp_path)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("mongo_url")
def test_the_floors_of_mongo_do_again_what_the_store_did(tmp_path: Path) -> None:
    """One sends the store's commands with constants, the other a document for each turn."""
    names = ["floor: PyMongo, a document a turn", "floor: PyMongo, same commands"]
    _check_floors("mongo", names, tmp_path)


def _check_floors(database: str, names: list[str], cache: Path) -> None:
    """See that a run on a server of its own measures the floors beside the provider."""
    chosen = runs.choose(database, ["floor", "historykit provider"])
    data = runs.run(database, chosen, PLAN, cache=cache, command=f"python -m bench run {database}")
    results = Results(data)
    assert results.names("floor") == names
    assert all(not one["troubles"] for one in results.adapters.values())
    labels = ("append 0", "append 100", "load 100", "last 100", "throughput")
    for name in [*names, "historykit provider"]:
        assert all(results.value(name, label) for label in labels)
    bounds = bounds_of(database)
    assert {bounds.floor, bounds.bare or bounds.floor} == set(names)
    assert data["server"] in report.render(results, bounds)


def test_a_run_is_shown_in_tables(results: Results) -> None:
    """The report has the command, a verdict on each target and a row for each adapter."""
    text = report.render(results, bounds_of("sqlite"))
    assert COMMAND in text
    assert "| append 100: times the floor | <= 1.3 |" in text
    assert "| historykit provider, normal | WAL, synchronous=NORMAL |" in text


def test_tables_go_between_the_marks_of_a_page() -> None:
    """What stood between the marks is replaced, and the rest of the page stays."""
    page = "before\n<!-- bench x -->\nold\n<!-- end of bench x -->\nafter\n"
    assert report.insert(page, "x", "new\n") == (
        "before\n<!-- bench x -->\n\nnew\n\n<!-- end of bench x -->\nafter\n"
    )
    with pytest.raises(SystemExit, match="bench y"):
        report.insert(page, "y", "new")


def test_unknown_names_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of nothing ends with a message and a code of its own."""
    assert cli.main(["--cache", str(tmp_path), "run", "sqlite", "--only", "nobody"]) == 2
    assert "no name" in capsys.readouterr().err
