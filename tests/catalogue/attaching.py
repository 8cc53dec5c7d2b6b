"""What becomes of files that are attached to messages, on a real backend."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from historykit import Content, FileUploadError, ForbiddenError, Message, NotFoundError
from historykit.config import build_config
from historykit.history import History
from historykit.plugins import load_backend
from historykit.records import Retention

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50


class Attaching:
    """Files come with their messages, and go with them."""

    name: str

    @pytest_asyncio.fixture
    async def history(
        self, settings: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[History]:
        """A history of no user in a part of the backend that is new, with a folder for files."""
        work = tmp_path / "work"
        work.mkdir()
        monkeypatch.chdir(work)
        Path("photo.png").write_bytes(PNG)
        Path("notes.txt").write_text("notes")
        spec = load_backend(self.name)
        store = spec.make_store(build_config(spec, settings))
        async with History(store, attachments=tmp_path / "blobs") as history:
            yield history

    async def test_files_are_stored_with_a_message(self, history: History) -> None:
        """Each has name, type and a URL that lasts, and is read through its message."""
        session = await history.Session(id="s1").save()
        made = await session.add_message("user", "", attachments=["photo.png", "notes.txt"])
        for face in (await history.Session.get("s1"), session):
            (message,) = await face.messages()
            assert message == made
            photo, notes = message.attachments or ()
            assert (photo.name, photo.type, photo.mimeType) == ("photo.png", "image", "image/png")
            assert (notes.name, notes.type) == ("notes.txt", "text")
            assert photo.url.startswith("file://")
            assert (await photo.read(), await notes.read()) == (PNG, b"notes")
        (loaded,) = await history.load("s1")
        assert [content.uri for content in loaded.contents] == [photo.url, notes.url]

    async def test_a_file_that_fails_stores_nothing(self, history: History) -> None:
        """Neither the message nor the files before it are stored."""
        session = await history.Session(id="s1").save()
        with pytest.raises(FileUploadError, match=r"Failed to upload file 'no.png' for .*'s1': "):
            await session.add_message("user", "a", attachments=["photo.png", "no.png"])
        assert await session.messages() == []
        assert await stored(history) == 0

    async def test_files_go_with_message_and_session(self, history: History) -> None:
        """Deleting either deletes the bytes of what it has, and no others."""
        session, other = await history.Session().save(), await history.Session().save()
        first = await session.add_message("user", "a", attachments=["photo.png"])
        await session.add_message("user", "b", attachments=["photo.png", "notes.txt"])
        await other.add_message("user", "c", attachments=["photo.png"])
        await session.delete_message(first.id)
        assert await stored(history) == 3
        await session.delete()
        assert await stored(history) == 1
        await history.delete(str(other.id))
        assert await stored(history) == 0

    async def test_a_fork_has_copies(self, history: History) -> None:
        """The files of a fork are its own: they stay when the original is deleted."""
        session = await history.Session(id="s1").save()
        await session.add_message("user", "a", attachments=["photo.png"])
        await session.add_message("user", "b", attachments=["notes.txt"])
        fork = await session.fork(up_to=1)
        assert await stored(history) == 3
        await session.delete()
        (message,) = await fork.messages()
        assert await (message.attachments or ())[0].read() == PNG
        await fork.delete()
        assert await stored(history) == 0

    async def test_nobody_reads_the_files_of_another(self, history: History) -> None:
        """Another user with the URL, and a session of the same id, gets nothing by it."""
        owned = await history.as_user("ada").Session(id="s1").save()
        made = await owned.add_message("user", "a", attachments=["photo.png"])
        (photo,) = made.attachments or ()
        bob = history.as_user("bob")
        session = await bob.Session(id="s1").save()
        with pytest.raises(ForbiddenError):
            await session.add_message("user", "b", attachments=[photo.url])
        link = Content.from_uri(photo.url)
        await bob.provider().save_messages("s1", [Message("user", [link])])
        (message,) = await session.messages()
        with pytest.raises(NotFoundError):
            await (message.attachments or ())[0].read()
        with pytest.raises(NotFoundError):
            await (message.attachments or ())[0].link()
        with pytest.raises(ForbiddenError):
            await bob.sweep_attachments()
        await session.delete()
        assert await photo.read() == PNG

    async def test_the_sweep_frees_what_no_message_has(self, history: History) -> None:
        """What a crash left, and what retention took the messages of; the rest stays."""
        session = await history.as_user("ada").Session(id="s1").save()
        await session.add_message("user", "a", attachments=["notes.txt"])
        kept = await session.add_message("user", "b", attachments=["photo.png"])
        ada = history.as_user("ada")
        answer = [Message("assistant", "c")]
        await ada.append("s1", answer, retention=Retention(2))
        folder = await ada._folder_of(ada.key("s1"))
        assert folder is not None
        await folder.put(io.BytesIO(b"lost"))
        assert [message.content for message in await session.messages()] == ["b", "c"]
        report = await history.sweep_attachments(older_than=0, verify=True)
        assert len(report.orphans) == 2
        assert (report.missing, report.unreadable) == ((), ())
        assert await (kept.attachments or ())[0].read() == PNG
        assert (await history.sweep_attachments(older_than=0)).orphans == ()

    async def test_large_data_is_kept_apart(self, history: History) -> None:
        """A message of an agent comes back as it was, and the record of it is small."""
        data = Content.from_data(b"x" * 5000, "image/png")
        message = Message("user", ["Look", data], message_id="m1")
        provider = history.provider(offload_data_over=1000)
        for _ in range(2):
            await provider.save_messages("s1", [message])
        (row,) = (await history.store.read(history.key("s1"))).messages
        assert len(row.body) < 1000
        (loaded,) = await provider.get_messages("s1")
        assert loaded.to_dict() == message.to_dict()
        (shown,) = await (await history.Session.get("s1")).messages()
        assert await (shown.attachments or ())[0].read() == b"x" * 5000
        await history.delete("s1")
        assert await stored(history) == 0


async def stored(history: History) -> int:
    """How many blobs there are."""
    assert history.attachments is not None
    return len(await history.attachments.store.find(""))
