from __future__ import annotations

import enum
import json
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Self

import pydantic
import pytest

from historykit.errors import DecodeError, EncodeError
from historykit.serialization import (
    OpaqueValue,
    deserialize_state,
    register_state_type,
    serialize_state,
)
from tests.core.values import nested

pytestmark = pytest.mark.usefixtures("registry")


class Point:
    """A class with its own dict form, type included."""

    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.x == self.x

    def to_dict(self) -> dict[str, Any]:
        return {"type": "point", "x": self.x}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        assert data.pop("type", "point") == "point"
        return cls(**data)


class Untyped(Point):
    """A class whose dict form leaves the type out."""

    def to_dict(self) -> dict[str, Any]:
        return {"x": self.x}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(data["x"])


class Named(Point):
    """A class that chooses its own type id."""

    @classmethod
    def _get_type_identifier(cls) -> str:
        return "acme.named"

    def to_dict(self) -> dict[str, Any]:
        return {"type": "acme.named", "x": self.x}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(data["x"])


class Weather(pydantic.BaseModel):
    """A model that registers itself."""

    city: str
    at: datetime | None = None


class Aliased(pydantic.BaseModel):
    """A model whose fields have other names in JSON, and one that is computed."""

    model_config = pydantic.ConfigDict(extra="forbid")
    city_name: str = pydantic.Field(alias="cityName")

    @pydantic.computed_field  # type: ignore[prop-decorator] # mypy knows no decorated properties
    @property
    def upper(self) -> str:
        return self.city_name.upper()


def restored(value: Any) -> Any:
    return deserialize_state(json.loads(json.dumps(serialize_state(value, strict=True))))


def local_class() -> type[Any]:
    class Local(Point):
        pass

    return Local


def test_registered_type_is_found_by_its_lower_case_name() -> None:
    """A class is registered under its name in lower case."""
    register_state_type(Point)
    assert restored({"p": [Point(1)]}) == {"p": [Point(1)]}


def test_type_identifier_wins_over_the_name() -> None:
    """What _get_type_identifier returns is the type id."""
    register_state_type(Named)
    assert serialize_state(Named(1)) == {"type": "acme.named", "x": 1}
    assert restored(Named(1)) == Named(1)


def test_registering_again_changes_nothing(registry: dict[str, type[Any]]) -> None:
    """The same class may be registered twice."""
    register_state_type(Point)
    register_state_type(Point)
    assert registry["point"] is Point


def test_taken_type_id_is_refused(registry: dict[str, type[Any]]) -> None:
    """Another class under a registered id is a ValueError that names both classes."""
    first, second = local_class(), type("Local", (Point,), {"__module__": "elsewhere"})
    register_state_type(first)
    with pytest.raises(
        ValueError, match=r"already registered by .*local_class.*give elsewhere\.Lo"
    ):
        register_state_type(second)
    assert registry["local"] is first


def test_local_classes_of_one_name_are_two_classes() -> None:
    """Two classes that a function made are not taken for one that was defined again."""
    register_state_type(local_class())
    with pytest.raises(ValueError, match="already registered"):
        register_state_type(local_class())


def test_class_defined_again_takes_its_own_place() -> None:
    """In a notebook the newest definition of a class is the one that is restored."""
    first, again = (type("Cell", (Untyped,), {"__module__": "__main__"}) for _ in range(2))
    register_state_type(first)
    register_state_type(again)
    data = serialize_state([first(1), again(2)])
    assert [type(cell) for cell in deserialize_state(data)] == [again, again]


@pytest.mark.parametrize(
    "cls",
    [
        object,
        type("OnlyTo", (), {"to_dict": lambda self: {}}),
        type("OnlyFrom", (), {"from_dict": classmethod(lambda cls, data: cls())}),
        type("NotCallable", (), {"to_dict": {}, "from_dict": {}}),
    ],
)
def test_class_without_a_codec_is_refused(cls: type[Any]) -> None:
    """A class that cannot go both ways is a ValueError that says what it needs."""
    with pytest.raises(
        ValueError, match=r"to_dict and a classmethod from_dict, or .* pydantic model"
    ):
        register_state_type(cls)


