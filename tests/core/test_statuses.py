from __future__ import annotations

import pytest

from historykit.statuses import AttachmentType, MessageRole, Reaction, RunStatus, SessionStatus

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (SessionStatus, ["active", "completed", "failed", "archived"]),
        (RunStatus, ["idle", "running", "completed"]),
        (MessageRole, ["user", "assistant"]),
        (Reaction, ["LIKE", "DISLIKE"]),
        (
            AttachmentType,
            ["text", "image", "video", "audio", "document", "code", "unknown"],
        ),
    ],
)
def test_members_are_the_documented_texts(words: type, values: list[str]) -> None:
    """Each member is equal to its text and prints as it."""
    members = list(words)  # type: ignore[call-overload]
    assert members == values
    assert list(map(str, members)) == values


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("image/png", "image"),
        ("image/jpeg", "image"),
        ("video/mp4", "video"),
        ("audio/mpeg", "audio"),
        ("audio/wav", "audio"),
        ("text/plain", "text"),
        ("text/csv", "text"),
        ("text/x-python", "code"),
        ("application/javascript", "code"),
        ("application/x-javascript", "code"),
        ("application/typescript", "code"),
        ("text/javascript", "code"),
        ("application/pdf", "document"),
        ("application/msword", "document"),
        (WORD, "document"),
        ("application/vnd.ms-excel", "document"),
        (SHEET, "document"),
        ("application/octet-stream", "unknown"),
        ("application/json", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
        ("Text/Plain; charset=utf-8", "text"),
    ],
)
def test_a_media_type_says_what_an_attachment_is(media_type: str | None, kind: str) -> None:
    """The kind follows from the media type."""
    assert AttachmentType.of(media_type) == kind
