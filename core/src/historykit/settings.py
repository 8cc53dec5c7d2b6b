"""A backend's settings, read into its config dataclass and checked on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from historykit.backends import BackendSpec
from historykit.errors import BackendLoadError, ConfigError, HistoryKitError
from historykit.suggestions import suggest

__all__ = ["Text", "build_config", "environment_variable"]

TRUE: Final = frozenset({"1", "true", "yes", "on"})
FALSE: Final = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Text:
    """A setting given as text, to be converted to the type of its field. `origin` says by whom."""

    value: str = field(repr=False)
    origin: str


def environment_variable(backend: str, name: str) -> str:
    """Return the environment variable of a setting: ``HISTORYKIT_REDIS_URL``."""
    return f"HISTORYKIT_{backend}_{name}".upper().replace("-", "_")


def build_config(spec: BackendSpec, settings: Mapping[str, object]) -> Any:
    """Return the backend's config, made of `settings`.

    Values have the types of the fields: bool, int, float, str, `pathlib.Path` (from text), a
    `Literal`, a union of these, or any class. A `Text` is converted. Raises `ConfigError` for an
    unknown setting, a missing one, and one of another type; no error shows a value, but for a field
    that takes one of a few words.
    """
    config = spec.config()
    known = {each.name: each for each in fields(config) if each.init}
    for name in settings:
        if name not in known:
            raise ConfigError(
                f"the {spec.name} backend has no setting {name!r}; {suggest(name, known)}",
                field=name,
            )
    for name, each in known.items():
        if name not in settings and _required(each):
            raise _missing(spec.name, name)
    annotations = _annotations(spec, config)
    values = {
        name: _value(spec.name, name, annotations[name], given) for name, given in settings.items()
    }
    return _made(spec.name, config, values)


def _required(each: Field[object]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _missing(backend: str, name: str) -> ConfigError:
    return ConfigError(
        f"the {backend} backend needs {name!r}: give it as an argument ({name}=..., to the command "
        f"--set {name}=...), or let load_config find it under [history.{backend}] in a TOML file, "
        f"or as {environment_variable(backend, name)} in the environment",
        field=name,
    )


def _annotations(spec: BackendSpec, config: type) -> dict[str, Any]:
    try:
        return get_type_hints(config)
    except Exception as error:
        raise BackendLoadError(
            f"the annotations of {config.__qualname__} cannot be read ({error}); import what they "
            "name outside of TYPE_CHECKING",
            backend=spec.name,
        ) from error


def _made(backend: str, config: type, values: Mapping[str, object]) -> object:
    try:
        return config(**values)
    except HistoryKitError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the {backend} backend refuses its settings: {error}") from error


def _value(backend: str, name: str, annotation: Any, given: object) -> object:
    """Return the value for a field, converted where it was given as text."""
    what = f"{name} of the {backend} backend must be {_expected(annotation)}"
    try:
        if isinstance(given, Text):
            what = f"{given.origin} is not accepted: {what}"
            if get_origin(annotation) is Literal:
                what += f", not {_shown(annotation, given.value)}"
            return _parsed(annotation, given.value)
        what = f"{what}, not {_shown(annotation, given)}"
        return _checked(annotation, given)
    except ValueError:
        pass  # its message, and its traceback, show the value, which may be a secret
    raise ConfigError(what, field=name)


def _shown(annotation: Any, value: object) -> str:
    """Return a value for an error: its type alone, unless the field takes one of a few words."""
    if get_origin(annotation) is Literal and isinstance(value, str | int | None):
        return repr(value)
    return type(value).__name__


def _parsed(annotation: Any, text: str) -> object:
    """Return what a text stands for. Raises `ValueError`."""
    if _is_union(annotation):
        # What any text would satisfy comes last.
        return _first(_parsed, sorted(get_args(annotation), key=(str, Path).__contains__), text)
    if get_origin(annotation) is Literal:
        return _first(_option, get_args(annotation), text)
    if annotation not in PARSERS:
        raise ValueError
    return PARSERS[annotation](text)


def _checked(annotation: Any, value: object) -> object:
    """Return the value if the annotation allows it, a float or a path in its type.

    Raises `ValueError`.
    """
    if _is_union(annotation):
        return _first(_checked, get_args(annotation), value)
    if get_origin(annotation) is Literal:
        if any(type(value) is type(option) and value == option for option in get_args(annotation)):
            return value
        raise ValueError
    if isinstance(value, bool) and annotation in (int, float):
        raise ValueError
    if annotation is float and isinstance(value, int):
        return float(value)
    if annotation is Path and isinstance(value, str):
        return Path(value)
    kind = get_origin(annotation) or annotation
    if kind is not Any and isinstance(kind, type) and not isinstance(value, kind):
        raise ValueError
    return value


def _is_union(annotation: object) -> bool:
    return get_origin(annotation) in (Union, UnionType)


def _first(
    convert: Callable[[Any, Any], object], choices: Iterable[object], value: object
) -> object:
    """Return what the first of the choices that accepts the value makes of it."""
    for choice in choices:
        try:
            return convert(choice, value)
        except ValueError:
            continue
    raise ValueError


def _option(option: object, text: str) -> object:
    if str(option) != text:
        raise ValueError
    return option


def _switch(text: str) -> bool:
    word = text.strip().lower()
    if word not in TRUE | FALSE:
        raise ValueError
    return word in TRUE


def _nothing(text: str) -> None:
    if text.strip().lower() != "none":
        raise ValueError


def _expected(annotation: Any) -> str:
    """Say which values an annotation allows."""
    if _is_union(annotation):
        return " or ".join(map(_expected, get_args(annotation)))
    if get_origin(annotation) is Literal:
        return " or ".join(map(repr, get_args(annotation)))
    return NAMES.get(annotation) or str(getattr(annotation, "__qualname__", annotation))


PARSERS: Final[dict[object, Callable[[str], object]]] = {
    bool: _switch,
    int: int,
    float: float,
    str: str,
    Path: Path,
    Any: str,
    object: str,
    NoneType: _nothing,
}
NAMES: Final[dict[object, str]] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "text",
    Path: "a path",
    NoneType: "None",
}
