"""A conversation as the command line shows it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import click

from historykit.cli.absent import find_record
from historykit.cli.output import moment, print_json, printable, tree
from historykit.cli.running import opened, store_options
from historykit.cli.sessions import as_json, report, session_fields, times, whole
from historykit.config import HistoryConfig
from historykit.contents import Content
from historykit.errors import CorruptRecordError, DecodeError
from historykit.history import History
from historykit.loading import decode_messages
from historykit.messages import Message
from historykit.records import StoredMessage, Window
from historykit.session_messages import SessionMessage, decode_message
from historykit.session_records import SessionRecord

__all__ = ["show"]


class Shown(NamedTuple):
    """A message: its row, what an agent gets of it, and what a session shows of it."""

    row: StoredMessage
    message: Message
    projected: SessionMessage


@click.command()
@click.argument("session")
@store_options("--backend")
@as_json
async def show(config: HistoryConfig, session: str, as_json: bool) -> None:
    """Print a conversation, with its tool calls and reactions. Times are in UTC.

    A message that cannot be read is named at the end, and the exit code is 1. In the JSON, a value
    that JSON has no type for is written with a tag, as in an export; "stored" has what the store
    says of each of the "messages". Its times are microseconds since 1970, UTC, and in ISO 8601.
    """
    skipped: list[DecodeError] = []
    async with opened(config, create=False) as history:
        record = await find_record(history, session)
        (listed,) = await whole(history, [record], skipped)
        read = [each async for each in _messages(history, record, skipped)]
    if as_json:
        messages = [tree(each.message.to_dict()) for each in read]
        stored = [_row_fields(each) for each in read]
        print_json(session_fields(listed) | {"messages": messages, "stored": stored})
    else:
        for each in read:
            _print_message(each)
    report(skipped)


async def _messages(
    history: History, record: SessionRecord, skipped: list[DecodeError]
) -> AsyncIterator[Shown]:
    """Yield the messages that can be read, oldest first."""
    key, codec = record.key, history.codec
    window, more = Window(after=0), True
    while more:
        page = await history.store.read(key, window)
        for row in page.messages:
            for message in decode_messages([row], key, codec=codec, skipped=skipped):
                yield Shown(row, message, _projected(row, record, history, skipped))
        more = page.more
        if more:
            window = Window(after=page.messages[-1].sequence)


def _projected(
    row: StoredMessage, record: SessionRecord, history: History, skipped: list[DecodeError]
) -> SessionMessage:
    """Return what a session shows of a message; nothing, if that cannot be read."""
    try:
        return decode_message(row, record.key, codec=history.codec, agent_id=record.agent_id)
    except CorruptRecordError as error:
        skipped.append(error)
        return SessionMessage()


def _row_fields(shown: Shown) -> dict[str, Any]:
    """Return what the store says of a message."""
    row, _, projected = shown
    return {
        "sequence": row.sequence,
        "id": row.id,
        **times("created_at", row.created_at),
        "turn_start": row.turn_start,
        "reaction": row.reaction,
        "revision": row.revision,
        "agent_id": projected.agent_id,
        "request_id": projected.request_id,
        "tools": tree(projected.tools),
    }


def _print_message(shown: Shown) -> None:
    row, message, _ = shown
    author = f" ({printable(message.author_name)})" if message.author_name else ""
    reaction = f"  {row.reaction}" if row.reaction else ""
    time = click.style(f"{moment(row.created_at)}{reaction}", dim=True)
    click.echo(f"{click.style(printable(str(message.role)), bold=True)}{author}  {time}")
    for content in message.contents:
        for line in printable(_shown(content)).split("\n"):
            click.echo(f"  {line}")


def _shown(content: Content) -> str:
    """Return what a reader wants to see of a content; a long piece of data is its beginning."""
    match content.type:
        case "text":
            return content.text or ""
        case "text_reasoning":
            return f"(thinks) {content.text or ''}"
        case "function_call":
            return f"-> {content.name}({_text(content.arguments)})  [{content.call_id}]"
        case "function_result":
            return f"<- {_text(content.exception or content.result)}  [{content.call_id}]"
        case "uri":
            return f"[{content.media_type or 'link'}] {content.uri}"
        case "data":
            return f"[{content.media_type or 'data'}] {len(content.uri or '')} characters"
        case other:
            fields = content.to_dict(exclude={"type", "additional_properties"})
            return f"[{other}] {_text(fields)}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
