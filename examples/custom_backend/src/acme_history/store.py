"""The store: one file for the head of a session, one for its messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from acme_history.config import AcmeConfig
from acme_history.files import Folder
from acme_history.session import Entry, Session, file_name, parse
from historykit.capabilities import Guarantee
from historykit.errors import HistoryKitError, StorageError, StorageUnavailableError
from historykit.planning import (
    INSTRUCTION_ROLES,
    cut_page,
    message_not_found,
    plan_append,
    plan_patch,
    retention_cut,
    session_exists,
    session_not_found,
)
from historykit.records import (
    TAIL_DIGESTS,
    AppendReceipt,
    AppendRequest,
    DeleteReceipt,
    Retention,
    ServerInfo,
    Slice,
    StoredMessage,
    Tail,
    Window,
)
from historykit.session_records import (
    MAIN_STREAM,
    IfExists,
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionRecord,
)
from historykit.store import Clock, HistoryStore, system_clock

__all__ = ["AcmeStore"]

T = TypeVar("T")


@dataclass(slots=True)
class Index:
    """The ids in a log, as far as it was read."""

    log: str
    size: int = 0
    places: dict[str, tuple[str, int, bytes]] = field(default_factory=dict)


class AcmeStore(HistoryStore):
    """Keeps each session in two files of one folder, for any number of processes."""

    backend = "acme"

    def __init__(self, config: AcmeConfig, *, clock: Clock = system_clock) -> None:
        super().__init__(clock=clock)
        self._folder = Folder(Path(config.folder), durable=config.durable)
        self._indexes: dict[SessionKey, Index] = {}

    def __repr__(self) -> str:
        return f"AcmeStore({str(self._folder.path)!r})"

    async def _open(self) -> None:
        await asyncio.to_thread(self._folder.create)
        self.guarantees = frozenset({Guarantee.SHARED, Guarantee.SURVIVES_KILL})
        if self._folder.durable:
            self.guarantees |= {Guarantee.SURVIVES_POWER_LOSS}

    async def _close(self) -> None:
        self._indexes.clear()

    def _translate(self, error: Exception, operation: str) -> HistoryKitError:
        kind = StorageUnavailableError if isinstance(error, OSError) else StorageError
        return kind(f"{operation} failed in {self._folder.path}: {error}")

    async def _ping(self) -> ServerInfo:
        await asyncio.to_thread(self._folder.path.stat)
        return ServerInfo(product="acme files", version="1")

    # -- messages

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await asyncio.to_thread(self._append_now, request)

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        return await asyncio.to_thread(self._read_now, key, window, stream)

    async def _read_tail(self, key: SessionKey, stream: str) -> Tail:
        session = await asyncio.to_thread(self._load, key)
        if session is None:
            return Tail(incarnation=None, version=0, count=0, trimmed=0, digests=())
        head = session.stream(stream)
        return Tail(
            incarnation=session.record.incarnation,
            version=session.record.version,
            count=head.count,
            trimmed=head.trimmed,
            digests=tuple(map(bytes.fromhex, head.digests)),
        )

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        return await asyncio.to_thread(self._read_message_now, key, message_id)

    def _append_now(self, request: AppendRequest) -> AppendReceipt:
        with self._locked(request.key) as session:
            known = {} if session is None else self._known(session, request)
            plan = plan_append(request, None if session is None else session.head, known)
            if session is None:
                session = Session.create(
                    request.key, request.create, plan.receipt.incarnation, request.now
                )
            log = session.log
            if plan.drafts:
                entries = [
                    Entry.make(request.stream, draft, sequence)
                    for sequence, draft in enumerate(plan.drafts, plan.first_sequence)
                ]
                self._add(session, request, entries)
            if plan.drafts or plan.receipt.created:
                self._save(session)
            if session.log != log:
                self._folder.remove(log)
            return plan.receipt

    def _add(self, session: Session, request: AppendRequest, entries: list[Entry]) -> None:
        """Write messages behind the end of the log; they count once the head is saved."""
        lines = b"".join(entry.dump() for entry in entries)
        self._folder.append(session.log, session.size, lines)
        session.size += len(lines)
        session.next_sequence += len(entries)
        head = session.stream(request.stream)
        head.count += len(entries)
        head.digests += [entry.digest.hex() for entry in entries]
        if request.retention is not None:
            self._trim(session, request.stream, request.retention)
        head.digests = head.digests[-TAIL_DIGESTS:]
        is_main = request.stream == MAIN_STREAM
        session.touch(request.now, entries[-1].row.created_at if is_main else None)

    def _trim(self, session: Session, stream: str, retention: Retention) -> None:
        entries = list(parse(self._folder.read(session.log, 0, session.size) or b""))
        rows = _rows(entries, session, stream)
        if len(rows) <= retention.max_messages:
            return
        cut = retention_cut(
            (row.sequence for row in rows if row.turn_start),
            oldest_wanted=rows[-retention.max_messages].sequence,
            opening=(rows[0].sequence, rows[0].role),
        )
        if cut is not None:
            head = session.stream(stream)
            head.opening = rows[0].sequence if cut[0] > rows[0].sequence else 0
            head.cut = cut[1]
            kept = [e for e in entries if e.stream == stream and head.has(e.row.sequence)]
            head.trimmed += head.count - len(kept)
            head.count = len(kept)
            head.digests = [entry.digest.hex() for entry in kept]
            self._compact(session, entries)

    def _compact(self, session: Session, entries: list[Entry]) -> None:
        """Write the log anew where most of its lines are of messages that are gone."""
        kept = [e for e in entries if session.stream(e.stream).has(e.row.sequence)]
        if len(kept) < len(entries) / 2:
            lines = b"".join(entry.dump() for entry in kept)
            session.generation += 1
            session.size = len(lines)
            self._folder.append(session.log, 0, lines)

    def _read_now(self, key: SessionKey, window: Window, stream: str) -> Slice:
        session, log = self._load_whole(key)
        if session is None:
            return Slice((), None, 0, 0, False)
        rows = _rows(parse(log), session, stream)
        page, more = cut_page(_nearest_first(rows, window), window)
        opens = more and window.limit and window.after is None
        opening = rows[0] if opens and rows[0].role in INSTRUCTION_ROLES else None
        record = session.record
        return Slice(page, record.incarnation, record.version, 0, more, opening)

    def _read_message_now(self, key: SessionKey, message_id: str) -> StoredMessage:
        session, log = self._load_whole(key)
        for entry in parse(log):
            is_there = session is not None and session.stream(entry.stream).has(entry.row.sequence)
            if is_there and entry.row.id == message_id:
                return entry.row
        raise message_not_found(key, message_id)

    def _known(self, session: Session, request: AppendRequest) -> dict[str, tuple[int, bytes]]:
        """Return what is stored of a batch. Of the log only what is new to this store is read."""
        index = self._indexes.get(request.key)
        if index is None or index.log != session.log:
            index = self._indexes[request.key] = Index(session.log)
        log = self._folder.read(session.log, index.size, session.size) or b""
        for entry in parse(log):
            index.places[entry.row.id] = (entry.stream, entry.row.sequence, entry.digest)
        index.size = session.size
        found = {d.id: index.places[d.id] for d in request.drafts if d.id in index.places}
        return {
            id: (sequence, digest)
            for id, (stream, sequence, digest) in found.items()
            if session.stream(stream).has(sequence)
        }

    # -- sessions

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists: IfExists, incarnation: str, now: int
    ) -> SessionRecord:
        def change(session: Session | None) -> Session:
            if session is None:
                return Session.create(key, draft, incarnation, now)
            if if_exists == "error":
                raise session_exists(key)
            if if_exists == "update":
                session.record = plan_patch(session.record, draft.as_patch(), None, now=now)
            return session

        return await asyncio.to_thread(self._change, key, change)

    async def _read_session(self, key: SessionKey) -> SessionRecord:
        session = await asyncio.to_thread(self._load, key)
        if session is None:
            raise session_not_found(key)
        return session.record

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        def change(session: Session | None) -> Session:
            if session is None:
                raise session_not_found(key)
            session.record = plan_patch(session.record, patch, if_revision, now=now)
            return session

        return await asyncio.to_thread(self._change, key, change)

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        return await asyncio.to_thread(self._delete_now, key)

    def _change(
        self, key: SessionKey, change: Callable[[Session | None], Session]
    ) -> SessionRecord:
        with self._locked(key) as session:
            changed = change(session)
            self._save(changed)
            return changed.record

    def _delete_now(self, key: SessionKey) -> DeleteReceipt:
        with self._locked(key) as session:
            if session is None:
                return DeleteReceipt(sessions=0, messages=0)
            self._indexes.pop(key, None)
            self._folder.remove(_head(key), session.log)
        messages = sum(stream.count for stream in session.streams.values())
        return DeleteReceipt(sessions=1, messages=messages)

    # -- files

    @contextmanager
    def _locked(self, key: SessionKey) -> Iterator[Session | None]:
        with self._folder.locked(file_name(key)):
            yield self._load(key)

    def _load(self, key: SessionKey) -> Session | None:
        data = self._folder.read(_head(key))
        return None if data is None else Session.load(data)

    def _load_whole(self, key: SessionKey) -> tuple[Session | None, bytes]:
        """Return a session with its log, which somebody may remove in between."""
        while (session := self._load(key)) is not None:
            log = self._folder.read(session.log, 0, session.size)
            if log is not None or session.size == 0:
                return session, log or b""
        return None, b""

    def _save(self, session: Session) -> None:
        self._folder.replace(_head(session.record.key), session.dump())


def _head(key: SessionKey) -> str:
    return f"{file_name(key)}.json"


def _rows(entries: Iterable[Entry], session: Session, stream: str) -> list[StoredMessage]:
    """Return the messages of a stream that are there."""
    head = session.stream(stream)
    return [e.row for e in entries if e.stream == stream and head.has(e.row.sequence)]


def _nearest_first(rows: list[StoredMessage], window: Window) -> Iterator[StoredMessage]:
    if window.after is not None:
        return (row for row in rows if row.sequence > window.after)
    return (row for row in reversed(rows) if window.before is None or row.sequence < window.before)
