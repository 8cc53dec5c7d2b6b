"""An event loop in a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Final, TypeVar

from historykit.callers import Caller, calling
from historykit.errors import HistoryKitError, StoreClosedError, WrongLoopError

__all__ = ["Portal"]

T = TypeVar("T")

PATIENCE: Final = 10.0
"""Seconds that somebody waits for a loop to come to its end, such as the interpreter's exit."""

END: Final = object()


class Portal:
    """Runs async functions on a loop in a background thread, and waits for what they return.

    The thread begins with the first call. It ends with `close`, with the last reference to the
    portal, or with the interpreter; `finish` is run on the loop before. After `close`, and in a
    forked process, the next call begins another one.
    """

    def __init__(self, finish: Callable[[], Awaitable[object]]) -> None:
        self._finish = finish
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._life: Life | None = None
        self._is_closing = False
        self._end: weakref.finalize[[], Portal] | None = None

    def call(self, function: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any) -> T:
        """Return what an async function returns. It runs in a copy of the caller's context.

        An interrupt, such as Control-C, cancels it. Raises `WrongLoopError` where the caller runs
        on an event loop, which would stand still meanwhile, and `StoreClosedError` where another
        thread closes the portal at that time.
        """
        _refuse_loops()

        async def work() -> T:
            return await function(*args, **kwargs)

        token = calling.set(Caller.here())
        try:
            future: Future[T] = self._here().begin(work)
        finally:
            calling.reset(token)
        try:
            return future.result()
        finally:
            future.cancel()

    def iterate(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        """Yield what an async generator yields, one call each."""

        async def following() -> Any:
            return await anext(items, END)

        _refuse_loops()
        life = self._here()
        try:
            while (item := self.call(following)) is not END:
                yield item
        finally:
            if life is self._life:  # else it was closed with the loop that it ran on
                self.call(items.aclose)

    def close(self) -> None:
        """End the loop and the thread. Closing twice does nothing.

        Raises what `finish` raises, after that.
        """
        with self._locked():
            life, end = self._life, self._end
            self._life = self._end = None
            if life is None or end is None or not life.is_here():
                return
            self._is_closing = True
        try:
            end()
        finally:
            self._is_closing = False
        life.raise_failure()

    def _locked(self) -> threading.Lock:
        """Return the lock of this process: in a forked one, nobody may be left to let it go."""
        if self._process != os.getpid():
            self._process, self._lock, self._is_closing = os.getpid(), threading.Lock(), False
        return self._lock

    def _here(self) -> Life:
        with self._locked():
            if self._is_closing:  # what `finish` closes is still one of the loop that ends
                raise StoreClosedError("the history is closed by another thread at this time")
            if self._life is None or not self._life.is_here():
                self._life = Life(self._finish)
                self._end = weakref.finalize(self, self._life.end)
            return self._life


class Life:
    """One thread with one loop, from its beginning to its end."""

    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event

    def __init__(self, finish: Callable[[], Awaitable[object]]) -> None:
        self._process = os.getpid()
        self._finish = finish
        self._failure: HistoryKitError | None = None
        self._begun = threading.Event()
        self._lock = threading.Lock()
        self._calls: dict[Future[Any], Coroutine[Any, Any, Any]] = {}
        self._is_over = False
        # A daemon, because the interpreter waits for the others before it ends any of them.
        self._thread = threading.Thread(target=self._run, name="historykit.sync", daemon=True)
        self._thread.start()
        self._begun.wait()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._live())
            with self._lock:
                self._is_over = True
        for future, work in list(self._calls.items()):  # too late to be cancelled with the others
            work.close()
            with suppress(InvalidStateError):
                future.set_exception(_over())

    def begin(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Begin to run an async function on the loop. Raises `StoreClosedError` where it ended."""
        with self._lock:
            if self._is_over:
                raise _over()
            coroutine = work()
            future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
            self._calls[future] = coroutine
        future.add_done_callback(self._done)
        return future

    def _done(self, future: Future[Any]) -> None:
        self._calls.pop(future, None)

    async def _live(self) -> None:
        self.loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
        self._begun.set()
        await self.stop.wait()
        try:
            await self._finish()
        except HistoryKitError as error:
            self._failure = error

    def is_here(self) -> bool:
        """Return whether the thread is one of this process: threads do not come along in a fork."""
        return self._process == os.getpid()

    def raise_failure(self) -> None:
        """Raise the error of what was done at the end, if there was one."""
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        """End the loop, and wait for it, unless it is the loop itself that lets go."""
        if self.is_here():
            self.loop.call_soon_threadsafe(self.stop.set)
            if threading.current_thread() is not self._thread:
                self._thread.join(PATIENCE)


def _over() -> StoreClosedError:
    return StoreClosedError("the history was closed by another thread before the call began")


def _refuse_loops() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WrongLoopError(
        "historykit.sync waits for its calls, and the event loop that this one was made on would "
        "stand still; use historykit itself here, and await it"
    )
