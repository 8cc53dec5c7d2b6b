from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_the_first_run_holds_a_conversation(run: Run) -> None:
    """It says that there was none, prints two turns, and leaves a file."""
    result = run("demo")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "historykit-demo.db is new: there is no conversation yet."
    assert [line.split()[0] for line in lines[3:7]] == ["user", "assistant"] * 2
    assert "historykit-demo.db has 4 messages now." in lines
    assert Path("historykit-demo.db").exists()


def test_the_second_run_shows_the_first_and_goes_on(run: Run) -> None:
    """The turns of the first run come first, and the answers are made of them."""
    said = run("demo").stdout.splitlines()[3:7]
    result = run("demo")
    lines = result.stdout.splitlines()
    assert lines[0] == "historykit-demo.db has 4 messages of earlier runs:"
    assert lines[1:5] == said
    assert "Welcome back! It was: 'Hello! I am Ada, and I grow carrots.'" in lines[8]
    assert "7, with this question of yours." in lines[10]
    assert "historykit-demo.db has 8 messages now." in lines


def test_a_later_run_goes_on_all_the_same(run: Run) -> None:
    """The conversation grows by two turns a run."""
    for count in (4, 8, 12):
        assert f"has {count} messages now." in run("demo").stdout


def test_the_file_is_where_one_wants_it(run: Run) -> None:
    """`--path` names the file."""
    assert "elsewhere.db has 4 messages now." in run("demo", "--path", "elsewhere.db").stdout
    assert Path("elsewhere.db").exists()
    assert not Path("historykit-demo.db").exists()


def test_the_command_that_the_demo_names_shows_its_conversation(run: Run) -> None:
    """It is printed at the end, with the file and the namespace in which the conversation is."""
    lines = run("demo", "--path", "a place.db").stdout.splitlines()
    program, *arguments = shlex.split(lines[-1].removeprefix("To look at it: "))
    assert program == "historykit" or arguments[:2] == ["-m", "historykit"]
    shown = run(*arguments[arguments.index("show") :])
    assert shown.exit_code == 0
    assert "I grow carrots" in shown.stdout


def test_without_the_command_on_the_path_the_demo_names_the_interpreter(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is where the demo runs in an environment that is not activated."""
    monkeypatch.setenv("PATH", "")
    last = run("demo").stdout.splitlines()[-1]
    assert shlex.split(last)[4:8] == [sys.executable, "-m", "historykit", "show"]