def test_object_is_not_a_state_type() -> None:
    """Registering an object instead of its class is a TypeError."""
    with pytest.raises(TypeError, match="takes a class, not a Point object"):
        register_state_type(Point(1))  # type: ignore[arg-type] # the mistake under test


@pytest.mark.parametrize("type_id", ["", 7])
def test_type_identifier_must_be_a_text(type_id: Any) -> None:
    """An id that is no text is a ValueError that names the class."""
    cls = type("Odd", (Point,), {"_get_type_identifier": classmethod(lambda cls: type_id)})
    with pytest.raises(ValueError, match=r"_get_type_identifier of .*Odd"):
        register_state_type(cls)


def test_type_is_added_where_to_dict_leaves_it_out() -> None:
    """A registered class gets its type id into its data, and its object back."""
    register_state_type(Untyped)
    value = Untyped(1)
    assert serialize_state(value) == {"type": "untyped", "x": 1}
    assert restored(value) == value


def test_unregistered_object_keeps_its_dict() -> None:
    """What to_dict of an unregistered class returns is kept as it is, and stays a dict."""
    assert serialize_state(Untyped(1)) == {"x": 1}
    assert restored(Point(1)) == {"type": "point", "x": 1}


def test_subclass_is_not_registered_with_its_base() -> None:
    """The class of an object is looked up exactly when it is serialized."""
    register_state_type(Point)
    register_state_type(Untyped)
    child = type("Child", (Untyped,), {})
    assert serialize_state(child(1)) == {"x": 1}


def test_dict_with_to_dict_uses_it() -> None:
    """A dict of a class with to_dict is serialized by that."""
    cls = type("Bag", (dict,), {"to_dict": lambda self: {"size": len(self)}})
    assert serialize_state({"bag": cls(a=1, b=2)}) == {"bag": {"size": 2}}


def test_foreign_type_written_by_to_dict_is_reported() -> None:
    """A registered class that writes the type of another is warned about, and refused when
    strict."""
    cls = type("Stray", (Point,), {})
    register_state_type(cls)
    with pytest.warns(RuntimeWarning, match=r"state\.p: .*another type than 'stray'"):
        assert serialize_state({"p": cls(1)}) == {"p": {"type": "point", "x": 1}}
    with pytest.raises(EncodeError, match="another type than 'stray'"):
        serialize_state(cls(1), strict=True)


def test_to_dict_of_a_registered_class_must_return_a_dict() -> None:
    """There is no place for the type in anything else."""
    cls = type("Listed", (Point,), {"to_dict": lambda self: [self.x]})
    register_state_type(cls)
    with pytest.raises(EncodeError, match=r"state\.p: .*returned a list") as caught:
        serialize_state({"p": cls(1)})
    assert caught.value.path == "state.p"


def test_failing_to_dict_names_its_path() -> None:
    """An error in to_dict is an EncodeError with the path, and is its cause."""
    cls = type("Broken", (), {"to_dict": lambda self: 1 / 0})
    with pytest.raises(EncodeError, match=r"state\.a\[0\]: .*Broken .*ZeroDivisionError") as caught:
        serialize_state({"a": [cls()]})
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_class_as_a_value_is_refused() -> None:
    """A class in place of its object is a TypeError that names it."""
    with pytest.raises(TypeError, match=r"state\.p: .*Point could not be dumped"):
        serialize_state({"p": Point})


def test_pydantic_model_registers_itself(registry: dict[str, type[Any]]) -> None:
    """A pydantic model is restored without having been registered."""
    weather = Weather(city="Oslo", at=datetime(2024, 5, 1, 12, 30, tzinfo=UTC))
    data = serialize_state({"w": weather})
    assert data == {"w": {"city": "Oslo", "at": "2024-05-01T12:30:00Z", "type": "weather"}}
    assert registry["weather"] is Weather
    assert restored({"w": (weather,)}) == {"w": [weather]}


def test_pydantic_model_never_replaces_a_class(registry: dict[str, type[Any]]) -> None:
    """A model whose id another class has is refused, with its path and both names."""
    other = type("Weather", (Point,), {"__module__": "elsewhere"})
    register_state_type(other)
    with pytest.raises(EncodeError, match=r"state\.w: .*by elsewhere\.Weather; give tests\."):
        serialize_state({"w": Weather(city="Oslo")})
    assert registry["weather"] is other


