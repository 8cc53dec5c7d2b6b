"""What a conformance test says about a store, and what all of them say together.

Both are pure functions: `verdict` of one test, `level` of all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from historykit.capabilities import Capability, Guarantee

__all__ = ["Level", "Outcome", "Standing", "Verdict", "level", "verdict"]


class Outcome(Enum):
    """How a test ended."""

    PASSED = "passed"
    REFUSED = "refused"
    """The store raised `CapabilityNotSupportedError` for the capability that the test is about."""
    FAILED = "failed"
    BROKEN = "broken"
    """The test did not get to say anything: it was skipped, or a fixture failed."""


class Verdict(Enum):
    """What a test says about a store."""

    PASSED = "passed"
    REFUSED = "refused"
    """The capability is not declared, and the call says so."""
    NOT_CLAIMED = "not claimed"
    """The guarantee is not claimed, and not kept."""
    KEPT = "passed, not claimed"
    """The guarantee is not claimed, and kept all the same."""
    KNOWN_FAILURE = "known failure"
    FAILED = "failed"
    UNDECLARED = "undeclared"
    """The capability is not declared, and there: it has to be declared."""
    STALE = "stale"
    """The test is listed as a known failure and does not fail: it has to leave the list."""
    ERROR = "error"

    @property
    def fails(self) -> bool:
        """Whether the store does not conform because of this verdict."""
        return self in _FAILING


_FAILING = frozenset({Verdict.FAILED, Verdict.UNDECLARED, Verdict.STALE, Verdict.ERROR})


def verdict(
    outcome: Outcome, *, unmet: Capability | Guarantee | None = None, known: bool = False
) -> Verdict:
    """Return what an outcome means.

    `unmet` is what the test requires and the store does not claim, `known` says that the test is
    listed as a known failure. A listing is stale where the test would not have failed without it.
    """
    unlisted = _unlisted(outcome, unmet)
    if not known or unlisted is Verdict.ERROR:
        return unlisted
    return Verdict.KNOWN_FAILURE if unlisted is Verdict.FAILED else Verdict.STALE


def _unlisted(outcome: Outcome, unmet: Capability | Guarantee | None) -> Verdict:
    if outcome is Outcome.BROKEN:
        return Verdict.ERROR
    if isinstance(unmet, Guarantee):
        return Verdict.KEPT if outcome is Outcome.PASSED else Verdict.NOT_CLAIMED
    if unmet is None:
        return Verdict.PASSED if outcome is Outcome.PASSED else Verdict.FAILED
    if outcome is Outcome.PASSED:
        return Verdict.UNDECLARED
    return Verdict.REFUSED if outcome is Outcome.REFUSED else Verdict.FAILED


class Standing(Enum):
    """The words for a level."""

    CONFORMANT = "CONFORMANT"
    WITH_KNOWN_FAILURES = "CONFORMANT, WITH KNOWN FAILURES"
    PARTIAL = "PARTIAL"
    NOT_CONFORMANT = "NOT CONFORMANT"
    NOT_RUN = "NOT RUN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What all tests together say about a store: `ran` of `total` of them gave a verdict."""

    standing: Standing
    ran: int
    total: int
    known_failures: int = 0

    def __str__(self) -> str:
        word = self.standing.value
        if self.standing is Standing.WITH_KNOWN_FAILURES:
            plural = "" if self.known_failures == 1 else "S"
            word = f"CONFORMANT, WITH {self.known_failures} KNOWN FAILURE{plural}"
        return f"{word} ({self.ran} of {self.total} tests ran)"


def level(verdicts: Mapping[str, Verdict], tests: Collection[str]) -> Level:
    """Return the level of a store from the verdicts so far and the ids of all tests there are."""
    given = [verdicts[test] for test in tests if test in verdicts]
    known = given.count(Verdict.KNOWN_FAILURE)
    if not given:
        standing = Standing.NOT_RUN
    elif any(verdict.fails for verdict in given):
        standing = Standing.NOT_CONFORMANT
    elif len(given) < len(tests):
        standing = Standing.PARTIAL
    else:
        standing = Standing.WITH_KNOWN_FAILURES if known else Standing.CONFORMANT
    return Level(standing=standing, ran=len(given), total=len(tests), known_failures=known)
