"""The suite itself is tested with stores that lie: each of its tests has to refute one."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings

from historykit.capabilities import Capability
from historykit.testing import stateful
from historykit.testing.verdicts import Verdict
from tests.kit.page import PAGE, page
from tests.kit.refutation import PROVIDER_RULES, RULES, judge, judge_provider
from tests.kit.wrong_providers import WRONG_PROVIDERS, RowProvider
from tests.kit.wrong_stores import REFUTED_BY, WRONG_STORES, Lie

PAIRS = [(store, test) for store in WRONG_STORES for test in REFUTED_BY[store]]
PROVIDER_PAIRS = [(provider, test) for provider, tests in WRONG_PROVIDERS.items() for test in tests]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("store", "test"), PAIRS, ids=[f"{store.__name__}-{test}" for store, test in PAIRS]
)
def test_lie_is_refuted(store: type[Lie], test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test that is pinned to a wrong store fails on it."""
    quick = settings(stateful.SETTINGS, phases=[Phase.generate], report_multiple_bugs=False)
    monkeypatch.setattr(stateful, "SETTINGS", quick)
    assert judge(test, store).fails


def test_every_test_of_the_suite_refutes_a_store() -> None:
    """There is no test in the suite that every store passes."""
    pinned = {test for tests in REFUTED_BY.values() for test in tests}
    assert pinned == set(RULES)


@pytest.mark.parametrize("test", RULES)
def test_truth_is_not_refuted(test: str) -> None:
    """The wrong stores without their lies pass each test, or do not claim what it is about."""
    assert not judge(test, Lie).fails


class Modest(Lie):
    """A store without any capability, that says so."""

    declares = frozenset()
    capabilities = frozenset()


@pytest.mark.parametrize("test", RULES)
def test_modesty_is_not_refuted(test: str) -> None:
    """A store that declares no capability and refuses those calls passes each test by that."""
    verdict = judge(test, Modest)
    needs_capability = any(isinstance(need, Capability) for need in RULES[test].requires)
    assert (verdict is Verdict.REFUSED) if needs_capability else not verdict.fails


@pytest.mark.parametrize("store", WRONG_STORES)
def test_lie_is_told(store: type[Lie]) -> None:
    """Each wrong store says in a sentence what its lie is."""
    assert store.__doc__
    assert REFUTED_BY[store]


@pytest.mark.parametrize(
    ("provider", "test"),
    PROVIDER_PAIRS,
    ids=[f"{provider.__name__}-{test}" for provider, test in PROVIDER_PAIRS],
)
def test_lie_of_a_provider_is_refuted(provider: type[RowProvider], test: str) -> None:
    """Each test that is pinned to a wrong provider fails on it."""
    assert judge_provider(test, provider).fails


def test_every_test_for_providers_refutes_one() -> None:
    """There is no test in the smaller suite that every provider passes."""
    pinned = {test for tests in WRONG_PROVIDERS.values() for test in tests}
    assert pinned == set(PROVIDER_RULES)


@pytest.mark.parametrize("test", PROVIDER_RULES)
def test_true_provider_is_not_refuted(test: str) -> None:
    """The wrong providers without their lies pass each test."""
    assert judge_provider(test, RowProvider) is Verdict.PASSED


def test_page_is_current() -> None:
    """The page lists the tests and the lies that there are; `python -m tests.kit.page` makes it."""
    assert PAGE.read_text("utf-8") == page()
