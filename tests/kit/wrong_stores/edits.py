from __future__ import annotations

from dataclasses import replace
from typing import Any

from historykit.errors import NotFoundError
from historykit.records import (
    UNCHANGED,
    AppendReceipt,
    DeleteReceipt,
    MessagePatch,
    MessageSelector,
    ReplaceRequest,
    Slice,
    StoredMessage,
    Window,
)
from historykit.session_records import SessionKey
from tests.kit.wrong_stores.lies import Lie, wrong


@wrong("test_change_keeps_the_message_in_its_place")
class MovesWhatItChanges(Lie):
    """Puts a changed message at the end."""

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        row = await super()._update_message(key, message_id, patch, now)
        session = self._sessions[key]
        stream = session.stream(session.places[message_id][0])
        stream.messages.remove(row)
        row = row._replace(sequence=session.next_sequence)
        session.next_sequence += 1
        session.places[message_id] = (session.places[message_id][0], row.sequence)
        stream.messages.append(row)
        return row


@wrong("test_change_is_seen_by_the_session")
class CountsEditsAsChanges(Lie):
    """Counts a change of a message as one of the session's fields."""

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        row = await super()._update_message(key, message_id, patch, now)
        session = self._sessions[key]
        session.record = replace(session.record, revision=session.record.revision + 1)
        return row


@wrong("test_change_of_the_body_changes_the_digest")
class KeepsTheOldDigest(Lie):
    """Leaves the digest of a message whose body it changes."""

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        old = self._session(key).digests.get(message_id)
        row = await super()._update_message(key, message_id, patch, now)
        self._sessions[key].digests[message_id] = old
        return row


@wrong("test_reaction_and_extra_are_set_and_cleared")
class ClearsWhatIsNotNamed(Lie):
    """Takes what a patch leaves alone for None."""

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        patch = replace(
            patch,
            reaction=None if patch.reaction is UNCHANGED else patch.reaction,
            extra=None if patch.extra is UNCHANGED else patch.extra,
        )
        return await super()._update_message(key, message_id, patch, now)


@wrong("test_change_reaches_any_stream")
class ChangesTheMainStream(Lie):
    """Finds messages of the main stream only."""

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        if self._session(key).places.get(message_id, ("main",))[0] != "main":
            raise NotFoundError("not there")
        return await super()._update_message(key, message_id, patch, now)


@wrong("test_change_for_another_role_is_refused")
class ChangesAnyRole(Lie):
    """Does not look at the role that a patch requires."""

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        patch = replace(patch, required_role=None)
        return await super()._update_message(key, message_id, patch, now)


@wrong("test_change_of_no_message_is_an_error")
class ChangesNothing(Lie):
    """Says that it changed a message that is not there."""

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        try:
            return await super()._update_message(key, message_id, patch, now)
        except NotFoundError:
            return StoredMessage(0, message_id, "user", b"", 0, False)


@wrong("test_messages_are_deleted_by_id")
class CountsWhatItWasAskedFor(Lie):
    """Says how many messages it was to delete, not how many it deleted."""

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        count = await super()._delete_messages(key, selector, now)
        return len(selector.ids) if selector.ids and count else count


@wrong("test_messages_are_deleted_by_place")
class ExcludesTheLast(Lie):
    """Does not delete the last message of a range."""

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        if selector.last is not None:
            selector = replace(selector, last=selector.last - 1)
        return await super()._delete_messages(key, selector, now)


@wrong("test_messages_are_deleted_by_time")
class DeletesWhatMeetsOneCondition(Lie):
    """Takes the time alone, where there is one."""

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        if selector.created_before is not None:
            selector = replace(selector, first=None, last=None, ids=None)
        return await super()._delete_messages(key, selector, now)


@wrong("test_deletion_stays_in_its_stream")
class DeletesInAllStreams(Lie):
    """Deletes from all streams of a session."""

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        streams = self._sessions[key].streams if key in self._sessions else {}
        return sum(
            [
                await Lie._delete_messages(self, key, replace(selector, stream=stream), now)
                for stream in list(streams)
            ]
        )


@wrong("test_deletion_that_finds_nothing_changes_nothing")
class CountsEmptyDeletions(Lie):
    """Counts a deletion that found nothing as an edit."""

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        count = await super()._delete_messages(key, selector, now)
        if not count and key in self._sessions:
            self._sessions[key].touch(now, edited=True)
        return count


@wrong("test_deleted_messages_are_not_counted")
class CountsDeletedMessages(Lie):
    """Leaves the session's counts as they were."""

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        before = self._sessions[key].record.streams if key in self._sessions else {}
        count = await super()._delete_messages(key, selector, now)
        if count:
            session = self._sessions[key]
            session.record = replace(session.record, streams=before)
        return count


@wrong("test_replacement_takes_the_place_of_a_stream")
class AddsReplacements(Lie):
    """Adds a replacement to what is there."""

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        session = self._session(request.key)
        kept = list(session.stream(request.stream).messages)
        receipt = await super()._replace(request)
        session.stream(request.stream).messages[:0] = kept
        return receipt


@wrong("test_replacement_by_nothing_empties_a_stream")
class DeletesEmptySessions(Lie):
    """Deletes a session whose messages are replaced by nothing."""

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        receipt = await super()._replace(request)
        if not request.drafts:
            del self._sessions[request.key]
        return receipt


@wrong("test_replacement_of_another_version_is_refused")
class ReplacesAnyVersion(Lie):
    """Does not look at the version that a replacement expects."""

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        version = self._session(request.key).record.version
        return await super()._replace(replace(request, expected_version=version))


@wrong("test_replacement_takes_no_message_of_another_stream")
class TakesFromOtherStreams(Lie):
    """Puts a message of another stream into a replacement."""

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        places = self._session(request.key).places
        for draft in request.drafts:
            if places.get(draft.id, (request.stream,))[0] != request.stream:
                del places[draft.id]
        return await super()._replace(request)


@wrong("test_messages_may_come_back_in_a_replacement")
class ReplacesByNewMessages(Lie):
    """Leaves out of a replacement what it knows."""

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        known = self._session(request.key).places
        drafts = tuple(draft for draft in request.drafts if draft.id not in known)
        return await super()._replace(replace(request, drafts=drafts))


@wrong("test_epoch_counts_edits")
class ForgetsEdits(Lie):
    """Has one epoch for all time."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        return (await super()._read(key, window, stream))._replace(epoch=0)


@wrong("test_deleted_session_is_not_found")
class LeavesIndexEntries(Lie):
    """Finds sessions that were deleted."""

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        self._left = {**getattr(self, "_left", {}), key: self._sessions.get(key)}
        return await super()._delete_session(key)

    async def _find_sessions(self, query: Any) -> Any:
        present = self._sessions
        left = {key: session for key, session in getattr(self, "_left", {}).items() if session}
        self._sessions = {**left, **present}
        try:
            return await super()._find_sessions(query)
        finally:
            self._sessions = present
