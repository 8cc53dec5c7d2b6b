from __future__ import annotations

import asyncio
import gc
import os
import threading

import pytest

from historykit import (
    Agent,
    OwningHistoryProvider,
    StorageError,
    StoreClosedError,
    WrongLoopError,
    open_history,
)
from historykit.lifecycle import LoopBound
from historykit.memory import MemoryStore


class Resource(LoopBound):
    """Notes what is done to it, and fails or waits where it is told to."""

    def __init__(self):
        super().__init__()
        self.events = []
        self.failure = None
        self.gate = None

    async def _open(self):
        await asyncio.sleep(0)
        if self.failure:
            raise self.failure
        self.events.append("open")

    async def _close(self):
        self.events.append("close")

    def _abandon(self):
        self.events.append("abandon")

    def _translate(self, error, operation):
        return StorageError(f"{operation}: {error}")

    async def read(self):
        return await self._call("read", self._work, "read")

    async def write(self):
        return await self._write("write", self._work, "written")

    async def _work(self, what):
        if self.gate:
            await self.gate.wait()
        if self.failure:
            raise self.failure
        self.events.append(what)
        return what


@pytest.mark.asyncio
async def test_it_opens_and_closes_once():
    """Opening what is open and closing what is closed does nothing."""
    resource = Resource()
    assert await resource.open() is resource
    await resource.open()
    await resource.aclose()
    await resource.aclose()
    assert resource.events == ["open", "close"]


@pytest.mark.asyncio
async def test_it_is_used_as_a_context_manager():
    """`async with` opens, hands out the object and closes."""
    async with Resource() as resource:
        assert await resource.read() == "read"
    assert resource.events == ["open", "read", "close"]


@pytest.mark.asyncio
async def test_parallel_first_calls_open_once():
    """Calls that come while it opens wait for that, and it opens once."""
    resource = Resource()
    await asyncio.gather(*(resource.open() for _ in range(8)))
    assert resource.events == ["open"]
    await resource.aclose()


@pytest.mark.asyncio
@pytest.mark.parametrize("closed", [False, True])
async def test_it_is_not_used_unless_open(closed):
    """A call before opening or after closing says so and does nothing."""
    resource = Resource()
    if closed:
        async with resource:
            pass
    with pytest.raises(StoreClosedError, match="async with"):
        await resource.write()
    assert "written" not in resource.events


@pytest.mark.asyncio
async def test_it_can_be_opened_again():
    """What was closed works again after another open."""
    resource = Resource()
    async with resource:
        pass
    async with resource:
        await resource.read()
    assert resource.events == ["open", "close", "open", "read", "close"]


@pytest.mark.asyncio
async def test_a_failure_to_open_is_translated_and_leaves_it_closed():
    """An error while opening comes out as one of ours, and the next open tries again."""
    resource = Resource()
    resource.failure = OSError("refused")
    with pytest.raises(StorageError, match="open: refused") as raised:
        await resource.open()
    assert raised.value.__cause__ is resource.failure
    with pytest.raises(StoreClosedError):
        await resource.read()
    resource.failure = None
    async with resource:
        await resource.read()


@pytest.mark.asyncio
@pytest.mark.parametrize("call", [Resource.read, Resource.write])
async def test_errors_of_the_driver_are_translated(call):
    """An error of the driver comes out as one of ours, with the driver's as its cause."""
    async with Resource() as resource:
        resource.failure = OSError("gone")
        with pytest.raises(StorageError) as raised:
            await call(resource)
        assert raised.value.__cause__ is resource.failure


@pytest.mark.asyncio
async def test_our_own_errors_pass():
    """An error of historykit is not wrapped once more."""
    async with Resource() as resource:
        resource.failure = StoreClosedError("mine")
        with pytest.raises(StoreClosedError, match="mine"):
            await resource.read()


@pytest.mark.asyncio
async def test_a_cancelled_write_goes_on():
    """A write whose caller is cancelled is done all the same."""
    async with Resource() as resource:
        resource.gate = asyncio.Event()
        task = asyncio.create_task(resource.write())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        resource.gate.set()
    assert resource.events == ["open", "written", "close"]


@pytest.mark.asyncio
async def test_a_cancelled_write_that_fails_bothers_nobody():
    """The error of a write that nobody waits for is not reported as one never retrieved."""
    reports = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
    async with Resource() as resource:
        resource.gate = asyncio.Event()
        task = asyncio.create_task(resource.write())
        await asyncio.sleep(0.01)
        task.cancel()
        resource.failure = OSError("late")
        resource.gate.set()
    del task
    gc.collect()
    assert reports == []


