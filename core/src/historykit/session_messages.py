"""A message as the catalogue of sessions shows it: text, attachments, and what is kept beside.

The truth are the contents of a `Message`: `content` and `attachments` are read out of them, and
written into them by `compose_message` (aiXplain session module)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from historykit.codec import MessageCodec
from historykit.contents import Content
from historykit.dict_forms import camel_case, known_fields
from historykit.errors import CorruptRecordError, DecodeError, ResourceError
from historykit.messages import Message
from historykit.moments import iso_time
from historykit.records import StoredMessage
from historykit.session_records import SessionKey
from historykit.statuses import AttachmentType

if TYPE_CHECKING:
    from historykit.attachment_reading import AttachmentReader

__all__ = [
    "ATTACHMENT_MARK",
    "SessionMessage",
    "SessionMessageAttachment",
    "compose_message",
    "decode_message",
    "encode_extra",
    "preview",
]

ATTACHMENT_MARK: Final = "historykit.attachment"
"""Under this key of a content's `additional_properties` stands what an attachment says of
itself."""

PREVIEW_LENGTH: Final = 200
"""The most characters of a preview."""

_LINKS: Final = frozenset({"uri", "data", "hosted_file"})


@dataclass
class SessionMessageAttachment:
    """Something that a message brings along; `url` says where it is.

    `type` is a member of `AttachmentType`, `mimeType` a media type; what is not known is None.
    One that was read with its message gives its bytes with `read`, and `link` to those who have no
    history. The repr leaves out URL and name, in which there may be anything.
    """

    url: str = field(repr=False)
    name: str | None = field(default=None, repr=False)
    type: str | None = None
    mimeType: str | None = None

    _reader: ClassVar[AttachmentReader | None] = None

    async def read(self) -> bytes:
        """Return the bytes of an attachment that the history keeps. `stream` is for large ones.

        Raises what `stream` raises.
        """
        return b"".join([piece async for piece in self.stream()])

    def stream(self) -> AsyncIterator[bytes]:
        """Yield the bytes of an attachment that the history keeps, in pieces of at most 1 MiB.

        Raises `NotFoundError` where the message, or the attachment, is not there any more,
        `StorageError` where the bytes are not those that were stored, and `ResourceError` for an
        attachment that is somewhere else, or that was not read with its message.
        """
        return self._read_with().read(self.url)

    async def link(self, *, expires: float = 3600.0) -> str:
        """Return a URL under which anybody can read the attachment for `expires` seconds.

        Where the place has no such links, as a local folder, and for an attachment that is
        somewhere else, it is the attachment's own URL. Raises what `stream` raises.
        """
        return await self._read_with().link(self.url, expires=expires)

    def _read_with(self) -> AttachmentReader:
        if self._reader is None:
            raise ResourceError(
                "this attachment was not read with its message; take it from Session.messages() or "
                "Session.get_message()"
            )
        return self._reader

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_reader"}

    def to_dict(self) -> dict[str, Any]:
        """Return the four fields, None included."""
        return {"url": self.url, "name": self.name, "type": self.type, "mimeType": self.mimeType}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the attachment that a dict describes. Raises `KeyError` without ``url``."""
        known = known_fields(data, _ATTACHMENT_FIELDS)
        return cls(**{"mimeType": data.get("mime_type"), "url": data["url"]} | known)

    @classmethod
    def _of(cls, content: Content) -> Self:
        """Return the attachment that a content of a message is."""
        mark = content.additional_properties.get(ATTACHMENT_MARK)
        url = content.uri or content.file_id or ""
        if isinstance(mark, Mapping):
            return cls.from_dict({**mark, "url": url})
        media_type = content.media_type
        return cls(url, content.name, AttachmentType.of(media_type).value, media_type)


