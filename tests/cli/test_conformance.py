from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from historykit.cli import conformance as module
from historykit.cli.commands import historykit

pytestmark = pytest.mark.timeout(300)  # each of these runs pytest in another process

ORDER = "test_batch_keeps_its_order"
SHARED = "test_second_store_sees_what_was_appended"


def run(*arguments: str) -> tuple[int, str]:
    """Run the command and return its exit code and what it printed itself."""
    result = CliRunner().invoke(historykit, ["conformance", *arguments])
    return result.exit_code, result.output


def test_conformant_backend_exits_with_0(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The reference passes the whole suite; the report is where it was asked for."""
    code, _ = run("memory", "--report", str(tmp_path / "report.json"))
    printed = capfd.readouterr().out
    assert code == 0
    assert "memory from historykit" in printed
    assert "CONFORMANT (" in printed
    (judged,) = json.loads((tmp_path / "report.json").read_text("utf-8"))["classes"]
    assert (judged["level"], judged["ran"]) == ("CONFORMANT", judged["total"])


def test_part_of_the_suite_exits_with_3(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A selection of tests proves nothing; settings reach the backend."""
    code, _ = run("sqlite", "--set", f"path={tmp_path / 'a.db'}", "-k", ORDER)
    assert code == 3
    assert "PARTIAL (1 of" in capfd.readouterr().out
    assert (tmp_path / "a.db").exists()
    assert run("memory", "-k", "zzz")[0] == 3


def test_settings_are_no_arguments_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Settings come from the environment too, and are not shown to those who list processes."""
    monkeypatch.setenv("HISTORYKIT_SQLITE_PATH", str(tmp_path / "secret.db"))
    arguments: list[str] = []
    real = module.subprocess.run

    def listen(command: list[str], **options: object) -> object:
        arguments.extend(command)
        return real(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(module.subprocess, "run", listen)
    assert run("sqlite", "-k", ORDER)[0] == 3
    assert not any("secret" in argument for argument in arguments)
    assert (tmp_path / "secret.db").exists()


def test_refuted_backend_exits_with_1(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A test that fails, as one that is listed and does not fail, makes the exit code 1."""
    failures = tmp_path / "failures.toml"
    failures.write_text(f'{SHARED} = "memory#1"')
    code, _ = run("memory", "--known-failures", str(failures), "-k", SHARED)
    assert code == 1
    assert "stale" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nosuch"], "no backend 'nosuch' is installed"),
        (["sqlite", "--set", "path=/nonexistent/a.db"], "/nonexistent does not exist"),
        (["sqlite", "--set", "pfad=a.db"], "no setting 'pfad'"),
        (["memory", "--known-failures", "typo.toml"], "lists test_typo, which is no test"),
        (["memory", "--known-failures", "mute.toml"], "needs a reason for test_a"),
        (["memory", "--known-failures", "bad.toml"], "bad.toml is no TOML file"),
        (["memory", "--known-failures", "none.toml"], "does not exist"),
    ],
)
def test_what_cannot_start_exits_with_2(
    arguments: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend that is not there, and arguments that make no sense, are one line."""
    monkeypatch.chdir(tmp_path)
    Path("typo.toml").write_text('test_typo = "x"')
    Path("mute.toml").write_text('test_a = ""')
    Path("bad.toml").write_text("= =")
    code, printed = run(*arguments)
    assert code == 2
    assert complaint in printed.splitlines()[-1]


def test_missing_extra_exits_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what the suite needs the command says how to get it."""
    monkeypatch.setattr(module, "EXTRA", ("pytest", "a_module_that_is_not_there"))
    code, printed = run("memory")
    assert code == 2
    assert "a_module_that_is_not_there; install it with: pip install" in printed


def test_suite_that_does_not_come_up_exits_with_2(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where pytest does not start, or cannot write its report, nothing was proven."""
    assert run("memory", "-k", "not (")[0] == 2
    assert "NOT RUN" in capfd.readouterr().out
    report = tmp_path / "nowhere" / "report.json"
    assert run("memory", "-k", ORDER, "--report", str(report))[0] == 2