@pytest.mark.asyncio
async def test_a_detached_write_has_no_task_of_its_own():
    """A write that needs no protection runs in its caller's task, and its errors are translated."""

    class Detached(Resource):
        detached_writes = True

        async def _work(self, what):
            self.events.append(asyncio.current_task())
            raise OSError("full")

    async with Detached() as resource:
        with pytest.raises(StorageError, match="write: full"):
            await resource.write()
    assert resource.events == ["open", asyncio.current_task(), "close"]


@pytest.mark.asyncio
async def test_closing_waits_for_writes():
    """A write under way is finished before the resources go."""
    resource = await Resource().open()
    resource.gate = asyncio.Event()
    task = asyncio.create_task(resource.write())
    await asyncio.sleep(0.01)
    closing = asyncio.create_task(resource.aclose())
    await asyncio.sleep(0.01)
    assert resource.events == ["open"]
    resource.gate.set()
    await closing
    assert await task == "written"
    assert resource.events == ["open", "written", "close"]


@pytest.mark.asyncio
async def test_closing_waits_for_the_opening():
    """What is closed while it opens is closed after that."""
    resource = Resource()
    opening = asyncio.create_task(resource.open())
    await asyncio.sleep(0)
    await resource.aclose()
    await opening
    assert resource.events == ["open", "close"]


def test_another_loop_after_the_first_was_closed_opens_anew():
    """Used in a second `asyncio.run`, it lets go of what was on the first loop and opens again."""
    resource = Resource()

    async def use():
        await resource.open()
        await resource.read()

    asyncio.run(use())
    asyncio.run(use())
    asyncio.run(resource.aclose())
    assert resource.events == ["open", "read", "abandon", "open", "read", "abandon"]


def test_another_loop_while_the_first_is_open_is_an_error():
    """Used from a second loop beside the first, it says so and names the remedy."""
    resource = Resource()
    errors = []

    async def elsewhere():
        try:
            await resource.read()
        except WrongLoopError as error:
            errors.append(str(error))

    async def main():
        async with resource:
            thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
            thread.start()
            await asyncio.to_thread(thread.join)
            assert await resource.read() == "read"

    asyncio.run(main())
    assert len(errors) == 1
    assert "one store for each loop" in errors[0]


def test_it_can_be_closed_from_another_loop():
    """Closing from elsewhere lets go without waiting for the first loop."""
    resource = Resource()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(resource.open())
    asyncio.run(resource.aclose())
    loop.close()
    assert resource.events == ["open", "abandon"]


def test_a_forked_process_opens_anew():
    """In a forked process the next call lets go of what the parent has and opens its own."""
    resource = Resource()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(resource.open())
    child = os.fork()
    if child == 0:
        asyncio.run(resource.read())
        asyncio.run(resource.aclose())
        os._exit(0 if resource.events == ["open", "abandon", "open", "read", "abandon"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert loop.run_until_complete(resource.read()) == "read"
    loop.run_until_complete(resource.aclose())
    loop.close()


def test_what_is_never_closed_is_warned_of_and_abandoned():
    """An object that goes while it is open says so and lets go of what it has."""
    resource = Resource()
    asyncio.run(resource.open())
    events = resource.events
    with pytest.warns(ResourceWarning, match="never closed"):
        del resource
    assert events == ["open", "abandon"]


def test_an_object_that_was_never_made_whole_goes_quietly():
    """An object whose construction failed does not fail again when it goes."""
    object.__new__(Resource).__del__()


@pytest.mark.asyncio
async def test_an_opening_that_is_cancelled_goes_on_for_the_others():
    """A caller that gives up waiting does not stop the opening that others wait for."""
    resource = Resource()
    first = asyncio.create_task(resource.open())
    second = asyncio.create_task(resource.open())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await second is resource
    await resource.aclose()


async def client(messages, options):
    return "Hello"


@pytest.mark.parametrize(
    "made",
    [
        lambda: open_history("memory"),
        MemoryStore,
        lambda: OwningHistoryProvider(MemoryStore(), "history"),
        lambda: Agent(client).run("Hi", stream=True),
    ],
)
def test_a_with_alone_names_async_with(made):
    """And what there is for programs without asyncio."""
    with pytest.raises(TypeError, match=r"needs `async with`, in a .*historykit\.sync$"), made():
        pass
