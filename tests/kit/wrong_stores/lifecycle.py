from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from tests.kit.wrong_stores.lies import Lie, wrong


@wrong("test_opening_twice_is_opening")
class OpensTwice(Lie):
    """Is empty again when somebody opens it who does not know that it is open."""

    async def open(self) -> OpensTwice:
        await super().open()
        self._sessions.clear()
        return self


@wrong("test_one_store_may_be_opened_concurrently")
class OpensForOneTask(Lie):
    """Fails where two tasks open it at the same time."""

    busy = False

    async def open(self) -> OpensForOneTask:
        if self.busy:
            raise RuntimeError("is being opened")
        self.busy = True
        await super().open()
        self.busy = False
        return self


@wrong("test_closing_twice_is_closing")
class ClosesOnce(Lie):
    """Raises when it is closed a second time."""

    async def aclose(self) -> None:
        if self._loop is None:
            raise RuntimeError("already closed")
        await super().aclose()


@wrong("test_closed_store_refuses_every_call", "test_other_running_loop_is_refused")
class IsAlwaysOpen(Lie):
    """Works without being open, and on any event loop."""

    async def _ready(self) -> None:
        pass


@wrong("test_store_can_be_opened_again", "test_store_moves_to_the_next_event_loop")
class LosesItselfOnReopen(Lie):
    """Begins empty each time when it is opened."""

    async def _open(self) -> None:
        self._sessions.clear()


@wrong("test_first_use_may_be_concurrent")
class CannotBeSetUpTwice(Lie):
    """Fails where two of them are set up at the same time."""

    busy: ClassVar[bool] = False

    async def _open(self) -> None:
        if CannotBeSetUpTwice.busy:
            raise RuntimeError("database is locked")
        CannotBeSetUpTwice.busy = True
        await asyncio.sleep(0)
        CannotBeSetUpTwice.busy = False


@wrong("test_closing_finishes_what_was_begun")
class DropsWhatItHasBegun(Lie):
    """Cancels what is under way when it is closed."""

    async def _write(self, *arguments: Any) -> Any:
        await asyncio.sleep(0)
        return await super()._write(*arguments)

    async def aclose(self) -> None:
        for task in self._writes._running:
            task.cancel()
        await super().aclose()


@wrong("test_process_ends_without_closing")
class LeavesInSilence(Lie):
    """Does not say that it was never closed."""

    def __del__(self) -> None:
        self._loop = None


@wrong("test_process_ends_after_closing")
class IsNeverClosed(Lie):
    """Holds what it has although it was closed."""

    async def aclose(self) -> None:
        self._wanted = False


@wrong("test_process_ends_when_closing_is_cancelled")
class BreaksWhenClosingIsCancelled(Lie):
    """Fails when the task that closes it is cancelled."""

    async def _close(self) -> None:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            raise RuntimeError("closed in part") from None
