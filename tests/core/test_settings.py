from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from historykit.errors import BackendLoadError, ConfigError, InvalidRequestError
from historykit.memory import MemoryStore
from historykit.plugins import BackendSpec
from historykit.settings import Text, build_config, environment_variable

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    url: str
    size: int = 5
    wait: float = 1.0
    tls: bool = False
    folder: Path = Path()
    place: str | Path = ""
    mode: Literal["fast", "safe"] = "safe"
    level: Literal[1, True] = 1
    limit: int | None = None
    either: str | int = 0
    name: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    anything: Any = None
    made: str = field(default="", init=False)


@dataclass(frozen=True)
class Choosy:
    size: int = 1

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"size must not be {self.size}")
        if self.size == 0:
            raise InvalidRequestError("size must not be nothing")


@dataclass(frozen=True)
class Unreadable:
    amount: Decimal | None = None


def spec(config: type) -> BackendSpec:
    return BackendSpec(name="acme", store=lambda: MemoryStore, config=lambda: config)


def built(**settings: object) -> Config:
    config: Config = build_config(spec(Config), {"url": "acme://", **settings})
    return config


def text(value: str) -> Text:
    return Text(value, "HISTORYKIT_ACME_X")


def refusal(settings: Mapping[str, object], *, config: type = Config) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        build_config(spec(config), settings)
    return caught.value


def test_settings_become_the_fields_of_the_config() -> None:
    """What is given is set, the rest has the defaults of the dataclass."""
    assert built(size=7) == Config(url="acme://", size=7)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("url", "acme://x", "acme://x"),
        ("size", 3, 3),
        ("wait", 2, 2.0),
        ("wait", 2.5, 2.5),
        ("tls", True, True),
        ("folder", "a/b", Path("a/b")),
        ("folder", Path("a/b"), Path("a/b")),
        ("place", "a/b", "a/b"),
        ("place", Path("a/b"), Path("a/b")),
        ("mode", "fast", "fast"),
        ("level", 1, 1),
        ("limit", 3, 3),
        ("limit", None, None),
        ("name", "ada", "ada"),
        ("labels", {"a": "b"}, {"a": "b"}),
        ("anything", [1], [1]),
    ],
)
def test_a_value_of_the_right_type(name: str, given: object, value: object) -> None:
    """It is taken as it is, except that a path and a float come in their own type."""
    taken = getattr(built(**{name: given}), name)
    assert taken == value
    assert type(taken) is type(value)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("url", "acme://x", "acme://x"),
        ("size", "3", 3),
        ("wait", "2", 2.0),
        *(("tls", word, True) for word in ("1", "true", "Yes", " ON ")),
        *(("tls", word, False) for word in ("0", "false", "No", "off")),
        ("folder", "a/b", Path("a/b")),
        ("place", "a//b", "a//b"),
        ("mode", "fast", "fast"),
        ("level", "1", 1),
        ("limit", "3", 3),
        ("limit", "none", None),
        ("either", "3", 3),
        ("either", "three", "three"),
        ("name", "7", "7"),
        ("name", "zoe", "zoe"),
        ("anything", "7", "7"),
    ],
)
def test_a_text_is_converted_to_the_type_of_its_field(name: str, given: str, value: object) -> None:
    """A text, as the environment has it, becomes what the field's annotation asks for."""
    taken = getattr(built(**{name: text(given)}), name)
    assert taken == value
    assert type(taken) is type(value)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("url", 5, "url of the acme backend must be text, not int"),
        ("size", "3", "size of the acme backend must be an integer, not str"),
        ("size", True, "size of the acme backend must be an integer, not bool"),
        ("size", 3.0, "size of the acme backend must be an integer, not float"),
        ("wait", "2", "wait of the acme backend must be a number, not str"),
        ("wait", True, "wait of the acme backend must be a number, not bool"),
        ("tls", 1, "tls of the acme backend must be true or false, not int"),
        ("folder", 1, "folder of the acme backend must be a path, not int"),
        ("place", 1, "place of the acme backend must be text or a path, not int"),
        ("mode", "best", "mode of the acme backend must be 'fast' or 'safe', not 'best'"),
        ("level", 1.0, "level of the acme backend must be 1 or True, not float"),
        ("limit", "3", "limit of the acme backend must be an integer or None, not str"),
        ("labels", [1], "labels of the acme backend must be Mapping, not list"),
    ],
)
def test_a_value_of_another_type(name: str, given: object, message: str) -> None:
    """The error names the field and the type expected."""
    error = refusal({"url": "acme://", name: given})
    assert str(error) == message
    assert error.field == name


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("size", "three", "an integer"),
        ("wait", "long", "a number"),
        ("tls", "maybe", "true or false"),
        ("mode", "best", "'fast' or 'safe', not 'best'"),
        ("limit", "nothing", "an integer or None"),
        ("labels", "a=b", "Mapping"),
    ],
)
def test_a_text_that_cannot_be_converted(name: str, given: str, expected: str) -> None:
    """The error names where the text comes from, the field, and the type expected."""
    assert str(refusal({"url": "acme://", name: text(given)})) == (
        f"HISTORYKIT_ACME_X is not accepted: {name} of the acme backend must be {expected}"
    )


def test_an_error_does_not_show_the_value() -> None:
    """A value in the wrong place may be a secret: neither the error nor its cause has it."""
    error = refusal({"url": "acme://", "size": text("hunter2")})
    assert "hunter2" not in str(error)
    assert (error.__cause__, error.__context__) == (None, None)
    assert "hunter2" not in repr(text("hunter2"))


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("urll", "has no setting 'urll'; did you mean 'url'?"),
        ("made", "did you mean 'mode'?"),
        ("zzzz", "'tls', 'url', 'wait'"),
    ],
)
def test_an_unknown_setting(name: str, ending: str) -> None:
    """The error names the nearest field, or all of them; what is not settable is unknown."""
    error = refusal({"url": "acme://", name: 1})
    assert str(error).endswith(ending)
    assert error.field == name


def test_a_required_setting_is_missing() -> None:
    """The error names it and the three ways to give it."""
    error = refusal({})
    assert str(error) == (
        "the acme backend needs 'url': give it as an argument (url=..., to the command "
        "--set url=...), or let load_config find it under [history.acme] in a TOML file, or as "
        "HISTORYKIT_ACME_URL in the environment"
    )
    assert error.field == "url"


def test_a_config_that_refuses_its_settings() -> None:
    """A `ValueError` of the dataclass becomes a `ConfigError`."""
    error = refusal({"size": -1}, config=Choosy)
    assert str(error) == "the acme backend refuses its settings: size must not be -1"


def test_a_config_that_raises_an_error_of_ours() -> None:
    """An error of historykit comes through as it is."""
    with pytest.raises(InvalidRequestError, match="nothing"):
        build_config(spec(Choosy), {"size": 0})


def test_annotations_that_cannot_be_read() -> None:
    """A config whose annotations name what is only there for type checkers says so."""
    with pytest.raises(BackendLoadError, match=r"Unreadable cannot be read.*Decimal"):
        build_config(spec(Unreadable), {})


def test_the_variable_of_a_setting() -> None:
    """It is made of the backend's name and the field's."""
    assert (
        environment_variable("redis-cluster", "pool_size") == "HISTORYKIT_REDIS_CLUSTER_POOL_SIZE"
    )
