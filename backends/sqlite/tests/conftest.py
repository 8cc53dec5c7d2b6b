"""What the tests of the SQLite backend share: a file, and processes that use it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from historykit.session_records import SessionKey
from historykit_sqlite import SQLiteConfig, SQLiteStore

Start = Callable[..., "subprocess.Popen[str]"]

PRELUDE = """
import asyncio, os, sys, warnings
from historykit.errors import *
from historykit.records import *
from historykit.session_records import *
from historykit.testing.drafts import conversation, draft, drafts, texts
from historykit_sqlite import SQLiteConfig, SQLiteStore

path, *arguments = sys.argv[1:]
key = SessionKey("app", "", "s")

def make(**settings):
    return SQLiteStore(SQLiteConfig(path=path, **settings))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that does not exist yet."""
    return tmp_path / "chat.db"


@pytest.fixture
def key() -> SessionKey:
    return SessionKey("app", "", "s")


@pytest.fixture
def make(path: Path) -> Callable[..., SQLiteStore]:
    """Return a function that makes a store on the file."""

    def make(**settings: Any) -> SQLiteStore:
        return SQLiteStore(SQLiteConfig(path=path, **settings))

    return make


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Return a function that starts a process of Python with a script that uses the file.

    The script finds `make`, `key` and the arguments, and the names that a script needs.
    """
    processes = []

    def start(script: str, *arguments: object, options: tuple[str, ...] = ()) -> Any:
        command = [sys.executable, *options, "-c", PRELUDE + textwrap.dedent(script)]
        process = subprocess.Popen(
            [*command, str(path), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def run(start: Start) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a script to its end, which has to be a good one."""

    def run(script: str, *arguments: object, **how: Any) -> Any:
        process = start(script, *arguments, **how)
        output, errors = process.communicate(timeout=30)
        assert process.returncode == 0, errors
        return subprocess.CompletedProcess(process.args, 0, output, errors)

    return run


@contextmanager
def looking_into(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection of SQLite's own to the file."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        yield db
    finally:
        db.close()


@pytest.fixture
def inside(path: Path) -> Callable[..., list[Any]]:
    """Return a function that executes a statement on the file, past the store."""

    def inside(statement: str, *values: object) -> list[Any]:
        with looking_into(path) as db:
            return db.execute(statement, values).fetchall()

    return inside
