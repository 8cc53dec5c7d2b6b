from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from historykit.errors import TooLargeError
from historykit.records import (
    PAGE_BYTES,
    AppendReceipt,
    AppendRequest,
    MessageDraft,
    Slice,
    StoredMessage,
    Tail,
    Window,
)
from historykit.session_records import SessionDraft, SessionKey, SessionRecord
from tests.kit.wrong_stores.lies import Lie, wrong


class DraftLie(Lie):
    """A store that changes messages before it stores them."""

    def changed(self, draft: MessageDraft) -> MessageDraft:
        raise NotImplementedError

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await super()._append(
            replace(request, drafts=tuple(map(self.changed, request.drafts)))
        )


class PageLie(Lie):
    """A store that changes what it read."""

    def changed(self, rows: list[StoredMessage]) -> Sequence[StoredMessage]:
        raise NotImplementedError

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        page = await super()._read(key, window, stream)
        return page._replace(messages=tuple(self.changed(list(page.messages))))


@wrong("test_batch_keeps_its_order")
class ReversesBatches(Lie):
    """Stores a batch from its end."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await super()._append(replace(request, drafts=request.drafts[::-1]))


@wrong("test_appends_keep_their_order", "test_limit_means_the_newest_oldest_first")
class ReadsNewestFirst(PageLie):
    """Reads the newest message first."""

    def changed(self, rows: list[StoredMessage]) -> Sequence[StoredMessage]:
        return rows[::-1]


@wrong("test_order_does_not_follow_the_clock")
class OrdersByTime(PageLie):
    """Orders messages by their time."""

    def changed(self, rows: list[StoredMessage]) -> Sequence[StoredMessage]:
        return sorted(rows, key=lambda row: row.created_at)


@wrong("test_order_does_not_follow_the_ids")
class OrdersById(PageLie):
    """Orders messages by their id."""

    def changed(self, rows: list[StoredMessage]) -> Sequence[StoredMessage]:
        return sorted(rows, key=lambda row: row.id)


@wrong("test_sequences_increase", "test_window_beyond_the_end_is_empty")
class CountsFromZero(Lie):
    """Gives the first message the sequence 0."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        if request.key not in self._sessions and request.expected_version is None:
            await super()._create_session(
                request.key, request.create, "error", request.new_incarnation, request.now
            )
            self._sessions[request.key].next_sequence = 0
            receipt = await super()._append(request)
            return replace(receipt, created=True)
        return await super()._append(request)


@wrong(
    "test_receipt_names_ids_and_sequences",
    "test_known_messages_among_new_ones_are_not_stored_again",
)
class ReceiptsOfNewOnes(Lie):
    """Lists in the receipt the places from the first of the session on."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        receipt = await super()._append(request)
        return replace(receipt, sequences=receipt.sequences[::-1])


@wrong("test_streams_share_the_sequence_of_their_session")
class CountsEachStream(Lie):
    """Gives each stream a sequence of its own."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        session = self._sessions.get(request.key)
        if session is not None and request.stream not in session.streams:
            session.next_sequence = 1
        elif session is not None:
            rows = session.stream(request.stream).messages
            session.next_sequence = rows[-1].sequence + 1 if rows else session.next_sequence
        return await super()._append(request)


@wrong("test_bodies_are_kept_byte_for_byte")
class TakesBodiesForText(DraftLie):
    """Stores bodies as text."""

    def changed(self, draft: MessageDraft) -> MessageDraft:
        return replace(draft, body=draft.body.decode(errors="replace").encode())


@wrong("test_bodies_are_kept_byte_for_byte")
class TakesBodiesForJSON(DraftLie):
    """Stores bodies in a column for JSON, which writes them anew."""

    def changed(self, draft: MessageDraft) -> MessageDraft:
        try:
            return replace(draft, body=json.dumps(json.loads(draft.body)).encode())
        except ValueError:
            return draft


@wrong("test_messages_come_back_exactly")
class DropsUnknownFields(DraftLie):
    """Keeps the fields of a message that it knows."""

    def changed(self, draft: MessageDraft) -> MessageDraft:
        if draft.body[:1] != b"{":
            return draft
        known = ("type", "role", "contents", "message_id", "author_name", "additional_properties")
        data = json.loads(draft.body)
        data = {name: data[name] for name in known if name in data}
        return replace(draft, body=json.dumps(data).encode())


