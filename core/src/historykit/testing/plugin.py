"""What the conformance suite adds to pytest.

Every run of pytest imports this where historykit is installed. It imports nothing but pytest, and
does nothing, until a conformance class is collected."""

from __future__ import annotations

import argparse
import os.path
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from historykit.testing.judging import Subject
    from historykit.testing.report import ConformanceReport

__all__ = ["SUBJECT"]

SUBJECT: pytest.StashKey[Subject] = pytest.StashKey()
"""In the stash of a test: what it is about. The suite's fixtures put it there."""

PROPERTY = "historykit"
"""The user property of a test report, and the output of a worker, that carry verdicts."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the suite."""
    group = parser.getgroup("historykit", "historykit's conformance suite")
    group.addoption(
        "--history-strict",
        action="store_true",
        help="fail unless there is a conformance class and all tests of each have run",
    )
    group.addoption("--history-report", metavar="FILE", help="write the verdicts to FILE, as JSON")
    group.addoption(
        "--history-backend",
        metavar="NAME",
        help="the backend to test with --pyargs historykit.testing.standalone",
    )
    group.addoption(
        "--history-set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of that backend; may be repeated",
    )
    group.addoption(
        "--history-known-failures",
        metavar="FILE",
        help="the known failures of that backend: TOML with a line `test_id = reason` for each",
    )
    group.addoption("--history-selection", metavar="FILE", help=argparse.SUPPRESS)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to watch for conformance classes."""
    config.pluginmanager.register(Watcher(config), "historykit-watcher")


class Watcher:
    """Watches a run for conformance classes, and makes one report of all of them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.is_worker = hasattr(config, "workerinput")
        self._report: ConformanceReport | None = None
        written = config.option.history_report
        if written and not os.path.isdir(os.path.dirname(os.path.abspath(written))):
            raise pytest.UsageError(f"--history-report={written} is in a folder that is not there")
        if config.option.history_backend or config.option.history_selection:
            from historykit.testing import selection

            selection.select(config.option)

    @property
    def report(self) -> ConformanceReport:
        """What was found so far."""
        if self._report is None:
            from historykit.testing.report import ConformanceReport

            self._report = ConformanceReport()
        return self._report

    @pytest.hookimpl(wrapper=True)
    def pytest_pycollect_makeitem(self, obj: object) -> Generator[None, Any, Any]:
        """Refuse a class whose backend does not load: one error instead of one for each test."""
        if _is_conformance(obj) and getattr(obj, "__test__", False):
            from historykit.testing.judging import check_class

            check_class(obj)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Note the conformance classes before any of their tests is deselected."""
        for item in items:
            if _is_conformance(getattr(item, "cls", None)):
                from historykit.testing.judging import describe_class

                self.report.add_class(describe_class(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turn the outcome of a conformance test into a verdict."""
        if not _is_conformance(getattr(item, "cls", None)):
            return (yield)
        with _plain_tracebacks(self.config.option):
            report = yield
        from historykit.testing.judging import judge

        finding = judge(item, call, report)
        if finding is not None:
            report.user_properties.append((PROPERTY, finding))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather a verdict, from this process or a worker."""
        for name, value in report.user_properties:
            if name == PROPERTY:
                self.report.add(cast("dict[str, Any]", value))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Gather the classes that a worker of pytest-xdist collected."""
        for description in getattr(node, "workeroutput", {}).get(PROPERTY, ()):
            self.report.add_class(description)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report, and fail an incomplete run where that was asked for."""
        if self.is_worker:
            if self._report is not None:
                self.config.workeroutput[PROPERTY] = self.report.classes()  # type: ignore[attr-defined]  # by xdist
            return
        if self.config.option.history_report:
            self.report.write(self.config.option.history_report)
        strict = self.config.option.history_strict
        if strict and not self.report.is_complete and session.exitstatus in _HARMLESS:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the closing table."""
        if self._report is None and not self.config.option.history_strict:
            return
        terminalreporter.section("historykit conformance")
        for line, markup in self.report.lines(verbose=terminalreporter.verbosity > 0):
            terminalreporter.write_line(line, **dict.fromkeys(markup, True))


@contextmanager
def _plain_tracebacks(option: Any) -> Iterator[None]:
    """Show tracebacks as Python does, on a Python that could end the run over pytest's own form.

    CPython 3.11 raises `SystemError` in `ast.parse` now and then when an exception was raised deep
    in a stack before (gh-106905). A store that fails many tests would get no verdict for it.
    """
    style = option.tbstyle
    if sys.version_info < (3, 12) and style != "no":
        option.tbstyle = "native"
    try:
        yield
    finally:
        option.tbstyle = style


_HARMLESS = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def _is_conformance(candidate: object) -> bool:
    """Return whether it is a conformance class, without running code of classes that are not."""
    return isinstance(candidate, type) and any(
        "historykit_rules" in vars(parent) for parent in candidate.__mro__
    )
