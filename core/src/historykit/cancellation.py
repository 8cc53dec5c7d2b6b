"""Work in a thread, which goes on when its caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["undone_if_cancelled"]

T = TypeVar("T")


async def undone_if_cancelled(
    work: Coroutine[Any, Any, T],
    undo: Callable[[T], Awaitable[object]],
    *,
    stop: Callable[[], object] | None = None,
) -> T:
    """Return what `work` returns. Cancelled, wait for the end of the work and undo it.

    `stop` is called when the cancellation comes, to end the work early; what it raises then is not
    raised again.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        if stop is not None:
            stop()
        await asyncio.wait([task])
        if task.exception() is None:
            await undo(task.result())
        raise
    return task.result()
