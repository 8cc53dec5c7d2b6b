"""The process on the other side of `historykit.testing.processes`.

It takes one job from its standard input, opens the store, says that it is ready, and waits for a
line before it begins."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import sys
from typing import Any

from historykit.session_records import SessionKey
from historykit.store import HistoryStore
from historykit.testing.drafts import drafts
from historykit.testing.subject import read_all


async def read(store: HistoryStore, key: SessionKey) -> None:
    """Write the messages of a session to the standard output."""
    sys.stdout.buffer.write(pickle.dumps(await read_all(store, key)))
    await store.aclose()


async def append(
    store: HistoryStore, key: SessionKey, writer: str, batches: int, size: int
) -> None:
    """Append batches."""
    for number in range(batches):
        await store.append(key, drafts(f"{writer} {number}", size))
    await store.aclose()


async def append_forever(store: HistoryStore, key: SessionKey) -> None:
    """Append batches of three, and say so after each."""
    for number in itertools.count():
        await store.append(key, drafts(f"batch {number}", 3))
        print(number, flush=True)


async def end(store: HistoryStore, key: SessionKey, how: str) -> None:
    """Use the store and end."""
    await store.append(key, drafts("m", 2))
    await store.delete_session(key)
    if how == "closed":
        await store.aclose()
    if how == "cancelled":
        closing = asyncio.create_task(store.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        if not closing.cancelled():
            closing.result()


JOBS = {job.__name__: job for job in (read, append, append_forever, end)}


async def work(job: str, store: HistoryStore, arguments: tuple[Any, ...]) -> None:
    """Open the store, wait for the word and do the job."""
    await store.open()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.buffer.readline)
    await JOBS[job](store, *arguments)


if __name__ == "__main__":
    job, store_class, config, arguments = pickle.load(sys.stdin.buffer)
    asyncio.run(work(job, store_class(config), arguments))
