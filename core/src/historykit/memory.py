"""The store that keeps everything in this process: the reference for what all others do."""

from __future__ import annotations

from dataclasses import dataclass

from historykit.capabilities import Capability
from historykit.errors import HistoryKitError, StorageError
from historykit.memory_sessions import MemorySession, matches
from historykit.planning import (
    cut_page,
    message_not_found,
    plan_append,
    plan_claim,
    plan_patch,
    plan_release,
    plan_renewal,
    plan_replace,
    session_exists,
    session_not_found,
)
from historykit.plugins import BackendSpec, hookimpl
from historykit.records import (
    AppendReceipt,
    AppendRequest,
    DeleteReceipt,
    MessagePatch,
    MessageSelector,
    ReplaceRequest,
    ServerInfo,
    Slice,
    StoredMessage,
    Tail,
    Window,
)
from historykit.session_records import (
    IfExists,
    RunLease,
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionPosition,
    SessionQuery,
    SessionRecord,
    SessionSlice,
)
from historykit.store import Clock, HistoryStore, system_clock

__all__ = ["MemoryConfig", "MemoryStore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """The configuration of a memory store: there is nothing to configure."""


DEFAULT_CONFIG = MemoryConfig()


class MemoryStore(HistoryStore):
    """Keeps history in this object: gone with it, and seen by nobody else.

    It claims no guarantee and supports every capability. The data outlives `aclose` and a new
    `open` of the same object.
    """

    backend = "memory"
    capabilities = frozenset(Capability)

    def __init__(
        self, config: MemoryConfig = DEFAULT_CONFIG, *, clock: Clock = system_clock
    ) -> None:
        super().__init__(clock=clock)
        self._sessions: dict[SessionKey, MemorySession] = {}

    async def _open(self) -> None:
        """There is nothing to acquire."""

    async def _close(self) -> None:
        """There is nothing to release."""

    def _translate(self, error: Exception, operation: str) -> HistoryKitError:
        return StorageError(f"{operation} failed in the memory store: {error}")

    async def _ping(self) -> ServerInfo:
        return ServerInfo(product="memory", version="1")

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        session = self._sessions.get(request.key)
        plan = plan_append(
            request,
            None if session is None else session.head,
            {} if session is None else session.known(request.drafts),
        )
        if session is None:
            session = MemorySession.create(
                request.key, request.create, plan.receipt.incarnation, request.now
            )
            self._sessions[request.key] = session
        if plan.drafts:
            session.insert(request.stream, plan.drafts)
            if request.retention is not None:
                session.trim(request.stream, request.retention)
            session.touch(request.now, edited=False)
        return plan.receipt

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        session = self._sessions.get(key)
        if session is None:
            return Slice((), None, 0, 0, False)
        page, more = cut_page(session.stream(stream).walk(window), window)
        limited = window.limit and window.after is None
        return Slice(
            page,
            session.record.incarnation,
            session.record.version,
            session.epoch,
            more,
            session.stream(stream).opening() if more and limited else None,
        )

    async def _read_tail(self, key: SessionKey, stream: str) -> Tail:
        session = self._sessions.get(key)
        if session is None:
            return Tail(incarnation=None, version=0, count=0, trimmed=0, digests=())
        return Tail(
            incarnation=session.record.incarnation,
            version=session.record.version,
            count=len(session.stream(stream).messages),
            trimmed=session.stream(stream).trimmed,
            digests=session.tail_digests(stream),
        )

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        session = self._sessions.get(key)
        row = None if session is None else session.message(message_id)
        if row is None:
            raise message_not_found(key, message_id)
        return row

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        session = self._session(key)
        if message_id not in session.places:
            raise message_not_found(key, message_id)
        row = session.update(message_id, patch)
        session.touch(now, edited=True)
        return row

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        session = self._sessions.get(key)
        doomed = [] if session is None else session.selected(selector)
        if session is not None and doomed:
            session.remove(selector.stream, doomed)
            session.touch(now, edited=True)
        return len(doomed)

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        session = self._session(request.key)
        replaced = session.stream(request.stream).messages
        elsewhere = session.known(request.drafts).keys() - {row.id for row in replaced}
        receipt = plan_replace(request, session.head, elsewhere)
        session.remove(request.stream, replaced)
        session.insert(request.stream, request.drafts)
        session.touch(request.now, edited=True)
        return receipt

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists: IfExists, incarnation: str, now: int
    ) -> SessionRecord:
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = MemorySession.create(key, draft, incarnation, now)
        elif if_exists == "error":
            raise session_exists(key)
        elif if_exists == "update":
            session.record = plan_patch(session.record, draft.as_patch(), None, now=now)
        return session.record

    async def _read_session(self, key: SessionKey) -> SessionRecord:
        return self._session(key).record

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        session = self._session(key)
        session.record = plan_patch(session.record, patch, if_revision, now=now)
        return session.record

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        session = self._sessions.pop(key, None)
        if session is None:
            return DeleteReceipt(sessions=0, messages=0)
        return DeleteReceipt(sessions=1, messages=len(session.places))

    async def _find_sessions(self, query: SessionQuery) -> SessionSlice:
        found = [s.record for s in self._sessions.values() if matches(s.record, query)]
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
        session.hold(plan_claim(key, session.lease, lease, now=now))
        return lease

    async def _renew_run(self, key: SessionKey, lease: RunLease) -> RunLease:
        session = self._session(key)
        session.hold(plan_renewal(key, session.lease, lease))
        return lease

    async def _release_run(self, key: SessionKey, run_id: str) -> bool:
        session = self._sessions.get(key)
        if session is None or not plan_release(session.lease, run_id):
            return False
        session.hold(None)
        return True

    def _session(self, key: SessionKey) -> MemorySession:
        if key not in self._sessions:
            raise session_not_found(key)
        return self._sessions[key]


def _position(record: SessionRecord) -> SessionPosition:
    return record.position


@hookimpl
def historykit_backend() -> BackendSpec:
    """Describe the memory backend."""
    return BackendSpec(
        name="memory",
        store=lambda: MemoryStore,
        config=lambda: MemoryConfig,
        capabilities=MemoryStore.capabilities,
        summary="in this process only; for tests and as the reference",
    )
