"""Values that the codec must bring back exactly, and an equality that tells their types apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from historykit.exact import _READERS


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal and of the same types all the way down."""
    if type(left) is not type(right):
        return False
    compare = _COMPARE.get(type(left))
    return bool(left == right) if compare is None else compare(left, right)


def nested(levels: int) -> Any:
    """Return lists inside one another, `levels` of them."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def _same_floats(left: float, right: float) -> bool:
    if math.isnan(left):
        return math.isnan(right)
    return left == right and math.copysign(1, left) == math.copysign(1, right)


def _same_items(left: Any, right: Any) -> bool:
    return len(left) == len(right) and all(map(same, left, right))


def _same_dicts(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    return _same_items(list(left.items()), list(right.items()))


def _same_sets(left: Any, right: Any) -> bool:
    return sorted(map(repr, left)) == sorted(map(repr, right))


def _same_moments(left: Any, right: Any) -> bool:
    return (
        left.replace(tzinfo=None) == right.replace(tzinfo=None)
        and left.fold == right.fold
        and type(left.tzinfo) is type(right.tzinfo)
        and str(left.tzinfo) == str(right.tzinfo)
        and left.utcoffset() == right.utcoffset()
    )


_COMPARE: dict[type[Any], Callable[[Any, Any], bool]] = {
    float: _same_floats,
    list: _same_items,
    tuple: _same_items,
    dict: _same_dicts,
    set: _same_sets,
    frozenset: _same_sets,
    datetime: _same_moments,
    time: _same_moments,
    Decimal: lambda left, right: str(left) == str(right),
}

EVERY_SCALAR = [
    None,
    True,
    "text",
    "a\x00b",
    "\ud800 alone, \ud83d\ude00 in pairs, \\ and \u2028",
    0,
    2**64 - 1,
    -(2**63) - 1,
    10**4000,
    -0.0,
    1.0,
    math.nan,
    -math.inf,
    b"\xff\x00",
    Decimal("-1.50E+3"),
    Decimal("sNaN12"),
    UUID("12345678123456781234567812345678"),
    date(1, 2, 3),
    time(1, 2, 3, 4),
    time(1, tzinfo=timezone(timedelta(hours=-3, microseconds=7))),
    datetime(2024, 10, 27, 2, 30, 0, 1),
    datetime(2024, 10, 27, 2, 30, tzinfo=UTC),
    datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    datetime(2024, 10, 27, 2, 30, tzinfo=timezone(timedelta(hours=1), "CET")),
]

_texts = st.text(st.characters(exclude_categories=[]), max_size=8) | st.sampled_from(
    ["type", "!", "!list", "!decimal", "additional_properties"]
)
_numbers = (
    st.integers()
    | st.integers(2**63 - 2, 2**64 + 2)
    | st.integers(-(2**63) - 2, -(2**63) + 2)
    | st.floats()
)
_fixed_zones = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone)
_zones = st.none() | _fixed_zones | st.timezones()
_folds = st.integers(0, 1)
_moments = st.builds(
    lambda moment, zone, fold: moment.replace(tzinfo=zone, fold=fold),
    st.datetimes() | st.times(),
    _zones,
    _folds,
)
_scalars = (
    st.none()
    | st.booleans()
    | _texts
    | _numbers
    | st.binary(max_size=8)
    | st.decimals()
    | st.uuids()
    | st.dates()
    | _moments
    | st.sampled_from(EVERY_SCALAR)
)
_keys = _scalars.filter(lambda key: not (isinstance(key, Decimal) and key.is_snan()))


def _containers(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(values, max_size=4)
        | st.lists(values, max_size=4).map(tuple)
        | st.dictionaries(_texts, values, max_size=4)
        | st.dictionaries(_keys, values, max_size=3)
        | st.sets(_keys, max_size=3)
        | st.frozensets(st.tuples(_keys), max_size=3)
        | st.builds(
            lambda tag, items: [tag, *items], st.sampled_from(sorted(_READERS)), st.lists(values)
        )
    )


values = st.recursive(_scalars, _containers, max_leaves=12)
"""Any value of the types that the codec knows, state types left out."""

messages = st.fixed_dictionaries(
    {"role": _texts, "contents": st.lists(st.dictionaries(_texts, values, max_size=4), max_size=3)},
    optional={"additional_properties": st.dictionaries(_texts, values, max_size=3)},
)
"""Dicts of the shape of a message, with such values."""
