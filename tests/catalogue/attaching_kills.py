"""What is left of a process that was killed while it stored or deleted files."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import historykit

PROGRAM = """
import asyncio, json, os, signal, sys
import historykit
from historykit.attachment_folders import AttachmentFolder

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

async def main(backend, settings, moment):
    async with historykit.open_history(backend, attachments="blobs", **settings) as history:
        chat = await history.Session(id="s1").save()
        first = await chat.add_message("user", "kept", attachments=["notes.txt"])
        second = await chat.add_message("user", "deleted", attachments=["notes.txt"])
        if moment == "between bytes and row":
            history.store._append = die
            await chat.add_message("user", "never", attachments=["notes.txt"])
        AttachmentFolder.delete = die
        await chat.delete_message(second.id)

asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]))
"""


class Killed:
    """No message is without its files, and the sweep deletes what no message has."""

    name: str

    async def test_killed_between_bytes_and_row(
        self, settings: Mapping[str, Any], tmp_path: Path
    ) -> None:
        """The bytes are there without a message; the sweep reports and deletes them."""
        assert await left(self.name, settings, tmp_path, "between bytes and row") == [
            "kept",
            "deleted",
        ]

    async def test_killed_between_row_and_bytes(
        self, settings: Mapping[str, Any], tmp_path: Path
    ) -> None:
        """The message is gone and its bytes are left; the sweep reports and deletes them."""
        assert await left(self.name, settings, tmp_path, "between row and bytes") == ["kept"]


async def left(name: str, settings: Mapping[str, Any], folder: Path, moment: str) -> list[str]:
    """Kill a process at a moment, sweep, and return what the messages say that are left."""
    (folder / "notes.txt").write_text("notes")
    command = [sys.executable, "-c", PROGRAM, name, json.dumps(settings), moment]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    async with historykit.open_history(name, attachments=folder / "blobs", **settings) as history:
        found = await history.sweep_attachments(older_than=0, verify=True, dry_run=True)
        assert (len(found.orphans), found.missing) == (1, ())
        report = await history.sweep_attachments(older_than=0, verify=True)
        assert report.orphans == found.orphans
        messages = await (await history.Session.get("s1")).messages()
        for message in messages:
            assert [await each.read() for each in message.attachments or ()] == [b"notes"]
        after = await history.sweep_attachments(older_than=0, verify=True)
        assert (after.blobs, after.orphans, after.missing) == (len(messages), (), ())
    return [message.content for message in messages]
