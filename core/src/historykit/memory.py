"""The store that keeps everything in this process: the reference for what all others do."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from historykit.capabilities import Capability
from historykit.errors import (
    HistoryKitError,
    StorageError,
)
from historykit.planning import (
    INSTRUCTION_ROLES,
    AppendPlan,
    check_revision,
    check_version,
    cut_page,
    message_not_found,
    plan_append,
    plan_claim,
    plan_release,
    plan_renewal,
    retention_cut,
    role_mismatch,
    session_exists,
    session_not_found,
)
from historykit.plugins import BackendSpec, hookimpl
from historykit.records import (
    MAIN_STREAM,
    TAIL_DIGESTS,
    UNCHANGED,
    AppendReceipt,
    AppendRequest,
    DeleteReceipt,
    IfExists,
    MessageDraft,
    MessagePatch,
    MessageSelector,
    ReplaceRequest,
    Retention,
    RunLease,
    ServerInfo,
    SessionDraft,
    SessionHead,
    SessionKey,
    SessionPatch,
    SessionPosition,
    SessionQuery,
    SessionRecord,
    SessionSlice,
    Slice,
    StoredMessage,
    Tail,
    Window,
)
from historykit.store import Clock, HistoryStore, system_clock

__all__ = ["MemoryConfig", "MemoryStore"]

CAPABILITIES = frozenset({Capability.EDIT, Capability.CATALOGUE, Capability.RUNS})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """The configuration of a memory store: there is nothing to configure."""


@dataclass(slots=True)
class _Stream:
    messages: list[StoredMessage] = field(default_factory=list)
    trimmed: int = 0

    def index(self, sequence: int) -> int:
        return bisect_left(self.messages, sequence, key=_sequence)


@dataclass(slots=True)
class _Session:
    record: SessionRecord
    next_sequence: int = 1
    epoch: int = 0
    streams: dict[str, _Stream] = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)
    places: dict[str, tuple[str, int]] = field(default_factory=dict)

    def stream(self, name: str) -> _Stream:
        return self.streams.setdefault(name, _Stream())


class MemoryStore(HistoryStore):
    """Keeps history in this object: gone with it, and seen by nobody else.

    It claims no guarantee and supports every capability. The data outlives `aclose` and a new `open`
    of the same object.
    """

    backend = "memory"
    capabilities = CAPABILITIES

    def __init__(
        self, config: MemoryConfig = MemoryConfig(), *, clock: Clock = system_clock
    ) -> None:
        super().__init__(clock=clock)
        self._sessions: dict[SessionKey, _Session] = {}

    async def _open(self) -> None:
        pass

    async def _close(self) -> None:
        pass

    def _translate(self, error: Exception, operation: str) -> HistoryKitError:
        return StorageError(f"{operation} failed in the memory store: {error}")

    async def _ping(self) -> ServerInfo:
        return ServerInfo(product="memory", version="1")

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        session = self._sessions.get(request.key)
        plan = plan_append(request, _head(session), _known(session, request))
        if session is None:
            session = _new_session(
                request.key, request.create, plan.receipt.incarnation, request.now
            )
            self._sessions[request.key] = session
        if plan.drafts:
            _store(session, request.stream, plan, request.now)
        if plan.drafts and request.retention is not None:
            _trim(session, request.stream, request.retention)
        return plan.receipt

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        session = self._sessions.get(key)
        if session is None:
            return Slice((), None, 0, 0, False)
        messages = session.stream(stream).messages
        page, more = cut_page(_walk(messages, window), window)
        return Slice(
            page,
            session.record.incarnation,
            session.record.version,
            session.epoch,
            more,
            _opening(messages) if more and window.limit and window.after is None else None,
        )

    async def _read_tail(self, key: SessionKey, stream: str) -> Tail:
        session = self._sessions.get(key)
        if session is None:
            return Tail(incarnation=None, version=0, count=0, trimmed=0, digests=())
        kept = session.stream(stream)
        return Tail(
            incarnation=session.record.incarnation,
            version=session.record.version,
            count=len(kept.messages),
            trimmed=kept.trimmed,
            digests=tuple(session.digests[row.id] for row in kept.messages[-TAIL_DIGESTS:]),
        )

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        session = self._session(key)
        if message_id not in session.places:
            raise message_not_found(key, message_id)
        stream, sequence = session.places[message_id]
        messages = session.stream(stream).messages
        index = session.stream(stream).index(sequence)
        messages[index] = _patched(messages[index], patch)
        if patch.digest is not None:
            session.digests[message_id] = patch.digest
        _touch(session, now)
        return messages[index]

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        session = self._sessions.get(key)
        if session is None:
            return 0
        doomed = [
            row for row in session.stream(selector.stream).messages if _selected(row, selector)
        ]
        if doomed:
            _remove(session, selector.stream, doomed)
            _touch(session, now)
        return len(doomed)

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        session = self._session(request.key)
        check_version(request.key, request.expected_version, session.record.version)
        _remove(session, request.stream, list(session.stream(request.stream).messages))
        first = session.next_sequence
        _insert(session, request.stream, request.drafts)
        _touch(session, request.now)
        return AppendReceipt(
            incarnation=session.record.incarnation,
            version=session.record.version,
            ids=tuple(draft.id for draft in request.drafts),
            sequences=tuple(range(first, session.next_sequence)),
            stored=len(request.drafts),
        )

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists: IfExists, incarnation: str, now: int
    ) -> SessionRecord:
        if key not in self._sessions:
            self._sessions[key] = _new_session(key, draft, incarnation, now)
        elif if_exists == "error":
            raise session_exists(key)
        elif if_exists == "update":
            return await self._patch_session(key, draft.as_patch(), None, now)
        return self._sessions[key].record

    async def _read_session(self, key: SessionKey) -> SessionRecord:
        return self._session(key).record

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        session = self._session(key)
        record = session.record
        check_revision(key, if_revision, record.revision)
        session.record = replace(
            record,
            agent_id=record.agent_id if patch.agent_id is None else patch.agent_id,
            status=record.status if patch.status is None else patch.status,
            memory_enabled=(
                record.memory_enabled if patch.memory_enabled is None else patch.memory_enabled
            ),
            labels=record.labels if patch.labels is None else patch.labels,
            body=record.body if patch.body is None else patch.body,
            updated_at=now,
            revision=record.revision + 1,
        )
        return session.record

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        session = self._sessions.pop(key, None)
        if session is None:
            return DeleteReceipt(sessions=0, messages=0)
        return DeleteReceipt(sessions=1, messages=len(session.places))

    async def _find_sessions(self, query: SessionQuery) -> SessionSlice:
        found = [s.record for s in self._sessions.values() if _matches(s.record, query)]
        found.sort(key=_position, reverse=True)
        rest = [r for r in found if query.position is None or r.position < query.position]
        page = rest[query.offset : query.offset + query.limit]
        return SessionSlice(
            records=tuple(page),
            total=len(found) if query.with_total else None,
            more=len(rest) > query.offset + len(page),
        )

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        session = self._session(key)
        return _hold(session, plan_claim(key, _lease(session), lease, now=now))

    async def _renew_run(self, key: SessionKey, lease: RunLease) -> RunLease:
        session = self._session(key)
        return _hold(session, plan_renewal(key, _lease(session), lease))

    async def _release_run(self, key: SessionKey, run_id: str) -> bool:
        session = self._sessions.get(key)
        if session is None or not plan_release(_lease(session), run_id):
            return False
        session.record = replace(session.record, run_id=None, run_expires_at=None)
        return True

    def _session(self, key: SessionKey) -> _Session:
        if key not in self._sessions:
            raise session_not_found(key)
        return self._sessions[key]


def _new_session(key: SessionKey, draft: SessionDraft, incarnation: str, now: int) -> _Session:
    return _Session(
        SessionRecord(
            key=key,
            incarnation=incarnation,
            agent_id=draft.agent_id,
            status=draft.status,
            memory_enabled=draft.memory_enabled,
            labels=draft.labels,
            body=draft.body,
            created_at=now if draft.created_at is None else draft.created_at,
            updated_at=now,
            last_message_at=None,
            message_count=0,
            version=0,
            revision=0,
        )
    )


def _head(session: _Session | None) -> SessionHead | None:
    if session is None:
        return None
    return SessionHead(
        incarnation=session.record.incarnation,
        version=session.record.version,
        next_sequence=session.next_sequence,
        memory_enabled=session.record.memory_enabled,
    )


def _known(session: _Session | None, request: AppendRequest) -> dict[str, tuple[int, bytes]]:
    if session is None:
        return {}
    return {
        draft.id: (session.places[draft.id][1], session.digests[draft.id])
        for draft in request.drafts
        if draft.id in session.places
    }


def _store(session: _Session, stream: str, plan: AppendPlan, now: int) -> None:
    _insert(session, stream, plan.drafts)
    _touch(session, now, edited=False)


def _insert(session: _Session, stream: str, drafts: tuple[MessageDraft, ...]) -> None:
    for draft in drafts:
        row = StoredMessage(
            session.next_sequence,
            draft.id,
            draft.role,
            draft.body,
            draft.created_at,
            draft.turn_start,
            None,
            draft.extra,
        )
        session.stream(stream).messages.append(row)
        session.digests[draft.id] = draft.digest
        session.places[draft.id] = (stream, row.sequence)
        session.next_sequence += 1


def _remove(session: _Session, stream: str, doomed: list[StoredMessage]) -> None:
    gone = {row.id for row in doomed}
    kept = session.stream(stream)
    kept.messages = [row for row in kept.messages if row.id not in gone]
    for id in gone:
        del session.digests[id], session.places[id]


def _trim(session: _Session, stream: str, retention: Retention) -> None:
    kept = session.stream(stream)
    if len(kept.messages) <= retention.max_messages:
        return
    cut = retention_cut(
        (row.sequence for row in kept.messages if row.turn_start),
        oldest_wanted=kept.messages[-retention.max_messages].sequence,
        opening=(kept.messages[0].sequence, kept.messages[0].role),
    )
    if cut is not None:
        doomed = [row for row in kept.messages if cut[0] <= row.sequence <= cut[1]]
        _remove(session, stream, doomed)
        kept.trimmed += len(doomed)
        _count(session)


def _touch(session: _Session, now: int, *, edited: bool = True) -> None:
    """Note that messages were added, or changed and removed."""
    session.epoch += edited
    session.record = replace(session.record, updated_at=now, version=session.record.version + 1)
    _count(session)


def _count(session: _Session) -> None:
    messages = session.stream(MAIN_STREAM).messages
    session.record = replace(
        session.record,
        message_count=len(messages),
        last_message_at=messages[-1].created_at if messages else None,
    )


def _walk(messages: list[StoredMessage], window: Window) -> Iterator[StoredMessage]:
    """Yield the messages that a window may hold, nearest first."""
    if window.after is not None:
        yield from messages[bisect_right(messages, window.after, key=_sequence) :]
    else:
        end = len(messages)
        if window.before is not None:
            end = bisect_left(messages, window.before, key=_sequence)
        for index in range(end - 1, -1, -1):
            yield messages[index]


def _opening(messages: list[StoredMessage]) -> StoredMessage | None:
    return messages[0] if messages[0].role in INSTRUCTION_ROLES else None


def _patched(row: StoredMessage, patch: MessagePatch) -> StoredMessage:
    if patch.required_role is not None and patch.required_role != row.role:
        raise role_mismatch(row.role, patch.required_role)
    return row._replace(
        body=row.body if patch.body is None else patch.body,
        reaction=row.reaction if patch.reaction is UNCHANGED else patch.reaction,
        extra=row.extra if patch.extra is UNCHANGED else patch.extra,
        revision=row.revision + 1,
    )


def _selected(row: StoredMessage, selector: MessageSelector) -> bool:
    return (
        (selector.ids is None or row.id in selector.ids)
        and (selector.first is None or row.sequence >= selector.first)
        and (selector.last is None or row.sequence <= selector.last)
        and (selector.created_before is None or row.created_at < selector.created_before)
    )


def _matches(record: SessionRecord, query: SessionQuery) -> bool:
    return (
        record.key.namespace == query.namespace
        and query.user_id in (None, record.key.user_id)
        and query.agent_id in (None, record.agent_id)
        and query.status in (None, record.status)
        and query.memory_enabled in (None, record.memory_enabled)
        and query.labels <= record.labels
        and (query.created_from is None or record.created_at >= query.created_from)
        and (query.created_before is None or record.created_at < query.created_before)
    )


def _lease(session: _Session) -> RunLease | None:
    record = session.record
    if record.run_id is None or record.run_expires_at is None:
        return None
    return RunLease(run_id=record.run_id, expires_at=record.run_expires_at)


def _hold(session: _Session, lease: RunLease) -> RunLease:
    session.record = replace(session.record, run_id=lease.run_id, run_expires_at=lease.expires_at)
    return lease


def _sequence(row: StoredMessage) -> int:
    return row.sequence


def _position(record: SessionRecord) -> SessionPosition:
    return record.position


@hookimpl
def historykit_backend() -> BackendSpec:
    """Describe the memory backend."""
    return BackendSpec(
        name="memory",
        store=lambda: MemoryStore,
        config=lambda: MemoryConfig,
        capabilities=CAPABILITIES,
        guarantees=frozenset(),
        summary="in this process only; for tests and as the reference",
    )