@dataclass
class SessionMessage:
    """A message of a session, as it was when it was read.

    `sequence` is its place in the session: it grows, and is never used again. It is 0 where the
    session keeps no messages. `request_id` names the run that the message belongs to. `reaction` is
    "LIKE", "DISLIKE" or None. `created_at` is in ISO 8601, in UTC. `content` holds the texts of the
    message, `attachments` what it links to, None where there are none. `tools` are the parameters
    of tools that `Session.add_message` was given. `contents` are all contents, those that are no
    text, such as calls of tools, too. The repr shows nothing of what was said.
    """

    id: str = ""
    session_id: str = ""
    user_id: str = ""
    agent_id: str = ""
    role: str = ""
    content: str = field(default="", repr=False)
    sequence: int = 0
    request_id: str | None = None
    reaction: str | None = None
    attachments: list[SessionMessageAttachment] | None = None
    created_at: str = ""
    tools: list[dict[str, Any]] | None = field(default=None, kw_only=True, repr=False)
    _message: Message | None = field(default=None, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.content = self.content or ""
        if self.attachments is not None:
            self.attachments = list(map(_as_attachment, self.attachments))

    @property
    def contents(self) -> list[Content]:
        """The contents of the message; not part of `to_dict`."""
        return self.to_message().contents

    def to_message(self) -> Message:
        """Return the message itself, as an agent's pipeline takes it: a copy."""
        if self._message is not None:
            return deepcopy(self._message)
        attachments = [each.to_dict() for each in self.attachments or ()]
        return compose_message(self.role, self.content, attachments)

    def to_dict(self) -> dict[str, Any]:
        """Return the message with names in camelCase, None included; ``tools`` where there are."""
        data = {camel_case(name): getattr(self, name) for name in _MESSAGE_FIELDS}
        if self.attachments is not None:
            data["attachments"] = [each.to_dict() for each in self.attachments]
        if self.tools is None:
            del data["tools"]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the message that a dict describes, with names in camelCase or as in Python.

        Other names are left out. Raises `KeyError` for an attachment without ``url``.
        """
        return cls(**known_fields(data, _MESSAGE_FIELDS))


_ATTACHMENT_FIELDS: Final = tuple(each.name for each in fields(SessionMessageAttachment))
_MESSAGE_FIELDS: Final = tuple(
    each.name for each in fields(SessionMessage) if not each.name.startswith("_")
)


def _as_attachment(value: Any) -> SessionMessageAttachment:
    if isinstance(value, SessionMessageAttachment):
        return value
    return SessionMessageAttachment.from_dict(value)


def compose_message(role: str, text: str, attachments: Sequence[Mapping[str, Any]]) -> Message:
    """Return the message with a text and attachments: dicts of `resolve_attachments`."""
    contents = [Content.from_text(text)] if text else []
    for attachment in attachments:
        mark = {key: value for key, value in attachment.items() if key != "url"}
        contents.append(
            Content.from_uri(
                attachment["url"],
                media_type=attachment.get("mimeType"),
                additional_properties={ATTACHMENT_MARK: mark},
            )
        )
    return Message(role, contents)


def encode_extra(extra: Mapping[str, Any], codec: MessageCodec) -> bytes | None:
    """Return what is kept beside a message as bytes; None where that is nothing.

    The keys are ``request_id``, ``tools`` and ``agent_id``; values that are None or "" are left
    out, but for a request id.
    """
    kept = {
        key: value
        for key, value in extra.items()
        if value is not None and (value != "" or key == "request_id")
    }
    return codec.encode(kept) if kept else None


def decode_message(
    row: StoredMessage, key: SessionKey, *, codec: MessageCodec, agent_id: str
) -> SessionMessage:
    """Return the message that a stored row holds; `agent_id` where the row does not name one.

    Raises `CorruptRecordError`, which names session and sequence.
    """
    try:
        message = Message._from_decoded(codec.decode(row.body, strict=False))
        extra = codec.decode(row.extra, strict=False) if row.extra else {}
    except (DecodeError, ValueError, TypeError) as error:
        raise CorruptRecordError(
            f"Failed to parse session message {row.sequence} (id {row.id}) of session "
            f"{key.session_id!r}: {error}",
            session_id=key.session_id,
            sequence=row.sequence,
        ) from error
    return SessionMessage(
        id=row.id,
        session_id=key.session_id,
        user_id=key.user_id,
        agent_id=extra.get("agent_id", agent_id),
        role=row.role,
        content=message.text,
        sequence=row.sequence,
        request_id=extra.get("request_id"),
        reaction=row.reaction,
        attachments=attachments_of(message) or None,
        created_at=iso_time(row.created_at),
        tools=extra.get("tools"),
        _message=message,
    )


def attachments_of(message: Message) -> list[SessionMessageAttachment]:
    """Return what a message links to, in order."""
    return [
        SessionMessageAttachment._of(content)
        for content in message.contents
        if content.type in _LINKS
    ]


def preview(message: SessionMessage) -> str | None:
    """Return a line that says what a message is about: the beginning of its text, or an attachment.

    It has at most `PREVIEW_LENGTH` characters. None where the message has neither.
    """
    text = " ".join(message.content.split())
    if not text and message.attachments:
        first = message.attachments[0]
        text = f"[{first.type or AttachmentType.UNKNOWN}] {first.name or ''}".rstrip()
    return text[:PREVIEW_LENGTH] or None
