from __future__ import annotations

from typing import Any

import pytest

from historykit.codec import MessageCodec
from historykit.contents import Content
from historykit.errors import CorruptRecordError, DecodeError, ResourceError
from historykit.messages import Message
from historykit.records import StoredMessage
from historykit.session_messages import (
    SessionMessage,
    SessionMessageAttachment,
    compose_message,
    decode_message,
    encode_extra,
    preview,
)
from historykit.session_records import SessionKey

CODEC = MessageCodec()
KEY = SessionKey("default", "ada", "s1")
DATA = {
    "id": "msg_001",
    "sessionId": "sess_001",
    "userId": "user_1",
    "agentId": "agent_1",
    "role": "user",
    "content": "Hello",
    "sequence": 1,
    "requestId": "req_001",
    "reaction": None,
    "attachments": None,
    "createdAt": "2025-06-01T10:01:00Z",
}


def shown(message: Message, **extra: Any) -> SessionMessage:
    """The message as a session shows it."""
    row = StoredMessage(
        7,
        "m",
        message.role,
        CODEC.encode(message.to_dict()),
        0,
        False,
        extra=encode_extra(extra, CODEC),
    )
    return decode_message(row, KEY, codec=CODEC, agent_id="agent_1")


def test_an_attachment_needs_only_a_url() -> None:
    """The other fields are None."""
    attachment = SessionMessageAttachment(url="https://example.org/a")
    assert (attachment.name, attachment.type, attachment.mimeType) == (None, None, None)


def test_an_attachment_as_a_dict() -> None:
    """`to_dict` has the four fields, None included, and `from_dict` takes them back."""
    attachment = SessionMessageAttachment("https://example.org/a", "a", "image")
    data = attachment.to_dict()
    assert data == {
        "url": "https://example.org/a",
        "name": "a",
        "type": "image",
        "mimeType": None,
    }
    assert SessionMessageAttachment.from_dict(data) == attachment
    snake = {"url": "u", "mime_type": "text/plain", "size": 3}
    assert SessionMessageAttachment.from_dict(snake).mimeType == "text/plain"


def test_an_attachment_without_a_url() -> None:
    """It is a `KeyError`, by itself and in a message."""
    with pytest.raises(KeyError, match="url"):
        SessionMessageAttachment.from_dict({"name": "a"})
    with pytest.raises(KeyError, match="url"):
        SessionMessage.from_dict({"attachments": [{"name": "a"}]})


def test_a_message_out_of_a_dict() -> None:
    """Each of the eleven fields is read from its name in camelCase."""
    message = SessionMessage.from_dict({**DATA, "unknown": 1})
    assert message == SessionMessage(
        "msg_001",
        "sess_001",
        "user_1",
        "agent_1",
        "user",
        "Hello",
        1,
        "req_001",
        None,
        None,
        "2025-06-01T10:01:00Z",
    )


def test_a_message_as_a_dict() -> None:
    """`to_dict` has the names in camelCase, None included, and tools where there are some."""
    assert SessionMessage.from_dict(DATA).to_dict() == DATA
    assert SessionMessage(tools=[{"id": "t"}]).to_dict()["tools"] == [{"id": "t"}]


def test_a_dict_with_names_as_in_python() -> None:
    """They are read too, and a content of null is an empty text."""
    message = SessionMessage.from_dict({"session_id": "s", "content": None, "role": "critic"})
    assert (message.session_id, message.content, message.role) == ("s", "", "critic")


def test_attachments_out_of_dicts() -> None:
    """The attachments of a message become objects, whichever they came as."""
    link = {"url": "u", "name": None, "type": None, "mimeType": None}
    message = SessionMessage.from_dict({"attachments": [link, SessionMessageAttachment("v")]})
    assert message.attachments == [SessionMessageAttachment("u"), SessionMessageAttachment("v")]
    assert message.to_dict()["attachments"][0] == link


