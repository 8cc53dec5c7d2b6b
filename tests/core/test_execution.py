"""The configuration of the runs of a session."""

from __future__ import annotations

import copy
import json
import warnings
from typing import Any

import pytest

from historykit import Budget, ExecutionConfig, InvalidRequestError, Session
from historykit.execution import PARAMETERS


def stored(**fields: Any) -> dict[str, Any]:
    return ExecutionConfig(**fields).to_api_dict()


# -- the form that is kept


def test_nothing_is_set_by_default():
    """All fields are None, and a config in which nothing is set is an empty dict."""
    config = ExecutionConfig()
    fields = ("execution_params", "criteria", "evolve", "identifier", "budget")
    assert [getattr(config, name) for name in fields] == [None] * 5
    assert config.run_response_generation is None
    assert config.to_api_dict() == {}


def test_a_config_is_kept_in_camel_case():
    """Fields and known execution parameters are written in camelCase."""
    assert stored(
        execution_params={"max_tokens": 1024, "max_time": 300},
        criteria="Be concise",
        evolve='{"toEvolve": true}',
        identifier="user-abc",
        run_response_generation=True,
    ) == {
        "executionParams": {"maxTokens": 1024, "maxTime": 300},
        "criteria": "Be concise",
        "evolve": '{"toEvolve": true}',
        "identifier": "user-abc",
        "runResponseGeneration": True,
    }


def test_other_parameters_stay_as_they_are():
    """Parameters in camelCase, of unknown names and of the value None are kept."""
    given = {"outputFormat": "text", "maxTokens": 256, "my_own": None}
    assert stored(execution_params=given) == {"executionParams": given}


def test_every_known_parameter_has_a_name_in_camel_case():
    """The names are mapped, and the iteration limit is not among them."""
    given = {name: index for index, name in enumerate(PARAMETERS)}
    assert set(stored(execution_params=given)["executionParams"]) == set(PARAMETERS.values())
    assert "max_iterations" not in PARAMETERS


def test_the_overflow_strategy_is_mapped():
    """``context_overflow_strategy`` has its name in camelCase too."""
    kept = stored(execution_params={"context_overflow_strategy": "truncate"})
    assert kept == {"executionParams": {"contextOverflowStrategy": "truncate"}}


def test_of_two_spellings_the_later_one_counts():
    """A parameter given twice has the value that comes last in the dict."""
    assert stored(execution_params={"max_tokens": 1, "maxTokens": 2}) == {
        "executionParams": {"maxTokens": 2}
    }


def test_only_what_is_set_is_kept():
    """Fields that are None are left out, an empty text and False are not."""
    assert stored(criteria="x") == {"criteria": "x"}
    assert stored(criteria="", run_response_generation=False) == {
        "criteria": "",
        "runResponseGeneration": False,
    }


def test_a_config_has_no_tools():
    """Tool overrides belong to a message, not to the config of a session."""
    assert "tools" not in ExecutionConfig().to_dict()
    assert not hasattr(ExecutionConfig(), "tools")


def test_a_config_shares_nothing():
    """Parameters are copied on their way in and out."""
    given: dict[str, Any] = {"nested": {"a": [1]}}
    config = ExecutionConfig(execution_params=given)
    given["nested"]["a"].append(2)
    config.to_api_dict()["executionParams"]["nested"]["a"].append(3)
    assert config.execution_params == {"nested": {"a": [1]}}


# -- to and from


def test_a_config_is_made_of_a_dict():
    """`coerce` takes names as in Python, and keeps the names of the parameters."""
    config = ExecutionConfig.coerce({"execution_params": {"max_tokens": 100}, "criteria": "x"})
    assert config == ExecutionConfig(execution_params={"max_tokens": 100}, criteria="x")


def test_a_config_stays_itself():
    """`coerce` returns the same object, and None for None."""
    config = ExecutionConfig(criteria="x")
    assert ExecutionConfig.coerce(config) is config
    assert ExecutionConfig.coerce(None) is None


