"""Commands that look at what is stored."""

from __future__ import annotations

import datetime as dt
import json
import shlex
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import click

from historykit.capabilities import Capability
from historykit.cli.output import iso_moment, moment, print_json, print_table, printable
from historykit.cli.running import opened, store_options
from historykit.config import HistoryConfig
from historykit.contents import Content
from historykit.errors import DecodeError, NotFoundError
from historykit.exporting import find_all
from historykit.history import History
from historykit.loading import decode_messages
from historykit.messages import Message
from historykit.records import (
    PAGE_MESSAGES,
    SessionKey,
    SessionQuery,
    SessionRecord,
    StoredMessage,
    Window,
)

__all__ = ["sessions", "show"]

SEARCHED = 5_000
"""Among how many sessions, the newest, the owner of one is looked for that was not found."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


@click.command()
@click.argument("session")
@store_options("--backend")
@as_json
async def show(config: HistoryConfig, session: str, as_json: bool) -> None:
    """Print a conversation, with its tool calls. Times are in UTC.

    A message that cannot be read is named at the end, and the exit code is 1. In the JSON, a value
    that JSON has no type for is written with a tag, as in an export; "stored" has what the store
    says of each of the "messages". Its times are microseconds since 1970, UTC, and in ISO 8601.
    """
    skipped: list[DecodeError] = []
    async with opened(config, create=False) as history:
        record = await _record(history, session)
        read = [each async for each in _messages(history, record.key, skipped)]
    if as_json:
        messages = [_tree(message) for _, message in read]
        stored = [_row_fields(row) for row, _ in read]
        print_json(_fields(record) | {"messages": messages, "stored": stored})
    else:
        for row, message in read:
            _print_message(row, message)
    for error in skipped:
        click.echo(f"Error: {error}", err=True)
    if skipped:
        click.get_current_context().exit(1)


@click.command()
@store_options("--backend")
@click.option("--agent", metavar="ID", help="Only sessions of this agent.")
@click.option("--status", help="Only sessions with this status.")
@click.option("--created-from", type=click.DateTime(), help="Only from this time on, in UTC.")
@click.option("--created-before", type=click.DateTime(), help="Only before this time, in UTC.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="The newest sessions up to this number.",
)
@as_json
async def sessions(
    config: HistoryConfig,
    agent: str | None,
    status: str | None,
    created_from: dt.datetime | None,
    created_before: dt.datetime | None,
    limit: int,
    as_json: bool,
) -> None:
    """List sessions, newest first. Without --user, those of all users."""
    async with opened(config, create=False) as history:
        query = SessionQuery(
            namespace=history.namespace,
            user_id=history.user_id or None,
            agent_id=agent,
            status=status,
            created_from=_microseconds(created_from),
            created_before=_microseconds(created_before),
            limit=min(limit, PAGE_MESSAGES),
        )
        records = []
        async with aclosing(find_all(history.store, query)) as found:
            async for record in found:
                records.append(record)
                if len(records) == limit:
                    break
    if as_json:
        print_json([_fields(record) for record in records])
    else:
        titles = ("session", "user", "agent", "status", "messages", "created (UTC)", "last message")
        print_table(titles, map(_row, records))
    if len(records) == limit and not as_json:
        click.echo(f"The newest {limit}; --limit shows more.", err=True)


async def _record(history: History, session: str) -> SessionRecord:
    try:
        return await history.store.read_session(history.key(session))
    except NotFoundError:
        remedy = await _owner(history, session)
    raise NotFoundError(f"session {session!r} not found; {remedy}")


async def _owner(history: History, session: str) -> str:
    """Say how the session can be found: another user may have one of that id."""
    listing = "`historykit sessions` lists those that are there"
    if Capability.CATALOGUE not in history.store.capabilities:
        return listing
    query = SessionQuery(namespace=history.namespace, limit=PAGE_MESSAGES)
    seen = 0
    async with aclosing(find_all(history.store, query)) as found:
        async for record in found:
            if record.key.session_id == session:
                return _as_owner(record.key.user_id)
            seen += 1
            if seen == SEARCHED:
                break
    return listing


def _as_owner(user_id: str) -> str:
    if user_id == "":
        return "there is one of no user: leave out --user and HISTORYKIT_USER_ID"
    return f"user {user_id!r} has one: add --user {shlex.quote(user_id)}"


async def _messages(
    history: History, key: SessionKey, skipped: list[DecodeError]
) -> AsyncIterator[tuple[StoredMessage, Message]]:
    """Yield the messages that can be read, oldest first, each with what the store says of it."""
    window, more = Window(after=0), True
    while more:
        page = await history.store.read(key, window)
        for row in page.messages:
            for message in decode_messages([row], key, codec=history.codec, skipped=skipped):
                yield row, message
        more = page.more
        if more:
            window = Window(after=page.messages[-1].sequence)


def _microseconds(time: dt.datetime | None) -> int | None:
    if time is None:
        return None
    aware = time if time.tzinfo is not None else time.replace(tzinfo=dt.UTC)
    return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def _row(record: SessionRecord) -> tuple[str, ...]:
    return (
        record.key.session_id,
        record.key.user_id,
        record.agent_id,
        record.status,
        str(record.message_count),
        moment(record.created_at),
        moment(record.last_message_at),
    )


def _fields(record: SessionRecord) -> dict[str, Any]:
    """Return the fields of a session that are its own."""
    return {
        "id": record.key.session_id,
        "user_id": record.key.user_id,
        "agent_id": record.agent_id,
        "status": record.status,
        "memory_enabled": record.memory_enabled,
        "message_count": record.message_count,
        **_times("created_at", record.created_at),
        **_times("updated_at", record.updated_at),
        **_times("last_message_at", record.last_message_at),
        "version": record.version,
        "revision": record.revision,
    }


def _row_fields(row: StoredMessage) -> dict[str, Any]:
    """Return what the store says of a message."""
    return {
        "sequence": row.sequence,
        "id": row.id,
        **_times("created_at", row.created_at),
        "turn_start": row.turn_start,
        "reaction": row.reaction,
        "revision": row.revision,
    }


def _times(name: str, microseconds: int | None) -> dict[str, Any]:
    """Return a time twice: in microseconds since 1970, UTC, and in ISO 8601."""
    return {name: microseconds, f"{name}_iso": iso_moment(microseconds)}


def _tree(message: Message) -> Any:
    from historykit.exact import write_exact

    tree, _ = write_exact(message.to_dict())
    return tree


def _print_message(row: StoredMessage, message: Message) -> None:
    author = f" ({printable(message.author_name)})" if message.author_name else ""
    time = click.style(moment(row.created_at), dim=True)
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
