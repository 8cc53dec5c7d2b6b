from __future__ import annotations

import asyncio
import io
import json
import os
from pathlib import Path

import pytest

from historykit.history import open_history
from historykit.records import MessagePatch
from tests.cli.conftest import Run

STORE = ("--backend", "sqlite", "--set", "path=chat.db")
SWEEP = ("attachments", "sweep", *STORE, "--attachments", "blobs")


@pytest.fixture
def lost(run: Run) -> str:
    """The URL of a blob without a message, in a store that has another one with a message."""
    Path("a.txt").write_text("a")

    async def fill() -> str:
        async with open_history("sqlite", path="chat.db", attachments="blobs") as history:
            chat = await history.Session(id="s").save()
            await chat.add_message("user", "a", attachments=["a.txt"])
            folder = await history._folder_of(history.key("s"))
            assert folder is not None
            return await folder.put(io.BytesIO(b"lost"))

    return asyncio.run(fill())


def test_a_sweep_deletes_what_no_message_has(run: Run, lost: str) -> None:
    """It names what it deletes; what is young is left alone unless that is asked for."""
    done = run(*SWEEP)
    assert done.exit_code == 0
    assert done.stdout == "0 of 2 files deleted, 0 bytes; 1 without a message are too young\n"
    done = run(*SWEEP, "--older-than", "0", "--dry-run")
    assert done.stdout.splitlines() == [
        lost,
        "1 of 2 files would be deleted, 4 bytes; 0 without a message are too young",
    ]
    assert run(*SWEEP, "--older-than", "0").stdout.splitlines()[0] == lost
    assert not Path(lost.removeprefix("file://")).exists()


def test_a_sweep_prints_json(run: Run, lost: str) -> None:
    """For programs there are all fields of the report."""
    report = json.loads(run(*SWEEP, "--older-than", "0", "--json").stdout)
    assert (report["orphans"], report["blobs"]) == ([lost], 2)


def test_what_is_wrong_is_said(run: Run, lost: str) -> None:
    """A message without its file, or that cannot be read, is named, and the exit code is 1."""
    for path in Path("blobs").rglob("*-*"):
        if path.is_file():
            os.unlink(path)
    done = run(*SWEEP, "--verify")
    assert done.exit_code == 1
    assert "of session 's' is without file://" in done.stderr

    async def damage() -> None:
        async with open_history("sqlite", path="chat.db") as history:
            (message,) = await (await history.Session.get("s")).messages()
            patch = MessagePatch(body=b"\xfe", digest=b"\0" * 16)
            await history.store.update_message(history.key("s"), message.id, patch)

    asyncio.run(damage())
    done = run(*SWEEP, "--verify")
    assert done.exit_code == 1
    assert "session 's' has a message that cannot be read" in done.stderr


def test_a_sweep_needs_a_place(run: Run) -> None:
    """Without one, the error names the ways to name it; the environment is one."""
    done = run("attachments", "sweep", "--backend", "memory")
    assert done.exit_code == 2
    assert "HISTORYKIT_ATTACHMENTS" in done.stderr
    done = run("attachments", "sweep", "--backend", "memory", HISTORYKIT_ATTACHMENTS="blobs")
    assert done.exit_code == 0
