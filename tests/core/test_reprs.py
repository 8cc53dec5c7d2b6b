"""What objects show of a conversation, wherever reprs are collected: nothing."""

from __future__ import annotations

from typing import Any

import pytest

import historykit
from historykit import (
    Agent,
    AgentResponseUpdate,
    ChatOptions,
    OpaqueValue,
    SessionMessage,
    SessionMessageAttachment,
)
from historykit.agent_calls import RunRequest
from historykit.attachment_entries import DataEntry, FileEntry, HostedEntry
from historykit.execution import ExecutionConfig
from historykit.portable import ExportedMessage, ExportedSession
from historykit.records import MessageDraft, MessagePatch, Window
from historykit.session_records import SessionDraft, SessionPatch

TEXT = "the treaty of Utrecht"
BODY = TEXT.encode()


async def collected(name: str) -> Any:
    """Return something that a conversation about `TEXT` gives."""
    async with historykit.open_history("memory") as history:
        chat = await history.Session(id="s1").save()

        async def client(messages: Any, options: Any) -> str:
            return f"It is about {TEXT}"

        agent = Agent(client, name="helper")
        result = await history.run(agent, f"What is {TEXT}?", session=chat)
        await chat.add_message(
            "user",
            TEXT,
            tools=[{"id": "t", "parameters": [{"name": "n", "value": TEXT}]}],
            attachments=[{"url": f"https://example.org/?q={TEXT}", "name": TEXT}],
        )
        key = history.key("s1")
        found = {
            "result": result,
            "data": result.data,
            "response": result.response,
            "messages": await chat.messages(),
            "attachments": (await chat.messages())[-1].attachments,
            "session": await chat.refresh(),
            "page": await history.Session.search(query=TEXT),
            "hits": (await history.Session.search(query=TEXT)).hits,
            "loaded": await history.load("s1"),
            "rows": await history.store.read(key, Window()),
            "record": await history.store.read_session(key),
            "stream": agent.run(TEXT, stream=True),
        }
    return found[name]


OBJECTS = [
    SessionMessage(content=TEXT),
    SessionMessageAttachment(TEXT, TEXT),
    AgentResponseUpdate(contents=[TEXT], additional_properties={"a": TEXT}),  # type: ignore[list-item]
    ChatOptions(instructions=TEXT, options={"a": TEXT}),
    RunRequest(
        session_id="s", request_id="r", execution_config=ExecutionConfig(), tools=[{"a": TEXT}]
    ),
    HostedEntry({"url": TEXT}),
    FileEntry(TEXT, {"name": TEXT}),
    DataEntry(BODY, {"name": TEXT}),
    ExportedSession(id="s", created_at=0, body={"name": TEXT}),
    ExportedMessage(id="m", created_at=0, message={"a": TEXT}, extra={"a": TEXT}),
    OpaqueValue("type", {"a": TEXT}),
    MessageDraft(id="m", role="user", body=BODY, digest=b"", created_at=0, extra=BODY),
    MessagePatch(body=BODY, digest=b"", extra=BODY),
    SessionDraft(body=BODY),
    SessionPatch(body=BODY),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "name",
    [
        "result",
        "data",
        "response",
        "messages",
        "attachments",
        "session",
        "page",
        "hits",
        "loaded",
        "rows",
        "record",
        "stream",
    ],
)
async def test_what_a_conversation_gives_shows_no_text(name: str) -> None:
    """Results, messages, attachments, hits, pages and records say what they are, and no more."""
    assert "Utrecht" not in repr(await collected(name))


@pytest.mark.parametrize("thing", OBJECTS, ids=lambda thing: type(thing).__name__)
def test_an_object_that_holds_a_text_does_not_show_it(thing: object) -> None:
    """Its repr has its class, and what is no part of a conversation."""
    assert repr(thing).startswith(type(thing).__name__)
    assert "Utrecht" not in repr(thing)


def test_a_message_of_a_session_says_which_it_is() -> None:
    """The repr has what a reader of a log looks for: ids, role and place."""
    message = SessionMessage(id="m1", session_id="s1", role="user", sequence=3, content=TEXT)
    shown = repr(message)
    assert all(part in shown for part in ("'m1'", "'s1'", "'user'", "sequence=3"))
