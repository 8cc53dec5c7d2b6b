"""Messages and sessions to fill a store with."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from historykit.ids import new_id
from historykit.records import MessageDraft, StoredMessage
from historykit.testing.subject import START

__all__ = ["conversation", "draft", "drafts", "numbered", "texts"]


def draft(text: str | bytes = "hello", **fields: Any) -> MessageDraft:
    """Return a user's message with that body; `fields` are those of `MessageDraft`."""
    body = text.encode() if isinstance(text, str) else text
    role = fields.setdefault("role", "user")
    fields.setdefault("id", new_id())
    fields.setdefault("created_at", START)
    fields.setdefault("digest", blake2b(role.encode() + b"\0" + body, digest_size=16).digest())
    return MessageDraft(body=body, **fields)


def numbered(name: str, count: int) -> list[str]:
    """Return the texts ``name 0``, ``name 1`` and so on."""
    return [f"{name} {index}" for index in range(count)]


def drafts(name: str, count: int, **fields: Any) -> list[MessageDraft]:
    """Return messages with the texts that `numbered` gives."""
    return [draft(text, **fields) for text in numbered(name, count)]


def conversation(turns: int, *, length: int = 2) -> list[MessageDraft]:
    """Return turns of `length` messages each: the user's, which starts the turn, and answers."""
    return [
        draft(
            f"turn {turn}.{place}",
            role="assistant" if place else "user",
            turn_start=place == 0,
        )
        for turn in range(turns)
        for place in range(length)
    ]


def texts(rows: Sequence[StoredMessage]) -> list[str]:
    """Return the bodies of messages as text."""
    return [row.body.decode() for row in rows]
