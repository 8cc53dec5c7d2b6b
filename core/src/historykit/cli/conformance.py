"""The command that proves or refutes a backend."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from historykit.cli.running import opened, store_options
from historykit.config import HistoryConfig
from historykit.errors import ConfigError

if TYPE_CHECKING:
    from historykit.testing.selection import Selection

__all__ = ["conformance"]

EXTRA: Final = ("hypothesis", "pytest", "pytest_asyncio")

EXIT_CODES: Final = {
    "CONFORMANT": 0,
    "CONFORMANT, WITH KNOWN FAILURES": 0,
    "NOT CONFORMANT": 1,
    "PARTIAL": 3,
    "NOT RUN": 3,
}

NOT_STARTED: Final = 2

PYTEST_FAILED: Final = (3, 4)
"""The exit codes of pytest for an error of its own and for arguments that make no sense."""

PYTEST_INI: Final = """[pytest]
asyncio_mode = strict
asyncio_default_fixture_loop_scope = function
"""


@click.command()
@click.argument("backend", required=False, metavar="[NAME]")
@store_options()
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the verdicts to this file, as JSON.",
)
@click.option(
    "--known-failures",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help='TOML with a line `test_id = "reason"` for each test that is known to fail.',
)
@click.option("-k", "expression", metavar="EXPRESSION", help="Only these tests, as pytest's -k.")
async def conformance(
    config: HistoryConfig,
    report: Path | None,
    known_failures: Path | None,
    expression: str | None,
) -> None:
    """Prove that a backend keeps its promises, or refute it.

    NAME is the backend, where none is configured. The tests make namespaces of their own and remove
    them again. Exit codes: 0 conformant, known failures included; 1 not conformant; 2 could not
    start; 3 partial, because not all tests ran.
    """
    _check_extra()
    selection = _selection(config, known_failures)
    async with opened(config) as history:
        await history.store.ping()
    with tempfile.TemporaryDirectory() as folder:
        code = _run_pytest(Path(folder), selection, report, expression)
    click.get_current_context().exit(code)


def _check_extra() -> None:
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"the suite needs {', '.join(missing)}; install it with: "
            "pip install 'historykit[conformance]'"
        )


def _selection(config: HistoryConfig, path: Path | None) -> Selection:
    from historykit.testing import HistoryConformance
    from historykit.testing.selection import Selection, known_failures

    failures = known_failures(path)
    for test in failures:
        if test not in HistoryConformance.historykit_rules:
            raise ConfigError(f"{path} lists {test}, which is no test of the suite")
    return Selection(backend=config.backend, settings=config.settings, known_failures=failures)


def _run_pytest(
    folder: Path, selection: Selection, report: Path | None, expression: str | None
) -> int:
    """Run the suite in a process of its own, and return the exit code of the command.

    A process that has imported the suite already could not explain its asserts. The settings travel
    in a file, because everybody can see the arguments of a process.
    """
    folder.joinpath("pytest.ini").write_text(PYTEST_INI, "utf-8")
    selection.save(folder / "selection.json")
    written = report.absolute() if report else folder / "report.json"
    command = [sys.executable, "-m", "pytest", "--pyargs", "historykit.testing.standalone"]
    command += ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "--noconftest"]
    command += [f"--rootdir={folder}", f"--config-file={folder / 'pytest.ini'}"]
    command += [f"--history-selection={folder / 'selection.json'}", f"--history-report={written}"]
    if expression is not None:
        command += ["-k", expression]
    written.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    ended = subprocess.run(command, env=environment, check=False).returncode
    if ended in PYTEST_FAILED or not written.exists():
        return NOT_STARTED
    (judged,) = json.loads(written.read_text("utf-8"))["classes"] or [{"level": "NOT RUN"}]
    return EXIT_CODES[judged["level"]]
