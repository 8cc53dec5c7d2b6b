from __future__ import annotations

import pytest

from historykit.capabilities import Capability, Guarantee
from historykit.errors import CapabilityNotSupportedError
from historykit.testing import HistoryConformance, ProviderConformance
from historykit.testing.rules import requires, rules_of, since
from historykit.testing.verdicts import Outcome


class Topic:
    @since("0.3")
    @requires(Guarantee.SHARED, Capability.EDIT)
    def test_one(self) -> None:
        """A rule that goes
        over two lines.

        And more.
        """


class Suite(Topic):
    pass


def test_rule_says_what_its_test_says() -> None:
    """A rule has id, first sentence, topic, version and requirements of its test."""
    (rule,) = rules_of(Suite).values()
    assert (rule.id, rule.text) == ("test_one", "A rule that goes over two lines.")
    assert (rule.topic, rule.since) == ("test_rules", "0.3")
    assert rule.test is Topic.test_one


def test_unmet_requirement_is_a_capability_first() -> None:
    """Where several requirements are missing the call that refuses comes first."""
    rule = rules_of(Suite)["test_one"]
    assert rule.unmet(frozenset()) is Capability.EDIT
    assert rule.unmet(frozenset({Capability.EDIT})) is Guarantee.SHARED
    assert rule.unmet(frozenset({Capability.EDIT, Guarantee.SHARED})) is None


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, Outcome.PASSED),
        (AssertionError(), Outcome.FAILED),
        (NotImplementedError(), Outcome.FAILED),
        (CapabilityNotSupportedError("no", capability="EDIT", backend="x"), Outcome.REFUSED),
        (CapabilityNotSupportedError("no", capability="RUNS", backend="x"), Outcome.FAILED),
    ],
)
def test_refusal_is_that_of_the_capability_in_question(
    error: BaseException | None, outcome: Outcome
) -> None:
    """Only the refusal of what the test requires is a refusal."""
    assert rules_of(Suite)["test_one"].outcome(error) is outcome


def test_id_occurs_once() -> None:
    """Two topics with a test of one name are an error, not one test less."""

    class Other:
        test_one = Topic.test_one

    with pytest.raises(TypeError, match="test_one is there twice"):
        rules_of(type("Both", (Topic, Other), {}))


def test_rule_needs_a_sentence_and_a_version() -> None:
    """A test that does not say what it demands, or since when, is no part of a suite."""

    class Silent:
        @since("0.1")
        def test_one(self) -> None:
            pass

    class Timeless:
        def test_one(self) -> None:
            """A rule."""

    for topic in (Silent, Timeless):
        with pytest.raises(TypeError, match="needs a docstring and @since"):
            rules_of(topic)


@pytest.mark.parametrize("suite", [HistoryConformance, ProviderConformance])
def test_rules_of_the_suites_are_sentences(suite: type[HistoryConformance]) -> None:
    """Every rule is a sentence."""
    assert suite.historykit_rules
    for rule in suite.historykit_rules.values():
        assert rule.text[0].isupper(), rule.id
        assert rule.text.endswith("."), rule.id
