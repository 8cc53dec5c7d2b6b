from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from historykit.backends import BackendSpec
from historykit.capabilities import Capability, Guarantee
from historykit.memory import MemoryConfig, MemoryStore
from historykit.plugins import register, unregister
from historykit.redaction import redacted_repr, secret
from historykit.store import Clock, system_clock
from tests.cli.conftest import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class AcmeConfig:
    __repr__ = redacted_repr

    url: str
    key: str | None = secret(default=None)
    limit: int | None = None


class AcmeStore(MemoryStore):
    backend = "acme"

    def __init__(self, config: AcmeConfig, *, clock: Clock = system_clock) -> None:
        super().__init__(MemoryConfig(), clock=clock)
        self.capabilities = frozenset({Capability.EDIT})
        self.guarantees = frozenset({Guarantee.SHARED})


def broken() -> type[MemoryStore]:
    raise RuntimeError("out of order")


@pytest.fixture(autouse=True)
def backends() -> Iterator[None]:
    """A backend that works, with secrets, and one that does not."""
    register(
        BackendSpec(
            name="acme",
            store=lambda: AcmeStore,
            config=lambda: AcmeConfig,
            capabilities=frozenset(Capability),
            guarantees=frozenset({Guarantee.SHARED}),
            summary="for this test",
        )
    )
    register(BackendSpec(name="broken", store=broken, config=lambda: MemoryConfig))
    yield
    unregister("acme")
    unregister("broken")


def test_backends_are_listed(run: Run) -> None:
    """Each with its source, what it can do at best, and its summary."""
    result = run("backends")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert "this program" in lines["acme"]
    assert "CATALOGUE EDIT RUNS" in lines["acme"]
    assert lines["acme"].split(maxsplit=7)[6:] == ["SHARED", "for this test"]
    assert lines["memory"].split()[1] == "historykit"
    assert {"acme", "broken", "memory", "sqlite"} <= set(lines)


def test_a_broken_backend_is_listed_with_its_reason(run: Run) -> None:
    """It does not end the listing, which exits with 0."""
    result = run("backends")
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("broken"))
    assert "RuntimeError: out of order" in line


def test_backends_as_json(run: Run) -> None:
    """The same for programs."""
    found = {each["name"]: each for each in json.loads(run("backends", "--json").stdout)}
    assert found["acme"] == {
        "name": "acme",
        "distribution": None,
        "version": None,
        "loads": True,
        "error": None,
        "capabilities": ["CATALOGUE", "EDIT", "RUNS"],
        "guarantees": ["SHARED"],
        "api_version": 1,
        "summary": "for this test",
    }
    assert found["broken"]["loads"] is False
    assert "out of order" in found["broken"]["error"]
    assert found["broken"]["capabilities"] == []


def test_a_store_is_checked(run: Run) -> None:
    """The server, the settings without secrets, and what this store can do here."""
    settings = ("--set", "url=acme://ada:hunter2@db", "--set", "key=hunter2")
    result = run("check", "acme", *settings)
    assert result.exit_code == 0
    lines = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
    assert lines[0] == ["backend", "acme"]
    assert lines[1] == ["server", "memory", "1"]
    assert ["setting:", "url", "acme://ada:***@db"] in lines
    assert ["setting:", "key", "***"] in lines
    assert ["setting:", "limit", "None"] in lines
    assert ["capability:", "EDIT", "yes"] in lines
    assert ["capability:", "RUNS", "no"] in lines
    assert ["guarantee:", "SHARED", "yes"] in lines
    assert ["guarantee:", "SURVIVES_KILL", "no"] in lines
    assert "hunter2" not in result.output


def test_a_check_as_json(run: Run) -> None:
    """The same for programs."""
    result = run("check", "acme", "--set", "url=acme://db", "--json")
    found = json.loads(result.stdout)
    assert found["server"] == {"product": "memory", "version": "1", "settings": {}}
    assert found["settings"] == {"url": "acme://db", "key": None, "limit": None}
    assert found["capabilities"] == {"EDIT": True, "CATALOGUE": False, "RUNS": False}
    assert found["guarantees"]["SHARED"] is True


def test_the_configured_store_is_checked(run: Run) -> None:
    """Without a name, it is the backend of the configuration."""
    variables = {"HISTORYKIT_BACKEND": "sqlite", "HISTORYKIT_SQLITE_PATH": "chat.db"}
    result = run("check", "--set", "create=true", **variables)
    assert result.exit_code == 0
    assert "server: journal_mode" in result.stdout


def test_a_store_that_does_not_open_exits_with_2(run: Run) -> None:
    """The error is the one of the store."""
    result = run("check", "sqlite", "--set", "path=no/such/folder/chat.db")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no/such/folder" in result.stderr
