from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import historykit
from historykit import (
    Agent,
    AgentSession,
    Content,
    DecodeError,
    History,
    InvalidRequestError,
    Message,
    ResourceError,
    StorageUnavailableError,
    VersionConflictError,
)
from historykit.exporting import export_sessions
from historykit.ids import new_id
from historykit.importing import import_conversations
from historykit.offloading import DATA_MARK
from historykit.portable import write_line
from historykit.store_provider import OwningHistoryProvider

pytestmark = pytest.mark.asyncio

OVER = 100
PICTURE = Content.from_data(b"p" * 500, "image/png")


@pytest_asyncio.fixture(params=["memory", "sqlite"])
async def history(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[History]:
    settings = {"path": tmp_path / "chat.db"} if request.param == "sqlite" else {}
    async with historykit.open_history(
        request.param, attachments=f"memory://{new_id()}", **settings
    ) as history:
        yield history


async def stored(history: History) -> list[str]:
    assert history.attachments is not None
    return [blob.key for blob in await history.attachments.store.find("")]


async def bodies(history: History, session: str = "s") -> list[bytes]:
    return [row.body for row in (await history.store.read(history.key(session))).messages]


def nested() -> Message:
    """A message with large and small data in several places."""
    small = {"type": "data", "uri": "data:a/b;base64,QUJD"}
    inner = {
        "type": "data",
        "uri": f"data:;x=y;base64,{base64.b64encode(b'i' * 400).decode()}",
        "unknown": [1, {"a": None}],
        "additional_properties": {"k": 1},
    }
    result = {"type": "function_result", "call_id": "c", "items": [inner, small], "result": None}
    contents = ["Look", PICTURE, result, small, {"type": "uri", "uri": "https://e/" + "x" * 500}]
    return Message("user", contents, message_id="m1", additional_properties={"a": 1})


async def test_large_data_is_kept_apart_and_comes_back_equal(history: History) -> None:
    """The record is small, and the message that is loaded is the one that was saved."""
    provider = history.provider(offload_data_over=OVER)
    message = nested()
    before = message.to_dict()
    await provider.save_messages("s", [message, Message("assistant", "Nice")])
    assert message.to_dict() == before
    assert len(await stored(history)) == 2
    assert [len(body) < 2600 for body in await bodies(history)] == [True, True]
    assert b"data:a/b;base64,QUJD" in (await bodies(history))[0]
    loaded, answer = await provider.get_messages("s")
    assert loaded.to_dict() == before
    assert [list(content) for content in loaded.to_dict()["contents"]] == [
        list(content) for content in before["contents"]
    ]
    assert answer.text == "Nice"
    assert (await history.load("s"))[0].to_dict() == before


async def test_data_up_to_the_bound_stays(history: History) -> None:
    """A data URI of exactly so many characters is not large."""
    length = len(PICTURE.uri or "")
    await history.append("s", [Message("user", [PICTURE])], offload_data_over=length)
    assert await stored(history) == []
    await history.append("s", [Message("user", [PICTURE])], offload_data_over=length - 1)
    assert len(await stored(history)) == 1


@pytest.mark.parametrize(
    "uri",
    [
        "data:text/plain," + "x" * 500,
        "data:image/png;base64," + "QUJD\n" * 200,
        "data:image/png;base64," + "?" * 500,
        "data:image/png;base64," + "x" * 501,
        "data:image/png;base64," + "ä" * 500,
        "https://e/" + "x" * 500,
    ],
)
async def test_data_that_would_not_come_back_as_it_was_stays(history: History, uri: str) -> None:
    """What is not base64, or not as it is written again, is left in the message."""
    message = Message("user", [{"type": "data", "uri": uri}])
    await history.append("s", [message], offload_data_over=OVER)
    assert await stored(history) == []
    assert (await history.load("s"))[0].to_dict() == message.to_dict()


async def test_the_session_shows_large_data_as_an_attachment(history: History) -> None:
    """`Session.messages` has a link to it, with its media type, and reads it."""
    await history.append("s", [Message("user", [PICTURE])], offload_data_over=OVER)
    (message,) = await (await history.Session.get("s")).messages()
    (picture,) = message.attachments or ()
    assert (picture.type, picture.mimeType) == ("image", "image/png")
    assert await picture.read() == b"p" * 500


async def test_data_in_its_place_is_read_too(history: History) -> None:
    """An attachment that is a data URI gives its bytes, and is its own link."""
    await history.append("s", [Message("user", [PICTURE])])
    (message,) = await (await history.Session.get("s")).messages()
    (picture,) = message.attachments or ()
    assert await picture.read() == b"p" * 500
    assert await picture.link() == PICTURE.uri


async def test_a_repeat_is_recognized(history: History) -> None:
    """Ids and digests are those of the whole message, and a repeat stores no bytes again."""
    message = nested()
    for _ in range(2):
        await history.append("s", [message], offload_data_over=OVER)
    assert (len(await bodies(history)), len(await stored(history))) == (1, 2)
    await history.append("s", [message])
    for _ in range(2):
        await history.append(
            "s", [Message("user", [PICTURE])], idempotency_key="k", offload_data_over=OVER
        )
    assert (len(await bodies(history)), len(await stored(history))) == (2, 3)
    assert (await history.sweep_attachments(older_than=0)).orphans == ()


async def test_a_transcript_goes_on_behind_large_data(history: History) -> None:
    """A transcript is compared by what its messages say, with their data in place."""
    provider = history.provider(save_mode="transcript", offload_data_over=OVER)
    transcript = [Message("user", [PICTURE])]
    await provider.save_messages("s", transcript)
    transcript += [Message("assistant", "a"), Message("user", [PICTURE])]
    await provider.save_messages("s", transcript)
    await provider.save_messages("s", transcript)
    assert (len(await bodies(history)), len(await stored(history))) == (3, 2)
    fork = await (await history.Session.get("s")).fork(id="f")
    await provider.save_messages("f", [*transcript, Message("assistant", "b")])
    assert len(await fork.messages()) == 4
    loaded = await provider.get_messages("f")
    assert [each.to_dict() for each in loaded[:3]] == [each.to_dict() for each in transcript]


async def test_a_transcript_that_replaces_keeps_its_data_in_place(history: History) -> None:
    """The bytes of what was replaced are left to the sweep."""
    provider = history.provider(save_mode="transcript", diverged="replace", offload_data_over=OVER)
    await provider.save_messages("s", [Message("user", [PICTURE])])
    await provider.save_messages("s", [Message("user", ["other", PICTURE])])
    assert len((await history.sweep_attachments(older_than=0)).orphans) == 1
    (loaded,) = await provider.get_messages("s")
    assert loaded.contents[1] == PICTURE


async def test_a_fork_has_its_own_data(history: History) -> None:
    """A copy of a message with large data is recognized as the same message, with its own bytes."""
    message = nested()
    await history.append("s", [message], offload_data_over=OVER)
    await (await history.Session.get("s")).fork(id="f")
    assert len(await stored(history)) == 4
    await history.append("f", [message], offload_data_over=OVER)
    await history.delete("s")
    (loaded,) = await history.load("f")
    assert loaded.to_dict() == message.to_dict()
    assert len(await stored(history)) == 2


async def test_data_goes_with_its_message(history: History) -> None:
    """Deleting the message or the session deletes the bytes."""
    await history.append("s", [nested(), Message("user", [PICTURE])], offload_data_over=OVER)
    chat = await history.Session.get("s")
    await chat.delete_message((await chat.messages())[0].id)
    assert len(await stored(history)) == 1
    await chat.delete()
    assert await stored(history) == []


async def test_data_that_is_gone_is_an_error(history: History) -> None:
    """A message whose bytes were deleted is not loaded without them, unless that is asked for."""
    assert history.attachments is not None
    await history.append(
        "s", [Message("user", "a"), Message("user", [PICTURE])], offload_data_over=9
    )
    await history.attachments.store.delete(await stored(history))
    with pytest.raises(DecodeError, match="'s' needs data that cannot be read") as caught:
        await history.load("s")
    assert caught.value.session_id == "s"
    loaded = await history.read("s", strict=False)
    assert [message.text for message in loaded.messages] == ["a"]
    assert [error.session_id for error in loaded.skipped] == ["s"]


async def test_a_mark_that_is_not_ours_is_left_alone(history: History) -> None:
    """A content that looks like such a link, and leads elsewhere, comes back as it is."""
    await history.append("t", [Message("user", [PICTURE])], offload_data_over=OVER)
    theirs = (await (await history.Session.get("t")).messages())[0].contents[0].to_dict()
    contents = [
        theirs,
        {"type": "uri", "uri": "https://e", "additional_properties": {DATA_MARK: {"uri": "x"}}},
        {"type": "uri", "uri": theirs["uri"], "additional_properties": {DATA_MARK: 1}},
        {"type": "uri", "uri": theirs["uri"], "additional_properties": {DATA_MARK: {}}},
        {"type": "x", "list": [{"a": [1]}], "additional_properties": []},
    ]
    message = Message("user", contents)
    await history.append("s", [message])
    (loaded,) = await history.load("s")
    assert loaded.to_dict() == message.to_dict()


async def test_a_refused_append_frees_its_data(history: History) -> None:
    """What certainly was not stored leaves no bytes; a version that is wrong makes no session."""
    message = Message("user", [PICTURE])
    with pytest.raises(VersionConflictError):
        await history.append("s", [message], expected_version=5, offload_data_over=OVER)
    assert (await history.read("s")).incarnation is None
    await history.append("s", [message], expected_version=0, offload_data_over=OVER)
    with pytest.raises(VersionConflictError):
        await history.append("s", [message], expected_version=5, offload_data_over=OVER)
    assert len(await stored(history)) == 1
    await history.append("s", [message], expected_version=1, offload_data_over=OVER)
    assert len(await stored(history)) == 2


async def test_an_append_of_unknown_fate_keeps_its_data(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the store did not answer, the message may be there."""
    append = history.store._append

    async def unanswered(request: Any) -> Any:
        await append(request)
        raise StorageUnavailableError("gone")

    monkeypatch.setattr(history.store, "_append", unanswered)
    with pytest.raises(StorageUnavailableError):
        await history.append("s", [Message("user", [PICTURE])], offload_data_over=OVER)
    assert (await history.load("s"))[0].contents == [PICTURE]


async def test_a_session_without_memory_keeps_no_data(history: History) -> None:
    """Where no message is stored, no bytes are."""
    await history.Session(id="s", memory_enabled=False).save()
    await history.append("s", [Message("user", [PICTURE])], offload_data_over=OVER)
    assert await stored(history) == []


async def test_an_agent_sees_its_data(history: History) -> None:
    """In a run with such a provider the model gets the data, in the run after it too."""
    seen: list[list[str]] = []

    async def client(messages: Any, options: Any) -> str:
        seen.append([content.type for message in messages for content in message.contents])
        return "ok"

    agent = Agent(client, name="a", context_providers=[history.provider(offload_data_over=OVER)])
    session = AgentSession(session_id="s")
    await agent.run(Message("user", [PICTURE]), session=session)
    await agent.run("And?", session=session)
    assert seen == [["data"], ["data", "text", "text"]]
    assert len(await stored(history)) == 1


async def test_an_export_has_the_data(history: History, tmp_path: Path) -> None:
    """What is exported is the whole message, for a store that has no such data."""
    message = nested()
    await history.append("s", [message], offload_data_over=OVER)
    lines = [write_line(line) for line in [each async for each in export_sessions(history)]]
    path = tmp_path / "export.jsonl"
    path.write_bytes(b"".join(lines))
    async with historykit.open_history("memory") as other:
        with path.open("rb") as file:
            await import_conversations(other, file)
        await other.append("s", [message])
        (loaded,) = await other.load("s")
        assert loaded.to_dict() == message.to_dict()


async def test_offloading_needs_a_place(tmp_path: Path) -> None:
    """Without attachments the option is refused at once, and so is a bound below 0."""
    async with historykit.open_history("memory") as history:
        with pytest.raises(InvalidRequestError, match="open it with attachments="):
            history.provider(offload_data_over=OVER)
        with pytest.raises(ResourceError, match="keeps no attachments"):
            await history.append("s", [Message("user", [PICTURE])], offload_data_over=OVER)
        await history.append("s", [Message("user", "small")], offload_data_over=OVER)
        with pytest.raises(InvalidRequestError, match="offload_data_over"):
            history.provider(offload_data_over=-1)


async def test_a_provider_with_a_store_of_its_own_keeps_attachments(tmp_path: Path) -> None:
    """The provider classes of backends take `attachments` too."""
    from historykit.memory import MemoryStore

    async with OwningHistoryProvider(
        MemoryStore(), attachments=tmp_path / "blobs", offload_data_over=OVER
    ) as provider:
        await provider.save_messages("s", [Message("user", [PICTURE])])
        assert len(await stored(provider.history)) == 1
        assert (await provider.get_messages("s"))[0].contents == [PICTURE]
