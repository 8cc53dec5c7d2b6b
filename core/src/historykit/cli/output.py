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

__all__ = ["moment", "print_json", "print_table", "printable"]

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
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    try:
        return f"{epoch + dt.timedelta(microseconds=microseconds):%Y-%m-%d %H:%M:%S}"
    except OverflowError:
        return str(microseconds)


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
