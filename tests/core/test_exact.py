from __future__ import annotations

import enum
import math
import uuid
from collections import OrderedDict, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from importlib.resources import files
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pydantic
import pytest
from hypothesis import given

from historykit.errors import DecodeError, EncodeError
from historykit.exact import _READERS, read_exact, write_exact
from historykit.serialization import OpaqueValue, register_state_type
from tests.core.values import EVERY_SCALAR, nested, same, values

pytestmark = pytest.mark.usefixtures("registry")


class Widget:
    """A state type whose data is exact itself."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __eq__(self, other: object) -> bool:
        return type(other) is Widget and same(other.data, self.data)

    def __hash__(self) -> int:
        return 1

    def to_dict(self) -> Any:
        return {"data": self.data}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Widget:
        return cls(data.pop("data"))


class Suit(enum.Enum):
    HEARTS = "hearts"


class Trip(pydantic.BaseModel):
    """A model with fields of every kind that its JSON would change."""

    at: datetime
    raw: bytes
    any: Any


class Link(pydantic.BaseModel):
    """A model that only pydantic can write."""

    url: pydantic.AnyUrl
    suit: Suit


def through_json(value: Any, *, strict: bool = True) -> Any:
    tree, _ = write_exact(value)
    return read_exact(orjson.loads(orjson.dumps(tree)), strict=strict)


@pytest.mark.parametrize("value", EVERY_SCALAR, ids=lambda value: repr(type(value).__name__))
def test_scalar_comes_back(value: Any) -> None:
    """Every supported value comes back equal and of its type."""
    assert same(through_json(value), value)


def test_integers_have_no_limit() -> None:
    """An integer comes back that Python itself would not print."""
    assert through_json([10**5000, -(10**5000)]) == [10**5000, -(10**5000)]


@given(values)
def test_any_value_comes_back(value: Any) -> None:
    """Any combination of supported values comes back equal and of the same types."""
    assert same(through_json(value), value)


@pytest.mark.parametrize(
    ("value", "tree"),
    [
        (2**64, ["!int", "0x10000000000000000"]),
        (math.inf, ["!float", "inf"]),
        ("a\ud800é", ["!str", "a\\ud800\\xe9"]),
        (b"\xff", ["!bytes", "/w=="]),
        (Decimal("0.10"), ["!decimal", "0.10"]),
        (uuid.UUID(int=1), ["!uuid", "00000000-0000-0000-0000-000000000001"]),
        (date(2024, 5, 1), ["!date", "2024-05-01"]),
        (time(1, 2, fold=1), ["!time", "01:02:00", 1]),
        (datetime(2024, 5, 1, 0, 0, 0, 1), ["!datetime", "2024-05-01T00:00:00.000001", 0]),
        (datetime(2024, 5, 1, tzinfo=UTC), ["!datetime", "2024-05-01T00:00:00", 0, 0]),
        (
            datetime(2024, 5, 1, tzinfo=timezone(timedelta(hours=1), "CET")),
            ["!datetime", "2024-05-01T00:00:00", 0, 3_600_000_000, "CET"],
        ),
        (
            datetime(2024, 5, 1, tzinfo=ZoneInfo("Europe/Berlin")),
            ["!datetime", "2024-05-01T00:00:00", 0, "Europe/Berlin"],
        ),
        ((1, (2,)), ["!tuple", 1, ["!tuple", 2]]),
        ({3, 1, 2}, ["!set", 1, 2, 3]),
        (frozenset({1}), ["!frozenset", 1]),
        ({1: "a", "1": "b"}, ["!dict", 1, "a", "1", "b"]),
        (["!int", "0x1"], ["!list", "!int", "0x1"]),
        (OpaqueValue("acme", {"a": b""}), ["!object", "acme", {"a": ["!bytes", ""]}]),
    ],
)
def test_stored_form_never_changes(value: Any, tree: Any) -> None:
    """What is stored today is what every later version reads."""
    assert write_exact(value) == (tree, True)
    if not isinstance(value, OpaqueValue):
        assert same(read_exact(tree), value)


def test_every_tag_has_its_stored_form_pinned() -> None:
    """A tag that is added is added to the test above."""
    pinned = test_stored_form_never_changes.pytestmark[0].args[1]
    assert {tree[0] for _, tree in pinned} == set(_READERS)


class Role(enum.StrEnum):
    USER = "user"


class Old(str, enum.Enum):  # noqa: UP042 - its str() is not its value
    USER = "user"


class Size(enum.IntEnum):
    ONE = 1


class Money(Decimal):
    pass


class Ratio(float):
    pass


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Role.USER, "user"),
        (Old.USER, "user"),
        (Size.ONE, 1),
        (Ratio(1.5), 1.5),
        (Ratio("nan"), math.nan),
        (Money("1.0"), Decimal("1.0")),
        (Pair(1, Role.USER), (1, "user")),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        ({Role.USER: 1}, {"user": 1}),
        (type("Moment", (datetime,), {})(2024, 5, 1), datetime(2024, 5, 1)),
    ],
)
def test_subclass_is_stored_as_its_plain_value(value: Any, plain: Any) -> None:
    """An object that is equal to a plain value is stored as that."""
    assert same(through_json(value), plain)


def test_plain_tree_has_no_tags() -> None:
    """A value of subclasses alone becomes plain JSON, without a tag."""
    assert write_exact({"role": Role.USER, "n": [Size.ONE]}) == ({"role": "user", "n": [1]}, False)


class Unlike(str):
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = str.__hash__


class Garbled(date):
    def isoformat(self) -> str:
        return "someday"


@pytest.mark.parametrize(("value", "base"), [(Unlike("a"), "str"), (Garbled(2024, 5, 1), "date")])
def test_subclass_that_is_not_equal_is_refused(value: Any, base: str) -> None:
    """An object that its plain value cannot stand for is an EncodeError."""
    with pytest.raises(EncodeError, match=f"is an? .* not equal to a plain {base}"):
        write_exact(value)


@pytest.mark.parametrize(
    "value",
    [object(), Suit.HEARTS, bytearray(b"a"), MappingProxyType({}), 1j, PurePosixPath("/"), Widget],
)
def test_other_values_are_refused_with_their_path(value: Any) -> None:
    """What cannot be stored is an EncodeError with its path and the remedy."""
    message = {"contents": [{"arguments": {"when": value}}]}
    with pytest.raises(EncodeError, match=r"^contents\[0\]\.arguments\.when is a") as caught:
        write_exact(message)
    assert caught.value.path == "contents[0].arguments.when"
    assert "register_state_type" in str(caught.value)


def test_value_without_a_path_is_named_so() -> None:
    """A refused value at the top has an empty path."""
    with pytest.raises(EncodeError, match=r"^the value is an object, which") as caught:
        write_exact(object())
    assert caught.value.path == ""


class Zone(tzinfo):
    """A zone of another library."""

    def utcoffset(self, when: datetime | None) -> timedelta | None:
        return timedelta(hours=2)

    def dst(self, when: datetime | None) -> timedelta | None:
        return None

    def tzname(self, when: datetime | None) -> str | None:
        return None


class Wandering(Zone):
    """A zone whose offset depends on the date."""

    def utcoffset(self, when: datetime | None) -> timedelta | None:
        return None if when is None else timedelta(hours=when.month)


class Failing(Zone):
    """A zone that does not answer without a date."""

    def utcoffset(self, when: datetime | None) -> timedelta:
        return timedelta(hours=when.month)  # type: ignore[union-attr] # so it is out there


@pytest.mark.parametrize("zone", [Wandering(), Failing()])
def test_zone_that_cannot_be_named_is_refused(zone: tzinfo) -> None:
    """A zone that is neither a ZoneInfo nor a fixed offset is an EncodeError."""
    with pytest.raises(EncodeError, match=r"^at has a time zone of the type .*; use ZoneInfo"):
        write_exact({"at": datetime(2024, 5, 1, tzinfo=zone)})


def test_zone_from_a_file_without_a_key_is_refused() -> None:
    """A ZoneInfo without a key could not be found again."""
    with files("tzdata").joinpath("zoneinfo/Europe/Berlin").open("rb") as file:
        zone = ZoneInfo.from_file(file)
    with pytest.raises(EncodeError, match="use ZoneInfo"):
        write_exact(datetime(2024, 5, 1, tzinfo=zone))


def test_fixed_offset_of_another_library_is_kept() -> None:
    """A fixed offset of any class comes back as the same offset."""
    moment = datetime(2024, 5, 1, 12, tzinfo=Zone())
    assert through_json(moment) == moment
    assert through_json(moment).tzinfo == timezone(timedelta(hours=2))


def test_registered_object_comes_back() -> None:
    """An object of a state type comes back, with exact values inside and inside of others."""
    register_state_type(Widget)
    value = {"w": [Widget(Widget((1, Decimal("0.1"))))], Widget(1): {Widget(2)}}
    assert through_json(value) == value


def test_unregistered_object_is_refused() -> None:
    """An object with to_dict is not stored before its class is registered."""
    with pytest.raises(EncodeError, match=r"^w is a Widget.*register_state_type"):
        write_exact({"w": Widget(1)})


def test_path_leads_into_an_object() -> None:
    """The path to a refused value goes through the data of an object."""
    register_state_type(Widget)
    with pytest.raises(EncodeError) as caught:
        write_exact({"w": [Widget({"when": object()})]})
    assert caught.value.path == "w[0].data.when"


def test_failing_to_dict_is_an_encode_error() -> None:
    """An error in to_dict names path and class, and is the cause."""
    cls = type("Broken", (Widget,), {"to_dict": lambda self: 1 / 0})
    register_state_type(cls)
    with pytest.raises(EncodeError, match=r"^w is a Broken .*ZeroDivisionError") as caught:
        write_exact({"w": cls(1)})
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_model_keeps_the_types_of_its_fields() -> None:
    """A pydantic model is registered and comes back with bytes, dates and tuples as they were."""
    trip = Trip(at=datetime(2024, 5, 1, tzinfo=UTC), raw=b"\xff", any=(Decimal(1), math.inf))
    back = through_json({"trip": trip})["trip"]
    assert type(back) is Trip
    assert same(dict(back), dict(trip))


def test_model_that_only_pydantic_can_write_comes_back() -> None:
    """A model with fields of other types is stored as its JSON data."""
    link = Link(url=pydantic.AnyUrl("https://example.com/"), suit=Suit.HEARTS)
    assert through_json({"l": [link]}) == {"l": [link]}


def test_model_that_cannot_be_written_is_refused() -> None:
    """A model that holds what neither can write is an EncodeError with the path."""
    with pytest.raises(EncodeError, match=r"^t is a Trip that could not be dumped") as caught:
        write_exact({"t": Trip(at=datetime(2024, 5, 1), raw=b"", any=object())})
    assert caught.value.path == "t"


def test_model_with_the_id_of_another_class_is_refused() -> None:
    """A model never takes a type id from another class."""
    register_state_type(type("Trip", (Widget,), {"__module__": "elsewhere"}))
    with pytest.raises(EncodeError, match=r"^t cannot be stored: state type 'trip' is already"):
        write_exact({"t": Trip(at=datetime(2024, 5, 1), raw=b"", any=None)})


def test_unknown_type_is_a_decode_error(registry: dict[str, type[Any]]) -> None:
    """A strict reading names the state type that is not registered."""
    register_state_type(Widget)
    tree, _ = write_exact({"w": Widget(1)})
    del registry["widget"]
    with pytest.raises(DecodeError, match=r"'widget' is not registered; call register_state_type"):
        read_exact(tree)


def test_lenient_reading_keeps_an_unknown_type(registry: dict[str, type[Any]]) -> None:
    """An opaque value is stored again as it was, and restored where its type is known."""
    register_state_type(Widget)
    value = {"w": [Widget((1, Widget(b"")))]}
    tree, _ = write_exact(value)
    del registry["widget"]
    with pytest.warns(RuntimeWarning, match="'widget'.*are opaque") as caught:
        opaque = read_exact(tree, strict=False)
    assert len(caught) == 1
    assert opaque == {
        "w": [OpaqueValue("widget", {"data": (1, OpaqueValue("widget", {"data": b""}))})]
    }
    assert write_exact(opaque) == (tree, True)
    registry["widget"] = Widget
    assert read_exact(tree) == value


def test_opaque_value_may_be_a_key(registry: dict[str, type[Any]]) -> None:
    """An unknown type does not break a dict or a set that it is a key of."""
    register_state_type(Widget)
    tree, _ = write_exact({Widget(1): {Widget(2)}})
    del registry["widget"]
    with pytest.warns(RuntimeWarning, match="opaque"):
        assert write_exact(read_exact(tree, strict=False)) == (tree, True)


def test_data_that_its_class_does_not_accept() -> None:
    """Data that from_dict refuses is an error when strict, else opaque and unchanged."""
    register_state_type(Widget)
    tree = ["!object", "widget", {"other": 1}]
    with pytest.raises(
        DecodeError, match=r"Widget does not accept .*'widget' \(KeyError\)"
    ) as caught:
        read_exact(tree)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.warns(RuntimeWarning, match="opaque"):
        assert read_exact(tree, strict=False) == OpaqueValue("widget", {"other": 1})


def test_from_dict_that_fails_midway_loses_nothing() -> None:
    """Data that from_dict took apart before it failed is kept whole."""
    cls = type("Fussy", (Widget,), {"from_dict": classmethod(lambda cls, data: 1 / data.pop("n"))})
    register_state_type(cls)
    with pytest.warns(RuntimeWarning, match="opaque"):
        value = read_exact(["!object", "fussy", {"n": 0}], strict=False)
    assert value == OpaqueValue("fussy", {"n": 0})


def test_unknown_tag_is_a_decode_error() -> None:
    """A tag of a later version is named."""
    with pytest.raises(DecodeError, match="unknown tag '!matrix'; a newer historykit"):
        read_exact(["!matrix", 1])


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {0: x}, lambda x: Widget(x)])
def test_200_levels_are_written(wrap: Any) -> None:
    """Lists, dicts and objects may be 200 levels deep, through JSON and back."""
    register_state_type(Widget)
    value = wrap(nested(190))
    assert same(through_json(value), value) or through_json(value) == value
    tuples: Any = ()
    for _ in range(199):
        tuples = (tuples,)
    assert same(through_json(tuples), tuples)


def test_201_levels_are_refused() -> None:
    """Deeper nesting is an EncodeError with the beginning of the path."""
    write_exact(nested(200))
    with pytest.raises(EncodeError, match=r"^\[0\]\[0\]\[0\] is nested over 200 levels") as caught:
        write_exact(nested(201))
    assert caught.value.path == "[0][0][0]"


def test_objects_count_as_levels() -> None:
    """A chain of objects is refused before JSON's own limit is met."""
    register_state_type(Widget)
    value: Any = 1
    for _ in range(66):
        value = [Widget(value)]
    assert through_json(value) == value
    with pytest.raises(EncodeError, match="nested over 200"):
        write_exact([Widget(value)])


def test_models_do_not_hide_depth() -> None:
    """A model that holds too deep a value is refused whichever way it is dumped."""
    trip = Trip(at=datetime(2024, 5, 1), raw=b"", any=nested(60))
    value: Any = trip
    for _ in range(150):
        value = [value]
    with pytest.raises(EncodeError, match="nested over 200"):
        write_exact(value)


def test_value_that_holds_itself_is_refused() -> None:
    """A circle is an EncodeError."""
    value: list[Any] = []
    value.append((value,))
    with pytest.raises(EncodeError, match="or holds itself"):
        write_exact({"a": value})


def test_canonical_form_tells_no_order_and_no_tuples() -> None:
    """For comparing, pairs of a dict are sorted and tuples are lists."""
    left = {"a": (1, {2: b"", 1: {4, 5}})}
    right = {"a": [1, {1: {5, 4}, 2: b""}]}
    assert write_exact(left, canonical=True) == write_exact(right, canonical=True)
    assert write_exact({1: 2}, canonical=True) != write_exact({2: 1}, canonical=True)
