from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from historykit.backends import BackendSpec
from historykit.cli import main
from historykit.memory import MemoryConfig, MemoryStore
from historykit.plugins import register, unregister
from tests.cli.conftest import Run

STORE = ("--backend", "sqlite", "--set", "path=chat.db")


def make_file(run: Run) -> None:
    """Have an empty history at the path of `STORE`."""
    assert run("sessions", *STORE, "--set", "create=true").exit_code == 0


def test_the_version_is_that_of_the_distribution(run: Run) -> None:
    """`--version` says which historykit it is."""
    assert run("--version").output == f"historykit {version('historykit')}\n"


def test_help_names_every_command_and_the_exit_codes(run: Run) -> None:
    """`--help` is where a user begins."""
    result = run("--help")
    assert result.exit_code == 0
    for word in ("backends", "check", "demo", "export", "import", "sessions", "show"):
        assert f"\n  {word} " in result.output
    assert "Exit codes: 0 done; 1 failed; 2 could not start" in result.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--backend", "sqlit"), "no backend 'sqlit' is installed"),
        (("--backend", "sqlite"), "the sqlite backend needs 'path'"),
        (("--backend", "sqlite", "--set", "pth=chat.db"), "did you mean 'path'?"),
        (("--backend", "sqlite", "--set", "path=no/such/folder/chat.db"), "no/such/folder"),
        (("--config", "nowhere.toml"), "cannot read nowhere.toml"),
        ((), "no backend is configured"),
        ((*STORE, "--namespace", ""), "namespace must have 1 to 256 characters"),
        ((*STORE, "--set", "migrate=maybe"), "--set migrate is not accepted"),
    ],
)
def test_what_cannot_start_exits_with_2(run: Run, arguments: tuple[str, ...], reason: str) -> None:
    """A wrong name, setting, file or place is one line on stderr, and the exit code 2."""
    result = run("sessions", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [("sessions",), ("show", "s1"), ("export",), ("export", "-o", "chat.jsonl"), ("check",)],
    ids=" ".join,
)
def test_what_only_reads_makes_no_store(run: Run, command: tuple[str, ...]) -> None:
    """A mistyped path is named, with exit code 2; it does not become an empty history."""
    result = run(*command, *STORE) if command != ("check",) else run("check", "sqlite", *STORE[2:])
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"the file {Path('chat.db').absolute()} does not exist" in result.stderr
    assert "check the path" in result.stderr
    assert "create=True" not in result.stderr
    assert not any(Path().iterdir())


def test_who_asks_for_it_gets_a_new_store(run: Run) -> None:
    """The setting of the user goes before that of the command."""
    assert run("sessions", *STORE, "--set", "create=true").exit_code == 0
    assert Path("chat.db").exists()


@pytest.mark.parametrize(
    "value", ["path", "=chat.db", "backend=sqlite", "environ=x", "attachments=x"]
)
def test_a_setting_that_is_none_is_a_usage_error(run: Run, value: str) -> None:
    """`--set` takes KEY=VALUE, and nothing that has an option of its own."""
    result = run("sessions", "--backend", "sqlite", "--set", value)
    assert result.exit_code == 2
    assert "Invalid value for '--set'" in result.stderr


def test_what_fails_exits_with_1(run: Run) -> None:
    """An error of a store that was opened is one line on stderr, and the exit code 1."""
    make_file(run)
    result = run("show", "nowhere", *STORE)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: session 'nowhere' not found; `historykit sessions` lists those that are there\n"
    )


def test_debug_shows_where_an_error_comes_from(run: Run) -> None:
    """With `--debug` the traceback comes before the line."""
    make_file(run)
    result = run("--debug", "show", "nowhere", *STORE)
    assert result.exit_code == 1
    assert result.stderr.startswith("Traceback")
    assert result.stderr.splitlines()[-1].startswith("Error: session 'nowhere' not found")


def test_an_error_is_one_line_without_secrets(run: Run) -> None:
    """Whatever the message of an error holds, passwords and line feeds are not printed."""

    def store() -> type[MemoryStore]:
        raise RuntimeError("cannot reach\nacme://ada:hunter2@db/x?token=hunter2")

    register(BackendSpec(name="acme", store=store, config=lambda: MemoryConfig))
    try:
        result = run("sessions", "--backend", "acme")
    finally:
        unregister("acme")
    assert result.exit_code == 2
    assert "cannot reach acme://ada:***@db/x?token=***" in result.stderr
    assert "hunter2" not in result.stderr


def test_the_store_comes_from_the_environment(run: Run) -> None:
    """Backend and settings are read from variables."""
    variables = {"HISTORYKIT_BACKEND": "sqlite", "HISTORYKIT_SQLITE_PATH": "chat.db"}
    assert run("sessions", **variables, HISTORYKIT_SQLITE_CREATE="true").exit_code == 0
    assert Path("chat.db").exists()


def test_the_store_comes_from_a_file(run: Run) -> None:
    """Backend and settings are read from TOML; options go before it."""
    Path("h.toml").write_text(
        '[history]\nbackend = "sqlite"\n[history.sqlite]\npath = "a.db"\ncreate = true\n'
    )
    assert run("sessions", "--config", "h.toml").exit_code == 0
    assert Path("a.db").exists()
    assert run("sessions", "--config", "h.toml", "--set", "path=b.db").exit_code == 0
    assert Path("b.db").exists()


def test_a_file_that_cannot_be_written_is_named(run: Run) -> None:
    """An error of the system names the file, and is one line."""
    make_file(run)
    Path("x.jsonl.part").mkdir()
    result = run("export", *STORE, "-o", "x.jsonl")
    assert result.exit_code == 1
    assert result.stderr == "Error: x.jsonl.part: Is a directory\n"


def test_a_closed_pipe_is_no_error_of_ours(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that has seen enough ends the command without a word."""
    monkeypatch.setattr("historykit.cli.backends.list_backends", _broken_pipe)
    result = run("backends")
    assert (result.exit_code, result.stderr) == (1, "")


def _broken_pipe() -> None:
    raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_one_line_says_what_to_install(missing: str) -> None:
    """The command exits with 2 and names the extra; importing the module is no error."""
    code = f"import sys; sys.modules[{missing!r}] = None; import historykit.cli as c; c.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "The command historykit needs click and rich; install them with: "
        "pip install 'historykit[cli]'\n"
    )


def test_a_module_that_is_missing_otherwise_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of another name that is missing is an error with its traceback."""
    monkeypatch.delitem(sys.modules, "historykit.cli.commands", raising=False)
    monkeypatch.setitem(sys.modules, "historykit.portable", None)
    monkeypatch.delitem(sys.modules, "historykit.cli.transfers", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"historykit\.portable"):
        main()


def test_the_package_runs_as_a_module() -> None:
    """`python -m historykit` is the same command."""
    command = [sys.executable, "-m", "historykit", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"historykit {version('historykit')}\n"


def test_the_command_is_installed() -> None:
    """The program `historykit` runs."""
    done = subprocess.run(
        [Path(sys.executable).with_name("historykit"), "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("historykit ")


def test_main_runs_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """`main` takes the arguments of the process."""
    monkeypatch.setattr(sys, "argv", ["historykit", "--version"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 0


def test_an_interrupted_command_leaves_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control-C ends a command with a word."""
    from historykit.cli.commands import historykit

    monkeypatch.setattr("historykit.cli.backends.list_backends", _interrupted)
    result = CliRunner().invoke(historykit, ["backends"])
    assert result.exit_code == 1
    assert "Aborted!" in result.stderr


def _interrupted() -> None:
    raise KeyboardInterrupt
