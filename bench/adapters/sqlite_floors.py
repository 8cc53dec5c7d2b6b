"""The floors of SQLite: the store's own statements with constants, and nothing around them."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.adapters.floors import RecordedFloor
from bench.adapters.sqlite_recording import Hop, SQLiteScript, record
from bench.plan import Plan

__all__ = ["AiosqliteFloor", "ThreadFloor"]


class _Floor(RecordedFloor):
    database = "sqlite"

    script: SQLiteScript
    connections: list[sqlite3.Connection]

    @property
    def path(self) -> Path:
        """The file that holds the database, where the store had it when it was recorded."""
        return self.place.folder / "history.db"

    async def record(self, plan: Plan) -> SQLiteScript:
        return await record(self.path, plan, largest=self.largest)

    def read_script(self) -> None:
        super().read_script()
        if not self.script_path.exists():
            self.script = SQLiteScript()

    def connect(self, number: int) -> sqlite3.Connection:
        """Return a connection that is made as the store makes it."""
        made = self.script.connections[number]
        connection: sqlite3.Connection = sqlite3.connect(*made.arguments, **made.options)
        for statement in made.statements:
            connection.execute(statement.sql, statement.values).fetchall()
        return connection


class AiosqliteFloor(_Floor):
    name = "floor: one aiosqlite hop"
    distributions = ("aiosqlite", "orjson")
    notes = "a hop for each append and each page; bodies are decoded in the event loop"

    async def open(self) -> None:
        self.read_script()
        aiosqlite = import_module("aiosqlite")
        self.drivers = [
            await aiosqlite.Connection(lambda n=number: self.connect(n), iter_chunk_size=64)
            for number in range(len(self.script.connections))
        ]
        self.connections = [driver._conn for driver in self.drivers]

    async def close(self) -> None:
        for driver in self.drivers:
            await driver.close()

    async def append(self, session: Any, messages: Any) -> None:
        await self._hop(messages)

    async def fetch(self, page: Hop) -> list[Any]:
        bodies = await self._hop(page)
        return [self.decode(body) for body in reversed(bodies)]

    async def _hop(self, hop: Hop) -> list[Any]:
        driver = self.drivers[hop.connection]
        bodies: list[Any] = await driver._execute(execute, driver._conn, hop)
        return bodies


class ThreadFloor(_Floor):
    name = "floor: sqlite3 in a thread"
    distributions = ("orjson",)
    notes = "a hop for each append and each load, in which bodies are decoded too"

    async def open(self) -> None:
        self.read_script()
        self.pool = ThreadPoolExecutor(max_workers=1)
        self.connections = await self._hop(
            lambda: [self.connect(number) for number in range(len(self.script.connections))]
        )

    async def close(self) -> None:
        for connection in self.connections:
            await self._hop(connection.close)
        self.pool.shutdown()

    async def append(self, session: Any, messages: Any) -> None:
        await self._hop(lambda: execute(self.connections[messages.connection], messages))

    async def _load(self, pages: list[Hop]) -> list[Any]:
        def load() -> list[Any]:
            loaded = [execute(self.connections[hop.connection], hop) for hop in pages]
            return [self.decode(body) for page in reversed(loaded) for body in reversed(page)]

        messages: list[Any] = await self._hop(load)
        return messages

    async def _hop(self, function: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.pool, function)


def execute(connection: sqlite3.Connection, hop: Hop) -> list[Any]:
    """Execute a hop and return the bodies that it is for, newest first."""
    bodies: list[Any] = []
    for statement in hop.statements:
        if statement.many:
            connection.executemany(statement.sql, statement.values)
            continue
        cursor = connection.execute(statement.sql, statement.values)
        rows = cursor.fetchall()
        if hop.count and not bodies and len(rows) >= hop.count:
            bodies = _bodies(cursor, rows[: hop.count])
    return bodies


def _bodies(cursor: sqlite3.Cursor, rows: list[Any]) -> list[Any]:
    names = [column[0] for column in cursor.description]
    if "body" not in names:
        return []
    place = names.index("body")
    return [row[place] for row in rows]
