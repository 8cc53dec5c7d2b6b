"""How the runs of a session are configured: what is asked of the agent, and what it may cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, NamedTuple, Self

from historykit.callers import warn_caller
from historykit.contents import copied_dict
from historykit.errors import InvalidRequestError
from historykit.suggestions import suggest

__all__ = ["Budget", "ExecutionConfig"]

PARAMETERS: Final[Mapping[str, str]] = {
    "output_format": "outputFormat",
    "max_tokens": "maxTokens",
    "max_time": "maxTime",
    "expected_output": "expectedOutput",
    "context_overflow_strategy": "contextOverflowStrategy",
}
"""The execution parameters whose name in Python is another than the one that is kept."""

_ITERATIONS: Final = ("maxIterations", "max_iterations")
"""The deprecated execution parameter that a cap of the budget took the place of."""

_CAPS: Final[Mapping[str, str]] = {
    "max_cost": "maxCost",
    "max_duration_seconds": "maxDurationSeconds",
    "max_iterations": "maxIterations",
}
_TEXTS: Final[Mapping[str, str]] = {
    "criteria": "criteria",
    "evolve": "evolve",
    "identifier": "identifier",
    "run_response_generation": "runResponseGeneration",
}
"""The fields beside execution parameters and budget: texts, and one truth value."""

_FIELDS: Final = {"execution_params": "executionParams", **_TEXTS}


@dataclass
class Budget:
    """What a run may take: None is no limit, 0 is a limit of nothing.

    `max_cost` is in the unit in which the costs of a run are counted, `max_duration_seconds` in
    seconds, and `max_iterations` is how often the model may call tools. `extra` holds caps of other
    names that a dict brought; they are kept and written back.

    Raises `InvalidRequestError` for a cap that is not a number of 0 or more, also when it is set
    later.
    """

    max_cost: float | None = None
    max_duration_seconds: float | None = None
    max_iterations: int | None = None
    extra: dict[str, Any] = field(default_factory=dict, kw_only=True)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _CAPS and value is not None:
            whole = name == "max_iterations"
            kinds = int if whole else int | float
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < inf:
                raise InvalidRequestError(
                    f"{name} of a budget must be {'an integer' if whole else 'a number'} of 0 or "
                    f"more, or None for no limit; not {value!r}"
                )
        super().__setattr__(name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the caps that are set: ``maxCost``, ``maxDurationSeconds``, ``maxIterations``."""
        caps = {kept: getattr(self, name) for name, kept in _CAPS.items()}
        return copied_dict(self.extra) | {k: v for k, v in caps.items() if v is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the budget that a dict describes, with the names of `to_dict` or of the fields.

        None is as good as absent. Other names are kept in `extra`.
        """
        given = {name: value for name, value in data.items() if value is not None}
        known = {*_CAPS, *_CAPS.values()}
        extra = {name: value for name, value in given.items() if name not in known}
        return cls(**_own_names(given, _CAPS), extra=copied_dict(extra))

    @classmethod
    def coerce(cls, value: Any) -> Self | None:
        """Return a budget for one (the same object), for a dict, or None for None.

        Warns of names in a dict that are no caps, because nothing limits them. Raises `TypeError`
        for anything else.
        """
        if value is None or isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise TypeError(f"budget must be a Budget, dict, or None, got {type(value).__name__}")
        _warn_of_unknown("budget", value, _CAPS)
        return cls.from_dict(value)

    def merged(self, other: Budget) -> Budget:
        """Return a budget with the caps of `other`, and those of this one that it does not set."""
        return Budget.from_dict(self.to_dict() | other.to_dict())


@dataclass
class ExecutionConfig:
    """How an agent is run in a session (aiXplain session module).

    `execution_params` are free; ``output_format``, ``max_tokens``, ``max_time`` (in seconds),
    ``expected_output`` and ``context_overflow_strategy`` may be written so or in camelCase. The
    dict is copied. `criteria` says what a good answer is, `evolve` is a JSON text, `identifier` is
    for whoever reads the session, `run_response_generation` says whether a last step formulates the
    answer. `budget` takes a `Budget` or a dict.

    A field that is None is not set. Raises `TypeError` for a budget of another type, and
    `InvalidRequestError` for another field of the wrong type, also when it is set later.
    """

    execution_params: dict[str, Any] | None = None
    criteria: str | None = None
    evolve: str | None = None
    identifier: str | None = None
    run_response_generation: bool | None = None
    budget: Budget | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "budget":
            value = Budget.coerce(value)
        elif name == "execution_params":
            value = _checked_parameters(value)
            vars(self).pop("_warned", None)
        elif name in _TEXTS and value is not None:
            kind = bool if name == "run_response_generation" else str
            if not isinstance(value, kind):
                remedy = "; json.dumps makes one of it" if name == "evolve" else ""
                raise InvalidRequestError(
                    f"{name} must be a {kind.__name__} or None, not {type(value).__name__}{remedy}"
                )
        super().__setattr__(name, value)

    def to_api_dict(self) -> dict[str, Any]:
        """Return what is set, as a session keeps it: in camelCase, the budget within
        ``executionParams``. A config in which nothing is set gives ``{}``.

        The execution parameter ``max_iterations`` is deprecated: it becomes the ``maxIterations``
        of the budget, where that is not set. The first call warns of it, at the line that calls, or
        that saves the session (aiXplain session module).
        """
        parts = self._split()
        if parts.deprecated and not vars(self).get("_warned"):
            vars(self)["_warned"] = True
            warn_caller(
                "the execution parameter 'max_iterations' is deprecated; use "
                "budget=Budget(max_iterations=...)",
                DeprecationWarning,
            )
            if parts.overruled:
                warn_caller(
                    "'max_iterations' is both an execution parameter and a cap of the budget; "
                    "budget.max_iterations takes precedence",
                    UserWarning,
                )
        return self._as_data(parts)

    def _to_compare(self) -> dict[str, Any]:
        """Return what `to_api_dict` returns, and warn of nothing."""
        return self._as_data(self._split())

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as `from_dict` takes them: in camelCase, those not set as None.

        The budget is within ``executionParams``. Warns of nothing.
        """
        return {**dict.fromkeys(_FIELDS.values()), **self._to_compare()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the config that a dict describes, with names in camelCase or as in Python.

        The dict is copied, and names that a config does not have are left out. A budget within the
        execution parameters becomes the `budget`, and so does the deprecated iteration limit,
        without a warning. Where they contradict each other, ``budget`` goes before the budget
        within, and that before the limit.
        """
        values = _own_names(data, _FIELDS)
        parameters = _checked_parameters(values.pop("execution_params", None)) or {}
        parts = _split(parameters, _silently(data.get("budget")))
        return cls(**values, execution_params=parts.parameters or None, budget=parts.budget)

    @classmethod
    def coerce(cls, value: Any) -> Self | None:
        """Return a config for one (the same object), for a dict, or None for None.

        Warns of names in a dict that a config, or its budget, does not have. Raises `TypeError` for
        anything else (aiXplain session module).
        """
        if value is None or isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise TypeError(
                "execution_config must be ExecutionConfig, dict, or None; "
                f"got {type(value).__name__}"
            )
        _warn_of_unknown("execution_config", value, {**_FIELDS, "budget": "budget"})
        within = [value.get(name) for name in ("execution_params", "executionParams")]
        for part in (value, *within):
            if isinstance(part, Mapping):
                Budget.coerce(part.get("budget"))  # which warns of what limits nothing
        return cls.from_dict(value)

    def merged(self, other: ExecutionConfig, *, replace: bool = False) -> ExecutionConfig:
        """Return a config with what `other` sets, and what this one sets beside that.

        Execution parameters are merged name by name, however they are written, and budgets cap by
        cap. With `replace`, nothing of this one is left.
        """
        own = ExecutionConfig() if replace else self
        old, new = own._split(), other._split()
        return ExecutionConfig(
            **(own._texts() | other._texts()),
            execution_params=_joined(old.parameters, new.parameters) or None,
            budget=_first_of(new.budget, old.budget),
        )

    def _split(self) -> _Parts:
        return _split(self.execution_params or {}, self.budget)

    def _texts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _TEXTS if getattr(self, name) is not None}

    def _as_data(self, parts: _Parts) -> dict[str, Any]:
        kept = {PARAMETERS.get(name, name): value for name, value in parts.parameters.items()}
        caps = parts.budget.to_dict() if parts.budget else {}
        if caps:
            kept["budget"] = caps
        data = {"executionParams": kept} if kept else {}
        return data | {_TEXTS[name]: value for name, value in self._texts().items()}


class _Parts(NamedTuple):
    """The execution parameters without what belongs to the budget, and the budget with it.

    `deprecated` says that an iteration limit was among the parameters, `overruled` that a budget
    has one as well.
    """

    parameters: dict[str, Any]
    budget: Budget | None
    deprecated: bool
    overruled: bool


def _split(parameters: Mapping[str, Any], budget: Budget | None) -> _Parts:
    rest = copied_dict(dict(parameters))
    within = _silently(rest.pop("budget", None))
    limits = [rest.pop(name, None) for name in _ITERATIONS]
    limit = next((limit for limit in limits if limit is not None), None)
    known = _first_of(budget, within)
    if limit is None:
        return _Parts(rest, known, deprecated=False, overruled=False)
    overruled = known is not None and known.max_iterations is not None
    legacy = Budget(max_iterations=limit)
    return _Parts(rest, _first_of(known, legacy), deprecated=True, overruled=overruled)


def _silently(budget: Any) -> Budget | None:
    """Return the budget that was loaded, which is nobody's mistake to be warned of."""
    return Budget.from_dict(budget) if isinstance(budget, Mapping) else Budget.coerce(budget)


def _first_of(first: Budget | None, second: Budget | None) -> Budget | None:
    """Return a new budget with the caps of the first, and of the second those it does not set."""
    if first is None and second is None:
        return None
    return (second or Budget()).merged(first or Budget())


def _joined(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of both; those of `new` replace others of the same meaning."""
    replaced = {PARAMETERS.get(name, name) for name in new}
    kept = {k: v for k, v in old.items() if PARAMETERS.get(k, k) not in replaced}
    return kept | dict(new)


def _own_names(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return what a dict says of the fields in `names`, by their names in Python."""
    own = {**{name: name for name in names}, **{kept: name for name, kept in names.items()}}
    return {own[name]: value for name, value in data.items() if name in own}


def _checked_parameters(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidRequestError(
            f"execution_params must be a dict or None, not {type(value).__name__}"
        )
    for name in value:
        if not isinstance(name, str):
            raise InvalidRequestError(f"execution_params have texts as names, not {name!r}")
    return copied_dict(dict(value))


def _warn_of_unknown(what: str, given: Iterable[Any], names: Mapping[str, str]) -> None:
    known = {*names, *names.values()}
    for name in given:
        if name not in known:
            warn_caller(f"{what} has no field {name!r}; {suggest(str(name), names)}", UserWarning)
