from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import historykit
from historykit import (
    Content,
    ForbiddenError,
    History,
    InvalidRequestError,
    Message,
    NotFoundError,
    ResourceError,
    resolve_attachments,
)
from historykit.attachment_sweep import MissingAttachment, SweepReport
from historykit.records import MessagePatch, Retention

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("notes")
    return tmp_path


@pytest_asyncio.fixture(params=["memory", "sqlite"])
async def history(request: pytest.FixtureRequest) -> AsyncIterator[History]:
    settings = {"path": "chat.db"} if request.param == "sqlite" else {}
    async with historykit.open_history(request.param, attachments="blobs", **settings) as history:
        yield history


async def stored(history: History) -> list[str]:
    assert history.attachments is not None
    return [blob.key for blob in await history.attachments.store.find("")]


async def put(history: History, session: str, data: bytes = b"lost") -> str:
    """Store a blob for a session, as an add does that never comes to its message."""
    folder = await history._folder_of(history.key(session))
    assert folder is not None
    return await folder.put(io.BytesIO(data))


async def test_what_a_message_has_stays(history: History) -> None:
    """Attachments and data of messages, of all users and streams, are no orphans."""
    ada = history.as_user("ada")
    for view in (history, ada):
        chat = await view.Session(id="s").save()
        await chat.add_message("user", "a", attachments=["notes.txt"])
        audit = view.provider(stream="audit", offload_data_over=10)
        content = Content.from_data(b"x" * 100, "image/png")
        await audit.save_messages("s", [Message("user", [content])])
    report = await history.sweep_attachments(older_than=0, verify=True)
    assert report == SweepReport(
        blobs=4,
        orphans=(),
        orphan_bytes=0,
        young=0,
        missing=(),
        unreadable=(),
        dry_run=False,
    )
    assert len(await stored(history)) == 4


async def test_what_no_message_has_is_deleted(history: History) -> None:
    """Blobs of sessions that are and that were, and those of no session, with their size."""
    chat = await history.Session(id="s").save()
    message = await chat.add_message("user", "a", attachments=["notes.txt"])
    await history.Session(id="gone").save()
    lost = {await put(history, "s"), await put(history, "gone")}
    await history.store.delete_session(history.key("gone"))
    await history.Session(id="gone").save()
    (loose,) = await resolve_attachments(history.as_user("ada"), ["notes.txt"])
    report = await history.sweep_attachments(older_than=0)
    assert set(report.orphans) == {*lost, loose["url"]}
    assert (report.blobs, report.orphan_bytes) == (4, 4 + 4 + 5)
    assert await (message.attachments or ())[0].read() == b"notes"
    assert len(await stored(history)) == 1
    assert (await history.sweep_attachments(older_than=0)).orphans == ()


async def test_a_dry_run_deletes_nothing(history: History) -> None:
    """It reports what a sweep would delete."""
    await history.Session(id="s").save()
    lost = await put(history, "s")
    report = await history.sweep_attachments(older_than=0, dry_run=True)
    assert (report.orphans, report.dry_run) == ((lost,), True)
    assert len(await stored(history)) == 1


async def test_what_is_young_may_still_get_its_message(history: History) -> None:
    """Nothing is deleted that is younger than was said: an hour, by default."""
    await history.Session(id="s").save()
    lost = await put(history, "s")
    report = await history.sweep_attachments()
    assert (report.orphans, report.young) == ((), 1)
    path = lost.removeprefix("file://")
    os.utime(path, (os.stat(path).st_mtime - 3700,) * 2)
    assert (await history.sweep_attachments()).orphans == (lost,)
    with pytest.raises(InvalidRequestError, match="older_than"):
        await history.sweep_attachments(older_than=-1)


async def test_messages_that_retention_took_leave_their_bytes_to_the_sweep(
    history: History,
) -> None:
    """What is trimmed in the store is freed by the next sweep."""
    chat = await history.Session(id="s").save()
    await chat.add_message("user", "a", attachments=["notes.txt"])
    await history.append("s", [Message("user", "b")], retention=Retention(1))
    assert [message.content for message in await chat.messages()] == ["b"]
    assert len(await stored(history)) == 1
    assert len((await history.sweep_attachments(older_than=0)).orphans) == 1
    assert await stored(history) == []


async def test_a_message_without_bytes_is_reported(history: History) -> None:
    """Where somebody deleted a blob, the report names its message, if sessions are verified."""
    chat = await history.as_user("ada").Session(id="s").save()
    message = await chat.add_message("user", "a", attachments=["notes.txt"])
    (attachment,) = message.attachments or ()
    await chat.add_message("user", "b", attachments=["notes.txt"])
    Path(attachment.url.removeprefix("file://")).unlink()
    with pytest.raises(NotFoundError):
        await attachment.read()
    missing = MissingAttachment(
        user_id="ada", session_id="s", message_id=message.id, url=attachment.url
    )
    assert (await history.sweep_attachments()).missing == (missing,)
    for blob in await stored(history):
        Path("blobs", blob).unlink()
    assert (await history.sweep_attachments()).missing == ()
    assert len((await history.sweep_attachments(verify=True)).missing) == 2


