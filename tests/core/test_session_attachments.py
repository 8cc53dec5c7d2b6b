from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import historykit
from historykit import (
    ConflictError,
    Content,
    FileUploadError,
    History,
    InvalidRequestError,
    Message,
    NotFoundError,
    ResourceError,
    SessionMessageAttachment,
    StorageUnavailableError,
    TooLargeError,
)
from historykit.attachment_store import FsspecAttachmentStore
from historykit.errors import CorruptRecordError
from historykit.ids import new_id
from historykit.memory import MemoryStore
from historykit.records import MessagePatch

pytestmark = pytest.mark.asyncio

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("photo.png").write_bytes(PNG)
    Path("notes.txt").write_text("notes")
    return tmp_path


@pytest_asyncio.fixture(params=["memory", "sqlite"])
async def history(request: pytest.FixtureRequest) -> AsyncIterator[History]:
    settings = {"path": "chat.db"} if request.param == "sqlite" else {}
    async with historykit.open_history(
        request.param, attachments=f"memory://{new_id()}", **settings
    ) as history:
        yield history


class FailingStore(MemoryStore):
    """Raises an error in place of an append, or after it."""

    error: BaseException | None = None
    after = False

    async def _append(self, request: Any) -> Any:
        if self.error is not None and not self.after:
            raise self.error
        receipt = await super()._append(request)
        if self.error is not None:
            raise self.error
        return receipt


@pytest_asyncio.fixture
async def failing() -> AsyncIterator[History]:
    async with History(FailingStore(), attachments=f"memory://{new_id()}") as history:
        yield history


async def stored(history: History) -> list[str]:
    assert history.attachments is not None
    store = history.attachments.store
    return sorted(store.url(blob.key) for blob in await store.find(""))


def urls(*messages: Any) -> list[str]:
    return sorted(
        attachment.url
        for message in messages
        for attachment in message.attachments or ()
        if not attachment.url.startswith("https:")
    )


async def test_a_message_keeps_its_files(history: History) -> None:
    """A file that is added with a message is read with it again, by whoever reads the message."""
    chat = await history.Session(agent="a").save()
    added = await chat.add_message("user", "Look", attachments=["photo.png", "https://e/a.wav"])
    (message,) = await (await history.Session.get(str(chat.id))).messages()
    assert message == added
    photo, sound = message.attachments or ()
    assert (photo.name, photo.type, photo.mimeType) == ("photo.png", "image", "image/png")
    assert await photo.read() == PNG
    assert [piece async for piece in photo.stream()] == [PNG]
    assert await photo.link() == photo.url
    assert await sound.link(expires=5) == "https://e/a.wav"
    with pytest.raises(ResourceError, match="fetch it from where it is"):
        await sound.read()


async def test_an_attachment_that_is_kept_elsewhere(history: History, tmp_path: Path) -> None:
    """The error says how the history has to be opened, whether it has a place of its own or not."""
    chat = await history.Session(id="s1").save()
    await chat.add_message("user", "Look", attachments=["photo.png"])
    for place, says in ((None, "is opened without"), (tmp_path / "b", "keeps its attachments in")):
        other = History(history.store, attachments=place)
        (message,) = await (await other.Session.get("s1")).messages()
        (photo,) = message.attachments or ()
        with pytest.raises(ResourceError, match=f"which {says}.*open it with attachments="):
            await photo.read()


async def test_empty_content_with_a_file_is_a_message(history: History) -> None:
    """A clip may be the prompt; a message with neither content nor attachment is refused."""
    chat = await history.Session().save()
    message = await chat.add_message("user", "", attachments=["photo.png"])
    assert (message.content, len(message.attachments or ())) == ("", 1)
    with pytest.raises(InvalidRequestError, match="content or attachments"):
        await chat.add_message("user", "", attachments=[])


async def test_deprecated_files_warn_at_the_line_that_adds_the_message(history: History) -> None:
    """The warning points into the caller's file, however deep it comes from."""
    chat = await history.Session().save()
    with pytest.warns(DeprecationWarning, match="`files` is deprecated") as caught:
        message = await chat.add_message("user", "x", files=["photo.png"])
    assert [warning.filename for warning in caught] == [__file__]
    assert [each.name for each in message.attachments or ()] == ["photo.png"]


async def test_a_file_that_fails_adds_no_message(history: History) -> None:
    """The error names file and session; neither a message nor bytes are stored."""
    chat = await history.Session(id="s1").save()
    with pytest.raises(
        FileUploadError, match=r"^Failed to upload file 'no.png' for session 's1': "
    ):
        await chat.add_messages(
            [
                {"role": "user", "content": "a", "attachments": ["photo.png"]},
                {"role": "user", "content": "b", "attachments": ["photo.png", "no.png"]},
            ]
        )
    assert await chat.messages() == []
    assert await stored(history) == []


