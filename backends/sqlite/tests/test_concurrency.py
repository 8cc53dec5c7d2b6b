"""Several connections and several processes on one file."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from historykit.errors import (
    ConflictError,
    HistoryKitError,
    StorageUnavailableError,
    VersionConflictError,
)
from historykit.records import Window
from historykit.session_records import SessionKey
from historykit.testing.drafts import draft, drafts, texts
from historykit_sqlite import SQLiteStore

pytestmark = pytest.mark.asyncio

Make = Callable[..., SQLiteStore]

HOLD = """
import sqlite3, time

db = sqlite3.connect(path, isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(float(arguments[0]))
db.execute("ROLLBACK")
"""

LOOK = """
import sqlite3

db = sqlite3.connect(path, isolation_level=None)
db.execute("BEGIN")
db.execute("SELECT * FROM messages").fetchall()
print("looking", flush=True)
sys.stdin.readline()
"""

WRITE = """
async def main():
    async with make() as store:
        async def write(writer):
            for number in range(4):
                await store.append(key, drafts(f"{arguments[0]} {writer} {number}", 2))
        print("ready", flush=True)
        sys.stdin.readline()
        await asyncio.gather(*(write(writer) for writer in range(10)))

asyncio.run(main())
"""


@pytest.fixture
def hold(start: Callable[..., Any]) -> Callable[[float], Any]:
    """Return a function that lets another process hold the file's lock for some seconds."""

    def hold(seconds: float) -> Any:
        process = start(HOLD, seconds)
        assert process.stdout.readline() == "locked\n", process.stderr.read()
        return process

    return hold


async def test_writes_wait_for_another_process(
    make: Make, key: SessionKey, hold: Callable[[float], Any]
) -> None:
    """All kinds of writes that meet a lock of another process are done when it is gone."""
    async with make(busy_timeout=10) as store:
        await store.append(key, [draft("m", id="m")])
        hold(1)
        begin = time.monotonic()
        await asyncio.gather(
            store.append(key, drafts("n", 1)),
            store.claim_run(key, "run", ttl=60),
            store.delete_session(SessionKey("app", "", "other")),
            *(store.append(SessionKey("app", "", str(i)), drafts("n", 1)) for i in range(9)),
        )
        assert 0.5 < time.monotonic() - begin < 5
        assert texts((await store.read(key)).messages) == ["m", "n 0"]


async def test_a_lock_that_is_held_too_long_is_an_error_in_time(
    make: Make, key: SessionKey, hold: Callable[[float], Any]
) -> None:
    """After `busy_timeout` a write fails as unavailable, and is not done later."""
    async with make(busy_timeout=0.3) as store:
        await store.append(key, drafts("m", 1))
        process = hold(20)
        begin = time.monotonic()
        outcomes = await asyncio.gather(
            *(store.append(key, drafts("n", 1)) for _ in range(5)), return_exceptions=True
        )
        assert 0.3 <= time.monotonic() - begin < 3
        assert {type(outcome) for outcome in outcomes} == {StorageUnavailableError}
        assert "busy_timeout" in str(outcomes[0])
        process.kill()
        process.wait()
        await store.append(key, drafts("o", 1))
        assert texts((await store.read(key)).messages) == ["m 0", "o 0"]


async def test_a_load_does_not_wait_behind_a_writer(
    make: Make, key: SessionKey, hold: Callable[[float], Any]
) -> None:
    """While a write waits for a lock, reads of the same store are answered."""
    async with make() as store:
        await store.append(key, drafts("m", 1))
        process = hold(20)
        writing = asyncio.create_task(store.append(key, drafts("n", 1)))
        await asyncio.sleep(0.05)
        assert texts((await store.read(key)).messages) == ["m 0"]
        assert (await store.read_session(key)).message_count == 1
        assert not writing.done()
        process.kill()
        await writing


async def test_opening_waits_for_another_process(
    make: Make, key: SessionKey, hold: Callable[[float], Any]
) -> None:
    """A file that another process has locked opens, and so does one that it is creating."""
    process = hold(0.5)
    async with make() as store:
        await store.append(key, drafts("m", 1))
    process.wait()


async def test_a_session_with_fifty_writers_in_five_processes(
    make: Make, key: SessionKey, start: Callable[..., Any]
) -> None:
    """Of 200 turns written at the same time all are there, whole, and nobody saw an error."""
    async with make() as store:
        processes = [start(WRITE, number) for number in range(5)]
        for process in processes:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes:
            _, errors = await asyncio.to_thread(process.communicate)
            assert (process.returncode, errors) == (0, "")
        page = await store.read(key)
    assert [row.sequence for row in page.messages] == list(range(1, 401))
    found = texts(page.messages)
    turns = Counter(text.rpartition(" ")[0] for text in found)
    assert set(turns.values()) == {2}
    assert len(turns) == 200
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert (first[:-1], first[-1], second[-1]) == (second[:-1], "0", "1")


async def test_writes_that_come_together_are_committed_together(
    make: Make, key: SessionKey
) -> None:
    """What is asked for while a write is under way takes fewer transactions than writes."""
    statements: list[str] = []
    async with make() as store:
        await store._writer.do(lambda db: db.set_trace_callback(statements.append))
        under_way = asyncio.create_task(store._writer.do(lambda db: time.sleep(0.5)))
        await asyncio.gather(*(store.append(key, drafts(str(i), 1)) for i in range(50)))
        await under_way
        assert texts((await store.read(key)).messages) == [f"{i} 0" for i in range(50)]
    assert statements.count("COMMIT") <= 3


async def test_a_refused_write_takes_no_other_along(make: Make, key: SessionKey) -> None:
    """Of writes that come together, each gets its own answer: done, or its own error."""
    async with make() as store:
        await store.append(key, [draft("m", id="m")])
        outcomes = await asyncio.gather(
            store.append(key, drafts("a", 1)),
            store.append(key, drafts("b", 1), expected_version=7),
            store.append(key, [draft("other", id="m")]),
            store.append(key, drafts("c", 1)),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes[1:3]] == [VersionConflictError, ConflictError]
        assert not any(isinstance(outcomes[i], HistoryKitError) for i in (0, 3))
        page = await store.read(key)
    assert texts(page.messages) == ["m", "a 0", "c 0"]
    assert page.version == 3


async def test_cancelled_writes_are_there_or_not(make: Make, key: SessionKey) -> None:
    """Writes that are cancelled while they wait in the queue are done whole, in order."""
    async with make() as store:
        tasks = [asyncio.create_task(store.append(key, drafts(str(i), 2))) for i in range(20)]
        await asyncio.sleep(0)
        for task in tasks[1::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    async with make() as store:
        found = texts((await store.read(key)).messages)
    assert [text for text in found[::2] if int(text[:-2]) % 2 == 0] == [
        f"{i} 0" for i in range(0, 20, 2)
    ]
    assert [text[:-2] for text in found[::2]] == [text[:-2] for text in found[1::2]]


async def test_a_page_sees_one_state(make: Make, key: SessionKey) -> None:
    """A page's version is that of its messages, whatever is written meanwhile."""
    async with make(synchronous="normal") as store, make() as other:

        async def write() -> None:
            for number in range(200):
                await store.append(key, drafts(str(number), 1))

        writing = asyncio.create_task(write())
        while not writing.done():
            page = await other.read(key, Window(limit=1))
            assert [row.sequence for row in page.messages] == [page.version][: page.version]
        await writing


async def test_a_reader_elsewhere_does_not_stop_a_deletion(
    make: Make, key: SessionKey, start: Callable[..., Any]
) -> None:
    """A session is deleted though another process looks at it, and leaves the log afterwards."""
    async with make(busy_timeout=0.3) as store:
        await store.append(key, drafts("m", 1))
        process = start(LOOK)
        assert process.stdout.readline() == "looking\n"
        assert (await store.delete_session(key)).messages == 1
        assert (await store.read(key)).incarnation is None
        process.kill()
        process.wait()
        await store.delete_session(key)
        log = store._path.with_name("chat.db-wal")
        assert log.stat().st_size == 0
