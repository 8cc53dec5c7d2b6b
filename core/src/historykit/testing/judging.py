"""From the outcome that pytest reports to the verdict of the suite."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from historykit.errors import HistoryKitError
from historykit.testing.plugin import SUBJECT
from historykit.testing.rules import Requirement, Rule
from historykit.testing.verdicts import Outcome, Verdict, verdict

__all__ = ["Subject", "check_class", "describe_class", "judge"]

SKIPPED = "a conformance test may not be skipped or marked xfail; known_failures is the place"


class Subject(Protocol):
    """What a conformance test is about, as far as a verdict depends on it."""

    @property
    def claims(self) -> frozenset[Requirement]:
        """The capabilities and guarantees that it has, by its own account."""

    @property
    def declared(self) -> frozenset[Requirement]:
        """The most that it can have; some may not be there on this server."""

    @property
    def facts(self) -> dict[str, Any]:
        """What a report says about it, as plain data."""


def check_class(suite: Any) -> None:
    """Refuse to collect a class that was tampered with or whose backend does not load."""
    try:
        suite.check()
    except (HistoryKitError, TypeError) as error:
        raise pytest.Collector.CollectError(f"{suite.__name__}: {error}") from None


def describe_class(item: Any) -> dict[str, Any]:
    """Return what a report needs to know of the class of a test, as plain data."""
    name = item.nodeid.rpartition("::")[0]
    return {
        "class": item.cls.__module__ + name if name.startswith("::") else name,
        "tests": list(item.cls.historykit_rules),
        "facts": item.cls.facts(),
    }


def judge(
    item: Any, call: pytest.CallInfo[None], report: pytest.TestReport
) -> dict[str, Any] | None:
    """Change a report to what the suite makes of it, and return the finding as plain data.

    None where there is nothing to say: of a phase before or after the test that went well, and of a
    test of the author's own.
    """
    rule: Rule | None = item.cls.historykit_rules.get(item.originalname)
    outcome = _outcome(call, report, rule)
    if outcome is Outcome.BROKEN and rule is None:
        report.outcome = "failed"
    if outcome is None or rule is None:
        return None
    subject: Subject | None = item.stash.get(SUBJECT, None)
    unmet = rule.unmet(subject.claims) if subject else None
    reason: str | None = item.cls.known_failures.get(rule.id)
    result = verdict(outcome, unmet=unmet, known=reason is not None)
    detail = _detail(result, report, unmet, reason)
    if subject is not None and unmet in subject.declared and not result.fails:
        detail = f"{detail}: not on this server"
    _apply(result, detail, report)
    description = describe_class(item)
    description["facts"] |= subject.facts if subject else {}
    return description | {"test": rule.id, "verdict": result.value, "detail": detail}


def _outcome(
    call: pytest.CallInfo[None], report: pytest.TestReport, rule: Rule | None
) -> Outcome | None:
    if report.skipped or hasattr(report, "wasxfail"):
        report.longrepr = SKIPPED
        return Outcome.BROKEN
    if report.when != "call":
        return Outcome.BROKEN if report.failed else None
    if rule is None:
        return None
    if report.passed:
        return Outcome.PASSED
    return rule.outcome(call.excinfo.value) if call.excinfo else Outcome.FAILED


def _detail(
    result: Verdict, report: pytest.TestReport, unmet: Requirement | None, reason: str | None
) -> str:
    name = unmet.name if unmet else ""
    match result:
        case Verdict.PASSED:
            return ""
        case Verdict.REFUSED | Verdict.NOT_CLAIMED | Verdict.KEPT:
            return f"{name} not declared"
        case Verdict.UNDECLARED:
            return f"the store has {name}: add it to the capabilities it declares"
        case Verdict.STALE:
            return f"it does not fail: remove it from known_failures, where it says {reason!r}"
        case Verdict.KNOWN_FAILURE:
            return reason or ""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(report.longrepr) if crash is None else crash.message
    return text.strip().partition("\n")[0][:200]


def _apply(result: Verdict, detail: str, report: pytest.TestReport) -> None:
    if hasattr(report, "wasxfail"):
        del report.wasxfail
    if result is Verdict.KNOWN_FAILURE:
        report.outcome = "skipped"
        report.wasxfail = detail  # as pytest marks its own xfail
    elif not result.fails:
        report.outcome = "passed"
        report.longrepr = None
    elif not report.failed or result is Verdict.STALE:
        report.outcome = "failed"
        report.longrepr = detail