async def test_a_message_that_is_wrong_stores_no_bytes(history: History) -> None:
    """Arguments are looked at before the first file is read."""
    chat = await history.Session().save()
    with pytest.raises(InvalidRequestError, match="role must be"):
        await chat.add_messages(
            [
                {"role": "user", "content": "a", "attachments": ["missing.png"]},
                {"role": "system", "content": "b"},
            ]
        )


async def test_what_cannot_be_encoded_leaves_no_bytes(history: History) -> None:
    """Where the message is refused after its bytes were stored, they are deleted."""
    chat = await history.Session().save()
    with pytest.raises(historykit.EncodeError):
        await chat.add_message("user", "a", attachments=[{"path": "photo.png", "more": object()}])
    assert await stored(history) == []


async def test_a_session_that_is_gone_gets_no_bytes(history: History) -> None:
    """Adding to a session that somebody deleted leaves nothing behind."""
    chat = await history.Session().save()
    await history.delete(str(chat.id))
    with pytest.raises(NotFoundError):
        await chat.add_message("user", "a", attachments=["photo.png"])
    assert await stored(history) == []


async def test_a_session_without_memory_keeps_no_bytes(history: History) -> None:
    """Where no message is stored, no attachment is."""
    chat = await history.Session(memory_enabled=False).save()
    message = await chat.add_message("user", "a", attachments=["photo.png"])
    assert message.sequence == 0
    assert await stored(history) == []


async def test_deleting_a_message_deletes_its_files(history: History) -> None:
    """The bytes go with the message, and with all of a turn; those of others stay."""
    chat = await history.Session().save()
    first = await chat.add_message("user", "1", attachments=["photo.png"])
    second = await chat.add_message("user", "2", attachments=["photo.png"])
    answer = await chat.add_message("assistant", "3", attachments=["photo.png"])
    third = await chat.add_message("user", "4", attachments=["photo.png"])
    await chat.delete_message(first.id)
    assert await stored(history) == urls(second, answer, third)
    await chat.delete_message(answer.id, cascade="turn")
    assert await stored(history) == urls(third)
    (photo,) = first.attachments or ()
    with pytest.raises(NotFoundError):
        await photo.read()
    with pytest.raises(NotFoundError):
        await chat.delete_message(first.id)


async def test_what_another_message_has_too_stays(history: History) -> None:
    """As where an assistant repeats the URL; the bytes go with the last message that has them."""
    session = await history.Session().save()
    first = await session.add_message("user", "look", attachments=["notes.txt"])
    assert first.attachments is not None
    echo = await session.add_message("assistant", first.attachments[0].url)
    await session.delete_message(echo.id)
    assert await first.attachments[0].read() == b"notes"
    await session.delete_message(first.id)
    report = await history.sweep_attachments(older_than=0)
    assert (report.blobs, report.missing) == (0, ())


async def test_what_an_unreadable_message_may_have_stays(history: History) -> None:
    """It is left to the sweep, once the message can be read again or is gone."""
    session = await history.Session().save()
    first = await session.add_message("user", "look", attachments=["notes.txt"])
    second = await session.add_message("user", "damaged")
    patch = MessagePatch(body=b"\xff", digest=bytes(16))
    await history.store.update_message(history.key(session.id or ""), second.id, patch)
    await session.delete_message(first.id)
    await session.delete_message(second.id)
    assert (await history.sweep_attachments(older_than=0)).blobs == 1


async def test_a_message_whose_record_is_damaged_can_be_deleted(history: History) -> None:
    """What it has attached cannot be known then, and is left to the sweep."""
    chat = await history.Session().save()
    message = await chat.add_message("user", "1", attachments=["photo.png"])
    patch = MessagePatch(body=b"\xfedamaged", digest=b"\0" * 16)
    await history.store.update_message(history.key(str(chat.id)), message.id, patch)
    await chat.delete_message(message.id)
    assert await chat.messages() == []
    assert len(await stored(history)) == 1
    assert len((await history.sweep_attachments(older_than=0)).orphans) == 1
    assert await stored(history) == []


async def test_deleting_a_session_deletes_its_files(history: History) -> None:
    """Whoever deletes it; a session of the same id that comes later has none of them."""
    chat = await history.Session(id="s").save()
    other = await history.Session(id="t").save()
    await chat.add_message("user", "1", attachments=["photo.png"])
    kept = await other.add_message("user", "1", attachments=["photo.png"])
    await chat.delete()
    assert await stored(history) == urls(kept)
    await history.delete("t")
    assert await stored(history) == []
    again = await history.Session(id="s").save()
    assert await again.messages() == []


