"""What can be done with the messages of a session."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from historykit.attachment_reading import AttachmentReader
from historykit.attachment_writing import StoredFirst
from historykit.bounds import check_bound
from historykit.errors import InvalidRequestError
from historykit.ids import check_id
from historykit.messages import Message
from historykit.planning import message_not_found
from historykit.records import MessageDraft, MessagePatch, MessageSelector, StoredMessage
from historykit.session_fields import SessionFields
from historykit.session_messages import (
    SessionMessage,
    SessionMessageAttachment,
    compose_message,
    decode_message,
)
from historykit.session_records import SessionRecord
from historykit.session_rows import as_of_one_time, rows_between, turn_bounds, walk_rows
from historykit.session_writing import append_messages, read_asked
from historykit.statuses import MessageRole, Reaction
from historykit.suggestions import suggest

__all__ = ["MessageCalls", "Place"]

Place: TypeAlias = int | str | SessionMessage
"""A place in a session: a sequence, the id of a message, or a message."""

Order: TypeAlias = Literal["asc", "desc"]

NewMessage: TypeAlias = Message | Mapping[str, Any]
"""A message to add: a `Message`, or a dict with the arguments of `add_message`."""

_ARGUMENTS: Final = frozenset({"role", "content", "request_id", "attachments", "files", "tools"})


class MessageCalls(SessionFields):
    """The part of `Session` that reads and writes messages.

    Every call is about the main stream: the conversation itself. It raises `SessionStateError` on
    an object that was never saved or is deleted, `NotFoundError` where the session, or the message,
    is not there or is somebody else's, and `CorruptRecordError` for a record that cannot be read.
    """

    async def messages(
        self,
        *,
        roles: Collection[str] | None = None,
        limit: int | None = None,
        after: Place | None = None,
        before: Place | None = None,
        order: Order = "asc",
        request_id: str | None = None,
    ) -> list[SessionMessage]:
        """Return the messages of the session, all of them where nothing else is said.

        `order` "asc" is oldest first, "desc" newest first. `after` and `before` are places in the
        session, not included: a sequence, the id of a message, or a message. `roles` and
        `request_id` narrow the list. `limit` is the most messages to return, from the beginning of
        the order: the newest twenty are ``messages(limit=20, order="desc")``.
        """
        check_bound(limit, "limit")
        if order not in ("asc", "desc"):
            raise InvalidRequestError(f"order must be 'asc' or 'desc', not {order!r}")
        if isinstance(roles, str):
            raise InvalidRequestError(f"roles must be a list of texts, as in [{roles!r}]")
        record = await self._living()
        first, last = await self._sequence(after), await self._sequence(before)

        is_narrowed = roles is not None or request_id is not None

        async def read() -> list[SessionMessage]:
            found: list[SessionMessage] = []
            walk = walk_rows(
                self._bound().store,
                record.key,
                after=first,
                before=last,
                newest_first=order == "desc",
                page_size=None if is_narrowed else limit or None,
            )
            async with aclosing(walk) as rows:
                async for row in rows:
                    if roles is not None and row.role not in roles:
                        continue
                    message = self._message(row, record)
                    if request_id is None or message.request_id == request_id:
                        found.append(message)
                    if len(found) == limit:
                        break
            return found

        return [] if limit == 0 else await as_of_one_time(read, record.key)

    async def add_message(
        self,
        role: str,
        content: str,
        request_id: str | None = None,
        attachments: Sequence[str | Path | Mapping[str, Any] | SessionMessageAttachment]
        | None = None,
        files: Sequence[str | Path] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> SessionMessage:
        """Add a message to the end of the session and return it.

        `role` is "user" or "assistant". `content` may be empty where there are attachments.
        `request_id` names the run that the message belongs to. `attachments` and the deprecated
        `files` are those of `resolve_attachments`; nothing is stored if one of them fails. `tools`
        are parameters for tools in the run that this message begins:
        ``[{"id": …, "parameters": [{"name": …, "value": …}]}]``. They are kept with it.

        A session without memory stores nothing, and the sequence of the message is then 0. Raises
        `InvalidRequestError` for a role, content or tools that no message has, and
        `FileUploadError`.
        """
        new = {
            "role": role,
            "content": content,
            "request_id": request_id,
            "attachments": attachments,
            "files": files,
            "tools": tools,
        }
        (added,) = await self.add_messages([new])
        return added

    async def add_messages(
        self, messages: Sequence[NewMessage], *, request_id: str | None = None
    ) -> list[SessionMessage]:
        """Add several messages side by side, all of them or none, and return them.

        Each is a `Message` with contents, of any role, or a dict with the arguments of
        `add_message`. `request_id` is for those that have none of their own. A `Message` with a
        `message_id` that the session has already, with the same content, is not stored again.
        """
        given = [_checked(new) for new in messages]
        record, history = await self._living(), self._bound()
        if not given:
            return []
        bytes_first = StoredFirst(history, record)
        try:
            made = [await self._made(new, bytes_first) for new in given]
            drafts, receipt = await append_messages(
                history,
                record.key,
                made,
                [self._extra(new, record, request_id) for new in given],
                incarnation=record.incarnation,
            )
        except BaseException as error:
            await bytes_first.give_up(error)
            raise
        if not receipt.stored:
            await bytes_first.delete()
        if receipt.stored < len(drafts) and None not in receipt.sequences:
            return [await self.get_message(draft.id) for draft in drafts]
        return [
            self._message(_row(draft, sequence), record)
            for draft, sequence in zip(drafts, receipt.sequences, strict=True)
        ]

    async def get_message(self, message_id: str) -> SessionMessage:
        """Return one message by its id. Raises `NotFoundError`."""
        record = await self._living()
        row = await self._bound().store.read_message(record.key, message_id)
        return self._message(row, record)

    async def delete_message(
        self, message_id: str, *, cascade: Literal["turn"] | None = None
    ) -> None:
        """Delete a message, and with `cascade` "turn" the turn that it is a part of.

        A turn goes from a message of the user to the next one, so that no call of a tool is parted
        from its result. Its attachments go with it, but for those that another message has too.
        Raises `NotFoundError` where there is no such message.
        """
        if cascade not in (None, "turn"):
            raise InvalidRequestError(f"cascade must be None or 'turn', not {cascade!r}")
        record = await self._living()
        history, key = self._bound(), record.key
        check_id(message_id, "message_id")
        selector, rows = MessageSelector(ids=(message_id,)), []
        if cascade is not None or history.attachments is not None:
            rows = [await history.store.read_message(key, message_id)]
        if cascade is not None:
            first, last = await turn_bounds(history.store, key, rows[0])
            selector = MessageSelector(first=first, last=last)
            if history.attachments is not None:
                rows = await rows_between(history.store, key, first, last)
        attached = await history._attached_to(key, rows)
        if not await history.store.delete_messages(key, selector):
            raise message_not_found(key, message_id)
        if attached is not None:
            await history._detach(key, *attached)

    async def react(self, message_id: str, reaction: str | None) -> SessionMessage:
        """React to a message of the assistant, or take the reaction back; return the message.

        `reaction` is "LIKE", "DISLIKE" or None. Raises `InvalidRequestError` for another one, and
        for a message of another role.
        """
        if reaction is not None and reaction not in list(Reaction):
            raise InvalidRequestError(
                f"reaction must be {', '.join(map(repr, map(str, Reaction)))} or None, not "
                f"{reaction!r}"
            )
        check_id(message_id, "message_id")
        record = await self._living()
        patch = MessagePatch(
            reaction=None if reaction is None else str(reaction),
            required_role=MessageRole.ASSISTANT.value,
        )
        try:
            row = await self._bound().store.update_message(record.key, message_id, patch)
        except InvalidRequestError as error:
            raise InvalidRequestError("Only assistant messages can be liked/disliked") from error
        return self._message(row, record)

    async def _living(self) -> SessionRecord:
        """Return what the store has of the session, as it was when this object last saw it.

        Raises `NotFoundError` where the object has not seen it yet, and there is none.
        """
        key = self._key()
        if self._record is None or self._record.key != key:
            self._record = await read_asked(self._bound(), key)
        return self._record

    def _message(self, row: StoredMessage, record: SessionRecord) -> SessionMessage:
        history = self._bound()
        message = decode_message(row, record.key, codec=history.codec, agent_id=record.agent_id)
        if message.attachments:
            reader = AttachmentReader(history, record.key, row.id)
            for attachment in message.attachments:
                attachment._reader = reader  # type: ignore[misc]  # that of this object
        return message

    async def _made(self, new: Message | Mapping[str, Any], bytes_first: StoredFirst) -> Message:
        """Return a message to add, once its attachments are stored."""
        if isinstance(new, Message):
            return new
        attachments = await bytes_first.resolve(new.get("attachments"), new.get("files"))
        return compose_message(str(new["role"]), new["content"], attachments)

    def _extra(
        self, new: Message | Mapping[str, Any], record: SessionRecord, request_id: str | None
    ) -> dict[str, Any]:
        """Return what is kept beside a message."""
        extra = {"request_id": request_id, "agent_id": self.agent_id or record.agent_id}
        if isinstance(new, Message):
            return extra
        own = {"request_id": new.get("request_id"), "tools": checked_tools(new.get("tools"))}
        return extra | {name: value for name, value in own.items() if value is not None}

    async def _sequence(self, place: Place | None) -> int | None:
        """Return the sequence that a place names."""
        if place is None:
            return None
        if isinstance(place, SessionMessage):
            key = self._key()
            if (place.user_id, place.session_id) != (key.user_id, key.session_id):
                raise InvalidRequestError(
                    f"message {place.id!r} is one of session {place.session_id!r}, not of "
                    f"{key.session_id!r}"
                )
            return place.sequence
        if isinstance(place, str):
            return (await self._bound().store.read_message(self._key(), place)).sequence
        return check_bound(place, "a sequence")


def checked_tools(tools: object) -> list[dict[str, Any]] | None:
    """Return the parameters of tools as a list; None where there are none.

    Raises `InvalidRequestError` for another shape than
    ``[{"id": …, "parameters": [{"name": …, "value": …}]}]``.
    """
    if tools is None:
        return None
    if not isinstance(tools, Sequence) or isinstance(tools, str | bytes):
        raise InvalidRequestError(f"tools must be a list, not {type(tools).__name__}")
    for index, tool in enumerate(tools):
        if not isinstance(tool, Mapping) or not isinstance(tool.get("id"), str):
            raise InvalidRequestError(f"tools[{index}] must be a dict with an id")
        parameters = tool.get("parameters", [])
        if not isinstance(parameters, Sequence) or not all(map(_is_parameter, parameters)):
            raise InvalidRequestError(
                f"the parameters of tools[{index}] must be a list of dicts with name and value"
            )
    return [dict(tool) for tool in tools] or None


def _is_parameter(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str) and "value" in value


def _checked(new: object) -> Message | dict[str, Any]:
    """Return a message to add, or the arguments of one. Raises `InvalidRequestError`."""
    if isinstance(new, Message):
        if not new.contents:
            raise InvalidRequestError(
                "a message to add needs contents, and this one has none; the role of a Message "
                "comes before them: Message('user', 'Hello')"
            )
        return new
    if not isinstance(new, Mapping):
        raise InvalidRequestError(
            f"a message to add is a Message or a dict, not {type(new).__name__}"
        )
    arguments: dict[str, Any] = {"role": None, "content": "", **new}
    for name in arguments.keys() - _ARGUMENTS:
        raise InvalidRequestError(
            f"a message to add has no key {name!r}; {suggest(str(name), _ARGUMENTS)}"
        )
    role, content, request_id = (arguments.get(name) for name in ("role", "content", "request_id"))
    if role not in list(MessageRole):
        raise InvalidRequestError(f"role must be 'user' or 'assistant', not {role!r}")
    if not isinstance(content, str):
        raise InvalidRequestError(f"content must be a text, not {type(content).__name__}")
    if request_id is not None and not isinstance(request_id, str):
        raise InvalidRequestError(f"request_id must be a text, not {type(request_id).__name__}")
    checked_tools(arguments.get("tools"))
    if not content and not arguments.get("attachments") and not arguments.get("files"):
        raise InvalidRequestError("a message needs content or attachments")
    return arguments


def _row(draft: MessageDraft, sequence: int | None) -> StoredMessage:
    return StoredMessage(
        sequence or 0,
        draft.id,
        draft.role,
        draft.body,
        draft.created_at,
        draft.turn_start,
        extra=draft.extra,
    )
