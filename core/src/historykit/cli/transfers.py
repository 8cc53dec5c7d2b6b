"""Commands that move conversations into a store and out of it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from historykit.capabilities import Guarantee
from historykit.cli.absent import find_record, no_sessions
from historykit.cli.running import opened, store_options
from historykit.config import DEFAULT_NAMESPACE, HistoryConfig
from historykit.errors import NotFoundError
from historykit.exporting import export_sessions
from historykit.history import History, open_history
from historykit.importing import ImportReport, check_conversations, import_conversations
from historykit.portable import ExportedMessage, ExportedSession, write_line
from historykit.session_records import SessionQuery

__all__ = ["export", "import_"]


def _writable(context: click.Context, parameter: click.Parameter, path: str) -> str:
    directory = os.path.dirname(path)
    if directory and not os.path.isdir(directory):
        raise click.BadParameter(f"the directory {directory!r} does not exist; create it")
    return path


@click.command("import")
@click.argument("file", type=click.File("rb"), metavar="FILE.jsonl")
@store_options("--to", "--backend")
async def import_(config: HistoryConfig, file: BinaryIO) -> None:
    """Put the conversations of a file into a store.

    FILE.jsonl is a file, or "-" for the standard input. A line is a conversation of the
    chat-completions API, {"id", "agent", "messages"}, or a part of what `historykit export` wrote.
    All lines are checked before the first one is stored.

    Importing again adds what is missing and nothing else: a turn is recognized by the id of its
    conversation and its number in it, a message of an export by its own id. A conversation that the
    store has with other contents is left alone and named, and the exit code is 1.
    """
    with _seekable(file) as lines, _progress("Checking") as advance:
        check = await check_conversations(open_history(config), lines)  # before a store is made
        async with opened(config) as history:
            report = await import_conversations(history, lines, check=check, progress=advance)
            shared = Guarantee.SHARED in history.store.guarantees
    _print_report(report)
    if not report.conversations:
        click.echo(f"{file.name} has no conversation", err=True)
    elif not shared:
        click.echo(f"The {config.backend} store is gone with this command", err=True)
    if report.failures:
        click.get_current_context().exit(1)


@click.command()
@store_options("--from", "--backend")
@click.option("--session", "session_id", metavar="ID", help="One session; all without it.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    callback=_writable,
    default="-",
    metavar="FILE.jsonl",
    help='Where to write; "-", the default, is the standard output.',
)
async def export(config: HistoryConfig, session_id: str | None, output: str) -> None:
    """Write the conversations of a store as JSONL.

    `historykit import` puts them into any other store. Without --user the sessions of all users are
    written: all streams, every message exactly, with its id, time and reaction. FILE.jsonl is there
    when all of it is. Where a session, a user or a namespace is named that has nothing, nothing is
    written, and the exit code is 1.
    """
    sessions = messages = 0
    async with opened(config, create=False) as history:
        total = await _count(history, session_id)
        with _output(output) as file, _progress("Exporting") as advance:
            async for line in export_sessions(history, session_id=session_id):
                file.write(write_line(line))
                messages += isinstance(line, ExportedMessage)
                if isinstance(line, ExportedSession):
                    sessions += 1
                    advance(sessions, total)
        said = f"{_number(sessions, 'session')}, {_number(messages, 'message')}"
        if not sessions:
            said += f": {await no_sessions(history)}"
    click.echo(f"Exported {said}", err=True)


async def _count(history: History, session_id: str | None) -> int:
    """Return how many sessions there are to export.

    Raises `NotFoundError` where a session, a user or a namespace is named that is not there: a copy
    of nothing would pass for one of what was meant.
    """
    if session_id is not None:
        await find_record(history, session_id)
        return 1
    query = SessionQuery(namespace=history.namespace, user_id=history.user_id or None, limit=1)
    total = (await history.store.find_sessions(query)).total or 0
    if not total and (history.user_id or history.namespace != DEFAULT_NAMESPACE):
        raise NotFoundError(await no_sessions(history))
    return total


def _print_report(report: ImportReport) -> None:
    for failure in report.failures:
        click.echo(
            f"line {failure.line}: the store has {failure.session_id!r} with other contents; "
            "delete it there, or give it another id",
            err=True,
        )
    there = report.messages - report.added - report.failed
    counts = f"{report.added:,} added, {there:,} there already"
    if report.failures:
        counts += f", {report.failed:,} not stored"
    click.echo(
        f"{_number(report.conversations, 'conversation')} with "
        f"{_number(report.messages, 'message')}: {counts}"
    )


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@contextmanager
def _progress(first: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal, and give a function that moves it on."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(first, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance


@contextmanager
def _seekable(file: BinaryIO) -> Iterator[BinaryIO]:
    """Give a file that can be read twice: a copy, where it comes through a pipe."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        yield copy


@contextmanager
def _output(path: str) -> Iterator[BinaryIO]:
    """Give a file to write to, which takes its name only when all is written."""
    if path == "-":
        yield sys.stdout.buffer
        return
    part = f"{path}.part"
    try:
        with open(part, "wb") as file:
            yield file
        os.replace(part, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise
