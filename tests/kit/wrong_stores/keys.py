from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from historykit.records import AppendReceipt, AppendRequest, DeleteReceipt, Slice, Tail, Window
from historykit.session_records import SessionKey, SessionPatch, SessionRecord
from tests.kit.wrong_stores.lies import KeyLie, Lie, wrong


@wrong("test_sessions_are_apart", "test_writers_of_many_sessions_do_not_meet")
class HasOneSession(KeyLie):
    """Keeps all sessions of a user in one."""

    @staticmethod
    def fold(key: SessionKey) -> object:
        return key.namespace, key.user_id


@wrong("test_users_are_apart", "test_users_of_a_history_are_apart")
class LeaksBetweenUsers(KeyLie):
    """Keeps no user apart from another."""

    @staticmethod
    def fold(key: SessionKey) -> object:
        return key.namespace, key.session_id


@wrong("test_namespaces_are_apart")
class LeaksBetweenNamespaces(KeyLie):
    """Keeps no namespace apart from another."""

    @staticmethod
    def fold(key: SessionKey) -> object:
        return key.user_id, key.session_id


@wrong("test_parts_of_a_key_do_not_run_together")
class JoinsItsKeys(KeyLie):
    """Makes one text of the parts of a key."""

    @staticmethod
    def fold(key: SessionKey) -> object:
        return f"{key.namespace}:{key.user_id}:{key.session_id}"


@wrong("test_ids_are_compared_byte_for_byte")
class ForgetsCase(KeyLie):
    """Compares ids as many databases do: without case."""

    @staticmethod
    def fold(key: SessionKey) -> object:
        return key.namespace, key.user_id.lower(), key.session_id.lower()


@wrong("test_ids_are_compared_byte_for_byte")
class ForgetsSpaces(KeyLie):
    """Compares ids without the spaces at their end."""

    @staticmethod
    def fold(key: SessionKey) -> object:
        return key.namespace, key.user_id, key.session_id.rstrip(" ")


@wrong("test_ids_are_compared_byte_for_byte")
class NormalizesIds(KeyLie):
    """Takes an accent of its own for the letter that has one."""

    @staticmethod
    def fold(key: SessionKey) -> object:
        return key.namespace, key.user_id, unicodedata.normalize("NFC", key.session_id)


@wrong("test_ids_are_compared_byte_for_byte")
class CutsIds(KeyLie):
    """Has columns of 255 characters."""

    @staticmethod
    def fold(key: SessionKey) -> object:
        return key.namespace, key.user_id, key.session_id[:255]


@wrong(
    "test_hostile_session_ids_are_plain_text",
    "test_hostile_user_ids_are_plain_text",
    "test_hostile_namespaces_are_plain_text",
)
class MakesFileNames(KeyLie):
    """Replaces what is not safe in a file name."""

    @staticmethod
    def fold(key: SessionKey) -> object:
        parts = (key.namespace, key.user_id, key.session_id)
        return tuple(re.sub(r"[^\w.-]", "_", part) for part in parts)


@wrong("test_hostile_streams_are_plain_text")
class TrimsStreams(Lie):
    """Takes streams for names of tables: lower case, no spaces."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await super()._append(replace(request, stream=request.stream.strip().lower()))

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        return await super()._read(key, window, stream.strip().lower())


@wrong(
    "test_streams_of_a_session_are_apart",
    "test_stream_without_messages_belongs_to_its_session",
    "test_streams_of_providers_are_apart",
)
class HasOneStream(Lie):
    """Keeps all streams of a session in one."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await super()._append(replace(request, stream="main"))

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        return await super()._read(key, window, "main")

    async def _read_tail(self, key: SessionKey, stream: str) -> Tail:
        return await super()._read_tail(key, "main")


@wrong("test_hostile_message_ids_are_plain_text")
class TrimsMessageIds(Lie):
    """Compares message ids without case."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        drafts = tuple(replace(draft, id=draft.id.lower()) for draft in request.drafts)
        return await super()._append(replace(request, drafts=drafts))


@wrong("test_message_ids_belong_to_one_session")
class KnowsMessagesEverywhere(Lie):
    """Takes a message id of another session for a repeat."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        for key, session in self._sessions.items():
            if key != request.key and all(d.id in session.places for d in request.drafts):
                return await super()._append(replace(request, key=key))
        return await super()._append(request)


@wrong("test_deletion_touches_one_session")
class DeletesByPattern(Lie):
    """Takes an id to be deleted for the beginning of ids."""

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        receipt = await super()._delete_session(key)
        for other in list(self._sessions):
            scope = (other.namespace, other.user_id)
            if scope == (key.namespace, key.user_id) and (
                other.session_id.startswith(key.session_id) or key.session_id == "%"
            ):
                await super()._delete_session(other)
        return receipt


@wrong("test_fields_of_sessions_are_apart")
class ChangesThemAll(Lie):
    """Changes all sessions of one id, whoever they belong to."""

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        record = await super()._patch_session(key, patch, if_revision, now)
        for other, session in self._sessions.items():
            if other.session_id == key.session_id and other != key:
                session.patch(patch, now)
        return record


@wrong("test_each_life_has_its_incarnation")
class LivesOnce(Lie):
    """Makes the incarnation of the session's name."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await super()._append(replace(request, new_incarnation=repr(request.key)))

    async def _create_session(self, key, draft, if_exists, incarnation, now) -> SessionRecord:
        return await super()._create_session(key, draft, if_exists, repr(key), now)
