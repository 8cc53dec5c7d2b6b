"""The blocking classes have every call of the asynchronous ones, and hand it on."""

from __future__ import annotations

import inspect

import pytest

import historykit
from historykit import sync
from historykit.sync import calls
from historykit.sync.portal import Portal
from tests.sync.blocking import TARGET, outline, written

PAIRS = {
    "History": historykit.History,
    "Session": historykit.Session,
    "BoundAgent": historykit.BoundAgent,
}
CALLS = [
    (owner, name)
    for owner in PAIRS
    for name, value in vars(getattr(calls, owner)).items()
    if not name.startswith("_") and callable(getattr(value, "__func__", value))
]
HAND_WRITTEN = {"aclose", "open", "Session", "context"}
NOT_THERE = {"agent", "before_save", "after_save"}  # an argument, and hooks of a subclass


class Recorder:
    """Stands for an asynchronous object, and notes how it is called."""

    def __init__(self, original):
        self.original = original
        self.calls = []

    def __getattr__(self, name):
        function = getattr(self.original, name)

        def record(*args, **kwargs):
            inspect.signature(function).bind(*self._placed(function, args), **kwargs)
            self.calls.append((name, args, kwargs))
            return "result"

        async def awaited(*args, **kwargs):
            return record(*args, **kwargs)

        async def generated(*args, **kwargs):
            yield record(*args, **kwargs)

        if inspect.iscoroutinefunction(function):
            return awaited
        return generated if inspect.isasyncgenfunction(function) else record

    def _placed(self, function, args):
        return args if inspect.ismethod(function) else (self, *args)


@pytest.fixture
def portal():
    async def nothing():
        pass

    portal = Portal(nothing)
    yield portal
    portal.close()


def test_the_module_is_current():
    """It is what `python -m tests.sync.blocking` writes."""
    assert outline(TARGET.read_text("utf-8")) == outline(written())


@pytest.mark.parametrize("owner", PAIRS)
def test_every_public_name_is_there(owner):
    """What an asynchronous class has, the blocking one has too."""
    public = {name for name in dir(PAIRS[owner]) if not name.startswith("_")}
    blocking = getattr(sync, owner)
    found = {*dir(blocking), *blocking._ATTRIBUTES, *HAND_WRITTEN}
    enums = {"AttachmentType", "MessageRole", "Reaction", "RunStatus", "SessionStatus"}
    assert public - found - enums - NOT_THERE == set()


@pytest.mark.parametrize(("owner", "name"), CALLS)
def test_a_call_hands_on_all_arguments(owner, name, portal, monkeypatch):
    """Each argument arrives under its name, and the result comes back."""
    original = getattr(PAIRS[owner], name)
    target = Recorder(PAIRS[owner])
    face = getattr(calls, owner)
    monkeypatch.setattr(face, "_portal", portal, raising=False)
    monkeypatch.setattr(face, "_shown", lambda self, result: result)
    subject = object.__new__(face)
    subject._target = target
    if owner == "Session":
        history = calls.History.__new__(calls.History)
        history._own_portal = portal
        history._target = type("Bound", (), {"Session": target})
        monkeypatch.setattr(face, "context", history)
        monkeypatch.setattr(face, "_of", lambda result: result)
    keywords, others = {}, {}
    for parameter in inspect.signature(original).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            others = {"other": "other"}
        elif parameter.name != "self":
            keywords[parameter.name] = f"a {parameter.name}"
    result = getattr(subject, name)(**keywords, **others)
    assert (list(result) if inspect.isgenerator(result) or isinstance(result, map) else result) in (
        "result",
        ["result"],
        None,
    )
    assert target.calls == [(name, (), keywords | others)]
