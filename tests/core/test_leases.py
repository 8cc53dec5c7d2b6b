from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from historykit import InvalidRequestError, RunInProgressError, SessionDeletedError, StorageError
from historykit.leases import RunHold, check_when_busy
from historykit.memory import MemoryStore
from historykit.session_records import SessionDraft, SessionKey
from historykit.store import system_clock

pytestmark = pytest.mark.asyncio

KEY = SessionKey("tests", "ada", "s1")
SHORT = 0.05


class Clocked(MemoryStore):
    """A store whose calls can be held up, fail, and whose clock can be set forward."""

    failing = False
    slow = 0.0

    def forward(self, seconds):
        self._clock = lambda: system_clock() + seconds * 1_000_000

    async def _claim_run(self, key, lease, now):
        await asyncio.sleep(self.slow)
        return await super()._claim_run(key, lease, now)

    async def _renew_run(self, key, lease):
        if self.failing:
            raise OSError("the network is down")
        return await super()._renew_run(key, lease)

    def _translate(self, error, operation):
        return StorageError(f"{operation} failed")


@pytest_asyncio.fixture
async def store():
    async with Clocked() as store:
        await store.create_session(KEY, SessionDraft())
        yield store


async def holder(store):
    return (await store.read_session(KEY)).run_id


async def test_a_hold_keeps_others_out_until_it_is_released(store):
    """Another run is refused while the first one lasts, however long that is."""
    first = await RunHold(store, KEY, "first", lease=SHORT).claim("reject")
    await asyncio.sleep(3 * SHORT)
    with pytest.raises(RunInProgressError):
        await RunHold(store, KEY, "second").claim("reject")
    await first.release()
    second = await RunHold(store, KEY, "second").claim("reject")
    assert await holder(store) == "second"
    await second.release()
    assert await holder(store) is None


async def test_a_run_can_wait_for_its_turn(store):
    """It holds the session as soon as the one before has let go."""
    first = await RunHold(store, KEY, "first").claim("reject")
    waiting = asyncio.create_task(RunHold(store, KEY, "second").claim("wait"))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await first.release()
    await (await waiting).release()


async def test_a_hold_that_is_not_renewed_expires(store):
    """A run that died keeps a session no longer than its lease."""
    await store.claim_run(KEY, "dead", ttl=SHORT)
    hold = await RunHold(store, KEY, "next").claim("wait")
    await hold.release()


async def test_releasing_without_a_hold_does_nothing(store):
    """What was never claimed is let go without a trip."""
    await RunHold(store, KEY, "run").release()


async def test_a_cancelled_claim_leaves_no_hold(store):
    """The claim that was on its way is undone."""
    store.slow = 0.05
    claim = asyncio.create_task(RunHold(store, KEY, "run").claim("reject"))
    await asyncio.sleep(0.01)
    claim.cancel()
    with pytest.raises(asyncio.CancelledError):
        await claim
    await asyncio.sleep(0.1)
    assert await holder(store) is None


async def test_a_run_that_lost_its_hold_is_ended(store):
    """Where another run took the session over, the block is left with the error that says so."""
    hold = await RunHold(store, KEY, "first", lease=SHORT).claim("reject")
    await store.release_run(KEY, "first")
    await store.claim_run(KEY, "second", ttl=60)
    with pytest.raises(RunInProgressError, match="'first' does not hold"), hold.watching():
        await asyncio.sleep(5)
    with pytest.raises(RunInProgressError), hold.watching():
        pytest.fail("the block was entered")
    with pytest.raises(RunInProgressError):
        await hold.confirm()
    await hold.release()
    assert await holder(store) == "second"


async def test_a_run_is_ended_when_its_session_is_deleted(store):
    """The error says that the session was deleted."""
    hold = await RunHold(store, KEY, "first", lease=SHORT).claim("reject")
    await store.delete_session(KEY)
    with pytest.raises(SessionDeletedError, match="'s1' was deleted during run"), hold.watching():
        await asyncio.sleep(5)
    await hold.release()


async def test_a_store_that_fails_for_a_moment_ends_no_run(store):
    """The hold is lost when its lease ends, not before."""
    hold = await RunHold(store, KEY, "run", lease=60 * SHORT).claim("reject")
    store.failing = True
    await hold._renew()
    await hold.confirm()
    store.forward(10)
    with pytest.raises(StorageError):
        await hold.confirm()
    await hold.release()


async def test_a_run_that_was_blocked_asks_whether_it_still_holds(store):
    """After its lease has ended a run confirms its hold, which nobody took meanwhile."""
    hold = await RunHold(store, KEY, "run", lease=60).claim("reject")
    store.forward(70)
    await hold.confirm()
    expires_at = (await store.read_session(KEY)).run_expires_at
    await hold.confirm()
    assert (await store.read_session(KEY)).run_expires_at == expires_at
    await hold.release()


async def test_a_cancellation_from_outside_stays_one(store):
    """The block of a run that still holds its session is cancelled like any other."""
    hold = await RunHold(store, KEY, "run").claim("reject")

    async def block():
        with hold.watching():
            await asyncio.sleep(5)

    task = asyncio.create_task(block())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await hold.release()


async def test_a_cancellation_from_outside_goes_before_the_loss(store):
    """A run that loses its session while somebody cancels it is cancelled."""
    hold = await RunHold(store, KEY, "run", lease=SHORT).claim("reject")
    await store.delete_session(KEY)

    async def block():
        with hold.watching():
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                task.cancel()
                raise

    task = asyncio.create_task(block())
    with pytest.raises(asyncio.CancelledError):
        await task
    await hold.release()


@pytest.mark.parametrize("value", ["reject", "wait"])
async def test_what_to_do_with_a_busy_session_is_one_of_two(value):
    """Anything else is refused with the two."""
    assert check_when_busy(value) == value
    with pytest.raises(InvalidRequestError, match="'reject' or 'wait', not 'ignore'"):
        check_when_busy("ignore")
