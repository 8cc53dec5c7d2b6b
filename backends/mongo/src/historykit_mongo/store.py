"""The store: each operation of the contract on one collection."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

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
from historykit_mongo import edits, lookups, reading, search, sessions
from historykit_mongo.appends import Append
from historykit_mongo.config import MongoConfig
from historykit_mongo.connection import Connection, make_client, resolved
from historykit_mongo.errors import translate
from historykit_mongo.schema import set_up

__all__ = ["MongoStore"]

T = TypeVar("T")


class MongoStore(HistoryStore):
    """Keeps history in one collection of MongoDB, which any number of processes may share.

    It writes with a majority and the journal, and reads with a majority on the primary, whatever
    the client's settings. A client of the caller's own is used as it is and never closed.
    """

    backend = "mongo"
    capabilities = frozenset({Capability.EDIT, Capability.CATALOGUE, Capability.RUNS})
    max_body_bytes = 4 << 20  # a document takes 16 MB, and a message is not alone in it

    def __init__(self, config: MongoConfig, *, clock: Clock = system_clock) -> None:
        super().__init__(clock=clock)
        self._config = config
        self._connection: Connection | None = None

    def __repr__(self) -> str:
        where = f"{self._config.database}.{self._config.collection}"
        return f"{type(self).__name__}({where!r})"

    # -- open and close

    async def _open(self) -> None:
        client = self._config.client
        if client is None:
            client = make_client(self._config)
        self._connection = Connection(client, self._config)
        try:
            hello = await client.admin.command("hello")
            await set_up(self._connection)
        except BaseException:
            await self._close()
            raise
        self._connection.snapshots = _topology(hello) != "standalone"
        self.guarantees = _guarantees(hello)

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            await connection.aclose()
        finally:
            if self._config.client is None:
                await resolved(connection.client.close())

    def _abandon(self) -> None:
        self._connection = None

    def _translate(self, error: Exception, operation: str) -> HistoryKitError:
        return translate(error, operation, f"{self._config.database}.{self._config.collection}")

    @property
    def _db(self) -> Connection:
        assert self._connection is not None, "no operation runs on a store that is not open"
        return self._connection

    async def _ping(self) -> ServerInfo:
        admin = self._db.client.admin
        build = await self._undisturbed(admin.command("buildInfo"))
        hello = await self._undisturbed(admin.command("hello"))
        return ServerInfo(
            product="MongoDB",
            version=build["version"],
            settings={"topology": _topology(hello), "driver": type(self._db.client).__name__},
        )

    # -- messages

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await Append(self._db, request).run()

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        return await self._undisturbed(reading.read(self._db, key, window, stream))

    async def _read_tail(self, key: SessionKey, stream: str) -> Tail:
        return await self._undisturbed(reading.read_tail(self._db, key, stream))

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        return await self._undisturbed(lookups.read_message(self._db, key, message_id))

    async def _read_newest(
        self, keys: Sequence[SessionKey], stream: str
    ) -> list[StoredMessage | None]:
        return await self._undisturbed(lookups.read_newest(self._db, keys, stream))

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        return await edits.update_message(self._db, key, message_id, patch, now)

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        return await edits.delete_messages(self._db, key, selector, now)

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        return await edits.replace(self._db, request)

    # -- sessions

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists: IfExists, incarnation: str, now: int
    ) -> SessionRecord:
        return await sessions.create_session(self._db, key, draft, if_exists, incarnation, now)

    async def _read_session(self, key: SessionKey) -> SessionRecord:
        return await self._undisturbed(sessions.read_session(self._db, key))

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        return await sessions.patch_session(self._db, key, patch, if_revision, now)

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        return await sessions.delete_session(self._db, key)

    async def _find_sessions(self, query: SessionQuery) -> SessionSlice:
        return await self._undisturbed(search.find_sessions(self._db, query))

    # -- runs

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        return await sessions.claim_run(self._db, key, lease, now)

    async def _renew_run(self, key: SessionKey, lease: RunLease) -> RunLease:
        return await sessions.renew_run(self._db, key, lease)

    async def _release_run(self, key: SessionKey, run_id: str) -> bool:
        return await sessions.release_run(self._db, key, run_id)

    async def _undisturbed(self, reading: Awaitable[T]) -> T:
        """Return what a read gives, which goes on if the caller is cancelled.

        The driver leaves a socket behind where it is cancelled while it connects, and otherwise has
        to connect anew.
        """
        return await self._db.guarded(reading)


def _guarantees(hello: dict[str, Any]) -> frozenset[Guarantee]:
    """Return what a server promises that confirmed a write by majority and journal."""
    guarantees = {Guarantee.SHARED, Guarantee.SURVIVES_KILL, Guarantee.SURVIVES_POWER_LOSS}
    if _topology(hello) != "standalone":
        guarantees.add(Guarantee.SURVIVES_FAILOVER)
    return frozenset(guarantees)


def _topology(hello: dict[str, Any]) -> str:
    if hello.get("msg") == "isdbgrid":
        return "sharded"
    return "replica set" if "setName" in hello else "standalone"
