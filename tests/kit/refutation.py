"""Runs tests of the suite on what is wrong, without pytest: what that adds is tested elsewhere."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from historykit.capabilities import Guarantee
from historykit.testing import HistoryConformance, ProviderConformance
from historykit.testing.faults import simulated_outage
from historykit.testing.provider_subject import ProviderSubject
from historykit.testing.rules import Rule
from historykit.testing.subject import StoreSubject
from historykit.testing.verdicts import Verdict, verdict
from tests.kit.wrong_providers import RowProvider
from tests.kit.wrong_stores import Lie, spec_of

RULES: Mapping[str, Rule] = HistoryConformance.historykit_rules

PROVIDER_RULES: Mapping[str, Rule] = ProviderConformance.historykit_rules

PATIENCE = 20
"""Seconds after which a test of something wrong has failed."""


def judge(test: str, store: type[Lie]) -> Verdict:
    """Return the verdict of one test on one store."""
    subject = StoreSubject(spec_of(store), store.settings)
    return _judged(RULES[test], subject, _run_on_store)


def judge_provider(test: str, provider: type[RowProvider]) -> Verdict:
    """Return the verdict of one test on one provider, which claims to share its data."""
    rows: list[tuple[str, Any]] = []
    subject = ProviderSubject(lambda: provider(rows), frozenset({Guarantee.SHARED}))
    return _judged(PROVIDER_RULES[test], subject, _run_on_provider)


def _judged(rule: Rule, subject: Any, run: Callable[[Rule, Any], Any]) -> Verdict:
    try:
        if inspect.iscoroutinefunction(rule.test):
            asyncio.run(run(rule, subject))
        else:
            rule.test(None, subject)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what pytest.raises raises is no Exception
        outcome = rule.outcome(error)
    else:
        outcome = rule.outcome(None)
    return verdict(outcome, unmet=rule.unmet(subject.claims))


async def _run_on_store(rule: Rule, subject: StoreSubject) -> None:
    async with asyncio.timeout(PATIENCE), subject.opened() as store:
        await _run(rule, subject=subject, store=store, outage=simulated_outage)


async def _run_on_provider(rule: Rule, subject: ProviderSubject) -> None:
    async with asyncio.timeout(PATIENCE):
        await _run(rule, subject=subject, provider=await subject.provider())


async def _run(rule: Rule, **fixtures: Any) -> None:
    wanted = list(inspect.signature(rule.test).parameters)[1:]
    test: Any = rule.test
    await test(None, **{name: fixtures[name] for name in wanted})