def test_model_is_restored_by_its_field_names() -> None:
    """Aliases and computed fields do not stand in the way of restoring a model."""
    model = Aliased(cityName="Oslo")
    assert serialize_state(model) == {"city_name": "Oslo", "type": "aliased"}
    assert restored([model]) == [model]


def test_old_pydantic_gets_no_unknown_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 2.11 pydantic cannot be asked for names, and is not asked."""
    seen: list[dict[str, Any]] = []

    class Old(pydantic.BaseModel):
        @classmethod
        def model_validate(cls, obj: Any, **options: Any) -> Self:
            seen.append(options)
            return cls()

    register_state_type(Old)
    for version in ("2.7.4", "2.11.0", "3.0.0"):
        monkeypatch.setattr(pydantic, "VERSION", version)
        assert deserialize_state({"type": "old"}) == Old()
    assert seen == [{}, {"by_name": True}, {"by_name": True}]


@pytest.mark.parametrize(
    "model",
    [
        pydantic.create_model("Typed", type=(str, "mine"))(),
        pydantic.RootModel[list[int]]([1]),
    ],
)
def test_model_without_room_for_the_type_is_refused(model: pydantic.BaseModel) -> None:
    """A field named type is an error, never overwritten."""
    with pytest.raises(EncodeError, match=r"state\[0\]: .*named 'type' or no fields"):
        serialize_state([model])


def test_model_that_does_not_dump_names_its_path() -> None:
    """An error of pydantic's serializer is an EncodeError with the path."""
    model = pydantic.create_model("Raw", raw=(bytes, ...))(raw=b"\xff")
    with pytest.raises(EncodeError, match=r"state\.m: .*Raw could not be dumped"):
        serialize_state({"m": model})