def test_another_type_is_no_config():
    """`coerce` refuses anything else by its type."""
    with pytest.raises(TypeError, match=r"execution_config must be .*got str"):
        ExecutionConfig.coerce("invalid")


def test_unknown_names_of_a_dict_are_warned_of():
    """`coerce` names what a config does not have, and the field that was probably meant."""
    with pytest.warns(UserWarning, match="'critera'; did you mean 'criteria'") as caught:
        assert ExecutionConfig.coerce({"critera": "x"}) == ExecutionConfig()
    assert caught[0].filename == __file__


def test_unknown_names_of_loaded_data_are_left_out():
    """`from_dict` ignores what it does not know, without a warning."""
    assert ExecutionConfig.from_dict({"later": 1}) == ExecutionConfig()


def test_a_dict_has_every_field():
    """`to_dict` writes fields that are not set as None, with the budget in the parameters."""
    assert ExecutionConfig(budget=Budget(max_cost=1)).to_dict() == {
        "executionParams": {"budget": {"maxCost": 1}},
        "criteria": None,
        "evolve": None,
        "identifier": None,
        "runResponseGeneration": None,
    }


def test_a_config_survives_json():
    """`from_dict` restores what `to_dict` and `to_api_dict` write, the budget too."""
    config = ExecutionConfig(
        execution_params={"maxTokens": 1}, criteria="x", budget=Budget(0.5, 60, 3)
    )
    for data in (config.to_dict(), config.to_api_dict()):
        assert ExecutionConfig.from_dict(json.loads(json.dumps(data))) == config


def test_a_budget_tells_two_configs_apart():
    """Configs that differ in the budget alone differ, as dicts too."""
    one, other = ExecutionConfig(budget=Budget(1)), ExecutionConfig(budget=Budget(2))
    assert one != other
    assert one.to_dict() != other.to_dict()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("execution_params", [1], "execution_params must be a dict or None, not list"),
        ("execution_params", {1: 2}, "texts as names, not 1"),
        ("evolve", {"a": 1}, "evolve must be a str or None, not dict; json.dumps"),
        ("criteria", 5, "criteria must be a str"),
        ("identifier", b"x", "identifier must be a str"),
        ("run_response_generation", "no", "run_response_generation must be a bool"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused(name: str, value: Any, says: str):
    """The field is named, at construction and when it is set."""
    with pytest.raises(InvalidRequestError, match=says):
        ExecutionConfig(**{name: value})
    with pytest.raises(InvalidRequestError, match=says):
        setattr(ExecutionConfig(), name, value)


# -- the budget


def test_a_budget_is_kept_within_the_execution_parameters():
    """It stands in ``executionParams.budget``, beside the parameters."""
    assert stored(execution_params={"max_tokens": 256}, budget=Budget(max_cost=1.0)) == {
        "executionParams": {"maxTokens": 256, "budget": {"maxCost": 1.0}}
    }


@pytest.mark.parametrize("name", ["max_duration_seconds", "maxDurationSeconds"])
def test_a_budget_is_made_of_a_dict(name: str):
    """A dict becomes a `Budget`, in both spellings, at construction and when it is set."""
    config = ExecutionConfig(budget={name: 120})  # type: ignore[arg-type]
    assert config.budget == Budget(max_duration_seconds=120)
    config.budget = {name: 60}  # type: ignore[assignment]
    assert config.budget == Budget(max_duration_seconds=60)


def test_another_type_is_no_budget():
    """Anything else is refused by its type."""
    with pytest.raises(TypeError, match="budget must be a Budget, dict, or None, got int"):
        ExecutionConfig(budget=5)  # type: ignore[arg-type]


def test_a_cap_of_zero_is_a_cap():
    """0 is kept, None is not, and a budget without caps is left out."""
    assert stored(budget=Budget(0, None, 0)) == {
        "executionParams": {"budget": {"maxCost": 0, "maxIterations": 0}}
    }
    assert stored(budget={"max_cost": None}) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_cost", -1),
        ("max_cost", "1"),
        ("max_cost", float("nan")),
        ("max_duration_seconds", float("inf")),
        ("max_duration_seconds", True),
        ("max_iterations", 1.5),
        ("max_iterations", -1),
    ],
)
def test_a_cap_is_a_number(name: str, value: Any):
    """What is no number of 0 or more is refused, by name, also when it is set later."""
    with pytest.raises(InvalidRequestError, match=f"{name} of a budget must be"):
        Budget(**{name: value})
    with pytest.raises(InvalidRequestError, match=f"{name} of a budget must be"):
        setattr(Budget(), name, value)


