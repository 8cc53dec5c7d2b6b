"""Runs tests of the suite on wrong stores, without pytest: what pytest adds is tested elsewhere."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from historykit.testing import HistoryConformance
from historykit.testing.faults import simulated_outage
from historykit.testing.rules import Rule
from historykit.testing.subject import StoreSubject
from historykit.testing.verdicts import Verdict, verdict
from tests.kit.wrong_stores import Lie, spec_of

RULES: Mapping[str, Rule] = HistoryConformance.historykit_rules

PATIENCE = 20
"""Seconds after which a test of a wrong store has failed."""


def judge(test: str, store: type[Lie]) -> Verdict:
    """Return the verdict of one test on one store."""
    rule = RULES[test]
    subject = StoreSubject(spec_of(store), store.settings)
    try:
        if inspect.iscoroutinefunction(rule.test):
            asyncio.run(_run(rule, subject))
        else:
            rule.test(None, subject)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what pytest.raises raises is no Exception
        outcome = rule.outcome(error)
    else:
        outcome = rule.outcome(None)
    return verdict(outcome, unmet=rule.unmet(subject.claims))


async def _run(rule: Rule, subject: StoreSubject) -> None:
    async with asyncio.timeout(PATIENCE), subject.opened() as store:
        fixtures: dict[str, Any] = {
            "subject": subject,
            "store": store,
            "outage": simulated_outage,
        }
        wanted = list(inspect.signature(rule.test).parameters)[1:]
        await rule.test(None, **{name: fixtures[name] for name in wanted})
