"""Work that goes on to its end when whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar, cast

__all__ = ["ShieldedTasks"]

T = TypeVar("T")


class ShieldedTasks:
    """The work of one owner that no cancellation of a caller stops half-way.

    `asyncio.shield` tells the event loop, since Python 3.14, of each error that is raised once the
    caller is gone. Here such an error is dropped: whoever cancels a call does not ask how it ends.
    And a shield wakes its caller when the loop comes round once more, which is a tenth of a write.
    """

    def __init__(self) -> None:
        self._running: set[asyncio.Future[Any]] = set()

    async def run(self, work: Awaitable[T]) -> T:
        """Return what `work` returns, or raise what it raises; it goes on if this is cancelled."""
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.begin(_tell(outcome, work))
        error, result = await outcome
        if error is None:
            return cast(T, result)
        try:
            raise error
        finally:
            del error, outcome  # which would keep this frame alive

    def begin(self, work: Awaitable[T]) -> asyncio.Future[T]:
        """Begin some work and return its task, which goes on whether or not anybody waits for it.

        An error is dropped unless it is asked for."""
        task: asyncio.Future[T] = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def wait(self) -> None:
        """Return when all that was begun has ended, in whatever way."""
        while self._running:
            await asyncio.wait(self._running)

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # else asyncio says, if nobody asks for it, that nobody did


async def _tell(outcome: asyncio.Future[Any], work: Awaitable[Any]) -> None:
    """Do some work and tell its error, or None, and what it returns, if somebody still listens."""
    try:
        told: tuple[BaseException | None, Any] = (None, await work)
    except BaseException as error:
        told = (error, None)
        if not isinstance(error, Exception):
            raise
    finally:
        if not outcome.done():
            outcome.set_result(told)
        del told, outcome  # whose error has this frame in its traceback
