"""The store: each operation of the contract as one piece of work for one of two connections."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

from historykit.capabilities import Capability, Guarantee
from historykit.errors import HistoryKitError
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
    SessionQuery,
    SessionRecord,
    SessionSlice,
)
from historykit.store import Clock, HistoryStore, system_clock
from historykit_sqlite import messages, search, sessions
from historykit_sqlite.config import SQLiteConfig
from historykit_sqlite.errors import translate
from historykit_sqlite.files import DatabaseFile, cut_log, server_info
from historykit_sqlite.schema import MIGRATIONS, Migration
from historykit_sqlite.transactions import Writer, look
from historykit_sqlite.worker import Worker

__all__ = ["SQLiteStore"]

T = TypeVar("T")


class SQLiteStore(HistoryStore):
    """Keeps history in one SQLite file, which any number of processes of one machine may share.

    It writes and reads on a connection each, so that a load does not wait for a writer that waits
    for another process. Writes that come together are committed together.

    What a caller deletes is overwritten in the file, and the write-ahead log that held it is
    emptied, as soon as no reader elsewhere needs it. SQLite may have left a copy of a row in a page
    that it rearranged since; its VACUUM removes these, too.
    """

    backend = "sqlite"
    capabilities = frozenset({Capability.EDIT, Capability.CATALOGUE, Capability.RUNS})
    detached_writes = True  # a thread carries out what it has been given, whoever waits for it
    max_body_bytes = 500_000_000  # SQLite takes rows of 1 GB, and a row has an `extra` as well

    _migrations: ClassVar[Sequence[Migration]] = MIGRATIONS

    def __init__(self, config: SQLiteConfig, *, clock: Clock = system_clock) -> None:
        super().__init__(clock=clock)
        self._config = config
        self._path = Path(os.path.abspath(os.path.expanduser(config.path)))
        self._connections: tuple[Worker, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._path)!r})"

    # -- open and close

    async def _open(self) -> None:
        file = DatabaseFile(
            path=self._path,
            create=self._config.create,
            synchronous=self._config.synchronous,
            migrate=self._config.migrate,
            migrations=self._migrations,
        )
        self._writer = Writer(file.connect, patience=self._config.busy_timeout)
        self._reader = Worker(file.connect_reader, patience=self._config.busy_timeout)
        self._connections = (self._writer, self._reader)
        try:
            for connection in self._connections:
                await connection
        except BaseException:
            await self._close()
            raise
        self.guarantees = _guarantees(self._config)

    async def _close(self) -> None:
        try:
            await self._reader.close()
        finally:
            await self._writer.close()

    def _abandon(self) -> None:
        for connection in self._connections:
            connection.abandon()

    def _translate(self, error: Exception, operation: str) -> HistoryKitError:
        return translate(error, operation, self._path)

    async def _ping(self) -> ServerInfo:
        return await self._reader.do(server_info)

    # -- messages

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await self._writer.write(lambda db: messages.append(db, request))

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        return await self._look(lambda db: messages.read(db, key, window, stream))

    async def _read_tail(self, key: SessionKey, stream: str) -> Tail:
        return await self._look(lambda db: messages.read_tail(db, key, stream))

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        return await self._look(lambda db: messages.read_message(db, key, message_id))

    async def _read_newest(
        self, keys: Sequence[SessionKey], stream: str
    ) -> list[StoredMessage | None]:
        return await self._look(lambda db: messages.read_newest(db, keys, stream))

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        return await self._writer.write(
            lambda db: messages.update_message(db, key, message_id, patch, now)
        )

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        deleted = await self._writer.write(
            lambda db: messages.delete_messages(db, key, selector, now)
        )
        await self._erase_log()
        return deleted

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        return await self._writer.write(lambda db: messages.replace(db, request))

    # -- sessions

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists: IfExists, incarnation: str, now: int
    ) -> SessionRecord:
        return await self._writer.write(
            lambda db: sessions.create_session(db, key, draft, if_exists, incarnation, now)
        )

    async def _read_session(self, key: SessionKey) -> SessionRecord:
        return await self._look(lambda db: sessions.read_session(db, key))

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        return await self._writer.write(
            lambda db: sessions.patch_session(db, key, patch, if_revision, now)
        )

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        receipt = await self._writer.write(lambda db: sessions.delete_session(db, key))
        await self._erase_log()
        return receipt

    async def _find_sessions(self, query: SessionQuery) -> SessionSlice:
        return await self._look(lambda db: search.find_sessions(db, query))

    # -- runs

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        return await self._writer.write(lambda db: sessions.claim_run(db, key, lease, now))

    async def _renew_run(self, key: SessionKey, lease: RunLease) -> RunLease:
        return await self._writer.write(lambda db: sessions.renew_run(db, key, lease))

    async def _release_run(self, key: SessionKey, run_id: str) -> bool:
        return await self._writer.write(lambda db: sessions.release_run(db, key, run_id))

    # -- connections

    async def _look(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._reader.do(lambda db: look(db, work))

    async def _erase_log(self) -> None:
        """Remove what was deleted from the write-ahead log, once no reader needs it any more."""
        deadline = time.monotonic() + self._config.busy_timeout
        while not await self._writer.do(cut_log):
            if time.monotonic() >= deadline:
                break
            await asyncio.sleep(0.01)


def _guarantees(config: SQLiteConfig) -> frozenset[Guarantee]:
    guarantees = {Guarantee.SHARED, Guarantee.SURVIVES_KILL}
    if config.synchronous == "full":
        guarantees.add(Guarantee.SURVIVES_POWER_LOSS)
    return frozenset(guarantees)
