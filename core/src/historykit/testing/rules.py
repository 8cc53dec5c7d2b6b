"""How the tests of the suite are marked: since when a rule holds, and what it requires."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from historykit.capabilities import Capability, Guarantee
from historykit.errors import CapabilityNotSupportedError
from historykit.testing.verdicts import Outcome

__all__ = ["Requirement", "Rule", "requires", "rules_of", "since"]

Requirement = Capability | Guarantee

Test = TypeVar("Test", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One test of the suite: what it demands of a store, and of which stores."""

    id: str
    text: str
    topic: str
    since: str
    requires: tuple[Requirement, ...]
    test: Callable[..., object]

    def unmet(self, claims: frozenset[Requirement]) -> Requirement | None:
        """Return the first requirement that is not among `claims`, capabilities before
        guarantees."""
        missing = [need for need in self.requires if need not in claims]
        missing.sort(key=lambda need: isinstance(need, Guarantee))
        return missing[0] if missing else None

    def outcome(self, error: BaseException | None) -> Outcome:
        """Return what it means that the test ended with an error, or with None."""
        if error is None:
            return Outcome.PASSED
        refused = error.capability if isinstance(error, CapabilityNotSupportedError) else None
        needed = [need.name for need in self.requires]
        return Outcome.REFUSED if refused in needed else Outcome.FAILED


def since(version: str) -> Callable[[Test], Test]:
    """Mark a test with the version of historykit since which its rule holds.

    A test that is a coroutine function runs on an event loop of its own, whatever the settings of
    pytest-asyncio say.
    """

    def mark(test: Test) -> Test:
        setattr(test, "historykit_since", version)  # noqa: B010  - a function has no such attribute
        if inspect.iscoroutinefunction(test):
            pytest.mark.asyncio(loop_scope="function")(test)
        return test

    return mark


def requires(*needs: Requirement) -> Callable[[Test], Test]:
    """Mark a test with what it requires.

    A store that declares the capability has to pass, one that does not has to refuse the call. A
    store that does not claim the guarantee may fail.
    """

    def mark(test: Test) -> Test:
        setattr(test, "historykit_requires", needs)  # noqa: B010  - as above
        return test

    return mark


def rules_of(suite: type) -> dict[str, Rule]:
    """Return the rules of a class that inherits its tests from one class for each topic, by id.

    Raises `TypeError` for a test without a docstring or a version, and for an id that occurs twice.
    """
    rules: dict[str, Rule] = {}
    for topic in reversed(suite.__mro__):
        for name, value in vars(topic).items():
            if not name.startswith("test_"):
                continue
            if name in rules:
                raise TypeError(f"{name} is there twice: in {topic.__name__} and before it")
            rules[name] = _rule(name, value, topic)
    return rules


def _rule(name: str, test: Any, topic: type) -> Rule:
    version = getattr(test, "historykit_since", None)
    if version is None or not test.__doc__:
        raise TypeError(f"{topic.__name__}.{name} needs a docstring and @since")
    return Rule(
        id=name,
        text=inspect.cleandoc(test.__doc__).split("\n\n")[0].replace("\n", " "),
        topic=topic.__module__.rpartition(".")[2],
        since=version,
        requires=getattr(test, "historykit_requires", ()),
        test=test,
    )
