"""What the author of a conformance class may do, and may not."""

from __future__ import annotations

from typing import Any

import pytest

from historykit.testing import HistoryConformance, ProviderConformance

TEST = "test_batch_keeps_its_order"


def derive(suite: type[Any] = HistoryConformance, *mixins: type[Any], **members: Any) -> type[Any]:
    return type("TestMine", (*mixins, suite), {"backend": "memory", **members})


def test_suite_is_collected_in_derived_classes_only() -> None:
    """pytest does not take the suite that a module imports for a class of its own."""
    assert HistoryConformance.__test__ is False
    assert derive().__test__ is True
    assert derive(__test__=False).__test__ is False


@pytest.mark.parametrize("member", [None, lambda self: None, pytest.mark.skip(lambda self: None)])
def test_test_cannot_be_replaced(member: object) -> None:
    """Replacing or deleting a test of the suite is a TypeError that says what to do instead."""
    with pytest.raises(TypeError, match=f"TestMine.{TEST} replaces .* known_failures"):
        derive(**{TEST: member})


def test_test_cannot_be_replaced_by_a_base_class() -> None:
    """A class that is derived from beside the suite cannot replace a test either."""
    with pytest.raises(TypeError, match=TEST):
        derive(HistoryConformance, type("Mixin", (), {TEST: None}))


@pytest.mark.parametrize("name", ["store", "subject", "facts", "check", "historykit_rules"])
def test_fixtures_and_checks_cannot_be_replaced(name: str) -> None:
    """What decides about the verdict stays that of the suite."""
    with pytest.raises(TypeError, match=name):
        derive(**{name: None})


def test_what_is_open_can_be_replaced() -> None:
    """The configuration, an outage, and tests of one's own are for the author to write."""
    made = derive(backend_config=1, outage=2, test_of_my_own=3, config={}, spec=None)
    assert made.test_of_my_own == 3


def test_derived_class_can_be_derived_from() -> None:
    """The rules hold for every generation."""
    parent = derive()
    assert derive(parent).historykit_rules is HistoryConformance.historykit_rules
    with pytest.raises(TypeError, match=TEST):
        derive(parent, **{TEST: None})


def test_known_failure_is_a_test() -> None:
    """An id that no test has is a TypeError, not a listing without effect."""
    with pytest.raises(TypeError, match="'test_typo'"):
        derive(known_failures={"test_typo": "reason"})


@pytest.mark.parametrize("reason", ["", "  ", None])
def test_known_failure_has_a_reason(reason: object) -> None:
    """A listing without a reason is a TypeError."""
    with pytest.raises(TypeError, match="needs a reason"):
        derive(known_failures={TEST: reason})


def test_provider_suite_has_a_list_of_its_own() -> None:
    """The tests of a store are not those of a provider."""
    with pytest.raises(TypeError, match=TEST):
        derive(ProviderConformance, known_failures={TEST: "reason"})
    derive(ProviderConformance, known_failures={"test_unknown_session_is_empty": "reason"})