async def test_a_session_of_another_user_is_deleted_with_its_files(history: History) -> None:
    """A history of no user finds the sessions of all, and deletes their bytes too."""
    ada = history.as_user("ada")
    chat = await ada.Session(id="s").save()
    await chat.add_message("user", "1", attachments=["photo.png"])
    (found,) = await history.Session.search(user_id="ada")
    (message,) = await found.messages()
    assert await (message.attachments or ())[0].read() == PNG
    await found.delete()
    assert await stored(history) == []


async def test_a_fork_has_copies_of_its_own(history: History) -> None:
    """Each session has its blobs: what becomes of one is nothing to the other."""
    chat = await history.Session(id="s").save()
    await chat.add_message("user", "1", attachments=["photo.png", "https://e/a.png"])
    await chat.add_message("user", "2", attachments=["notes.txt"])
    fork = await chat.fork(id="f", up_to=1)
    (message,) = await fork.messages()
    photo, hosted = message.attachments or ()
    assert (photo.name, hosted.url) == ("photo.png", "https://e/a.png")
    assert urls(message, *await chat.messages()) == await stored(history)
    await chat.delete()
    assert await photo.read() == PNG
    assert (await history.sweep_attachments(older_than=0)).orphans == ()
    await fork.delete()
    assert await stored(history) == []


async def test_a_fork_that_is_not_made_leaves_no_copies(history: History) -> None:
    """Where a session of that id exists, nothing is copied; a damaged message copies nothing."""
    chat = await history.Session(id="s").save()
    message = await chat.add_message("user", "1", attachments=["photo.png"])
    await chat.add_message("user", "2", attachments=["photo.png"])
    with pytest.raises(ConflictError):
        await chat.fork(id="s")
    patch = MessagePatch(body=b"\xfedamaged", digest=b"\0" * 16)
    await history.store.update_message(history.key("s"), message.id, patch)
    with pytest.raises(CorruptRecordError):
        await chat.fork()
    assert len(await stored(history)) == 2


async def test_a_fork_into_a_session_that_somebody_just_made_leaves_no_copies(
    failing: History,
) -> None:
    """Another writer that takes the id first keeps it, and the copies are deleted."""
    chat = await failing.Session(id="s").save()
    await chat.add_message("user", "1", attachments=["photo.png"])
    append = failing.store._append

    async def late(request: Any) -> Any:
        await failing.Session(id="f").save()
        return await append(request)

    failing.store._append = late  # type: ignore[method-assign]
    with pytest.raises(ConflictError):
        await chat.fork(id="f")
    assert len(await stored(failing)) == 1
    assert await (await failing.Session.get("f")).messages() == []


async def test_a_fork_that_may_have_been_made_keeps_its_copies(failing: History) -> None:
    """Where the store did not answer, the copies may have messages: the sweep decides."""
    chat = await failing.Session(id="s").save()
    await chat.add_message("user", "1", attachments=["photo.png"])
    store: Any = failing.store
    store.error, store.after = StorageUnavailableError("gone"), True
    with pytest.raises(StorageUnavailableError):
        await chat.fork(id="f")
    store.error = None
    assert len((await failing.sweep_attachments(older_than=0)).orphans) == 0
    (message,) = await (await failing.Session.get("f")).messages()
    assert await (message.attachments or ())[0].read() == PNG


@pytest.mark.parametrize("error", [TooLargeError("large"), InvalidRequestError("wrong")])
async def test_a_row_that_is_refused_frees_its_bytes(failing: History, error: Exception) -> None:
    """What certainly was not stored leaves nothing behind."""
    chat = await failing.Session().save()
    failing.store.error = error  # type: ignore[attr-defined]
    with pytest.raises(type(error)):
        await chat.add_message("user", "a", attachments=["photo.png"])
    assert await stored(failing) == []


@pytest.mark.parametrize("after", [False, True])
async def test_a_row_of_unknown_fate_keeps_its_bytes(failing: History, after: bool) -> None:
    """Where the store did not answer, the message may be there: the sweep finds out."""
    chat = await failing.Session().save()
    store: Any = failing.store
    store.error, store.after = StorageUnavailableError("gone"), after
    with pytest.raises(StorageUnavailableError):
        await chat.add_message("user", "a", attachments=["photo.png"])
    store.error = None
    messages = await chat.messages()
    assert len(messages) == after
    assert len(await stored(failing)) == 1
    report = await failing.sweep_attachments(older_than=0)
    assert (len(report.orphans), report.missing) == (not after, ())
    assert await stored(failing) == urls(*messages)


