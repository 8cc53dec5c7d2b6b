from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from historykit.cli.commands import historykit

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in an empty folder; keywords are variables of its environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("HISTORYKIT_BACKEND", "HISTORYKIT_NAMESPACE", "HISTORYKIT_USER_ID"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, input: str | bytes | None = None, **variables: str) -> Result:
        return CliRunner().invoke(historykit, arguments, input=input, env=variables)

    return run


@pytest.fixture
def sample() -> str:
    """A file with three conversations of chat completions."""
    return str(Path(__file__).parents[1] / "core" / "conversations.jsonl")
