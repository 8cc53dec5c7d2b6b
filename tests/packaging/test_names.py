from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import pytest

from tests.packaging.workspace import DISTRIBUTIONS

# It reads the options of the pytest that collects it.
COLLECTED = "historykit.testing.standalone"

MODULES = sorted(
    module
    for distribution in DISTRIBUTIONS
    for module in distribution.modules()
    if module != COLLECTED and not any(part.startswith("_") for part in module.split("."))
)


def described(subject: object) -> bool:
    """Whether a docstring was written; one that a dataclass made of its fields does not count."""
    text = inspect.getdoc(subject)
    if isinstance(subject, type) and is_dataclass(subject):
        return bool(text) and not str(text).startswith(f"{subject.__name__}(")
    return bool(text)


def public_members(cls: type) -> Iterator[tuple[str, object]]:
    """The methods and properties that a class defines for its users."""
    for name, value in vars(cls).items():
        member = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not name.startswith("_") and (
            inspect.isfunction(member) or isinstance(member, property)
        ):
            yield name, getattr(cls, name)


def undescribed(module: Any) -> Iterator[str]:
    """The public functions, classes and members defined in a module that have no docstring."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isroutine(value) or isinstance(value, type):
            if not described(value):
                yield name
            if isinstance(value, type):
                members = public_members(value)
                yield from (f"{name}.{part}" for part, member in members if not described(member))


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_imports_and_says_what_it_is_for(name: str) -> None:
    """Each public module can be imported alone and has a docstring."""
    assert inspect.getdoc(importlib.import_module(name))


@pytest.mark.parametrize("name", MODULES)
def test_each_name_in_all_is_there(name: str) -> None:
    """Each name in the `__all__` of a module is there, once."""
    module = importlib.import_module(name)
    names = getattr(module, "__all__", [])
    assert [each for each in names if not hasattr(module, each)] == []
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_has_a_docstring(name: str) -> None:
    """No public function, class, method or property lacks its docstring."""
    assert list(undescribed(importlib.import_module(name))) == []


def test_a_missing_docstring_is_seen() -> None:
    """A class, a method and a dataclass without a docstring are each reported."""
    module = type(pytest)("made_up")
    source = (
        "from dataclasses import dataclass\n"
        "class Bare:\n"
        "    def method(self): pass\n"
        "    @property\n"
        "    def member(self): pass\n"
        "    def _private(self): pass\n"
        "@dataclass\n"
        "class Record:\n"
        "    field: int\n"
        "def function(): pass\n"
    )
    exec(compile(source, "made_up.py", "exec", dont_inherit=True), vars(module))
    assert list(undescribed(module)) == ["Bare", "Bare.method", "Bare.member", "Record", "function"]