async def test_what_comes_and_goes_during_a_sweep_is_no_loss(history: History) -> None:
    """A message that is added after the blobs were listed, or deleted, is not reported."""
    assert history.attachments is not None
    chat = await history.Session(id="s").save()
    old = await chat.add_message("user", "a", attachments=["notes.txt"])
    store: Any = history.attachments.store
    find, exists = store.find, store.exists

    async def finding(folder: str) -> Any:
        await find(folder)
        await chat.add_message("user", "late", attachments=["notes.txt"])
        Path((old.attachments or ())[0].url.removeprefix("file://")).unlink()
        return []

    async def deleting(key: str) -> Any:
        if key in (old.attachments or ())[0].url:
            await history.store.delete_session(history.key("s"))
        return await exists(key)

    store.find, store.exists = finding, deleting
    report = await history.sweep_attachments(older_than=0, verify=True)
    assert (report.missing, report.orphans) == ((), ())


async def test_nothing_is_deleted_of_a_session_that_cannot_be_read(history: History) -> None:
    """A message that cannot be read may have any of the blobs."""
    chat = await history.Session(id="s").save()
    message = await chat.add_message("user", "a", attachments=["notes.txt"])
    await put(history, "s")
    patch = MessagePatch(body=b"\xfedamaged", digest=b"\0" * 16)
    await history.store.update_message(history.key("s"), message.id, patch)
    report = await history.sweep_attachments(older_than=0)
    assert (report.orphans, report.unreadable) == ((), (history.key("s"),))
    assert len(await stored(history)) == 2


async def test_long_sessions_are_read_to_their_end(history: History) -> None:
    """A blob of a message on a later page is no orphan."""
    chat = await history.Session(id="s").save()
    await history.append("s", [Message("user", "a")] * 501)
    await chat.add_message("user", "b", attachments=["notes.txt"])
    assert (await history.sweep_attachments(older_than=0)).orphans == ()


async def test_another_store_or_namespace_is_left_alone(history: History) -> None:
    """Histories may share a place: each sweep sees what is its own."""
    async with historykit.open_history("memory", attachments="blobs") as other:
        await resolve_attachments(other, ["notes.txt"])
        elsewhere = History(history.store, namespace="n", attachments="blobs")
        await resolve_attachments(elsewhere, ["notes.txt"])
        assert (await history.sweep_attachments(older_than=0)).blobs == 0
        assert len(await stored(history)) == 2
        assert len((await elsewhere.sweep_attachments(older_than=0)).orphans) == 1
        assert len((await other.sweep_attachments(older_than=0)).orphans) == 1


async def test_one_user_sweeps_nothing(history: History) -> None:
    """A history of one user does not see what others have, and is refused."""
    with pytest.raises(ForbiddenError, match="'ada'"):
        await history.as_user("ada").sweep_attachments()
    async with historykit.open_history("memory") as bare:
        with pytest.raises(ResourceError, match="keeps no attachments"):
            await bare.sweep_attachments()


KILLED = """
import asyncio, io, os, signal
import historykit
from historykit.attachment_folders import AttachmentFolder

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

class Dying(io.BytesIO):
    def read(self, size=-1):
        if self.tell():
            die()
        return super().read(4)

async def main():
    async with historykit.open_history("sqlite", path="chat.db", attachments="blobs") as history:
        chat = await history.Session.get_or_create("s")
        before = await chat.add_message("user", "before", attachments=["notes.txt"])
        {then}

asyncio.run(main())
"""

MOMENTS = {
    "while the bytes come": """
        folder = await history._folder_of(history.key("s"))
        await folder.put(Dying(b"never whole"))""",
    "between bytes and row": """
        history.store._append = die
        await chat.add_message("user", "never", attachments=["notes.txt", "notes.txt"])""",
    "between bytes and row of a fork": """
        history.store._append = die
        await chat.fork()""",
    "between data and row": """
        history.store._append = die
        from historykit import Content, Message
        provider = history.provider(offload_data_over=10)
        data = Content.from_data(b"x" * 100, "image/png")
        await provider.save_messages("s", [Message("user", [data])])""",
    "between row and bytes of a message": """
        AttachmentFolder.delete = die
        await chat.delete_message(before.id)""",
    "between row and bytes of a session": """
        AttachmentFolder.delete_all = die
        await chat.delete()""",
}
"""What a process does when it is killed, and how many blobs no message has then."""

LEFT = {
    "while the bytes come": 1,
    "between bytes and row": 2,
    "between bytes and row of a fork": 1,
    "between data and row": 1,
    "between row and bytes of a message": 1,
    "between row and bytes of a session": 1,
}


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_kill_leaves_no_message_without_its_bytes(moment: str) -> None:
    """Whenever a process is killed, the sweep reports what is left over, and deletes it."""
    code = KILLED.replace("{then}", MOMENTS[moment].strip())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    async with historykit.open_history("sqlite", path="chat.db", attachments="blobs") as history:
        found = await history.sweep_attachments(older_than=0, verify=True, dry_run=True)
        assert (len(found.orphans), found.missing) == (LEFT[moment], ())
        half = ["/incoming/" in url for url in found.orphans]
        assert any(half) == (moment == "while the bytes come")
        report = await history.sweep_attachments(older_than=0, verify=True)
        assert report.orphans == found.orphans
        sessions = [session async for session in history.Session.iterate()]
        messages = [message for session in sessions for message in await session.messages()]
        urls = [each.url for message in messages for each in message.attachments or ()]
        assert len(urls) == len(await stored(history))
        for message in messages:
            assert [await each.read() for each in message.attachments or ()] == [b"notes"]
        assert (await history.sweep_attachments(older_than=0, verify=True)).orphans == ()
