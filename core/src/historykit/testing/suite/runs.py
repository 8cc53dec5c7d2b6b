"""A run holds a session for a while."""

from __future__ import annotations

import asyncio

import pytest

from historykit.capabilities import Capability
from historykit.errors import NotFoundError, RunInProgressError
from historykit.session_records import RunLease
from historykit.store import HistoryStore
from historykit.testing.drafts import draft
from historykit.testing.rules import requires, since
from historykit.testing.subject import StoreSubject
from historykit.testing.suite.isolation import HOSTILE_TEXTS

__all__ = ["RunTests"]

RUNS = requires(Capability.RUNS)


class RunTests:
    """`claim_run`, `renew_run`, `release_run`, by the clock of the store."""

    @since("0.1")
    @RUNS
    async def test_claim_holds_the_session(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A claim lasts as long as it says; the session names its run; another run is refused."""
        key = subject.key()
        await store.append(key, [draft()])
        lease = await store.claim_run(key, "r1", ttl=60)
        assert lease == RunLease(run_id="r1", expires_at=subject.clock.now + 60_000_000)
        async with subject.witness(store) as witness:
            record = await witness.read_session(key)
            assert (record.run_id, record.run_expires_at) == ("r1", lease.expires_at)
            subject.clock.advance(59.9)
            with pytest.raises(RunInProgressError):
                await witness.claim_run(key, "r2", ttl=60)
        assert (await store.read_session(key)).run_id == "r1"

    @since("0.1")
    @RUNS
    async def test_claim_expires(self, subject: StoreSubject, store: HistoryStore) -> None:
        """At the end of its time a claim is free for another run, and the first one has lost
        it."""
        key = subject.key()
        await store.append(key, [draft()])
        await store.claim_run(key, "r1", ttl=60)
        subject.clock.advance(60)
        await store.claim_run(key, "r2", ttl=60)
        assert (await store.read_session(key)).run_id == "r2"
        with pytest.raises(RunInProgressError):
            await store.renew_run(key, "r1", ttl=60)
        assert await store.release_run(key, "r1") is False
        assert (await store.read_session(key)).run_id == "r2"

    @since("0.1")
    @RUNS
    async def test_claim_may_be_repeated(self, subject: StoreSubject, store: HistoryStore) -> None:
        """The run that holds a session may claim it again, for a new time."""
        key = subject.key()
        await store.append(key, [draft()])
        await store.claim_run(key, "r1", ttl=60)
        subject.clock.advance(30)
        lease = await store.claim_run(key, "r1", ttl=60)
        assert lease.expires_at == subject.clock.now + 60_000_000
        assert (await store.read_session(key)).run_expires_at == lease.expires_at

    @since("0.1")
    @RUNS
    async def test_renewal_prolongs_the_hold(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A renewal counts from now; it works after the time is over too, as long as nobody else
        came."""
        key = subject.key()
        await store.append(key, [draft()])
        await store.claim_run(key, "r1", ttl=60)
        for wait in (50, 90):
            subject.clock.advance(wait)
            lease = await store.renew_run(key, "r1", ttl=60)
            assert lease == RunLease(run_id="r1", expires_at=subject.clock.now + 60_000_000)
            with pytest.raises(RunInProgressError):
                await store.claim_run(key, "r2", ttl=60)

    @since("0.1")
    @RUNS
    async def test_renewal_needs_a_hold(self, subject: StoreSubject, store: HistoryStore) -> None:
        """A run that holds nothing, or released it, cannot renew."""
        key = subject.key()
        await store.append(key, [draft()])
        with pytest.raises(RunInProgressError):
            await store.renew_run(key, "r1", ttl=60)
        await store.claim_run(key, "r1", ttl=60)
        await store.release_run(key, "r1")
        with pytest.raises(RunInProgressError):
            await store.renew_run(key, "r1", ttl=60)

    @since("0.1")
    @RUNS
    async def test_release_is_for_the_holder(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Only the run that holds a session releases it; then it is free at once."""
        key = subject.key()
        await store.append(key, [draft()])
        assert await store.release_run(key, "r1") is False
        await store.claim_run(key, "r1", ttl=60)
        assert await store.release_run(key, "r2") is False
        assert (await store.read_session(key)).run_id == "r1"
        assert await store.release_run(key, "r1") is True
        assert await store.release_run(key, "r1") is False
        record = await store.read_session(key)
        assert (record.run_id, record.run_expires_at) == (None, None)
        await store.claim_run(key, "r2", ttl=60)

    @since("0.1")
    @RUNS
    async def test_session_that_is_not_there_cannot_be_held(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Claims and renewals of no session are a NotFoundError, releasing it is False."""
        key = subject.key()
        with pytest.raises(NotFoundError):
            await store.claim_run(key, "r1", ttl=60)
        with pytest.raises(NotFoundError):
            await store.renew_run(key, "r1", ttl=60)
        assert await store.release_run(key, "r1") is False
        with pytest.raises(NotFoundError):
            await store.read_session(key)

    @since("0.1")
    @RUNS
    async def test_runs_touch_neither_version_nor_revision(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A hold changes nothing but the run that the session names."""
        key = subject.key()
        await store.append(key, [draft()])
        before, page = await store.read_session(key), await store.read(key)
        subject.clock.advance(60)
        await store.claim_run(key, "r1", ttl=60)
        await store.renew_run(key, "r1", ttl=60)
        await store.release_run(key, "r1")
        assert await store.read_session(key) == before
        assert await store.read(key) == page

    @since("0.1")
    @RUNS
    async def test_hold_keeps_nobody_from_writing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A hold is between runs: messages are appended, and the session is deleted, all the
        same. A new session is not held."""
        key = subject.key()
        await store.append(key, [draft("a")])
        await store.claim_run(key, "r1", ttl=60)
        await store.append(key, [draft("b")])
        assert (await store.read_session(key)).run_id == "r1"
        await store.delete_session(key)
        await store.append(key, [draft("c")])
        assert (await store.read_session(key)).run_id is None
        await store.claim_run(key, "r2", ttl=60)

    @since("0.1")
    @RUNS
    async def test_one_of_several_claims_wins(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Of claims at the same time one is granted."""
        key = subject.key()
        await store.append(key, [draft()])
        results = await asyncio.gather(
            *(store.claim_run(key, f"r{n}", ttl=60) for n in range(8)), return_exceptions=True
        )
        granted = [result for result in results if isinstance(result, RunLease)]
        lost = [result for result in results if isinstance(result, BaseException)]
        for error in lost:
            if not isinstance(error, RunInProgressError):
                raise error
        assert (len(granted), len(lost)) == (1, 7)
        assert (await store.read_session(key)).run_id == granted[0].run_id

    @since("0.1")
    @RUNS
    async def test_holds_are_apart(self, subject: StoreSubject, store: HistoryStore) -> None:
        """A hold is of one session; any text names a run, compared byte for byte."""
        keys = [subject.key(f"s{n}") for n in range(2)]
        for key in keys:
            await store.append(key, [draft()])
        await store.claim_run(keys[1], "other", ttl=60)
        for text in HOSTILE_TEXTS:
            await store.claim_run(keys[0], text, ttl=60)
            assert (await store.read_session(keys[0])).run_id == text
            if len(text) < 256:
                assert await store.release_run(keys[0], text + " ") is False
            assert await store.release_run(keys[0], text) is True
        assert (await store.read_session(keys[1])).run_id == "other"