def test_unknown_caps_are_kept_and_warned_of():
    """A name that is no cap limits nothing: it is warned of, and stays."""
    with pytest.warns(UserWarning, match="budget has no field 'max_costs'; did you mean") as caught:
        config = ExecutionConfig(budget={"max_costs": 1})  # type: ignore[arg-type]
    assert caught[0].filename == __file__
    assert config.to_api_dict() == {"executionParams": {"budget": {"max_costs": 1}}}
    assert ExecutionConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    "given",
    [
        {"budget": {"max_cst": 1}},
        {"execution_params": {"budget": {"max_cst": 1}}},
        {"executionParams": {"budget": {"max_cst": 1}}},
    ],
    ids=str,
)
def test_unknown_caps_within_a_config_are_warned_of(given):
    """A budget in the dict of a config is given by somebody as well, at whatever place."""
    with pytest.warns(UserWarning, match="budget has no field 'max_cst'; did you mean") as caught:
        session = Session(execution_config=given)
    assert [each.filename for each in caught] == [__file__]
    assert session.execution_config.budget.extra == {"max_cst": 1}
    with pytest.warns(UserWarning, match="'max_cst'"):
        session.execution_config = given


def test_a_budget_within_the_parameters_is_merged_cap_by_cap():
    """The explicit budget goes first, and the other caps stay."""
    inner = {"maxCost": 1.0, "max_iterations": 2}
    assert stored(execution_params={"budget": inner}, budget=Budget(max_iterations=3)) == {
        "executionParams": {"budget": {"maxCost": 1.0, "maxIterations": 3}}
    }


def test_a_loaded_budget_becomes_the_budget():
    """The budget within the parameters is lifted, and a legacy limit joins its caps."""
    config = ExecutionConfig.from_dict(
        {"executionParams": {"budget": {"maxCost": 1}, "maxIterations": 4, "maxTokens": 5}}
    )
    assert config.budget == Budget(max_cost=1, max_iterations=4)
    assert config.execution_params == {"maxTokens": 5}


# -- the deprecated iteration limit


@pytest.mark.parametrize("name", ["max_iterations", "maxIterations"])
@pytest.mark.parametrize("limit", [7, 0])
def test_the_iteration_limit_becomes_a_cap(name: str, limit: int):
    """In both spellings it is warned of, and kept in the budget only."""
    config = ExecutionConfig(execution_params={name: limit})
    with pytest.warns(DeprecationWarning, match="max_iterations") as caught:
        kept = config.to_api_dict()
    assert kept == {"executionParams": {"budget": {"maxIterations": limit}}}
    assert caught[0].filename == __file__


def test_both_spellings_of_the_limit_are_removed():
    """Neither of them is left among the parameters."""
    config = ExecutionConfig(execution_params={"maxIterations": 3, "max_iterations": 7})
    with pytest.warns(DeprecationWarning, match="max_iterations"):
        assert config.to_api_dict() == {"executionParams": {"budget": {"maxIterations": 3}}}


def test_a_limit_of_none_is_no_limit():
    """It is dropped without a warning."""
    assert stored(execution_params={"max_iterations": None}) == {}


