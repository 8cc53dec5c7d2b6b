"""Event loops and processes: what a store does where it was not opened."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from backends.postgres.tests.conftest import CONNECTIONS
from historykit.errors import StorageError
from historykit.session_records import SessionKey
from historykit.testing.drafts import draft, texts
from historykit_postgres import PostgresStore

Inside = Callable[..., list[Any]]
Make = Callable[..., PostgresStore]
Start = Callable[..., Any]

FORK = """
import gc, warnings

async def use(store, name):
    for number in range(5):
        await store.append(key, [draft(f"{name} {number}")])
        await asyncio.gather(*(store.read(key) for _ in range(3)))

async def use_and_close(store, name):
    await use(store, name)
    await store.aclose()

warnings.simplefilter("ignore", ResourceWarning)
store = make(pool_size=3)
loop = asyncio.new_event_loop()
loop.run_until_complete(store.open())
loop.run_until_complete(use(store, "parent"))
child = os.fork()
if child == 0:
    asyncio.run(use_and_close(store, "child"))
    del store
    gc.collect()
    os._exit(0)  # as multiprocessing does: a loop that is destroyed harms the parent's
loop.run_until_complete(use(store, "parent"))
_, status = os.waitpid(child, 0)
assert status == 0
loop.run_until_complete(use(store, "parent"))
print(len(loop.run_until_complete(store.read(key)).messages))
loop.run_until_complete(store.aclose())
loop.close()
"""

FORGET = """
async def main():
    store = make()
    await store.open()
    await store.append(key, [draft("m")])

asyncio.run(main())
"""


def test_a_forked_process_has_connections_of_its_own(start: Start) -> None:
    """A store that was open when the process forked works in both processes at the same time, and
    the child's end is nothing to the parent."""
    output, errors = start(FORK).communicate(timeout=30)
    assert (output, errors) == ("20\n", "")


def test_a_store_that_is_not_closed_lets_the_process_end(start: Start) -> None:
    """A process that forgets to close its store ends in time and in good order."""
    process = start(FORGET)
    _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, "")


def test_a_store_moves_to_another_event_loop(make: Make, key: SessionKey) -> None:
    """A store that is left open by one event loop works on the next one, again and again."""

    async def use(store: PostgresStore, number: int) -> list[str]:
        await store.open()
        await asyncio.gather(*(store.read(key) for _ in range(4)))
        await store.append(key, [draft(str(number))])
        return texts((await store.read(key)).messages)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of what the loops left behind
        store = make(pool_size=2)
        for number in range(3):
            assert asyncio.run(use(store, number)) == [str(n) for n in range(number + 1)]
        asyncio.run(store.aclose())
        del store
        gc.collect()


@pytest.mark.asyncio
async def test_a_store_is_opened_and_closed_fifty_times(
    make: Make, key: SessionKey, inside: Inside
) -> None:
    """Opening, using and closing again and again leaves no connection behind."""
    for number in range(50):
        async with make() as store:
            await asyncio.gather(store.append(key, [draft(str(number))]), store.read(key))
            assert inside(f"SELECT count(*) FROM {CONNECTIONS}") != [(0,)]
    await asyncio.sleep(0.2)
    assert inside(f"SELECT count(*) FROM {CONNECTIONS}") == [(0,)]


@pytest.mark.asyncio
async def test_a_failed_opening_can_be_repeated(
    make: Make, key: SessionKey, inside: Inside, postgres_schema: str
) -> None:
    """Opening fails while something is in the way, and works when it is gone."""
    store = make()
    inside(f"CREATE SCHEMA {postgres_schema}")
    inside("CREATE TABLE historykit_messages (x int)")
    for _ in range(2):
        with pytest.raises(StorageError, match="already exists"):
            await store.open()
    inside("DROP TABLE historykit_messages")
    async with store:
        await store.append(key, [draft("m")])
