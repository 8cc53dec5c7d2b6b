"""Large data of messages, moved out of the store of the messages into that of attachments.

A content of type ``data`` holds its bytes as a data URI. Where they are moved out, a link stands in
its place, with what is needed to make the same content again."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from historykit.attachment_folders import AttachmentFolder
from historykit.attachment_writing import not_stored
from historykit.codec import MessageCodec
from historykit.contents import Content
from historykit.errors import DecodeError, HistoryKitError
from historykit.ids import derive_id
from historykit.loading import LoadedHistory
from historykit.messages import Message
from historykit.records import AppendReceipt, MessageDraft

__all__ = ["DATA_MARK", "has_large_data", "inline_data", "inlined", "write_offloaded"]

DATA_MARK: Final = "historykit.data"
"""Under this key of a link's `additional_properties` stands the content that it is there for."""

Tree = Any
Write = Callable[[Sequence[MessageDraft]], Awaitable[AppendReceipt]]


def has_large_data(messages: Sequence[Message], over: int) -> bool:
    """Return whether a message holds a data URI of more than `over` characters."""
    return any(True for message in messages for _ in _large(message._to_encode()["contents"], over))


async def write_offloaded(
    write: Write,
    drafts: Sequence[MessageDraft],
    folder: AttachmentFolder,
    *,
    codec: MessageCodec,
    over: int,
) -> AppendReceipt:
    """Store the large data of drafts, and then write the drafts without it.

    Ids and digests stay those of the whole message, so that a repeat is recognized, and a repeat
    finds its data where it is. Where it is certain that no draft was stored, the data is deleted
    again; else the sweep may have to.
    """
    fresh: list[str] = []
    try:
        receipt = await write([await _moved(draft, folder, codec, over, fresh) for draft in drafts])
    except BaseException as error:
        if not_stored(error):
            await folder.delete(fresh)
        raise
    if not receipt.stored:
        await folder.delete(fresh)
    return receipt


async def inline_data(
    loaded: LoadedHistory, folder: AttachmentFolder, *, session_id: str, strict: bool
) -> LoadedHistory:
    """Put data back into the messages that were loaded.

    Raises `DecodeError` where it is gone, unless `strict` is False: then the message is left out
    and reported.
    """
    messages, skipped = [], list(loaded.skipped)
    for message in loaded.messages:
        try:
            messages.append(await _whole(message, folder))
        except HistoryKitError as error:
            failure = DecodeError(
                f"a message of session {session_id!r} needs data that cannot be read: {error}. "
                "History.read with strict=False leaves it out",
                session_id=session_id,
            )
            if strict:
                raise failure from error
            skipped.append(failure)
    return replace(loaded, messages=messages, skipped=tuple(skipped))


async def _whole(message: Message, folder: AttachmentFolder) -> Message:
    """Return the message, changed in place where a link stands for data."""
    for index, content in enumerate(message.contents):
        if content._data.get("type") != "text" and _has_links(content._data, folder):
            whole = await inlined(content._data, folder)
            message.contents[index] = Content._from_decoded(whole)
    return message


async def _moved(
    draft: MessageDraft,
    folder: AttachmentFolder,
    codec: MessageCodec,
    over: int,
    fresh: list[str],
) -> MessageDraft:
    data = codec.decode(draft.body)
    large = list(_large(data["contents"], over))
    for number, content in enumerate(large):
        start, _, payload = content["uri"].partition(",")
        await _move(content, f"{start},", payload, folder, derive_id(draft.id, str(number)), fresh)
    return replace(draft, body=codec.encode(data)) if large else draft


async def _move(
    content: dict[str, Any],
    start: str,
    payload: str,
    folder: AttachmentFolder,
    name: str,
    fresh: list[str],
) -> None:
    """Turn a content into a link to its bytes, in place."""
    data = base64.b64decode(payload)
    url = folder.url(f"{name}-{hashlib.sha256(data).hexdigest()}")
    if not await folder.has(url):
        await folder.put(io.BytesIO(data), name=name)
        fresh.append(url)
    whole = {**content, "uri": start}
    declared = start[len("data:") :].partition(",")[0].partition(";")[0]
    content.clear()
    content["type"] = "uri"
    content["uri"] = url
    content["media_type"] = whole.get("media_type") or declared or "application/octet-stream"
    content["additional_properties"] = {DATA_MARK: whole}


async def inlined(value: Tree, folder: AttachmentFolder) -> Tree:
    """Return a tree with data in the place of the links that stand for it."""
    if type(value) is list:
        return [await inlined(item, folder) for item in value]
    if type(value) is not dict:
        return value
    mark = _mark(value, folder)
    if mark is None:
        return {name: await inlined(item, folder) for name, item in value.items()}
    data = b"".join([piece async for piece in folder.read(value["uri"])])
    return {**mark, "uri": mark["uri"] + base64.b64encode(data).decode()}


def _large(value: Tree, over: int) -> Iterator[dict[str, Any]]:
    """Yield the contents in a tree whose data is large, and the same when it is put back."""
    if type(value) is dict:
        uri = value.get("uri")
        if value.get("type") == "data" and isinstance(uri, str) and len(uri) > over:
            if _is_canonical(uri):
                yield value
        else:
            for item in value.values():
                yield from _large(item, over)
    elif type(value) is list:
        for item in value:
            yield from _large(item, over)


def _is_canonical(uri: str) -> bool:
    """Return whether the data of a URI is in base64 as it would be written again."""
    start, _, payload = uri.partition(",")
    if not start.startswith("data:") or not start.endswith(";base64"):
        return False
    try:
        return base64.b64encode(base64.b64decode(payload, validate=True)).decode() == payload
    except (binascii.Error, ValueError):
        return False


def _has_links(value: Tree, folder: AttachmentFolder) -> bool:
    if type(value) is dict:
        if _mark(value, folder) is not None:
            return True
        return any(_has_links(item, folder) for item in value.values())
    return type(value) is list and any(_has_links(item, folder) for item in value)


def _mark(content: Mapping[str, Any], folder: AttachmentFolder) -> dict[str, Any] | None:
    """Return the content that a link stands for, if it is a link into the session's own folder."""
    properties = content.get("additional_properties")
    if content.get("type") != "uri" or type(properties) is not dict:
        return None
    mark = properties.get(DATA_MARK)
    if type(mark) is not dict or not isinstance(mark.get("uri"), str):
        return None
    return mark if folder.owns(content["uri"]) else None