def test_the_budget_goes_before_the_limit():
    """Where both are set the budget counts, and a second warning says so at the caller's line."""
    config = ExecutionConfig(
        execution_params={"max_iterations": 99}, budget=Budget(max_iterations=5)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = config.to_api_dict()
    assert [warning.category for warning in caught] == [DeprecationWarning, UserWarning]
    assert "precedence" in str(caught[1].message)
    assert {warning.filename for warning in caught} == {__file__}
    assert kept == {"executionParams": {"budget": {"maxIterations": 5}}}


def test_the_limit_is_warned_of_once():
    """Further calls are silent, until other parameters are set."""
    config = ExecutionConfig(execution_params={"max_iterations": 7})
    with pytest.warns(DeprecationWarning, match="max_iterations"):
        config.to_api_dict()
    assert config.to_api_dict() == {"executionParams": {"budget": {"maxIterations": 7}}}
    config.execution_params = {"max_iterations": 8}
    with pytest.warns(DeprecationWarning, match="max_iterations"):
        config.to_api_dict()


@pytest.mark.parametrize("name", ["max_iterations", "maxIterations"])
@pytest.mark.parametrize("place", ["executionParams", "execution_params"])
def test_a_loaded_limit_is_not_warned_of(place: str, name: str):
    """`from_dict` folds it in both spellings, and leaves its argument alone."""
    data = {place: {name: 4}}
    before = copy.deepcopy(data)
    config = ExecutionConfig.from_dict(data)
    assert config.budget == Budget(max_iterations=4)
    assert config.to_api_dict() == {"executionParams": {"budget": {"maxIterations": 4}}}
    assert data == before


def test_a_loaded_limit_yields_to_the_budget():
    """The budget of the same dict counts, silently."""
    config = ExecutionConfig.from_dict(
        {"executionParams": {"maxIterations": 4}, "budget": {"maxIterations": 9}}
    )
    assert config.budget == Budget(max_iterations=9)


# -- updates


def test_a_config_is_merged_field_by_field():
    """What the update sets replaces, what it does not set stays; neither is changed."""
    old = ExecutionConfig(
        execution_params={"max_tokens": 64, "max_time": 5},
        criteria="old",
        identifier="id",
        budget=Budget(max_cost=1, max_iterations=3),
    )
    new = ExecutionConfig(
        execution_params={"maxTokens": 128}, criteria="new", budget=Budget(max_cost=2)
    )
    before = copy.deepcopy((old, new))
    assert old.merged(new) == ExecutionConfig(
        execution_params={"max_time": 5, "maxTokens": 128},
        criteria="new",
        identifier="id",
        budget=Budget(max_cost=2, max_iterations=3),
    )
    assert (old, new) == before


def test_an_update_without_a_budget_keeps_the_budget():
    """The caps stay, and so do the names of the parameters."""
    old = ExecutionConfig(execution_params={"max_tokens": 64}, budget=Budget(max_cost=1))
    merged = old.merged(ExecutionConfig(criteria="be brief"))
    assert merged.execution_params == {"max_tokens": 64}
    assert merged.budget == Budget(max_cost=1)
    assert merged.budget is not old.budget


def test_merging_nothing_changes_nothing():
    """An empty update, or an empty config, gives what the other one says."""
    config = ExecutionConfig(run_response_generation=False)
    assert config.merged(ExecutionConfig()) == config
    assert ExecutionConfig().merged(config) == config


def test_a_deprecated_limit_of_an_update_replaces_the_cap():
    """It is a cap like that of a budget."""
    old = ExecutionConfig(budget=Budget(max_iterations=3, max_cost=1))
    merged = old.merged(ExecutionConfig(execution_params={"max_iterations": 7}))
    assert merged.budget == Budget(max_iterations=7, max_cost=1)


def test_a_config_is_replaced_where_that_is_asked():
    """With `replace`, fields that are not set are gone."""
    old = ExecutionConfig(execution_params={"max_tokens": 64}, budget=Budget(max_cost=1))
    new = ExecutionConfig(criteria="new")
    assert old.merged(new, replace=True) == new
