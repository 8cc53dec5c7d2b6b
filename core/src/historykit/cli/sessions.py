"""Sessions as the command line lists them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from historykit.cli.absent import no_sessions
from historykit.cli.output import iso_moment, moment, print_json, print_table, tree
from historykit.cli.running import opened, store_options
from historykit.config import HistoryConfig
from historykit.errors import CorruptRecordError, DecodeError
from historykit.history import History
from historykit.session_bodies import Scalar
from historykit.session_records import PAGE_SESSIONS, SessionRecord
from historykit.session_search import build_query, previews, walk
from historykit.statuses import SessionStatus

if TYPE_CHECKING:
    from historykit.catalogue import Session

__all__ = ["Listed", "as_json", "report", "session_fields", "sessions", "times", "whole"]

ABOUT = 60
"""How many characters of its name, or of its newest message, a session is listed with."""

STATUSES = [status.value for status in SessionStatus]

FURTHER = (
    "name",
    "description",
    "run_status",
    "last_message_preview",
    "parent_id",
    "metadata",
    "tags",
)
"""The fields that a session has beside those of its record."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


class Listed(NamedTuple):
    """What the store says of a session, and the session itself where it can be read."""

    record: SessionRecord
    session: Session | None


def _pairs(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, Scalar]:
    """Return metadata out of KEY=VALUE; a value that is JSON is that, any other one is a text."""
    pairs: dict[str, Scalar] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE")
        try:
            pairs[name] = json.loads(text)
        except ValueError:
            pairs[name] = text
    return pairs


@click.command()
@store_options("--backend")
@click.option("--agent", metavar="ID", help="Only sessions of this agent.")
@click.option("--status", type=click.Choice(STATUSES), help="Only with this status.")
@click.option("--created-from", type=click.DateTime(), help="Only from this time on, in UTC.")
@click.option("--created-before", type=click.DateTime(), help="Only before this time, in UTC.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only with this tag.")
@click.option(
    "--metadata",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_pairs,
    help="Only with this value: JSON, or else a text.",
)
@click.option("--query", metavar="TEXT", help="Only with this text in the name or a message.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="The newest sessions up to this number.",
)
@as_json
async def sessions(config: HistoryConfig, limit: int, as_json: bool, **conditions: Any) -> None:
    """List sessions, newest first. Without --user, those of all users.

    The last column is the name, or how the newest message begins. A session whose name cannot be
    read is listed without it and named at the end, and the exit code is 1.
    """
    skipped: list[DecodeError] = []
    async with opened(config, create=False) as history:
        listed = await _found(history, limit, skipped, **conditions)
        if not listed:
            click.echo(await no_sessions(history, _nothing(conditions)), err=True)
    if as_json:
        print_json([session_fields(each) for each in listed])
    else:
        titles = ("session", "user", "agent", "status", "messages", "created (UTC)", "last message")
        print_table((*titles, "about"), map(_row, listed))
    if len(listed) == limit and not as_json:
        click.echo(f"The newest {limit}; --limit shows more.", err=True)
    report(skipped)


async def whole(
    history: History, records: Sequence[SessionRecord], skipped: list[DecodeError]
) -> list[Listed]:
    """Return sessions with all that they have; the errors of those that cannot be read go to
    `skipped`."""
    listed = []
    for record, preview in zip(records, await previews(history, records), strict=True):
        try:
            listed.append(Listed(record, history.Session()._adopt(record, preview, history)))
        except CorruptRecordError as error:
            skipped.append(error)
            listed.append(Listed(record, None))
    return listed


def report(skipped: Sequence[DecodeError]) -> None:
    """Name what could not be read; where there is something, end with the exit code 1."""
    for error in skipped:
        click.echo(f"Error: {error}", err=True)
    if skipped:
        click.get_current_context().exit(1)


def session_fields(listed: Listed) -> dict[str, Any]:
    """Return the fields of a session that are its own."""
    record, session = listed
    fields = {
        "id": record.key.session_id,
        "user_id": record.key.user_id,
        "agent_id": record.agent_id,
        "status": record.status,
        "memory_enabled": record.memory_enabled,
        "message_count": record.message_count,
        **times("created_at", record.created_at),
        **times("updated_at", record.updated_at),
        **times("last_message_at", record.last_message_at),
        "version": record.version,
        "revision": record.revision,
    }
    if session is not None:
        further = {name: getattr(session, name) for name in FURTHER}
        config = session.to_dict()["executionConfig"]
        fields |= tree({**further, "execution_config": config})
    return fields


def times(name: str, microseconds: int | None) -> dict[str, Any]:
    """Return a time twice: in microseconds since 1970, UTC, and in ISO 8601."""
    return {name: microseconds, f"{name}_iso": iso_moment(microseconds)}


async def _found(
    history: History,
    limit: int,
    skipped: list[DecodeError],
    *,
    query: str | None,
    created_from: dt.datetime | None,
    **conditions: Any,
) -> list[Listed]:
    wanted = replace(
        build_query(history, created_after=created_from, **conditions),
        limit=min(limit, PAGE_SESSIONS),
    )
    listed: list[Listed] = []
    async with aclosing(walk(history, wanted, query)) as pages:
        async for page in pages:
            listed += await whole(history, page[: limit - len(listed)], skipped)
            if len(listed) == limit:
                break
    return listed


def _nothing(conditions: dict[str, Any]) -> str:
    return "No such sessions" if any(conditions.values()) else "No sessions"


def _row(listed: Listed) -> tuple[str, ...]:
    record, session = listed
    about = session and (session.name or session.last_message_preview)
    return (
        record.key.session_id,
        record.key.user_id,
        record.agent_id,
        record.status,
        str(record.message_count),
        moment(record.created_at),
        moment(record.last_message_at),
        " ".join((about or "").split())[:ABOUT],
    )
