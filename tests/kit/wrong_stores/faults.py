from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from historykit.errors import ConflictError, StorageError, StorageUnavailableError
from historykit.memory_sessions import MemorySession
from historykit.planning import plan_append
from historykit.records import (
    AppendReceipt,
    AppendRequest,
    MessagePatch,
    Slice,
    StoredMessage,
    Window,
)
from historykit.session_records import RunLease, SessionKey, SessionPatch, SessionRecord
from tests.kit.wrong_stores.lies import Lie, SharedLie, wrong


@wrong("test_outage_is_an_error_for_every_call", "test_store_works_after_an_outage")
class SwallowsOutages(Lie):
    """Takes a server that cannot be reached for an empty one."""

    async def _call(self, operation: str, method: Callable[..., Awaitable[Any]], *arguments: Any):
        try:
            return await super()._call(operation, method, *arguments)
        except StorageError:
            if operation != "read":
                raise
            return Slice((), None, 0, 0, False)


@wrong("test_errors_of_the_driver_are_translated")
class LetsDriverErrorsOut(Lie):
    """Lets errors out that it did not expect."""

    async def _translated(self, operation, method, *arguments):
        try:
            return await method(*arguments)
        except OSError as error:
            raise StorageError("failed") from error


@wrong("test_outage_is_an_error_for_every_call", "test_errors_of_the_driver_are_translated")
class HidesTheCause(Lie):
    """Does not say what the driver's error was."""

    async def _translated(self, operation, method, *arguments):
        try:
            return await super()._translated(operation, method, *arguments)
        except StorageError as error:
            raise error from None


@wrong("test_store_works_after_an_outage")
class NeverRecovers(Lie):
    """Holds on to a connection that is broken."""

    async def _translated(self, operation, method, *arguments):
        if getattr(self, "_broken", False):
            raise StorageUnavailableError("connection lost")
        try:
            return await super()._translated(operation, method, *arguments)
        except StorageError:
            self._broken = True
            raise


@wrong("test_refused_write_holds_nothing")
class StaysLocked(Lie):
    """Keeps its lock when it refuses a write."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        if getattr(self, "_locked", False) and request.expected_version is None:
            raise StorageUnavailableError("database is locked")
        try:
            return await super()._append(request)
        except ConflictError:
            self._locked = True
            raise


class StepLie(Lie):
    """A store that writes a batch message by message."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        session = self._sessions.get(request.key)
        plan = plan_append(
            request,
            session and session.head,
            {} if session is None else session.known(request.drafts),
        )
        if len(plan.drafts) < 2:
            return await super()._append(request)
        places = []
        for draft in plan.drafts:
            step = replace(request, drafts=(draft,), expected_version=None)
            places += (await super()._append(step)).sequences
            await asyncio.sleep(0)
        session = self._sessions[request.key]
        version = plan.receipt.version
        session.record = replace(session.record, version=version)
        return replace(plan.receipt, sequences=tuple(places))


@wrong("test_parallel_batches_stay_whole", "test_reader_never_sees_a_part_of_a_batch")
class TearsBatches(StepLie):
    """Writes a batch message by message, while others write theirs."""


@wrong("test_cancelled_append_is_done_or_not_done")
class HalfWrites(StepLie):
    """Stops in the middle of a batch when its caller is cancelled."""

    async def _write(self, operation: str, method: Any, *arguments: Any) -> Any:
        return await self._call(operation, method, *arguments)


@wrong(
    "test_parallel_appends_lose_nothing",
    "test_parallel_first_appends_make_one_session",
    "test_parallel_retries_store_once",
    "test_one_of_those_who_expect_a_version_wins",
)
class DecidesTooEarly(Lie):
    """Decides on an append, and waits before it writes."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        session = self._sessions.get(request.key)
        head = None if session is None else session.head
        known = {} if session is None else session.known(request.drafts)
        plan = plan_append(request, head, known)
        await asyncio.sleep(0)
        if session is None:
            session = MemorySession.create(
                request.key, request.create, request.new_incarnation, request.now
            )
            self._sessions[request.key] = session
        if plan.drafts:
            session.next_sequence = plan.first_sequence
            session.insert(request.stream, plan.drafts)
            session.touch(request.now, edited=False)
        return plan.receipt


@wrong(
    "test_parallel_changes_of_a_session_are_all_counted",
    "test_one_of_those_who_expect_a_revision_wins",
)
class WritesSessionsBack(Lie):
    """Reads a session, changes it and writes all of it back."""

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        session = self._session(key)
        before = session.record
        record = await super()._patch_session(key, patch, if_revision, now)
        session.record = before
        await asyncio.sleep(0)
        session.record = record
        return record


@wrong("test_parallel_edits_are_all_counted")
class WritesStreamsBack(Lie):
    """Reads a stream, changes a message and writes all of it back."""

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        session = self._session(key)
        stream = session.stream("main")
        before = list(stream.messages)
        row = await super()._update_message(key, message_id, patch, now)
        changed, stream.messages = stream.messages, before
        await asyncio.sleep(0)
        stream.messages = changed
        return row


@wrong("test_one_of_several_claims_wins")
class GrantsTooEarly(Lie):
    """Looks who holds a session, and waits before it writes."""

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        before = self._session(key).lease
        await super()._claim_run(key, lease, now)
        self._session(key).hold(before)
        await asyncio.sleep(0)
        self._session(key).hold(lease)
        return lease


@wrong("test_parallel_reads_do_not_mix", "test_cancelled_read_leaves_the_store_in_order")
class MixesReads(Lie):
    """Notes what is to be read in one place for all."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        self._wanted_key = key
        await asyncio.sleep(0)
        return await super()._read(self._wanted_key, window, stream)


@wrong("test_cancelled_read_leaves_the_store_in_order")
class LeavesAnswersBehind(Lie):
    """Has one connection, on which the answer to a cancelled read waits for the next one."""

    async def _open(self) -> None:
        self._answers: asyncio.Queue[Slice] = asyncio.Queue()

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        self._answers.put_nowait(await super()._read(key, window, stream))
        await asyncio.sleep(0)
        return await self._answers.get()


@wrong("test_second_store_sees_what_was_appended", "test_second_store_sees_the_deletion")
class ReadsFromItsCache(SharedLie):
    """Remembers what it read, and does not see what others wrote since."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        cache = self.__dict__.setdefault("_cache", {})
        if (key, stream) not in cache or window != Window():
            cache[key, stream] = await super()._read(key, window, stream)
        return cache[key, stream]


@wrong("test_batches_of_several_stores_stay_whole")
class LocksItself(SharedLie, StepLie):
    """Has a lock of its own, which other stores do not know."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        lock = self.__dict__.setdefault("_lock", asyncio.Lock())
        async with lock:
            return await super()._append(request)