async def test_a_cancelled_add_leaves_no_row_without_bytes(history: History) -> None:
    """Whenever the caller goes away: a message that is there has its bytes."""
    chat = await history.Session().save()
    for pause in range(12):
        task = asyncio.create_task(chat.add_message("user", "a", attachments=["photo.png"] * 2))
        await asyncio.sleep(pause / 1000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0.05)
    for message in await chat.messages():
        assert [await each.read() for each in message.attachments or ()] == [PNG, PNG]
    report = await history.sweep_attachments(older_than=0, verify=True)
    assert report.missing == ()
    assert await stored(history) == urls(*await chat.messages())


async def test_an_attachment_of_a_message_can_be_attached_again(history: History) -> None:
    """What was read with its message goes to another session of the store, as a copy."""
    chat, other = await history.Session().save(), await history.Session().save()
    sent = await chat.add_message("user", "a", attachments=["photo.png", "https://e/a.png"])
    again = await other.add_message("user", "b", attachments=sent.attachments)
    own = await chat.add_message("user", "c", attachments=[{"url": urls(sent)[0]}])
    assert [each.name for each in again.attachments or ()] == ["photo.png", "a.png"]
    assert len({*urls(sent, again, own)}) == 3
    await chat.delete()
    assert await (again.attachments or ())[0].read() == PNG


async def test_the_url_alone_opens_no_other_session(history: History) -> None:
    """Neither adding it, nor a message that was saved with it, makes somebody's file readable."""
    secret = await (await history.as_user("ada").Session(id="s").save()).add_message(
        "user", "a", attachments=["photo.png"]
    )
    (url,) = urls(secret)
    bob = history.as_user("bob")
    chat = await bob.Session(id="s").save()
    for entry in (url, {"url": url}, SessionMessageAttachment(url)):
        with pytest.raises(historykit.ForbiddenError):
            await chat.add_message("user", "b", attachments=[entry])
    await bob.provider().save_messages("s", [Message("user", [Content.from_uri(url)])])
    (message,) = await chat.messages()
    (stolen,) = message.attachments or ()
    assert stolen.url == url
    for attempt in (stolen.read, stolen.link):
        with pytest.raises(NotFoundError):
            await attempt()
    await chat.delete_message(message.id)
    await bob.provider().save_messages("s", [Message("user", [Content.from_uri(url)])])
    await chat.fork()
    await chat.delete()
    assert await (secret.attachments or ())[0].read() == PNG


async def test_an_attachment_needs_its_message(history: History) -> None:
    """A link is given through a message that is there, and by what was read with one."""
    chat = await history.Session().save()
    message = await chat.add_message("user", "a", attachments=["photo.png"])
    (photo,) = message.attachments or ()
    for other in (
        copy.deepcopy(photo),
        pickle.loads(pickle.dumps(photo)),
        SessionMessageAttachment.from_dict(photo.to_dict()),
    ):
        assert other == photo
        with pytest.raises(ResourceError, match="not read with its message"):
            await other.link()
        with pytest.raises(ResourceError, match="not read with its message"):
            await other.read()
    (other,) = (await chat.add_message("user", "b", attachments=["photo.png"])).attachments or ()
    photo.url = other.url
    with pytest.raises(NotFoundError, match="has no attachment"):
        await photo.read()
    await history.store.delete_session(history.key(str(chat.id)))
    with pytest.raises(NotFoundError):
        await other.link()


async def test_a_link_is_signed_where_the_place_can(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record keeps the stable URL, and each link is made when it is asked for."""

    async def sign(self: Any, key: str, *, expires: float) -> str:
        return f"https://signed/{key}?{expires}"

    chat = await history.Session().save()
    await chat.add_message("user", "a", attachments=["photo.png"])
    monkeypatch.setattr(FsspecAttachmentStore, "link", sign)
    (message,) = await chat.messages()
    (photo,) = message.attachments or ()
    assert photo.url.startswith("memory://")
    assert (await photo.link(expires=5)).startswith("https://signed/")


async def test_a_history_without_attachments_takes_links_only(here: Path) -> None:
    """Without a place for bytes messages can have links, and everything else works as ever."""
    async with historykit.open_history("memory") as history:
        chat = await history.Session().save()
        message = await chat.add_message("user", "a", attachments=["https://e/a.png"])
        assert await (message.attachments or ())[0].link() == "https://e/a.png"
        with pytest.raises(FileUploadError, match="keeps no attachments"):
            await chat.add_message("user", "a", attachments=["photo.png"])
        fork = await chat.fork()
        await chat.delete_message(message.id)
        await fork.delete()
