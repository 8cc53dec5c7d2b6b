"""Messages on their way into a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from historykit.codec import MessageCodec, content_digest
from historykit.dict_forms import is_chat_completions
from historykit.errors import EncodeError, InvalidRequestError
from historykit.ids import derive_id, new_id
from historykit.messages import Message
from historykit.records import MessageDraft

__all__ = ["checked", "draft_messages", "external_id"]

_ANSWERS = frozenset({"function_result", "function_approval_response"})


def draft_messages(
    messages: Sequence[Message],
    *,
    codec: MessageCodec,
    stream: str,
    now: int,
    idempotency_key: str | None = None,
    external_ids: bool = True,
) -> tuple[MessageDraft, ...]:
    """Return `messages` encoded, each with the id under which a store recognizes it.

    A message with an id of its own gets one derived from it and from the content: the same message
    is recognized whenever it comes again, and a reused id with other content is another message;
    one that comes twice in the batch is drafted once. With `external_ids` False those ids mean
    nothing. The other ids are derived from `idempotency_key` and the place in the batch, or made
    anew.

    Raises `EncodeError` with a path that begins at ``messages[i]``.
    """
    drafts: dict[str, MessageDraft] = {}
    previous_role = ""
    for index, message in enumerate(checked(messages)):
        data = message._to_encode()
        body, digest = _encoded(codec, data, index)
        own_id = external_id(message.message_id, stream, digest) if external_ids else None
        external = own_id is not None
        if own_id is not None:
            id = own_id
        elif idempotency_key is not None:
            id = derive_id("key", stream, idempotency_key, str(index))
        else:
            id = new_id()
        drafts.setdefault(
            id,
            MessageDraft(
                id=id,
                role=data["role"],
                body=body,
                digest=digest,
                created_at=now,
                turn_start=_starts_turn(data, previous_role),
                external=external,
            ),
        )
        previous_role = data["role"]
    return tuple(drafts.values())


def external_id(message_id: object, stream: str, digest: bytes) -> str | None:
    """Return the id under which a store recognizes a message by an id of its own.

    None where it has none.
    """
    if not isinstance(message_id, str) or message_id == "":
        return None
    return derive_id("external", stream, message_id, digest)


def checked(messages: Sequence[Message]) -> Sequence[Message]:
    """Return `messages` if a store can take them, else raise `InvalidRequestError` naming the
    item."""
    if isinstance(messages, Message | str) or not isinstance(messages, Sequence):
        raise InvalidRequestError(
            f"messages must be a list of messages, not {type(messages).__name__}; put them in a "
            'list, as in [Message("user", "Hi")]'
        )
    items: Sequence[object] = messages
    for index, message in enumerate(items):
        if not isinstance(message, Message):
            raise InvalidRequestError(
                f"messages[{index}] must be a historykit.Message, not {type(message).__name__}; "
                f"make one with {_maker(message)}"
            )
        if not isinstance(message.role, str):
            raise InvalidRequestError(
                f"the role of messages[{index}] must be a string, not a "
                f"{type(message.role).__name__}"
            )
    return messages


def _maker(value: object) -> str:
    """Return the call that makes a message of a value, and loses nothing of it."""
    if is_chat_completions(value):
        return "historykit.chat_completions.from_chat_completions"
    if isinstance(value, Mapping):
        return "Message.from_dict"
    if callable(getattr(value, "to_dict", None)):
        return "Message.from_dict(message.to_dict())"
    return 'Message("user", text)'


def _encoded(codec: MessageCodec, data: Mapping[str, Any], index: int) -> tuple[bytes, bytes]:
    try:
        body = codec.encode(data)
        return body, content_digest(data, exact=body.startswith(b"{"))
    except EncodeError as error:
        place = f"messages[{index}]"
        path = error.path if error.path.startswith("[") else f".{error.path}".rstrip(".")
        if error.path and error.message.startswith(error.path):
            message = f"{place}{path}{error.message.removeprefix(error.path)}"
        else:
            message = f"{place}{path}: {error.message}"
        raise EncodeError(message, path=place + path) from error


def _starts_turn(data: Mapping[str, Any], previous_role: str) -> bool:
    """Return whether a turn starts here: with the first of the user's messages in a row.

    A user's message that answers a call or an approval goes on with the turn.
    """
    if data["role"] != "user" or previous_role == "user":
        return False
    return not any(content.get("type") in _ANSWERS for content in data["contents"])
