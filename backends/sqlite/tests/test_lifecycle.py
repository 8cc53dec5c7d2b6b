"""Event loops, forks, and the end of a process."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from historykit.errors import WrongLoopError
from historykit.records import StoredMessage, Window
from historykit.session_records import SessionKey
from historykit.testing.drafts import draft, drafts, texts
from historykit_sqlite import SQLiteStore

Make = Callable[..., SQLiteStore]
Run = Callable[..., Any]

FORGET = """
async def main():
    global store
    store = await make().open()
    await store.append(key, drafts("m", 2))
    print("done", flush=True)

asyncio.run(main())
"""

INTERRUPTED = """
async def main():
    global store
    store = await make(synchronous="normal").open()
    await store.append(key, drafts("m", 2))
    for number in range(50):
        asyncio.create_task(store.append(key, drafts(str(number), 100)))
    await asyncio.sleep(0)

asyncio.run(main())
"""

CANCELLED = """
async def main():
    store = await make().open()
    await store.append(key, drafts("m", 2))
    closing = asyncio.create_task(store.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])

asyncio.run(main())
os.unlink(path)
"""

FORK = """
import signal, time

CHILDREN = 6

async def child(store, number, wait):
    await store.append(key, drafts(f"child {number}", 2))
    os.read(wait, 1)
    await store.append(key, drafts(f"orphan {number}", 2))
    await store.aclose()

def fork(store, number, wait):
    process = os.fork()
    if process:
        return process
    signal.alarm(20)
    try:
        asyncio.run(child(store, number, wait))
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)

async def main():
    wait, go = os.pipe()
    store = await make().open()
    processes = []
    for number in range(CHILDREN):
        writing = asyncio.create_task(store.append(key, drafts(f"parent {number}", 2)))
        for _ in range(3):
            await asyncio.sleep(0)  # until the write is in the queue of the thread
        begin = time.monotonic()
        while not store._writer._working.locked() and time.monotonic() < begin + 0.1:
            pass
        processes.append(fork(store, number, wait))
        await writing
    while (await store.read_session(key)).message_count < 4 * CHILDREN:
        await asyncio.sleep(0.01)
    await store.aclose()
    os.write(go, b"." * CHILDREN)
    print(*(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes))

warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
asyncio.run(main())
"""


def test_a_process_that_never_closes_ends(run: Run, make: Make, key: SessionKey) -> None:
    """A process that forgot to close ends at once, with one warning, and what it wrote is there."""
    begin = time.monotonic()
    done = run(FORGET, options=("-W", "always::ResourceWarning"))
    assert time.monotonic() - begin < 5
    assert done.stdout == "done\n"
    assert done.stderr.count("ResourceWarning") == 1
    assert "SQLiteStore" in done.stderr
    assert "was never closed" in done.stderr
    assert asyncio.run(read(make(), key)) == ["m 0", "m 1"]


def test_an_interpreter_that_ends_amid_writes(run: Run, make: Make, key: SessionKey) -> None:
    """Where the loop ends while writes are under way, each is done whole or not at all, and no
    thread complains."""
    assert run(INTERRUPTED).stderr == ""
    found = asyncio.run(read(make(), key))
    assert found[:2] == ["m 0", "m 1"]
    assert len(found) % 100 == 2


def test_a_close_that_is_cancelled(run: Run) -> None:
    """A process in which closing was cancelled ends, and the file can be deleted."""
    done = run(CANCELLED, options=("-W", "always::ResourceWarning"))
    assert done.stderr == ""


def test_a_closed_store_leaves_one_file(make: Make, key: SessionKey, path: Path) -> None:
    """After a close the file is all there is, and no thread is left."""
    before = threading.active_count()
    asyncio.run(write(make(), key))
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    wait_until(lambda: threading.active_count() <= before)


def test_one_store_in_two_loops_after_each_other(make: Make, key: SessionKey) -> None:
    """A store that was not closed goes on in the next loop, and leaves no thread behind."""
    before = threading.active_count()
    store = make()

    async def use() -> list[str]:
        await store.open()
        await store.append(key, drafts("m", 1))
        return texts((await store.read(key)).messages)

    assert [len(asyncio.run(use())) for _ in range(3)] == [1, 2, 3]
    asyncio.run(store.aclose())
    wait_until(lambda: threading.active_count() <= before)


def test_one_store_in_two_loops_at_the_same_time(make: Make, key: SessionKey) -> None:
    """While its loop is not closed, a store refuses another one and goes on in its own."""
    store = make()

    async def use() -> None:
        async with store:
            with pytest.raises(WrongLoopError):
                await asyncio.to_thread(asyncio.run, store.read(key))
            await store.append(key, drafts("m", 1))

    asyncio.run(use())


def test_a_store_that_is_collected(make: Make, key: SessionKey, path: Path) -> None:
    """A store that nobody closed warns once when it is collected, and gives its file back."""
    before = threading.active_count()

    async def forget() -> None:
        store = await make().open()
        await store.append(key, drafts("m", 1))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(forget())
        gc.collect()
    assert [warning.category for warning in caught] == [ResourceWarning]
    wait_until(lambda: [entry.name for entry in path.parent.iterdir()] == [path.name])
    wait_until(lambda: threading.active_count() <= before)


def test_forked_children_and_their_parent_share_the_file(
    run: Run, make: Make, key: SessionKey
) -> None:
    """Children forked amid a write go on, so does the parent, and what a child writes after the
    parent has closed the file is there as well."""
    assert run(FORK).stdout == "0 0 0 0 0 0\n"
    found = asyncio.run(read(make(), key))
    writers = [f"{name} {number}" for name in ("parent", "child") for number in range(6)]
    assert sorted(found[:24]) == sorted(f"{writer} {i}" for writer in writers for i in range(2))
    assert sorted(found[24:]) == [f"orphan {number} {i}" for number in range(6) for i in range(2)]


def test_the_driver_logs_no_content(
    make: Make, key: SessionKey, caplog: pytest.LogCaptureFixture
) -> None:
    """With all logging on, no message and no id of a user is in the log."""
    caplog.set_level(logging.DEBUG)
    secret = SessionKey("app", "ada-lovelace", "s")
    asyncio.run(write(make(), secret))
    assert "executing" in caplog.text
    assert "m 0" not in caplog.text
    assert "lovelace" not in caplog.text


async def write(store: SQLiteStore, key: SessionKey) -> None:
    async with store:
        await store.append(key, [draft("m 0", role="user")])
        await store.read(key)


async def read(store: SQLiteStore, key: SessionKey) -> list[str]:
    """Return the texts of all messages, of however many pages."""
    found: list[StoredMessage] = []
    async with store:
        while True:
            page = await store.read(key, Window(after=found[-1].sequence if found else 0))
            found += page.messages
            if not page.more:
                return texts(found)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
