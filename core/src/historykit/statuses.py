"""The words that fields of sessions, messages and attachments take.

They are texts: ``SessionStatus.ACTIVE == "active"`` (aiXplain session module)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

__all__ = ["AttachmentType", "MessageRole", "Reaction", "RunStatus", "SessionStatus"]


class SessionStatus(StrEnum):
    """What has become of a session."""

    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"
    ARCHIVED = "archived"


class RunStatus(StrEnum):
    """What the latest run of a session does."""

    IDLE = "idle"
    RUNNING = "running"
    COMPLETED = "completed"


class MessageRole(StrEnum):
    """Who speaks in a message that `Session.add_message` adds; providers store any role."""

    USER = "user"
    ASSISTANT = "assistant"


class Reaction(StrEnum):
    """What somebody thinks of an assistant's message."""

    LIKE = "LIKE"
    DISLIKE = "DISLIKE"


class AttachmentType(StrEnum):
    """What kind of thing an attachment is."""

    TEXT = "text"
    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    DOCUMENT = "document"
    CODE = "code"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, media_type: str | None) -> AttachmentType:
        """Return the kind that things of a media type are, parameters and case aside.

        Source code is `CODE` and what an office writes is `DOCUMENT`, whatever their main type;
        without a media type, or with one that says nothing of use, it is `UNKNOWN`.
        """
        plain = (media_type or "").partition(";")[0].strip().lower()
        main, _, sub = plain.partition("/")
        if sub in _SUBTYPES:
            return _SUBTYPES[sub]
        return _MAIN_TYPES.get(main, cls.UNKNOWN)


_CODE: Final = (
    "x-python",
    "javascript",
    "x-javascript",
    "typescript",
    "x-typescript",
    "x-java-source",
    "x-c",
    "x-c++",
    "x-ruby",
    "x-go",
    "x-rust",
    "x-shellscript",
    "x-sh",
)
_DOCUMENTS: Final = (
    "pdf",
    "msword",
    "rtf",
    "vnd.openxmlformats-officedocument.wordprocessingml.document",
    "vnd.ms-excel",
    "vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "vnd.ms-powerpoint",
    "vnd.openxmlformats-officedocument.presentationml.presentation",
    "vnd.oasis.opendocument.text",
    "vnd.oasis.opendocument.spreadsheet",
    "vnd.oasis.opendocument.presentation",
)
_SUBTYPES: Final[Mapping[str, AttachmentType]] = {
    **dict.fromkeys(_CODE, AttachmentType.CODE),
    **dict.fromkeys(_DOCUMENTS, AttachmentType.DOCUMENT),
}
_MAIN_TYPES: Final[Mapping[str, AttachmentType]] = {
    kind.value: kind
    for kind in (
        AttachmentType.TEXT,
        AttachmentType.IMAGE,
        AttachmentType.VIDEO,
        AttachmentType.AUDIO,
    )
}
