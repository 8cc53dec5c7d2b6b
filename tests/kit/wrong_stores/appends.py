from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from historykit.errors import ConflictError, SessionDeletedError, VersionConflictError
from historykit.memory_sessions import MemorySession
from historykit.records import AppendReceipt, AppendRequest, DeleteReceipt, Slice, Window
from historykit.session_records import SessionDraft, SessionKey, SessionRecord
from tests.kit.wrong_stores.lies import Lie, SharedLie, wrong


class KnownLie(Lie):
    """A store that knows other messages than it stores."""

    def known(self, session: MemorySession, request: AppendRequest) -> Mapping[str, object]:
        raise NotImplementedError

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        if request.key not in self._sessions:
            await super()._create_session(
                request.key, request.create, "error", request.new_incarnation, request.now
            )
        session = self._sessions[request.key]
        known = self.known(session, request)
        places = session.places
        session.places = {id: place for id, place in places.items() if id in known}
        try:
            return await super()._append(request)
        finally:
            session.places = places | session.places


@wrong(
    "test_retry_stores_once",
    "test_late_retry_stores_once",
    "test_retry_is_no_version_conflict",
    "test_save_with_a_key_is_stored_once",
    "test_parallel_retries_store_once",
    "test_cumulative_batches_store_each_message_once",
)
class StoresRetries(KnownLie):
    """Stores whatever it is given."""

    def known(self, session: MemorySession, request: AppendRequest) -> Mapping[str, object]:
        return {}


@wrong("test_late_retry_stores_once", "test_retry_of_a_late_message_stores_once")
class ForgetsOldIds(KnownLie):
    """Remembers the ids of the last 256 messages."""

    def known(self, session: MemorySession, request: AppendRequest) -> Mapping[str, object]:
        return dict(list(session.places.items())[-256:])


@wrong("test_retry_through_another_store_stores_once")
class RemembersIdsItself(SharedLie, KnownLie):
    """Remembers the ids that it stored itself, and not those that others stored."""

    def known(self, session: MemorySession, request: AppendRequest) -> Mapping[str, object]:
        remembered = self.__dict__.setdefault("_remembered", set())
        known = dict.fromkeys(remembered)
        remembered |= {draft.id for draft in request.drafts}
        return known


@wrong("test_equal_messages_are_no_repeat", "test_genuine_repeats_stay")
class DropsEqualTexts(Lie):
    """Takes equal content for a repeat."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        session = self._sessions.get(request.key)
        digests = set() if session is None else set(session.digests.values())
        new = tuple(draft for draft in request.drafts if draft.digest not in digests)
        receipt = await super()._append(replace(request, drafts=new))
        ids = tuple(draft.id for draft in request.drafts)
        return replace(receipt, ids=ids, sequences=(None,) * len(ids))


@wrong("test_known_id_with_other_content_is_a_conflict")
class BelievesIds(Lie):
    """Does not look at the content of a message whose id it knows."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        session = self._sessions.get(request.key)
        known = {} if session is None else session.digests
        drafts = (replace(d, digest=known.get(d.id, d.digest)) for d in request.drafts)
        return await super()._append(replace(request, drafts=tuple(drafts)))


@wrong("test_part_of_a_known_batch_is_a_conflict", "test_repeat_of_a_trimmed_batch_stores_nothing")
class StoresTheRest(Lie):
    """Stores of any batch what it does not know."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        drafts = tuple(replace(draft, external=True) for draft in request.drafts)
        return await super()._append(replace(request, drafts=drafts))


@wrong(
    "test_known_messages_among_new_ones_are_not_stored_again",
    "test_cumulative_batches_store_each_message_once",
)
class KnowsWholeBatches(Lie):
    """Takes a batch of which it knows a message for a repeat."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        session = self._sessions.get(request.key)
        if session is not None and session.known(request.drafts):
            known = tuple(draft for draft in request.drafts if draft.id in session.places)
            request = replace(request, drafts=known)
        return await super()._append(request)


@wrong(
    "test_expected_version_is_met_or_refused",
    "test_expected_version_of_no_session_is_zero",
    "test_one_of_those_who_expect_a_version_wins",
)
class ExpectsNoVersion(Lie):
    """Does not look at the version that is expected."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await super()._append(replace(request, expected_version=None))


@wrong("test_retry_is_no_version_conflict")
class ChecksTheVersionFirst(Lie):
    """Checks the version before it looks for a repeat."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        session = self._sessions.get(request.key)
        version = 0 if session is None else session.record.version
        expected = request.expected_version
        if expected is not None and expected != version:
            raise VersionConflictError("conflict", expected=expected, actual=version)
        return await super()._append(request)


