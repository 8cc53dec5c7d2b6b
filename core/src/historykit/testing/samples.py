"""Messages with everything in them that a store has been seen to lose."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from historykit.messages import Message

__all__ = ["awkward_messages", "exactly", "plain_messages", "tool_conversation"]


def exactly(messages: Sequence[Message]) -> list[str]:
    """Return texts that are equal for messages with the same fields, values and types."""
    return [repr(message.to_dict()) for message in messages]


def awkward_messages() -> list[Message]:
    """Return messages whose values JSON does not have, or programs that write JSON do not keep."""
    arguments: dict[str, Any] = {
        "bytes": bytes(range(256)),
        "decimal": Decimal("1.10"),
        "when": datetime(2025, 3, 30, 2, 30, 0, 123456, tzinfo=timezone(timedelta(hours=2))),
        "naive": datetime(1969, 12, 31, 23, 59, 59, 999999),
        "utc": datetime(2025, 1, 1, tzinfo=UTC),
        "day": date(2024, 2, 29),
        "wide": [2**63, -(2**63) - 1, 10**40, 2**53 + 1],
        "floats": [0.1, 1.0, -0.0, 1e308, 5e-324, float("inf"), float("-inf"), float("nan")],
        "surrogate": "\ud800 alone",
        "nested": [1, (2, 3)],
    }
    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": arguments}
    return [*plain_messages(), Message("assistant", [call])]


def plain_messages() -> list[Message]:
    """Return a conversation of values that JSON has, and that are hard to keep all the same."""
    return [
        Message("system", text="Rules\r\n\twith  spaces "),
        Message(
            "user",
            [
                {"type": "text", "text": "a\0b \N{PILE OF POO} e\u0301 \u00e9 \u202e"},
                {"type": "uri", "uri": "https://example.org/a?b=%00", "media_type": "image/png"},
                {"type": "data", "uri": "data:;base64,AAEC", "media_type": "a/b"},
            ],
            author_name="",
        ),
        _calls(),
        Message("tool", [{"type": "function_result", "call_id": "1", "result": {"ok": True}}]),
        Message("tool", [{"type": "function_result", "call_id": "2", "result": None}]),
        Message.from_dict(
            {
                "type": "message",
                "role": "assistant",
                "contents": [{"type": "hologram", "beams": 3, "x": {"type": "text"}}],
                "a_field_of_tomorrow": {"list": [1, 2.5, None]},
            }
        ),
    ]


def tool_conversation() -> list[Message]:
    """Return a conversation with a system message and a group of two parallel calls of a tool."""
    return [
        Message("system", text="rules"),
        Message("user", text="question"),
        Message(
            "assistant",
            [
                {"type": "function_call", "call_id": each, "name": "f", "arguments": "{}"}
                for each in ("1", "2")
            ],
        ),
        Message("tool", [{"type": "function_result", "call_id": "1", "result": "one"}]),
        Message("tool", [{"type": "function_result", "call_id": "2", "result": "two"}]),
        Message("user", text="thanks"),
        Message("assistant", text="welcome"),
    ]


def _calls() -> Message:
    arguments = {
        "a.b": 1,
        "$set": {"": None, " ": "", "\0": "a\0b"},
        "numbers": [0, -1, 2**53, 0.5, 1e300],
        "empty": [{}, [], "", None, False],
    }
    return Message(
        "assistant",
        [
            {"type": "text", "text": ""},
            {"type": "text_reasoning", "text": None},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": arguments},
            {
                "type": "function_call",
                "call_id": "2",
                "name": "g",
                "arguments": '{"a":1,"a":2}',
            },
        ],
        message_id="msg_1",
        additional_properties={"nested": {"deep": [1, [2, 3]]}, "type": "message"},
    )
