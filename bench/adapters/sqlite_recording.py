"""What historykit's SQLite store executes, statement by statement, taken down as it does so.

The floors execute it again. Since it is recorded anew for each run, they cannot drift from the
store: same schema, same pragmas, same statements, same values.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.adapters.floors import Script, record_rounds, seed, turn_of
from bench.plan import Plan

__all__ = ["Connecting", "Hop", "SQLiteScript", "Statement", "record"]


@dataclass(slots=True)
class Statement:
    """One statement with its values; `many` says that there is a list of them."""

    sql: str
    values: Any
    many: bool = False


@dataclass(slots=True)
class Connecting:
    """How a connection is made: the arguments of `sqlite3.connect`, and what is executed then."""

    arguments: tuple[Any, ...]
    options: dict[str, Any]
    statements: list[Statement] = field(default_factory=list)


@dataclass(slots=True)
class Hop:
    """What the store does at once in a connection's thread. `count` messages come of it."""

    connection: int = 0
    statements: list[Statement] = field(default_factory=list)
    count: int = 0


@dataclass(slots=True)
class SQLiteScript(Script):
    """What a run will execute, a `Hop` for each append and each page, and on which connections."""

    connections: list[Connecting] = field(default_factory=list)


async def record(path: Path, plan: Plan, *, largest: int) -> SQLiteScript:
    """Seed the file at `path`, and return what the store executes for the rest of the plan.

    The file stays as it was seeded.
    """
    seeded = path.with_suffix(".seeded")
    async with _history(path) as history:
        for session_id, size in plan.seeded(largest):
            await seed(history, session_id, size)
    shutil.copyfile(path, seeded)
    recorder = _Recorder()
    with recorder.listening():
        async with _history(path) as history:
            recorder.opened()
            recorder.watch(history.store)
            await record_rounds(recorder, history, plan, largest=largest)
    seeded.replace(path)
    return recorder.script


class _Recorder:
    """Takes down what all connections execute, as hops of the store."""

    def __init__(self) -> None:
        self.script = SQLiteScript()
        self._hops: list[Hop] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen to every connection that is made meanwhile."""
        connect = sqlite3.connect

        def connect_recorded(*arguments: Any, **options: Any) -> sqlite3.Connection:
            number = len(self.script.connections)
            self.script.connections.append(Connecting(arguments, options))
            connection = connect(*arguments, factory=_Connection, **options)
            connection.listeners.append(partial(self._hear, number))
            return connection

        sqlite3.connect = connect_recorded  # type: ignore[assignment]
        try:
            yield
        finally:
            sqlite3.connect = connect

    def opened(self) -> None:
        """Count all that was executed so far as the opening of its connection."""
        self._hops = [Hop()]

    def watch(self, store: Any) -> None:
        """Begin a hop whenever the store does."""
        read, append = store._read, store._append

        async def watched_read(*arguments: Any) -> Any:
            self._hops.append(Hop())
            page = await read(*arguments)
            self._hops[-1].count = len(page.messages)
            return page

        async def watched_append(*arguments: Any) -> Any:
            self._hops.append(Hop())
            return await append(*arguments)

        store._read, store._append = watched_read, watched_append

    async def append(self, history: Any, session_id: str, tag: str) -> None:
        """Append a turn and keep its hop."""
        self._hops.clear()
        await history.append(session_id, turn_of(tag))
        (hop,) = self._hops
        self.script.appends[session_id, tag] = hop

    async def load(self, history: Any, session_id: str, limit: int | None) -> None:
        """Load a session and keep its hops, one a page."""
        self._hops.clear()
        await history.load(session_id, limit=limit)
        self.script.loads[session_id, limit] = list(self._hops)

    def _hear(self, number: int, statement: Statement) -> None:
        if not self._hops:
            self.script.connections[number].statements.append(statement)
            return
        hop = self._hops[-1]
        if hop.statements and hop.connection != number:
            raise RuntimeError("the store used two connections in one hop")
        hop.connection = number
        hop.statements.append(statement)


class _Cursor(sqlite3.Cursor):
    connection: _Connection

    def execute(self, sql: str, values: Any = (), /) -> _Cursor:
        self.connection.tell(Statement(sql, values))
        super().execute(sql, values)
        return self

    def executemany(self, sql: str, values: Any, /) -> _Cursor:
        rows = list(values)
        self.connection.tell(Statement(sql, rows, many=True))
        super().executemany(sql, rows)
        return self


class _Connection(sqlite3.Connection):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.listeners: list[Callable[[Statement], None]] = []

    def tell(self, statement: Statement) -> None:
        for listen in self.listeners:
            listen(statement)

    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)

    def execute(self, sql: str, values: Any = (), /) -> Any:
        return self.cursor().execute(sql, values)

    def executemany(self, sql: str, values: Any, /) -> Any:
        return self.cursor().executemany(sql, values)


def _history(path: Path) -> Any:
    return import_module("historykit").open_history("sqlite", path=path)
