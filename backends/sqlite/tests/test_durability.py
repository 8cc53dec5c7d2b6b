"""What a write that returned survives.

More rounds of the killed writer: ``HISTORYKIT_KILL_ROUNDS=50 pytest -k killed``.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from historykit.capabilities import Guarantee
from historykit.records import StoredMessage, Window
from historykit.session_records import SessionKey
from historykit_sqlite import SQLiteStore

pytestmark = pytest.mark.asyncio

ROUNDS = int(os.environ.get("HISTORYKIT_KILL_ROUNDS", "3"))

WRITER = """
async def write(store, writer, number):
    while True:
        await store.append(key, drafts(f"{arguments[0]} {writer} {number}", 3))
        print(arguments[0], writer, number, flush=True)
        number += 1

async def main():
    async with make() as store:
        await asyncio.gather(*(write(store, writer, 0) for writer in range(4)))

asyncio.run(main())
"""

KILLED_MIDWAY = """
import signal

async def main():
    inserts = 0

    def count(statement):
        nonlocal inserts
        inserts += "INSERT INTO messages" in statement
        if inserts == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    async with make() as store:
        await store.append(key, drafts("whole", 2))
        await store._writer.do(lambda db: db.set_trace_callback(count))
        await store.append(key, drafts("half", 5))

asyncio.run(main())
"""


def pragma(db: sqlite3.Connection, name: str) -> Any:
    return db.execute(f"PRAGMA {name}").fetchone()[0]


@pytest.mark.parametrize(("synchronous", "number"), [("full", 2), ("normal", 1)])
async def test_the_connection_is_as_safe_as_configured(
    make: Callable[..., SQLiteStore], synchronous: str, number: int
) -> None:
    """A write goes to the write-ahead log, waits as configured, and keeps foreign keys."""
    names = ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
    async with make(synchronous=synchronous) as store:
        found = await store._writer.do(lambda db: [pragma(db, name) for name in names])
    assert found == ["wal", number, 1, 1]


async def test_a_write_waits_for_the_disk_by_default(make: Callable[..., SQLiteStore]) -> None:
    """Without any setting a write that returned survives a power loss."""
    async with make() as store:
        assert Guarantee.SURVIVES_POWER_LOSS in store.guarantees
        assert Guarantee.SURVIVES_FAILOVER not in store.guarantees


async def test_less_durability_claims_less(make: Callable[..., SQLiteStore]) -> None:
    """A store that does not wait for the disk survives a kill and does not claim power loss."""
    async with make(synchronous="normal") as store:
        assert store.guarantees == {Guarantee.SHARED, Guarantee.SURVIVES_KILL}


async def test_ping_says_what_answers(make: Callable[..., SQLiteStore]) -> None:
    """The answer to a ping is the version of the library, and the settings worth knowing."""
    async with make() as store:
        info = await store.ping()
    assert (info.product, info.version) == ("SQLite", sqlite3.sqlite_version)
    assert info.settings["journal_mode"] == "wal"


async def test_a_killed_writer_loses_and_tears_nothing(
    make: Callable[..., SQLiteStore], start: Callable[..., Any], key: SessionKey
) -> None:
    """After kill -9 every acknowledged batch is there, and every batch is there whole."""
    acknowledged: set[str] = set()
    for round in range(ROUNDS):
        process = start(WRITER, round)
        first = process.stdout.readline()
        time.sleep(random.uniform(0, 0.15))
        process.kill()
        acknowledged.update((first + process.stdout.read()).splitlines())
        async with make() as store:
            found = batches(await everything(store, key))
        assert acknowledged <= found.keys()
        for sequences in found.values():
            assert sequences == list(range(sequences[0], sequences[0] + 3))
    assert len(acknowledged) >= ROUNDS


async def test_a_batch_that_is_killed_midway_is_not_there(
    make: Callable[..., SQLiteStore], start: Callable[..., Any], key: SessionKey
) -> None:
    """A writer that dies between two messages of a batch leaves none of them."""
    process = start(KILLED_MIDWAY)
    process.stdout.read()
    assert process.wait() == -signal.SIGKILL
    async with make() as store:
        found = batches(await everything(store, key))
        tail = await store.read_tail(key)
    assert [len(sequences) for sequences in found.values()] == [2]
    assert (tail.count, tail.version) == (2, 1)


async def everything(store: SQLiteStore, key: SessionKey) -> list[StoredMessage]:
    rows: list[StoredMessage] = []
    while True:
        page = await store.read(key, Window(after=rows[-1].sequence if rows else 0))
        rows += page.messages
        if not page.more:
            return rows


def batches(rows: list[StoredMessage]) -> dict[str, list[int]]:
    """Return the sequences of each batch, by the round, the writer and the number of it."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[row.body.decode().rpartition(" ")[0]].append(row.sequence)
    return found
