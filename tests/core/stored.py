"""Records for tests of what works on records."""

from __future__ import annotations

from typing import Any

from historykit.codec import MessageCodec, content_digest
from historykit.records import AppendRequest, MessageDraft
from historykit.session_records import SessionDraft, SessionHead, SessionKey

KEY = SessionKey("tests", "ada", "s1")


def draft(id: str, text: str | None = None, *, role: str = "user", **fields: Any) -> MessageDraft:
    """Return the draft of a message whose text is its id, unless another is given."""
    contents = [{"type": "text", "text": id if text is None else text}]
    data = {"type": "message", "role": role, "contents": contents, "additional_properties": {}}
    return MessageDraft(
        id=id,
        role=role,
        body=MessageCodec().encode(data),
        digest=content_digest(data),
        created_at=fields.pop("created_at", 0),
        turn_start=fields.pop("turn_start", role == "user"),
        **fields,
    )


def request(*drafts: MessageDraft, **fields: Any) -> AppendRequest:
    """Return an append of drafts to the session at `KEY`."""
    values: dict[str, Any] = {
        "key": KEY,
        "stream": "main",
        "create": SessionDraft(),
        "new_incarnation": "new",
        "incarnation": None,
        "expected_version": None,
        "retention": None,
        "now": 0,
    }
    return AppendRequest(drafts=drafts, **(values | fields))


def head(**fields: Any) -> SessionHead:
    """Return the head of a session that holds two messages after one append."""
    values: dict[str, Any] = {
        "incarnation": "old",
        "version": 1,
        "next_sequence": 3,
        "memory_enabled": True,
    }
    return SessionHead(**(values | fields))
