from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from historykit.errors import InvalidRequestError
from historykit.messages import Message
from historykit.portable import (
    FORMAT,
    VERSION,
    Conversation,
    ExportedMessage,
    ExportedSession,
    ExportEnd,
    ExportStart,
    read_line,
    write_line,
)

SESSION = ExportedSession(id="s1", created_at=1)
MESSAGE = ExportedMessage(id="m1", created_at=2, message={"type": "message", "role": "user"})
EVERYTHING = {
    "wide": 2**70,
    "nan": "nan",
    "infinity": float("inf"),
    "surrogate": "a\ud800b",
    "zero": "\0",
    "bytes": b"\xff\x00",
    "decimal": Decimal("0.10"),
    "time": dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.timezone(dt.timedelta(hours=2))),
    "tuple": (1, (2,)),
    "looks like a tag": ["!int", "0x10"],
    "a.b": {"$c": None},
    1: "a key that is no text",
}


@pytest.mark.parametrize(
    "line",
    [
        ExportStart(VERSION),
        SESSION,
        ExportedSession(
            id="a/b:c 👋",
            user_id="ada",
            agent_id="helper",
            status="archived",
            memory_enabled=False,
            labels=("x", "y"),
            created_at=-1,
            body={"a": EVERYTHING},
        ),
        MESSAGE,
        ExportedMessage(
            id="m1",
            created_at=2,
            turn_start=True,
            reaction="LIKE",
            message={"role": "user", "contents": [], "additional_properties": EVERYTHING},
            extra={"a": EVERYTHING},
        ),
        ExportedMessage(id="m1", created_at=2, message={"role": "user"}, extra=b"\x00raw"),
        ExportEnd(0, 0),
    ],
)
def test_a_line_comes_back_equal(line: Any) -> None:
    """What was written is read again exactly, whatever values it has."""
    data = write_line(line)
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    assert read_line(data) == line


def test_an_exact_value_keeps_its_type() -> None:
    """A value that JSON has no type for is not only equal to what it was."""
    message = {"role": "user", "at": EVERYTHING}
    line = read_line(write_line(ExportedMessage(id="m", created_at=0, message=message)))
    assert isinstance(line, ExportedMessage)
    assert repr(line.message) == repr(message)


def test_an_object_of_an_unknown_type_passes_through() -> None:
    """A line with an object of a state type that is not registered is written again as it came."""
    line = (
        b'{"type":"message","id":"m","created_at":0,'
        b'"message":{"role":"user","x":["!object","acme_point",{"x":1}]},"exact":["message"]}\n'
    )
    assert write_line(read_line(line)) == line  # type: ignore[arg-type]  # it is a message


def test_what_is_empty_is_left_out() -> None:
    """A message without reaction or extra has no fields for them, and plain JSON no mark."""
    assert json.loads(write_line(MESSAGE)) == {
        "type": "message",
        "id": "m1",
        "created_at": 2,
        "message": {"type": "message", "role": "user"},
    }
    assert json.loads(write_line(SESSION)) == {"type": "session", "id": "s1", "created_at": 1}


def test_a_conversation_of_chat_completions() -> None:
    """Its messages are converted, its agent is optional."""
    line = read_line(b'{"id": "s1", "messages": [{"role": "user", "content": "Hi"}]}')
    assert isinstance(line, Conversation)
    assert (line.id, line.agent) == ("s1", "")
    assert [message.to_dict() for message in line.messages] == [Message("user", "Hi").to_dict()]


def test_a_conversation_of_messages_of_our_own() -> None:
    """A message with `contents` is taken as what `Message.to_dict` gives."""
    message = Message("user", ["Hi", "there"], message_id="m1").to_dict()
    line = read_line(json.dumps({"id": "s1", "agent": "a", "messages": [message]}).encode())
    assert isinstance(line, Conversation)
    assert [each.to_dict() for each in line.messages] == [message]


def test_what_python_writes_as_json_is_read() -> None:
    """NaN, wide integers and lone surrogates in a conversation are taken as they are."""
    text = '{"id": "s", "messages": [{"role": "user", "content": "\\ud800", "x": [NaN, %d]}]}'
    line = read_line((text % 2**70).encode())
    assert isinstance(line, Conversation)
    assert line.messages[0].text == "\ud800"
    assert "nan" in repr(line.messages[0].to_dict())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"id": ', "it is not JSON (Expecting value, at character 7); write one object a line"),
        (b"\xff{}", "it cannot be read as JSON (UnicodeDecodeError); write JSON in UTF-8"),
        (b"[" * 100_000, "it cannot be read as JSON (RecursionError); write JSON in UTF-8"),
        (b"[]", "it is not a JSON object; write one object a line"),
        (b'{"role": "user", "content": "Hi"}', "it is neither a conversation"),
        (b'{"messages": []}', "its id must be text; each conversation needs one"),
        (b'{"id": 5, "messages": []}', "its id must be text; each conversation needs one"),
        (b'{"id": "s", "agent": 5, "messages": []}', "its agent must be text"),
        (b'{"id": "s", "messages": {}}', "its messages must be a list"),
        (b'{"id": "s", "messages": [], "user": 1}', "it has unknown fields (user)"),
        (b'{"id": "s", "messages": [5]}', "messages[0]: a message must be an object; it is int"),
        (
            b'{"id": "s", "messages": [{"contents": []}]}',
            "messages[0]: a message needs a 'role', and this dict has none",
        ),
        (b'{"type": "session", "id": "s"}', "it has no 'created_at'; export again"),
        (b'{"type": "session", "id": 5, "created_at": 0}', "id must be text; export again"),
        (
            b'{"type": "session", "id": "s", "created_at": true}',
            "created_at must be a whole number; export again",
        ),
        (
            b'{"type": "session", "id": "s", "created_at": 0, "memory_enabled": 1}',
            "memory_enabled must be true or false; export again",
        ),
        (
            b'{"type": "session", "id": "s", "created_at": 0, "labels": "x"}',
            "labels must be a list; export again",
        ),
        (
            b'{"type": "session", "id": "s", "created_at": 0, "shape": 1, "colour": 1}',
            "it has unknown fields (colour, shape); import with a newer historykit",
        ),
        (
            b'{"type": "message", "id": "m", "created_at": 0, "message": []}',
            "message must be an object; export again",
        ),
        (
            b'{"type": "message", "id": "m", "created_at": 0, "message": ["!new", 1], '
            b'"exact": ["message"]}',
            "message cannot be restored (DecodeError); export again",
        ),
    ],
)
def test_a_line_that_is_wrong(data: bytes, reason: str) -> None:
    """The error says what is wrong with it, and what to do."""
    with pytest.raises(InvalidRequestError) as caught:
        read_line(data)
    assert str(caught.value).startswith(reason)


def test_the_first_line_names_format_and_version() -> None:
    """A reader sees from the first line what it has before it."""
    assert json.loads(write_line(ExportStart(VERSION))) == {"type": FORMAT, "version": VERSION}


def test_a_text_of_an_older_message_is_read() -> None:
    """A message with `text`, as older versions of agent_framework write, keeps what it says."""
    line = b'{"id": "s1", "messages": [{"role": "user", "text": "hi"}]}'
    assert [message.text for message in read_line(line).messages] == ["hi"]
