"""One store seen in one namespace and by one user: where messages become records and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from historykit.attachment_calls import AttachmentCalls
from historykit.codec import MessageCodec, content_digest
from historykit.config import DEFAULT_NAMESPACE, HistoryConfig, build_config, load_config
from historykit.drafting import checked, draft_messages
from historykit.errors import (
    InvalidRequestError,
    VersionConflictError,
)
from historykit.history_runs import RunCalls
from historykit.ids import check_id
from historykit.lifecycle import AsyncContext
from historykit.loading import LoadedHistory, load_history
from historykit.messages import Message
from historykit.plugins import load_backend
from historykit.records import AppendReceipt, DeleteReceipt, MessageDraft, Retention
from historykit.session_records import MAIN_STREAM, SessionDraft, SessionKey
from historykit.statuses import (
    AttachmentType,
    MessageRole,
    Reaction,
    RunStatus,
    SessionStatus,
)
from historykit.store import Clock, HistoryStore, system_clock
from historykit.transcripts import place_of_new

if TYPE_CHECKING:
    import os

    from historykit.attachment_store import AttachmentStore
    from historykit.attachments import Attachments
    from historykit.catalogue import Session
    from historykit.sessions import AgentSession
    from historykit.store_provider import StoreHistoryProvider

__all__ = ["DEFAULT_NAMESPACE", "History", "open_history"]

ATTEMPTS = 10
"""How often a transcript is compared anew because another writer came first."""


def open_history(
    backend: str | HistoryConfig | None = None,
    *,
    namespace: str | None = None,
    user_id: str | None = None,
    attachments: str | os.PathLike[str] | AttachmentStore | Attachments | None = None,
    codec: MessageCodec | None = None,
    clock: Clock = system_clock,
    **settings: Any,
) -> History:
    """Return the history of the backend with that name, to be used with `async with`.

    `settings` are the fields of the backend's configuration. What is not given, the backend too, is
    read from the environment. Instead of a name, a `HistoryConfig` from `load_config` is taken;
    arguments given here go before what it says. Nothing is connected before ``async with`` or
    `History.open`. `attachments` is the folder or the URL in which files are kept that belong to
    messages, or `Attachments`, which say more; without it, only links can be attached.

    Raises the errors of `load_backend`, and `ConfigError` for a setting that is wrong.
    """
    if not isinstance(backend, HistoryConfig):
        backend = load_config(backend=backend, **settings)
        settings = {}
    spec = load_backend(backend.backend)
    store = spec.make_store(build_config(spec, {**backend.settings, **settings}), clock=clock)
    return History(
        store,
        namespace=backend.namespace if namespace is None else namespace,
        user_id=backend.user_id if user_id is None else user_id,
        attachments=backend.attachments if attachments is None else attachments,
        codec=codec,
    )


class History(AsyncContext, RunCalls, AttachmentCalls):
    """The sessions of one namespace in one store, of one user or of nobody in particular.

    As an asynchronous context manager it opens and closes its store. Histories made by `as_user`
    and providers share the store, and leave it open whatever is done with them.
    """

    SessionStatus = SessionStatus
    RunStatus = RunStatus
    MessageRole = MessageRole
    Reaction = Reaction
    AttachmentType = AttachmentType

    _closes_store = True

    def __init__(
        self,
        store: HistoryStore,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        user_id: str = "",
        attachments: object = None,
        codec: MessageCodec | None = None,
    ) -> None:
        self.store = store
        self.namespace = check_id(namespace, "namespace")
        self.user_id = user_id if user_id == "" else check_id(user_id, "user_id")
        self.codec = codec or MessageCodec()
        self._keep_attachments(attachments)

    def __repr__(self) -> str:
        return (
            f"History({self.store.backend!r}, namespace={self.namespace!r}, "
            f"user_id={self.user_id!r})"
        )

    async def open(self) -> Self:
        """Open the store and return the history itself."""
        await self.store.open()
        return self

    async def aclose(self) -> None:
        """Close the store, if it is this history's own. Closing twice does nothing."""
        if self._closes_store:
            await self.store.aclose()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def as_user(self, user_id: str) -> History:
        """Return the same history as one user sees it: the sessions of that user and no others."""
        history = History(
            self.store,
            namespace=self.namespace,
            user_id=check_id(user_id, "user_id"),
            codec=self.codec,
        )
        history.attachments, history._space = self.attachments, self._space
        history._closes_store = False
        return history

    def key(self, session_id: str) -> SessionKey:
        """Return where a session of this history lives in the store."""
        return SessionKey(self.namespace, self.user_id, session_id)

    @cached_property
    def Session(self) -> type[Session]:
        """The class of the sessions of this history: `historykit.catalogue.Session`, bound to it.

        Each history has one of its own; its attribute `context` is the history.
        """
        from historykit.catalogue import Session

        return type("Session", (Session,), {"context": self, "__doc__": Session.__doc__})

    async def save_state(self, session: AgentSession, *, overwrite: bool = False) -> None:
        """Store the state and the `service_session_id` of a session, beside its messages.

        The session is created where there is none. The messages that an `InMemoryHistoryProvider`
        keeps in the state under its own source id are left out. The state is exact: what is stored
        with a message can be stored here (`Session.as_agent_session` returns it).

        Raises `VersionConflictError` where somebody else saved the state since `session` was
        returned by `as_agent_session` or saved here, unless `overwrite` is true;
        `SessionDeletedError` where the session was deleted since, `InvalidRequestError` for a value
        that cannot be stored, and `TypeError` for what is no `AgentSession`.
        """
        from historykit.session_states import save_state

        await save_state(self, session, overwrite=overwrite)

    def provider(self, source_id: str = "history", **options: Any) -> StoreHistoryProvider:
        """Return a context provider for an agent over this history.

        The options are those of `StoreHistoryProvider`.
        """
        from historykit.store_provider import StoreHistoryProvider

        return StoreHistoryProvider(self, source_id, **options)

    async def append(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        stream: str = MAIN_STREAM,
        idempotency_key: str | None = None,
        expected_version: int | None = None,
        incarnation: str | None = None,
        retention: Retention | None = None,
        create: SessionDraft | None = None,
        offload_data_over: int | None = None,
    ) -> AppendReceipt | None:
        """Add messages to the end of a session: all of them, side by side, or none.

        A session that does not exist is created. With an `idempotency_key`, a repeat of the call is
        recognized and stores nothing; messages that have an id of their own are recognized by that.
        Returns None, without a trip to the store, where there are no messages. Data URIs of more
        than `offload_data_over` characters are stored as attachments, and are back in their places
        when the messages are loaded.

        Raises `EncodeError` naming the item that cannot be stored, `ResourceError` where there is
        something to offload and the history keeps no attachments, and the errors of
        `HistoryStore.append`.
        """
        if idempotency_key is not None:
            check_id(idempotency_key, "idempotency_key")
        if not messages:
            return None
        return await self._append(
            self.key(session_id),
            messages,
            stream=stream,
            idempotency_key=idempotency_key,
            create=create,
            incarnation=incarnation,
            expected_version=expected_version,
            retention=retention,
            offload_data_over=offload_data_over,
        )

    async def append_transcript(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        stream: str = MAIN_STREAM,
        diverged: Literal["error", "replace"] = "error",
        incarnation: str | None = None,
        retention: Retention | None = None,
        create: SessionDraft | None = None,
        offload_data_over: int | None = None,
    ) -> AppendReceipt | None:
        """Add what is new in a transcript: the whole conversation, as some callers resend it.

        Two round trips, whatever the length of the history; None where nothing is new. A transcript
        that does not continue what is stored is a `TranscriptDivergedError`, or takes its place
        with ``diverged="replace"``.
        """
        if diverged not in ("error", "replace"):
            raise InvalidRequestError(f"diverged must be 'error' or 'replace', not {diverged!r}")
        if not messages:
            return None
        digests = [content_digest(message._to_encode()) for message in checked(messages)]
        key = self.key(session_id)
        attempts = 0
        while True:
            attempts += 1
            tail = await self.store.read_tail(key, stream=stream)
            begin = place_of_new(tail, digests, key, replacing=diverged == "replace")
            if begin == len(messages):
                return None
            try:
                if begin is None:
                    drafts = draft_messages(
                        messages,
                        codec=self.codec,
                        stream=stream,
                        now=self.store.now(),
                        external_ids=False,
                    )
                    return await self.store.replace(
                        key, drafts, stream=stream, expected_version=tail.version
                    )
                return await self._append(
                    key,
                    messages[begin:],
                    stream=stream,
                    external_ids=False,
                    create=create,
                    incarnation=incarnation or tail.incarnation,
                    expected_version=tail.version,
                    retention=retention,
                    offload_data_over=offload_data_over,
                )
            except VersionConflictError:
                if attempts == ATTEMPTS:
                    raise

    async def load(
        self,
        session_id: str,
        *,
        stream: str = MAIN_STREAM,
        limit: int | None = None,
        turns: int | None = None,
    ) -> list[Message]:
        """Return the messages of a session, oldest first: all, or the newest ones.

        `limit` counts messages, `turns` the user's turns; a system message that opens the session
        is returned beside them. A session that does not exist is empty. Raises `DecodeError` for a
        record that cannot be read.
        """
        loaded = await self.read(session_id, stream=stream, limit=limit, turns=turns)
        return loaded.messages

    async def read(
        self,
        session_id: str,
        *,
        stream: str = MAIN_STREAM,
        limit: int | None = None,
        turns: int | None = None,
        before: int | None = None,
        strict: bool = True,
    ) -> LoadedHistory:
        """Return what `load` returns, with the session's version and incarnation.

        With `before`, the history as it is below that sequence, as if it ended there. Without
        `strict`, records that cannot be read are left out and reported in `skipped`.
        """
        key = self.key(session_id)
        loaded = await load_history(
            self.store,
            key,
            codec=self.codec,
            stream=stream,
            limit=limit,
            turns=turns,
            before=before,
            strict=strict,
        )
        return await self._inlined(loaded, key, strict=strict)

    async def delete(self, session_id: str) -> DeleteReceipt:
        """Delete a session with all its messages and attachments.

        Deleting nothing is a receipt of zeros. Where the attachments cannot be deleted it is a
        `StorageError`: the session is gone then, and they are left to the sweep.
        """
        return await self._delete_session(self.key(session_id))

    async def _append(
        self,
        key: SessionKey,
        messages: Sequence[Message],
        *,
        stream: str,
        incarnation: str | None,
        expected_version: int | None,
        retention: Retention | None,
        create: SessionDraft | None,
        offload_data_over: int | None,
        idempotency_key: str | None = None,
        external_ids: bool = True,
    ) -> AppendReceipt:
        drafts = draft_messages(
            messages,
            codec=self.codec,
            stream=stream,
            now=self.store.now(),
            idempotency_key=idempotency_key,
            external_ids=external_ids,
        )

        async def write(drafts: Sequence[MessageDraft], life: str | None) -> AppendReceipt:
            return await self.store.append(
                key,
                drafts,
                stream=stream,
                create=create,
                incarnation=life,
                expected_version=expected_version,
                retention=retention,
            )

        if offload_data_over is None:
            return await write(drafts, incarnation)
        return await self._offloaded(
            write,
            drafts,
            messages,
            key,
            over=offload_data_over,
            incarnation=incarnation,
            create=None if expected_version else create or SessionDraft(),
        )
