"""The store: each operation of the contract as a piece of work for a connection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

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
from historykit.redaction import redact_url
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
from historykit.tasks import ShieldedTasks
from historykit_postgres import appending, editing, reading, search, sessions
from historykit_postgres.config import PostgresConfig
from historykit_postgres.connections import connections_of
from historykit_postgres.drivers import Driver
from historykit_postgres.errors import translate
from historykit_postgres.names import Names
from historykit_postgres.schema import MIGRATIONS, Migration, prepare, schema_version
from historykit_postgres.server import check_encoding, guarantees, read_server

__all__ = ["PostgresStore"]


class PostgresStore(HistoryStore):
    """Keeps history in a PostgreSQL database, which any number of processes may share.

    An append is one statement, and so is a page of a load; everything else is a transaction that
    locks the session's row. Tables are made at first use. Connections that the server ended while
    they idled are replaced unnoticed.
    """

    backend = "postgres"
    capabilities = frozenset({Capability.EDIT, Capability.CATALOGUE, Capability.RUNS})
    max_body_bytes = 250_000_000  # PostgreSQL takes rows of 1 GB, and as much in one statement

    _migrations: ClassVar[Sequence[Migration]] = MIGRATIONS

    def __init__(self, config: PostgresConfig, *, clock: Clock = system_clock) -> None:
        super().__init__(clock=clock)
        self._config = config
        self._place = _place(config)
        self._names = Names(config)
        self._connections = connections_of(config)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._place!r})"

    # -- open and close

    async def _open(self) -> None:
        self._connections = connections_of(self._config)
        try:
            self.guarantees = await self._connections.set_up(self._set_up)
        except BaseException:
            await self._close()
            raise

    async def _set_up(self, driver: Driver) -> frozenset[Guarantee]:
        server = await read_server(driver)
        check_encoding(server.settings)
        await prepare(driver, self._names, self._migrations, migrate=self._config.migrate)
        return guarantees(server.settings)

    async def _close(self) -> None:
        closing = ShieldedTasks()
        try:
            await closing.run(self._connections.close())
        finally:
            await closing.wait()  # half a farewell is none

    def _abandon(self) -> None:
        self._connections.abandon(forked=self._process != os.getpid())

    def _translate(self, error: Exception, operation: str) -> HistoryKitError:
        return translate(error, operation, self._place)

    async def _ping(self) -> ServerInfo:
        return await self._connections.run(self._describe)

    async def _describe(self, driver: Driver) -> ServerInfo:
        server = await read_server(driver)
        version = await schema_version(driver, self._names, self._migrations)
        return replace(server, settings={**server.settings, "schema_version": str(version)})

    # -- messages

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await appending.append(self._connections, self._names, request)

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        return await self._connections.run(
            lambda driver: reading.read(driver, self._names, key, window, stream)
        )

    async def _read_tail(self, key: SessionKey, stream: str) -> Tail:
        return await self._connections.run(
            lambda driver: reading.read_tail(driver, self._names, key, stream)
        )

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        return await self._connections.run(
            lambda driver: reading.read_message(driver, self._names, key, message_id)
        )

    async def _read_newest(
        self, keys: Sequence[SessionKey], stream: str
    ) -> list[StoredMessage | None]:
        return await self._connections.run(
            lambda driver: reading.read_newest(driver, self._names, keys, stream)
        )

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        return await self._connections.transact(
            lambda driver: editing.update_message(driver, self._names, key, message_id, patch, now),
            key=key,
        )

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        return await self._connections.transact(
            lambda driver: editing.delete_messages(driver, self._names, key, selector, now),
            key=key,
        )

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        return await self._connections.transact(
            lambda driver: editing.replace(driver, self._names, request),
            key=request.key,
        )

    # -- sessions

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists: IfExists, incarnation: str, now: int
    ) -> SessionRecord:
        return await self._connections.transact(
            lambda driver: sessions.create_session(
                driver, self._names, key, draft, if_exists, incarnation, now
            ),
            key=key,
        )

    async def _read_session(self, key: SessionKey) -> SessionRecord:
        return await self._connections.run(
            lambda driver: sessions.read_session(driver, self._names, key)
        )

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        return await self._connections.transact(
            lambda driver: sessions.patch_session(
                driver, self._names, key, patch, if_revision, now
            ),
            key=key,
        )

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        return await self._connections.transact(
            lambda driver: sessions.delete_session(driver, self._names, key),
            key=key,
        )

    async def _find_sessions(self, query: SessionQuery) -> SessionSlice:
        return await self._connections.run(
            lambda driver: search.find_sessions(driver, self._names, query)
        )

    # -- runs

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        return await self._connections.transact(
            lambda driver: sessions.claim_run(driver, self._names, key, lease, now),
            key=key,
            repeatable=True,
        )

    async def _renew_run(self, key: SessionKey, lease: RunLease) -> RunLease:
        return await self._connections.transact(
            lambda driver: sessions.renew_run(driver, self._names, key, lease),
            key=key,
            repeatable=True,
        )

    async def _release_run(self, key: SessionKey, run_id: str) -> bool:
        return await self._connections.transact(
            lambda driver: sessions.release_run(driver, self._names, key, run_id),
            key=key,
        )


def _place(config: PostgresConfig) -> str:
    """Return what errors call the database."""
    if config.url is not None:
        return redact_url(config.url)
    given = config.engine or config.connection
    assert given is not None, "the configuration has checked it"
    return given.sync_engine.url.render_as_string(hide_password=True)