def test_the_message_of_one_that_was_made_by_hand() -> None:
    """`to_message` makes a message of the text and the attachments."""
    message = SessionMessage(role="user", content="Hi", attachments=[SessionMessageAttachment("u")])
    kinds = [content.type for content in message.contents]
    assert (kinds, message.to_message().text) == (["text", "uri"], "Hi")


def test_an_attachment_is_a_content() -> None:
    """What `add_message` writes is a text and a link that remembers what was said of it."""
    link = {"url": "https://x/a", "name": "a", "type": "audio", "mimeType": "audio/wav", "size": 3}
    message = compose_message("user", "Hi", [link])
    assert message.to_dict()["contents"] == [
        {"type": "text", "text": "Hi", "additional_properties": {}},
        {
            "type": "uri",
            "uri": "https://x/a",
            "media_type": "audio/wav",
            "additional_properties": {
                "historykit.attachment": {
                    "name": "a",
                    "type": "audio",
                    "mimeType": "audio/wav",
                    "size": 3,
                }
            },
        },
    ]
    (attachment,) = shown(message).attachments or []
    assert attachment == SessionMessageAttachment("https://x/a", "a", "audio", "audio/wav")


def test_contents_of_a_provider() -> None:
    """Texts are joined with a space; links, data and files are attachments; all is in contents."""
    message = Message(
        "assistant",
        [
            "one",
            Content.from_uri("https://x/a.pdf", media_type="application/pdf"),
            Content.from_function_call("c", "f", arguments="{}"),
            "two",
            Content.from_data(b"123", "image/png"),
            Content("hosted_file", file_id="f1"),
        ],
    )
    projected = shown(message)
    assert projected.content == "one two"
    assert projected.attachments == [
        SessionMessageAttachment("https://x/a.pdf", None, "document", "application/pdf"),
        SessionMessageAttachment("data:image/png;base64,MTIz", None, "image", "image/png"),
        SessionMessageAttachment("f1", None, "unknown", None),
    ]
    assert projected.to_message().to_dict() == message.to_dict()
    assert projected.contents is not projected.contents


def test_what_is_kept_beside_a_message() -> None:
    """Request, tools and agent come back; without them the agent is the session's."""
    message = Message("user", "Hi")
    tools = [{"id": "t", "parameters": []}]
    projected = shown(message, request_id="", tools=tools, agent_id="other")
    assert (projected.request_id, projected.tools, projected.agent_id) == ("", tools, "other")
    bare = shown(message, request_id=None, agent_id="")
    assert (bare.request_id, bare.tools, bare.agent_id) == (None, None, "agent_1")
    assert (bare.user_id, bare.session_id, bare.sequence) == ("ada", "s1", 7)
    assert bare.created_at == "1970-01-01T00:00:00.000Z"
    assert encode_extra({"request_id": None, "agent_id": ""}, CODEC) is None


@pytest.mark.parametrize("damaged", [{"body": b"?"}, {"extra": b"?"}, {"body": b'{"a": 1}'}])
def test_a_record_that_cannot_be_read(damaged: dict[str, bytes]) -> None:
    """The error is a `ResourceError` and a `DecodeError` that names session and sequence."""
    row = StoredMessage(7, "m", "user", CODEC.encode(Message("user").to_dict()), 0, False)
    with pytest.raises(CorruptRecordError, match="Failed to parse session message 7") as caught:
        decode_message(row._replace(**damaged), KEY, codec=CODEC, agent_id="")
    assert isinstance(caught.value, ResourceError)
    assert isinstance(caught.value, DecodeError)
    assert (caught.value.session_id, caught.value.sequence) == ("s1", 7)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (SessionMessage(content=" one\n two "), "one two"),
        (SessionMessage(content="x" * 300), "x" * 200),
        (
            SessionMessage(attachments=[SessionMessageAttachment("u", "a.wav", "audio")]),
            "[audio] a.wav",
        ),
        (SessionMessage(attachments=[SessionMessageAttachment("u")]), "[unknown]"),
        (SessionMessage(), None),
    ],
)
def test_a_preview(message: SessionMessage, line: str | None) -> None:
    """It is the beginning of the text on one line, or the first attachment, or nothing."""
    assert preview(message) == line
