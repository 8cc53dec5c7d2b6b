"""Work that goes on to its end, whatever becomes of who waits for it."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from historykit.tasks import ShieldedTasks

pytestmark = pytest.mark.asyncio


@pytest.fixture
def tasks() -> ShieldedTasks:
    return ShieldedTasks()


async def test_the_result_is_returned(tasks: ShieldedTasks) -> None:
    """Whoever waits for work gets what it returns."""
    assert await tasks.run(asyncio.sleep(0, "done")) == "done"


async def test_a_future_is_work_as_well(tasks: ShieldedTasks) -> None:
    """What a driver has begun, and gives out as a future, is waited for like a coroutine."""
    future = asyncio.get_running_loop().create_future()
    future.set_result("done")
    assert await tasks.run(future) == "done"


async def test_an_error_is_raised(tasks: ShieldedTasks) -> None:
    """Whoever waits for work that fails gets its error."""

    async def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await tasks.run(fail())


async def test_work_goes_on_when_its_caller_is_cancelled(tasks: ShieldedTasks) -> None:
    """A caller that is cancelled is free at once, and its work is waited for at the end."""
    done: list[str] = []
    gate = asyncio.Event()

    async def work() -> None:
        await gate.wait()
        done.append("done")

    caller = asyncio.create_task(tasks.run(work()))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not done
    gate.set()
    await tasks.wait()
    assert done == ["done"]


async def test_an_error_after_a_cancellation_bothers_nobody(tasks: ShieldedTasks) -> None:
    """Work that fails after its caller was cancelled is reported neither by the loop nor later."""
    reports: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
    gate = asyncio.Event()

    async def fail() -> None:
        await gate.wait()
        raise LookupError("gone")

    caller = asyncio.create_task(tasks.run(fail()))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    gate.set()
    await tasks.wait()
    del caller  # whose traceback holds the work
    gc.collect()
    assert reports == []


async def test_cancelled_work_is_cancelled_for_its_caller(tasks: ShieldedTasks) -> None:
    """Work that is itself cancelled ends its caller in the same way."""

    async def give_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await tasks.run(give_up())
    await tasks.wait()
