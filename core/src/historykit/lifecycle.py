"""How something that belongs to an event loop is opened, used and closed."""

from __future__ import annotations

import asyncio
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeVar, TypeVarTuple

from historykit.callers import calling
from historykit.errors import HistoryKitError, StoreClosedError, WrongLoopError
from historykit.tasks import ShieldedTasks

__all__ = ["AsyncContext", "LoopBound"]

OTHER_LOOP: Final = (
    "was opened on another event loop, which is not closed; close it there, or open one store for "
    "each loop"
)
LOOP_OF_SYNC: Final = (
    "is the store of a history of historykit.sync, which has an event loop of its own; "
    "history.call(function, ...) runs an async function there"
)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class AsyncContext:
    """Base of what is used with `async with`: a mere `with` says so."""

    if not TYPE_CHECKING:  # to which it shall be none

        def __enter__(self) -> None:
            raise TypeError(
                f"{type(self).__name__} needs `async with`, in a coroutine; for programs without "
                "asyncio there is historykit.sync"
            )

        __exit__ = None


class LoopBound(AsyncContext, ABC):
    """Base of stores: open state, event loop, error translation and shielded writes.

    It belongs to the event loop and the process that opened it. Once that loop is closed, or in a
    forked process, the next call lets go of what was acquired and opens anew; while the loop is not
    closed, a call from another one is a `WrongLoopError`.
    """

    detached_writes: ClassVar[bool] = False
    """Whether a write goes on by itself once it has begun, as in a thread, whatever becomes of its
    caller. The others are each given a task for that, which takes some 25 µs."""

    def __init__(self) -> None:
        self._wanted = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._elsewhere = OTHER_LOOP
        self._opening: asyncio.Task[None] | None = None
        self._writes = ShieldedTasks()

    @abstractmethod
    async def _open(self) -> None:
        """Acquire what is needed. Called again after `_abandon`."""

    @abstractmethod
    async def _close(self) -> None:
        """Release what `_open` acquired."""

    def _abandon(self) -> None:
        """Let go of what `_open` acquired, without its event loop and perhaps in a forked process.

        Nothing may be sent and nothing may block.
        """

    @abstractmethod
    def _translate(self, error: Exception, operation: str) -> HistoryKitError:
        """Return the error of historykit that stands for an error of the driver."""

    async def open(self) -> Self:
        """Connect and return the object itself. Opening what is open does nothing."""
        self._wanted = True
        try:
            await self._ready()
        except BaseException:
            self._wanted = self._loop is not None
            raise
        return self

    async def aclose(self) -> None:
        """Finish the writes under way and give all resources back. Closing twice does nothing."""
        self._wanted = False
        if self._opening is not None and self._is_here():
            await asyncio.wait([self._opening])
        if self._loop is None:
            return
        if not self._is_here():
            self._loop = None
            self._abandon()
            return
        await self._writes.wait()
        self._loop = None
        await self._translated("close", self._close)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if getattr(self, "_loop", None) is not None:
            self._loop = None
            warnings.warn(f"{self!r} was never closed", ResourceWarning, stacklevel=1, source=self)
            self._abandon()

    async def _call(
        self, operation: str, method: Callable[[*Ts], Awaitable[T]], *arguments: *Ts
    ) -> T:
        """Run a method that may be cancelled at any point."""
        await self._ready()
        return await self._translated(operation, method, *arguments)

    async def _write(
        self, operation: str, method: Callable[[*Ts], Awaitable[T]], *arguments: *Ts
    ) -> T:
        """Run a method to its end, even if the caller is cancelled meanwhile."""
        await self._ready()
        if self.detached_writes:
            return await self._translated(operation, method, *arguments)
        return await self._writes.run(self._translated(operation, method, *arguments))

    async def _translated(
        self, operation: str, method: Callable[[*Ts], Awaitable[T]], *arguments: *Ts
    ) -> T:
        try:
            return await method(*arguments)
        except HistoryKitError:
            raise
        except Exception as error:
            raise self._translate(error, operation) from error

    def _is_here(self) -> bool:
        return self._loop is asyncio.get_running_loop() and self._process == os.getpid()

    async def _ready(self) -> None:
        """Return at once where everything is open on this loop, else open it."""
        if not self._wanted:
            blocking = calling.get() is not None
            remedy = "`with`, or call open()" if blocking else "`async with`, or await open()"
            raise StoreClosedError(f"{type(self).__name__} is not open; use it in {remedy} first")
        if not self._is_here():
            self._bind()
        if self._opening is not None:
            opening = self._opening
            await asyncio.wait([opening])  # a shield reports an error that nobody waits for
            opening.result()

    def _bind(self) -> None:
        """Begin to open on the running loop."""
        if self._loop is not None:
            if self._process == os.getpid() and not self._loop.is_closed():
                raise WrongLoopError(f"{type(self).__name__} {self._elsewhere}")
            self._abandon()
            self._writes = ShieldedTasks()
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._elsewhere = OTHER_LOOP if calling.get() is None else LOOP_OF_SYNC
        self._opening = asyncio.create_task(self._translated("open", self._open))
        self._opening.add_done_callback(self._opened)

    def _opened(self, task: asyncio.Task[None]) -> None:
        self._opening = None
        if task.cancelled() or task.exception() is not None:
            self._loop = None
