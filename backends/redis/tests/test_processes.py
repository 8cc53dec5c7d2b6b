"""Event loops and processes: a store opens anew where it can, and harms nobody."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import warnings

import pytest

from historykit.session_records import SessionKey
from historykit.testing.drafts import draft, texts
from historykit_redis import RedisConfig, RedisStore
from tests.services.redis import RedisServer


def run(script: str, *arguments: str) -> str:
    """Run a script in a process of its own, which has 20 seconds, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FORKED = """
import asyncio, gc, os, sys
from historykit.session_records import SessionKey
from historykit.testing.drafts import draft, texts
from historykit_redis import RedisConfig, RedisStore

store = RedisStore(RedisConfig(url=sys.argv[1], timeout=30.0))
keys = [SessionKey("app", "", "s%d" % number) for number in range(5)]

async def use(text):
    await asyncio.gather(*(store.append(key, [draft(text)]) for key in keys))

async def in_child():
    await use("child")
    gc.collect()
    await use("child")
    await store.aclose()

async def main():
    await store.open()
    await use("before")
    for leave in (os._exit, sys.exit):
        child = os.fork()
        if child == 0:
            asyncio.run(in_child())
            leave(0)
        await use("parent")
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            await asyncio.sleep(0.01)
        async with asyncio.timeout(5):  # a connection that was harmed is repaired much later
            for _ in range(20):
                await use("after")
    pages = await asyncio.gather(*(store.read(key) for key in keys))
    assert all(texts(page.messages).count("child") == 4 for page in pages), pages
    assert all(texts(page.messages).count("after") == 40 for page in pages)
    await store.aclose()
    print("parent done")

asyncio.run(main())
"""


def test_fork_in_the_middle_of_a_loop(server: RedisServer) -> None:
    """A child that was forked from a running loop uses the store on one of its own, and ends in
    either way; the parent's connections work on."""
    assert run(FORKED, server.url) == "parent done\n"


def test_next_loop_opens_anew(server: RedisServer, key: SessionKey) -> None:
    """A store of which one loop was closed opens on the next, a hundred times, without keeping the
    connections of those before."""
    store = RedisStore(RedisConfig(url=server.url))

    async def use(number: int) -> None:
        if number == 0:
            await store.open()
        await store.append(key, [draft(f"m {number}")])

    async def finish() -> list[str]:
        found = texts((await store.read(key)).messages)
        await store.aclose()
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of what each loop left behind
        for number in range(100):
            asyncio.run(use(number))
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) < 100
        found = asyncio.run(finish())
        gc.collect()
    assert found == [f"m {number}" for number in range(100)]


@pytest.mark.asyncio
async def test_open_and_close_fifty_times(server: RedisServer, key: SessionKey) -> None:
    """A store that is opened, used by ten at once and closed fifty times leaves nothing open."""
    before = len(os.listdir("/proc/self/fd"))
    store = RedisStore(RedisConfig(url=server.url))
    for _ in range(50):
        async with store:
            await asyncio.gather(*(store.append(key, [draft()]) for _ in range(10)))
    assert len(os.listdir("/proc/self/fd")) <= before + 1


@pytest.mark.asyncio
async def test_closing_waits_for_what_takes_several_trips(
    server: RedisServer, key: SessionKey
) -> None:
    """Deletions and searches that are under way when the store is closed are done."""
    store = await RedisStore(RedisConfig(url=server.url)).open()
    keys = [SessionKey("app", "", f"s{number}") for number in range(20)]
    for each in keys:
        await store.append(each, [draft()])
    begun = [asyncio.ensure_future(store.delete_session(each)) for each in keys]
    await asyncio.sleep(0)
    await store.aclose()
    assert [receipt.sessions for receipt in await asyncio.gather(*begun)] == [1] * 20
