from __future__ import annotations

from dataclasses import replace
from typing import Any

from historykit.errors import NotFoundError, RunInProgressError
from historykit.memory_sessions import MemorySession
from historykit.records import AppendReceipt, AppendRequest, DeleteReceipt
from historykit.session_records import (
    RunLease,
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionRecord,
)
from tests.kit.wrong_stores.lies import Lie, wrong


class CreateLie(Lie):
    """A store that creates sessions in a way of its own."""

    def changed(self, session: MemorySession, if_exists: str) -> str:
        raise NotImplementedError

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists: Any, incarnation: str, now: int
    ) -> SessionRecord:
        if key in self._sessions:
            if_exists = self.changed(self._sessions[key], if_exists)
        return await super()._create_session(key, draft, if_exists, incarnation, now)


@wrong("test_creation_of_what_exists_is_a_conflict")
class CreatesTwice(CreateLie):
    """Gives a session that exists the fields of a new one."""

    def changed(self, session: MemorySession, if_exists: str) -> str:
        return "update" if if_exists == "error" else if_exists


@wrong("test_creation_may_return_what_exists")
class UpdatesWhatItReturns(CreateLie):
    """Changes a session that was to be returned as it is."""

    def changed(self, session: MemorySession, if_exists: str) -> str:
        return "update" if if_exists == "return" else if_exists


@wrong("test_creation_may_update_what_exists")
class EmptiesWhatItUpdates(CreateLie):
    """Removes the messages of a session that gets new fields."""

    def changed(self, session: MemorySession, if_exists: str) -> str:
        if if_exists == "update":
            session.remove("main", list(session.stream("main").messages))
            session.record = replace(session.record, streams={})
        return if_exists


@wrong("test_new_session_is_empty", "test_fields_of_sessions_are_kept")
class DatesSessionsNow(Lie):
    """Takes the time of the call for that of the creation."""

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists: Any, incarnation: str, now: int
    ) -> SessionRecord:
        draft = replace(draft, created_at=None)
        return await super()._create_session(key, draft, if_exists, incarnation, now)


@wrong("test_change_reaches_the_fields_it_names")
class TakesEmptyForUnnamed(Lie):
    """Leaves a field alone that is to be empty."""

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        patch = replace(patch, agent_id=patch.agent_id or None, body=patch.body or None)
        return await super()._patch_session(key, patch, if_revision, now)


@wrong("test_change_of_no_session_is_an_error")
class CreatesWhatItChanges(Lie):
    """Makes a session that is changed and not there."""

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        if key not in self._sessions:
            await self._create_session(key, SessionDraft(), "return", "life", now)
        return await super()._patch_session(key, patch, if_revision, now)


@wrong(
    "test_change_of_another_revision_is_refused",
    "test_one_of_those_who_expect_a_revision_wins",
)
class ExpectsNoRevision(Lie):
    """Does not look at the revision that is expected."""

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        return await super()._patch_session(key, patch, None, now)


@wrong("test_append_leaves_the_revision_alone", "test_change_reaches_the_fields_it_names")
class CountsChangesAsVersions(Lie):
    """Counts a change of the session's fields as a version of its messages."""

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        record = await super()._patch_session(key, patch, if_revision, now)
        session = self._sessions[key]
        session.record = replace(record, version=record.version + 1)
        return session.record


# -- runs


@wrong("test_claim_expires")
class HoldsForEver(Lie):
    """Does not let go of a session whose run is gone."""

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        return await super()._claim_run(key, lease, 0)


@wrong("test_claim_holds_the_session", "test_one_of_several_claims_wins")
class HoldsNothing(Lie):
    """Grants every claim."""

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        self._session(key).hold(lease)
        return lease


@wrong("test_claim_may_be_repeated")
class RefusesItsHolder(Lie):
    """Refuses a claim of the run that holds the session."""

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        held = self._session(key).lease
        if held is not None and held.expires_at > now:
            raise RunInProgressError("held")
        return await super()._claim_run(key, lease, now)


@wrong("test_renewal_prolongs_the_hold")
class RenewsInTime(Lie):
    """Refuses a renewal after the time is over."""

    async def _renew_run(self, key: SessionKey, lease: RunLease) -> RunLease:
        held = self._session(key).lease
        if held is not None and held.expires_at <= self.now():
            raise RunInProgressError("too late")
        return await super()._renew_run(key, lease)


@wrong("test_renewal_needs_a_hold")
class RenewsForAnybody(Lie):
    """Renews what the run does not hold."""

    async def _renew_run(self, key: SessionKey, lease: RunLease) -> RunLease:
        self._session(key).hold(lease)
        return lease


@wrong("test_release_is_for_the_holder", "test_holds_are_apart")
class ReleasesForAnybody(Lie):
    """Lets a session go whoever asks."""

    async def _release_run(self, key: SessionKey, run_id: str) -> bool:
        session = self._sessions.get(key)
        if session is None or session.lease is None:
            return False
        session.hold(None)
        return True


@wrong("test_session_that_is_not_there_cannot_be_held")
class HoldsWhatIsNotThere(Lie):
    """Grants a claim of a session that does not exist."""

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        try:
            return await super()._claim_run(key, lease, now)
        except NotFoundError:
            return lease


@wrong("test_runs_touch_neither_version_nor_revision")
class CountsHoldsAsChanges(Lie):
    """Counts a hold as a change of the session."""

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        lease = await super()._claim_run(key, lease, now)
        self._sessions[key].patch(SessionPatch(), now)
        return lease


@wrong("test_hold_keeps_nobody_from_writing")
class LocksWhatIsHeld(Lie):
    """Lets nobody append while a run holds the session."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        session = self._sessions.get(request.key)
        if session is not None and session.lease is not None:
            raise RunInProgressError("held")
        return await super()._append(request)


@wrong("test_hold_keeps_nobody_from_writing")
class HoldsTheNextLife(Lie):
    """Keeps a hold on a session that is made anew."""

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        self._old = self._sessions[key].lease if key in self._sessions else None
        return await super()._delete_session(key)

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        receipt = await super()._append(request)
        if receipt.created:
            self._sessions[request.key].hold(getattr(self, "_old", None))
        return receipt