def test_pydantic_is_not_imported() -> None:
    """Serializing plain state leaves pydantic alone."""
    code = (
        "import sys; from historykit.serialization import *; "
        "assert deserialize_state(serialize_state({'a': [1]})) == {'a': [1]}; "
        "assert 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tuples_become_lists_and_their_items_are_visited() -> None:
    """A tuple is a list in plain data, with its items serialized."""
    assert serialize_state({"t": (1, Point(2))}) == {"t": [1, {"type": "point", "x": 2}]}


class Color(enum.Enum):
    RED = 1


class Level(enum.StrEnum):
    HIGH = "high"


@pytest.mark.parametrize(
    "value", [{1}, b"x", datetime(2024, 5, 1), Decimal(1), Color.RED, object()]
)
def test_what_json_cannot_hold_stays_with_a_warning(value: Any) -> None:
    """Such a value is left as it is, and the warning names its path."""
    with pytest.warns(RuntimeWarning, match=r"state\.a\[1\] is a .*JSON cannot hold"):
        assert serialize_state({"a": [0, value]})["a"][1] is value
    with pytest.raises(EncodeError, match=r"state\.a\[1\] is a") as caught:
        serialize_state({"a": [0, value]}, strict=True)
    assert caught.value.path == "state.a[1]"


def test_numbers_that_are_not_finite_pass_unless_strict() -> None:
    """NaN and the infinities stay, and strict refuses them with their path."""
    assert serialize_state([float("inf")]) == [float("inf")]
    with pytest.raises(EncodeError, match=r"session\.x\[0\]"):
        serialize_state([float("nan")], path="session.x", strict=True)


@pytest.mark.parametrize("value", [None, True, 1, 2**70, 1.5, "\ud800", Level.HIGH])
def test_json_values_stay(value: Any) -> None:
    """What JSON can hold is unchanged in either mode."""
    assert serialize_state(value, strict=True) is value
    assert deserialize_state(value) is value


def test_keys_become_text() -> None:
    """Keys below the state are text in plain data; a text of a subclass stays."""
    assert serialize_state({"a": {1: 2, None: 3, Level.HIGH: 4}}) == {
        "a": {"1": 2, "None": 3, "high": 4}
    }
    assert deserialize_state({1: [2]}) == {"1": [2]}


def test_keys_that_collide_as_text_are_reported() -> None:
    """Two keys with the same text are warned about, and refused when strict."""
    with pytest.warns(RuntimeWarning, match=r"state\['1'\] stands for two keys"):
        assert serialize_state({1: "a", "1": "b"}) == {"1": "b"}
    with pytest.raises(EncodeError, match="two keys"):
        serialize_state({1: "a", "1": "b"}, strict=True)


def test_serializing_does_not_share_containers() -> None:
    """Changing the plain data does not change the state."""
    state: dict[str, Any] = {"a": [{"b": 1}]}
    serialize_state(state)["a"][0]["b"] = 2
    assert state == {"a": [{"b": 1}]}


def test_deserializing_does_not_change_its_argument() -> None:
    """A from_dict that takes its dict apart does not reach the caller's data."""
    register_state_type(Point)
    data = {"p": {"type": "point", "x": 1}}
    assert deserialize_state(data) == {"p": Point(1)}
    assert data == {"p": {"type": "point", "x": 1}}


@pytest.mark.parametrize("data", [{"type": "point", "y": 2}, {"type": "weather", "at": "never"}])
def test_dict_that_its_class_does_not_accept_stays_a_dict(data: dict[str, Any]) -> None:
    """A user's dict that has a registered type stays, and the warning names its path."""
    register_state_type(Point)
    register_state_type(Weather)
    with pytest.warns(RuntimeWarning, match=r"state\.a\[0\] stays a dict: .* does not accept it"):
        assert deserialize_state({"a": [data]}) == {"a": [data]}


def test_objects_inside_a_dict_that_stays_are_restored() -> None:
    """A dict that only looks like a typed one is walked like any other."""
    register_state_type(Point)
    with pytest.warns(RuntimeWarning, match="stays a dict"):
        state = deserialize_state({"type": "point", "child": {"type": "point", "x": 1}})
    assert state == {"type": "point", "child": Point(1)}


@pytest.mark.parametrize("type_id", ["unknown", None, 5, ["a"], {"b": 1}])
def test_dict_of_another_type_is_data(type_id: Any) -> None:
    """A type that is not registered, or no text, is a key like any other."""
    register_state_type(Point)
    data = {"type": type_id, "x": 1}
    assert deserialize_state(data) == data


def test_nested_tag_does_not_reach_into_an_object() -> None:
    """The data of a registered object is its class's own, whatever types stand in it."""
    register_state_type(Point)
    register_state_type(Untyped)
    value = Untyped({"type": "point", "x": 1})  # type: ignore[arg-type] # any data will do
    assert restored(value).x == {"type": "point", "x": 1}


def test_state_may_be_200_levels_deep() -> None:
    """Both directions take 200 containers inside one another."""
    value = nested(200)
    assert deserialize_state(serialize_state(value)) == value


def test_deeper_state_is_refused() -> None:
    """Both directions refuse 201 levels, with the beginning of the path."""
    with pytest.raises(EncodeError, match=r"state\[0\].*… is nested over 200 levels"):
        serialize_state(nested(201))
    with pytest.raises(DecodeError, match=r"state\[0\].*… is nested over 200 levels"):
        deserialize_state(nested(201))


def test_state_that_holds_itself_is_refused() -> None:
    """A circle is an EncodeError instead of an endless recursion."""
    state: dict[str, Any] = {}
    state["self"] = [state]
    with pytest.raises(EncodeError, match="or holds itself"):
        serialize_state(state)


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("a.b", "state['a.b']"),
        ("\ud800", r"state['\ud800']"),
        ("x" * 500, "state['xxxxxxxxxxxx..."),
    ],
)
def test_paths_stay_short_and_printable(key: str, path: str) -> None:
    """A key that is no name is quoted, and cut if it is long."""
    with pytest.raises(EncodeError) as caught:
        serialize_state({key: b""}, strict=True)
    assert caught.value.path.startswith(path)
    assert len(str(caught.value).encode()) < 120


def test_opaque_value_is_a_frozen_value() -> None:
    """Two opaque values of the same record are equal, hashable and not to be changed."""
    value = OpaqueValue("acme", {"a": 1})
    assert value == OpaqueValue("acme", {"a": 1})
    assert len({value, OpaqueValue("acme", {"a": 1})}) == 1
    with pytest.raises(AttributeError):
        value.type_id = "other"  # type: ignore[misc] # the mistake under test
