"""The verdicts of a run: gathered, printed as a table and written as JSON."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from historykit.redaction import redact_url
from historykit.testing.verdicts import Level, Standing, Verdict, level

__all__ = ["ClassReport", "ConformanceReport"]

STANDALONE = "historykit.testing.standalone::TestBackend"
"""The class of those who have none of their own."""

COLOURS = {
    Standing.CONFORMANT: ("green", "bold"),
    Standing.WITH_KNOWN_FAILURES: ("yellow", "bold"),
    Standing.PARTIAL: ("yellow", "bold"),
}


@dataclass(slots=True)
class ClassReport:
    """What is known of one conformance class: its tests by id, and their verdicts with details."""

    name: str
    tests: tuple[str, ...]
    facts: dict[str, Any] = field(default_factory=dict)
    findings: dict[str, tuple[Verdict, str]] = field(default_factory=dict)

    @property
    def level(self) -> Level:
        """The level that follows from the verdicts so far."""
        return level({test: verdict for test, (verdict, _) in self.findings.items()}, self.tests)

    def add(self, test: str, verdict: Verdict, detail: str) -> None:
        """Note a verdict; of several on one test, as of its body and its teardown, the worst."""
        known = self.findings.get(test)
        if known is None or not known[0].fails:
            self.findings[test] = (verdict, redact_url(detail))

    def as_dict(self) -> dict[str, Any]:
        """Return the report of the class as plain data."""
        standing = self.level
        return {
            "class": self.name,
            **self.facts,
            "level": standing.standing.value,
            "ran": standing.ran,
            "total": standing.total,
            "known_failures": standing.known_failures,
            "tests": {test: self._as_dict(test) for test in self.tests},
        }

    def _as_dict(self, test: str) -> dict[str, str]:
        if test not in self.findings:
            return {"verdict": "not run", "detail": ""}
        verdict, detail = self.findings[test]
        return {"verdict": verdict.value, "detail": detail}

    def lines(self, *, verbose: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the lines of the table with their colours."""
        yield self._title(), ("bold",)
        passed = 0
        for test, (verdict, detail) in self.findings.items():
            if verdict is Verdict.PASSED and not verbose:
                passed += 1
                continue
            line = f"  {verdict.value:<20} {test}"
            yield f"{line:<70} {detail}".rstrip(), ("red",) if verdict.fails else ()
        if passed:
            yield f"  {'passed':<20} {passed} tests", ()
        yield f"  {self.level}", COLOURS.get(self.level.standing, ("red", "bold"))

    def _title(self) -> str:
        parts = [self.facts.get("subject", "?")]
        if self.facts.get("distribution"):
            parts.append(f"from {self.facts['distribution']}")
        if self.facts.get("server"):
            parts.append(f"on {self.facts['server']}")
        if self.name != STANDALONE:
            parts.append(f"in {self.name}")
        return " ".join(parts)


class ConformanceReport:
    """The reports of all conformance classes of a run."""

    def __init__(self) -> None:
        self._classes: dict[str, ClassReport] = {}

    @property
    def is_complete(self) -> bool:
        """Whether there is a class, and every test of each gave a verdict."""
        return bool(self._classes) and all(
            each.level.ran == each.level.total for each in self._classes.values()
        )

    def add_class(self, description: dict[str, Any]) -> None:
        """Note a class that was collected."""
        self._class(description)

    def add(self, finding: dict[str, Any]) -> None:
        """Note a verdict."""
        report = self._class(finding)
        report.facts.update(finding["facts"])
        report.add(finding["test"], Verdict(finding["verdict"]), finding["detail"])

    def classes(self) -> list[dict[str, Any]]:
        """Return what was collected, so that `add_class` of another process takes it."""
        return [
            {"class": each.name, "tests": list(each.tests), "facts": each.facts}
            for each in self._classes.values()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the whole report as plain data."""
        return {
            "historykit": version("historykit"),
            "pytest": version("pytest"),
            "python": platform.python_version(),
            "classes": [each.as_dict() for each in self._classes.values()],
        }

    def write(self, path: str) -> None:
        """Write the whole report as JSON."""
        text = json.dumps(self.as_dict(), indent=2, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    def lines(self, *, verbose: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the lines of the closing table with their colours."""
        if not self._classes:
            yield "NOT RUN: no conformance class was collected", ("red", "bold")
        for each in self._classes.values():
            yield from each.lines(verbose=verbose)

    def _class(self, described: dict[str, Any]) -> ClassReport:
        name = described["class"]
        if name not in self._classes:
            self._classes[name] = ClassReport(name, tuple(described["tests"]), described["facts"])
        return self._classes[name]