@wrong("test_messages_come_back_exactly", "test_bodies_are_kept_byte_for_byte")
class ChangesNaN(DraftLie):
    """Has null where a number was none."""

    def changed(self, draft: MessageDraft) -> MessageDraft:
        body = draft.body.replace(b'["!float","nan"]', b"null").replace(b"NaN", b"null")
        return replace(draft, body=body)


@wrong("test_bodies_come_back_as_bytes")
class HandsOutWhatItHolds(PageLie):
    """Hands out buffers that can be written to."""

    def changed(self, rows: list[StoredMessage]) -> Sequence[StoredMessage]:
        return [row._replace(body=bytearray(row.body)) for row in rows]


@wrong("test_large_bodies_are_kept_or_refused")
class CutsBodies(DraftLie):
    """Keeps the first 1,000,000 bytes of a body."""

    def changed(self, draft: MessageDraft) -> MessageDraft:
        return replace(draft, body=draft.body[:1_000_000])


@wrong("test_large_bodies_are_kept_or_refused")
class HasNoRealBound(Lie):
    """Says that it takes no larger bodies than 1 MB, and takes them."""

    max_body_bytes = PAGE_BYTES

    def _check_size(self, body: bytes, what: str) -> None:
        pass


@wrong("test_large_bodies_are_kept_or_refused")
class RefusesTooLate(HasNoRealBound):
    """Makes the session before it refuses a body that is too large."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        if any(len(draft.body) > PAGE_BYTES for draft in request.drafts):
            await super()._create_session(
                request.key, request.create, "return", request.new_incarnation, request.now
            )
            raise TooLargeError("too large")
        return await super()._append(request)


@wrong("test_batch_of_many_and_large_messages_is_kept")
class StoresHalfABatch(Lie):
    """Stores the first 500 messages of a batch, and says that it stored all."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        receipt = await super()._append(replace(request, drafts=request.drafts[:500]))
        return replace(receipt, stored=len(request.drafts))


@wrong("test_fields_of_messages_are_kept")
class RoundsTimes(DraftLie):
    """Keeps milliseconds."""

    def changed(self, draft: MessageDraft) -> MessageDraft:
        return replace(draft, created_at=draft.created_at // 1000 * 1000)


@wrong("test_fields_of_messages_are_kept", "test_bodies_come_back_as_bytes")
class TakesEmptyForNothing(DraftLie):
    """Has no extra where it is empty."""

    def changed(self, draft: MessageDraft) -> MessageDraft:
        return replace(draft, extra=draft.extra or None, turn_start=int(draft.turn_start))


@wrong("test_digests_are_kept")
class ForgetsOldDigests(Lie):
    """Has the digests of the last append in the tail, whatever the stream."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        self._latest = tuple(draft.digest for draft in request.drafts)
        return await super()._append(request)

    async def _read_tail(self, key: SessionKey, stream: str) -> Tail:
        tail = await super()._read_tail(key, stream)
        return replace(tail, digests=self._latest if tail.count else ())


@wrong("test_transcripts_store_what_is_new", "test_late_retry_stores_once")
class CountsItsDigests(Lie):
    """Counts the messages of the tail that it has digests of."""

    async def _read_tail(self, key: SessionKey, stream: str) -> Tail:
        tail = await super()._read_tail(key, stream)
        return replace(tail, count=len(tail.digests))


@wrong("test_fields_of_sessions_are_kept")
class LowersLabels(Lie):
    """Compares labels without case."""

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists: Any, incarnation: str, now: int
    ) -> SessionRecord:
        draft = replace(draft, labels=frozenset(label.lower() for label in draft.labels))
        return await super()._create_session(key, draft, if_exists, incarnation, now)


@wrong("test_unreadable_record_is_named")
class HidesWhatItCannotRead(PageLie):
    """Leaves out records that look damaged."""

    def changed(self, rows: list[StoredMessage]) -> Sequence[StoredMessage]:
        return [row for row in rows if b"damaged" not in row.body]