@wrong("test_of_two_who_read_a_version_one_goes_on")
class ExpectsWhatItReadLast(SharedLie):
    """Compares an expected version with the one that it read last itself."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        page = await super()._read(key, window, stream)
        self._seen = {**getattr(self, "_seen", {}), key: page.version}
        return page

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        if request.expected_version == getattr(self, "_seen", {}).get(request.key):
            request = replace(request, expected_version=None)
        return await super()._append(request)


@wrong("test_expected_version_of_no_session_is_zero", "test_append_does_not_revive_the_dead")
class MakesTheSessionFirst(Lie):
    """Makes the session before it decides on the append."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        if request.key in self._sessions:
            return await super()._append(request)
        await super()._create_session(
            request.key, request.create, "error", request.new_incarnation, request.now
        )
        return replace(await super()._append(request), created=True)


@wrong(
    "test_append_does_not_revive_the_dead",
    "test_append_does_not_enter_another_life",
    "test_repeat_does_not_revive_the_dead",
    "test_run_does_not_revive_a_deleted_session",
)
class RevivesTheDead(Lie):
    """Does not look at the incarnation that is named."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await super()._append(replace(request, incarnation=None))


@wrong(
    "test_append_that_names_the_life_it_read_goes_on", "test_runs_of_a_provider_continue_each_other"
)
class RefusesTheLiving(Lie):
    """Takes every incarnation that is named for a gone one."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        if request.incarnation is not None:
            raise SessionDeletedError("gone")
        return await super()._append(request)


@wrong("test_deletion_leaves_nothing", "test_session_begins_anew_after_deletion")
class LeavesStreams(Lie):
    """Deletes the main stream, and leaves the others."""

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        session = self._sessions.get(key)
        receipt = await super()._delete_session(key)
        self._left = getattr(self, "_left", {})
        if session is not None:
            self._left[key] = {name: s for name, s in session.streams.items() if name != "main"}
            receipt = replace(receipt, messages=len(session.stream("main").messages))
        return receipt

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        receipt = await super()._append(request)
        if receipt.created and request.key in getattr(self, "_left", {}):
            self._sessions[request.key].streams |= self._left.pop(request.key)
        return receipt


@wrong("test_deletion_of_nothing_is_no_error")
class InsistsOnSessions(Lie):
    """Fails where there is nothing to delete."""

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        self._session(key)
        return await super()._delete_session(key)


@wrong("test_session_begins_anew_after_deletion")
class RemembersFields(Lie):
    """Gives a new session the fields of one that was deleted."""

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        if key in self._sessions:
            self._old = self._sessions[key].record
        return await super()._delete_session(key)

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        receipt = await super()._append(request)
        old: SessionRecord | None = getattr(self, "_old", None)
        if receipt.created and old is not None:
            session = self._sessions[request.key]
            session.record = replace(session.record, status=old.status, body=old.body)
        return receipt


@wrong("test_ids_are_free_after_deletion")
class RemembersIdsOfTheDead(Lie):
    """Refuses the messages of a deleted session in the next one."""

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        self._gone = getattr(self, "_gone", set())
        if key in self._sessions:
            self._gone |= set(self._sessions[key].places)
        return await super()._delete_session(key)

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        if any(draft.id in getattr(self, "_gone", ()) for draft in request.drafts):
            raise ConflictError("known")
        return await super()._append(request)


@wrong("test_session_without_memory_stores_no_messages")
class AlwaysRemembers(Lie):
    """Stores messages also where the session keeps no memory."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        session = self._sessions.get(request.key)
        if session is not None and not session.record.memory_enabled:
            session.record = replace(session.record, memory_enabled=True)
            receipt = await super()._append(request)
            session.record = replace(session.record, memory_enabled=False)
            return receipt
        return await super()._append(request)


@wrong("test_append_makes_the_session_with_its_fields")
class MakesBareSessions(Lie):
    """Makes a session without the fields that it is told."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await super()._append(replace(request, create=SessionDraft()))


@wrong("test_append_leaves_the_revision_alone")
class CountsAppendsAsChanges(Lie):
    """Counts an append as a change of the session."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        receipt = await super()._append(request)
        session = self._sessions[request.key]
        session.record = replace(session.record, revision=session.record.revision + 1)
        return receipt


@wrong(
    "test_append_keeps_the_counts_of_the_session",
    "test_session_counts_the_messages_of_each_stream",
)
class CountsEveryStream(Lie):
    """Counts the messages of all streams."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        receipt = await super()._append(request)
        session = self._sessions[request.key]
        session.record = replace(session.record, streams={"main": len(session.places)})
        return receipt
