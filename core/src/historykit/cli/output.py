"""What is printed: texts that a terminal may show, tables, JSON."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["iso_moment", "moment", "print_json", "print_table", "printable", "tree"]

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

WIDE = 10_000
"""The width of a table that is not for a terminal: nothing in it is cut."""


UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal obeys rather than shows, and what cannot be written as UTF-8."""


def printable(text: str) -> str:
    """Return a text with escapes for all that a terminal would obey; line feeds and tabs stay."""
    return UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def moment(microseconds: int | None) -> str:
    """Return a time of a store as people write it, in UTC; "" for None."""
    if microseconds is None:
        return ""
    time = _time(microseconds)
    return str(microseconds) if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def iso_moment(microseconds: int | None) -> str | None:
    """Return a time of a store in ISO 8601, in UTC; None for None and for what no calendar has."""
    time = None if microseconds is None else _time(microseconds)
    return None if time is None else time.isoformat(timespec="microseconds")


def _time(microseconds: int) -> dt.datetime | None:
    try:
        return EPOCH + dt.timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, as wide as it takes where it does not go to a terminal."""
    table = Table(*titles, box=None, pad_edge=False, header_style="bold", show_header=any(titles))
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console()
    if console.is_terminal:
        console.print(table)
        return
    with (wide := Console(width=WIDE)).capture() as capture:
        wide.print(table)
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def print_json(value: Any) -> None:
    """Print a value as JSON in UTF-8, for programs to read."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    safe = UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    click.echo(safe.encode())


def tree(value: Any) -> Any:
    """Return a value as JSON has it, with a tag where JSON has no type for it, as in an export."""
    from historykit.exact import write_exact

    found, _ = write_exact(value)
    return found
