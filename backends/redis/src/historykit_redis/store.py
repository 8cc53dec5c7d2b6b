"""The store: the contract over Redis."""

from __future__ import annotations

from collections.abc import Sequence

from historykit.capabilities import Capability
from historykit.errors import HistoryKitError, WrongLoopError
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
from historykit_redis import catalogue, messages, sessions
from historykit_redis.config import RedisConfig
from historykit_redis.errors import translate
from historykit_redis.server import Server

__all__ = ["RedisStore"]


class RedisStore(HistoryStore):
    """Keeps history in Redis or Valkey: on one server, behind Sentinel or in a Cluster.

    Every operation is one script in the server, done fully or not at all, in one round trip; a
    command that the driver sends a second time is recognized. In a cluster it takes more trips to
    make, change and delete sessions, whose catalogue is on another node. Nothing expires. With a
    `maxmemory-policy` other than noeviction the server may drop a part of a session, which is an
    error when it is read.
    """

    backend = "redis"
    capabilities = frozenset({Capability.EDIT, Capability.CATALOGUE, Capability.RUNS})
    detached_writes = (
        True  # a script that has begun is done, and where it takes more there is a task
    )
    max_body_bytes = 128 << 20  # a value takes 512 MB, and a script holds a message several times

    def __init__(self, config: RedisConfig, *, clock: Clock = system_clock) -> None:
        super().__init__(clock=clock)
        self._config = config
        self._is_stranded = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._config!r})"

    # -- open and close

    async def _open(self) -> None:
        if self._is_stranded:
            raise WrongLoopError(
                "the client that was handed in belongs to another event loop or process; "
                "make another store with a client of this one"
            )
        self._server = Server(self._config)
        try:
            await self._server.connect()
            self.guarantees = await self._server.guarantees()
        except BaseException:
            await self._server.aclose()
            raise

    async def _close(self) -> None:
        await self._server.aclose()

    def _abandon(self) -> None:
        self._is_stranded = self._config.client is not None
        self._server.abandon()

    def _translate(self, error: Exception, operation: str) -> HistoryKitError:
        return translate(error, operation)

    async def _ping(self) -> ServerInfo:
        return await self._server.describe()

    # -- messages

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await messages.append(self._server, request)

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        return await messages.read(self._server, key, window, stream)

    async def _read_tail(self, key: SessionKey, stream: str) -> Tail:
        return await messages.read_tail(self._server, key, stream)

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        return await messages.read_message(self._server, key, message_id)

    async def _read_newest(
        self, keys: Sequence[SessionKey], stream: str
    ) -> list[StoredMessage | None]:
        return await messages.read_newest(self._server, keys, stream)

    async def _update_message(
        self, key: SessionKey, message_id: str, patch: MessagePatch, now: int
    ) -> StoredMessage:
        return await messages.update(self._server, key, message_id, patch, now)

    async def _delete_messages(self, key: SessionKey, selector: MessageSelector, now: int) -> int:
        return await messages.delete(self._server, key, selector, now)

    async def _replace(self, request: ReplaceRequest) -> AppendReceipt:
        return await messages.replace(self._server, request)

    # -- sessions

    async def _create_session(
        self, key: SessionKey, draft: SessionDraft, if_exists: IfExists, incarnation: str, now: int
    ) -> SessionRecord:
        return await sessions.create(self._server, key, draft, if_exists, incarnation, now)

    async def _read_session(self, key: SessionKey) -> SessionRecord:
        return await sessions.read(self._server, key)

    async def _patch_session(
        self, key: SessionKey, patch: SessionPatch, if_revision: int | None, now: int
    ) -> SessionRecord:
        return await sessions.patch(self._server, key, patch, if_revision, now)

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        return await sessions.delete(self._server, key)

    async def _find_sessions(self, query: SessionQuery) -> SessionSlice:
        return await catalogue.find(self._server, query)

    # -- runs

    async def _claim_run(self, key: SessionKey, lease: RunLease, now: int) -> RunLease:
        return await sessions.claim(self._server, key, lease, now)

    async def _renew_run(self, key: SessionKey, lease: RunLease) -> RunLease:
        return await sessions.renew(self._server, key, lease)

    async def _release_run(self, key: SessionKey, run_id: str) -> bool:
        return await sessions.release(self._server, key, run_id)
