"""A run's hold on a session, so that two runs do not mix their messages."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from typing import Final, Literal, Self

from historykit.errors import (
    HistoryKitError,
    InvalidRequestError,
    NotFoundError,
    RunInProgressError,
    SessionDeletedError,
)
from historykit.session_records import RunLease, SessionKey
from historykit.store import HistoryStore
from historykit.tasks import ShieldedTasks

__all__ = ["ENDINGS", "LEASE", "RunHold", "WhenBusy", "check_lease", "check_when_busy"]

WhenBusy = Literal["reject", "wait"]
"""What a run does while another one holds its session."""

LEASE: Final = 30.0
"""Seconds after which a session is free whose run does not renew its hold any more."""

RENEWALS: Final = 3
"""How often a hold is renewed in the time of one lease."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two attempts to hold a session that is busy."""


def check_when_busy(value: object) -> WhenBusy:
    """Return `value` if it says what to do with a busy session, else raise
    `InvalidRequestError`."""
    if value == "reject" or value == "wait":
        return value
    raise InvalidRequestError(f"when_busy must be 'reject' or 'wait', not {value!r}")


def check_lease(value: object) -> float:
    """Return `value` if a run can hold its session for so many seconds, else raise
    `InvalidRequestError`."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf:
        return value
    raise InvalidRequestError(f"lease must be a number of seconds above 0, not {value!r}")


ENDINGS: Final = ShieldedTasks()
"""What has to be done at the end of a run, also of one that is cancelled meanwhile."""


class RunHold:
    """The hold of one run on one session: claimed and renewed, and at the end let go.

    It is renewed in a task of its own. `watching` ends what the run does where the hold is lost:
    another run took over, because this one was frozen for longer than its lease, or the session was
    deleted. While the run is `resting`, because nobody asks for more of it, it is not renewed.
    """

    def __init__(
        self, store: HistoryStore, key: SessionKey, run_id: str, *, lease: float = LEASE
    ) -> None:
        self._store = store
        self._key = key
        self._run_id = run_id
        self._seconds = lease
        self._lease: RunLease | None = None
        self._lost: HistoryKitError | None = None
        self._watched: asyncio.Task[object] | None = None
        self._interrupted = False
        self._renewing: asyncio.Task[None] | None = None
        self._goes_on = asyncio.Event()
        self._goes_on.set()

    async def claim(self, when_busy: WhenBusy) -> Self:
        """Hold the session, at once or as soon as the run before has let it go.

        Those who wait are not served in any order. Raises what `HistoryStore.claim_run` raises.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                self._lease = await self._claim_once()
                break
            except RunInProgressError:
                if when_busy == "reject":
                    raise
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, LONGEST_PAUSE)
        self._renewing = asyncio.create_task(self._keep_renewing())
        return self

    async def _claim_once(self) -> RunLease:
        claim = asyncio.create_task(
            self._store.claim_run(self._key, self._run_id, ttl=self._seconds)
        )
        try:
            await asyncio.wait([claim])
        except asyncio.CancelledError:
            await ENDINGS.run(self._let_go_after(claim))
            raise
        return claim.result()

    async def _let_go_after(self, claim: asyncio.Task[RunLease]) -> None:
        """Undo a claim that is on its way to the store."""
        with suppress(HistoryKitError):
            await claim
            await self._store.release_run(self._key, self._run_id)

    async def release(self) -> None:
        """Let the session go; without a hold on it, do nothing."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        if self._lease is not None and self._lost is None:
            await self._store.release_run(self._key, self._run_id)

    async def confirm(self) -> None:
        """Make sure that the session is still held.

        Raises `RunInProgressError` or `SessionDeletedError` where it is not. It takes a round trip
        only where the lease should have been renewed and was not, as after the event loop was
        blocked, or the run was resting.
        """
        if self._lost is None and self._lease and self._store.now() >= self._lease.expires_at:
            await self._renew()
        self._check()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """End the block, in this task, where the hold is lost, with the error that says so."""
        self._check()
        task = asyncio.current_task()
        assert task is not None
        cancelling = task.cancelling()
        self._watched = task
        try:
            yield
        except asyncio.CancelledError:
            if self._interrupted and task.uncancel() <= cancelling:
                self._check()
            raise
        finally:
            self._watched = None

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Let the lease end in time while the block lasts; `confirm` afterwards.

        It is for a run that may never go on, and so must not hold its session for ever.
        """
        self._goes_on.clear()
        try:
            yield
        finally:
            self._goes_on.set()

    def _check(self) -> None:
        if self._lost is not None:
            raise self._lost

    async def _keep_renewing(self) -> None:
        while self._lost is None:
            await asyncio.sleep(self._seconds / RENEWALS)
            await self._goes_on.wait()
            await self._renew()
        if self._watched is not None:
            self._interrupted = self._watched.cancel()

    async def _renew(self) -> None:
        assert self._lease is not None
        try:
            self._lease = await self._store.renew_run(self._key, self._run_id, ttl=self._seconds)
        except NotFoundError as error:
            self._lost = SessionDeletedError(
                f"session {self._key.session_id!r} was deleted during run {self._run_id!r}"
            )
            self._lost.__cause__ = error
        except HistoryKitError as error:
            # A store that fails may answer again before the lease ends; until then nobody else can
            # hold the session.
            if isinstance(error, RunInProgressError) or self._store.now() >= self._lease.expires_at:
                self._lost = error
