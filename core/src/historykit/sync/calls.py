"""The calls of the blocking classes, written by `python -m tests.sync.blocking`."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from historykit import history as histories
from historykit.attachment_folders import AttachmentFolder
from historykit.attachment_store import AttachmentStore
from historykit.attachment_sweep import SweepReport
from historykit.attachments import Attachments
from historykit.catalogue import DeleteResult
from historykit.codec import MessageCodec
from historykit.config import HistoryConfig
from historykit.execution import ExecutionConfig
from historykit.loading import LoadedHistory
from historykit.messages import Message
from historykit.pages import Page
from historykit.records import AppendReceipt, DeleteReceipt, Retention
from historykit.session_bodies import Scalar
from historykit.session_calls import NewMessage, Order, Place
from historykit.session_messages import SessionMessage, SessionMessageAttachment
from historykit.session_records import MAIN_STREAM, SessionDraft, SessionKey
from historykit.session_runs import RunResult
from historykit.sessions import AgentSession
from historykit.store import Clock, HistoryStore, system_clock
from historykit.store_provider import StoreHistoryProvider
from historykit.sync.face import AgentFace, HistoryFace, SessionFace

__all__ = ["BoundAgent", "History", "Session", "open_history"]


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
    """Return the history of the backend with that name, to be used with `with`.

    See `historykit.open_history`.
    """
    return History(
        histories.open_history(
            backend,
            namespace=namespace,
            user_id=user_id,
            attachments=attachments,
            codec=codec,
            clock=clock,
            **settings,
        )
    )


class History(HistoryFace):
    """A history whose calls block: `historykit.History`, on a loop in a thread of its own."""

    _ATTRIBUTES = frozenset({"namespace", "user_id", "codec", "store", "attachments"})

    namespace: str
    user_id: str
    codec: MessageCodec
    store: HistoryStore
    attachments: Attachments | None

    def attachment_folder(self) -> AttachmentFolder:
        """Return where `resolve_attachments` keeps what is of no message yet.

        See `historykit.History.attachment_folder`.
        """
        result: AttachmentFolder = self._call("attachment_folder")
        return result

    def sweep_attachments(
        self, *, older_than: float = 3600.0, dry_run: bool = False, verify: bool = False
    ) -> SweepReport:
        """Delete the attachments of this namespace that no message has, and say which there were.

        See `historykit.History.sweep_attachments`.
        """
        result: SweepReport = self._call(
            "sweep_attachments", older_than=older_than, dry_run=dry_run, verify=verify
        )
        return result

    def run(
        self,
        agent: Any,
        query: str | None = None,
        *,
        session: Session | str,
        attachments: Sequence[str | Path | Mapping[str, Any]] | None = None,
        files: Sequence[str | Path] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        request_id: str | None = None,
        when_busy: Literal["reject", "wait"] = "reject",
        check_agent: bool = True,
        per_run: bool = False,
        timeout: float | None = None,
        lease: float = 30.0,
        window: int | None = None,
        window_turns: int | None = None,
        **overrides: Any,
    ) -> RunResult:
        """Run an agent in a session: see `historykit.History.run`."""
        result: RunResult = self._call(
            "run",
            agent=agent,
            query=query,
            session=session,
            attachments=attachments,
            files=files,
            tools=tools,
            request_id=request_id,
            when_busy=when_busy,
            check_agent=check_agent,
            per_run=per_run,
            timeout=timeout,
            lease=lease,
            window=window,
            window_turns=window_turns,
            **overrides,
        )
        return result

    def bind(self, agent: Any) -> BoundAgent:
        """Return an agent whose `run` is that of this history: see `historykit.History.bind`."""
        result: BoundAgent = self._direct("bind", agent=agent)
        return result

    def as_user(self, user_id: str) -> History:
        """Return the same history as one user sees it: see `historykit.History.as_user`."""
        result: History = self._direct("as_user", user_id=user_id)
        return result

    def key(self, session_id: str) -> SessionKey:
        """Return where a session of this history lives in the store.

        See `historykit.History.key`.
        """
        result: SessionKey = self._direct("key", session_id=session_id)
        return result

    def save_state(self, session: AgentSession, *, overwrite: bool = False) -> None:
        """Store the state and the `service_session_id` of a session, beside its messages.

        See `historykit.History.save_state`.
        """
        self._call("save_state", session=session, overwrite=overwrite)

    def provider(self, source_id: str = "history", **options: Any) -> StoreHistoryProvider:
        """Return a context provider for an agent over this history.

        See `historykit.History.provider`.
        """
        result: StoreHistoryProvider = self._direct("provider", source_id=source_id, **options)
        return result

    def append(
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
        """Add messages to the end of a session: see `historykit.History.append`."""
        result: AppendReceipt | None = self._call(
            "append",
            session_id=session_id,
            messages=messages,
            stream=stream,
            idempotency_key=idempotency_key,
            expected_version=expected_version,
            incarnation=incarnation,
            retention=retention,
            create=create,
            offload_data_over=offload_data_over,
        )
        return result

    def append_transcript(
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
        """Add what is new in a transcript: see `historykit.History.append_transcript`."""
        result: AppendReceipt | None = self._call(
            "append_transcript",
            session_id=session_id,
            messages=messages,
            stream=stream,
            diverged=diverged,
            incarnation=incarnation,
            retention=retention,
            create=create,
            offload_data_over=offload_data_over,
        )
        return result

    def load(
        self,
        session_id: str,
        *,
        stream: str = MAIN_STREAM,
        limit: int | None = None,
        turns: int | None = None,
    ) -> list[Message]:
        """Return the messages of a session, oldest first: see `historykit.History.load`."""
        result: list[Message] = self._call(
            "load", session_id=session_id, stream=stream, limit=limit, turns=turns
        )
        return result

    def read(
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

        See `historykit.History.read`.
        """
        result: LoadedHistory = self._call(
            "read",
            session_id=session_id,
            stream=stream,
            limit=limit,
            turns=turns,
            before=before,
            strict=strict,
        )
        return result

    def delete(self, session_id: str) -> DeleteReceipt:
        """Delete a session with all its messages and attachments.

        See `historykit.History.delete`.
        """
        result: DeleteReceipt = self._call("delete", session_id=session_id)
        return result


class Session(SessionFace):
    """A session whose calls block: `historykit.Session`, used through `History.Session`."""

    _ATTRIBUTES = frozenset(
        {
            "id",
            "name",
            "description",
            "path",
            "user_id",
            "agent_id",
            "status",
            "run_status",
            "message_count",
            "last_message_preview",
            "last_message_at",
            "created_at",
            "updated_at",
            "execution_config",
            "memory_enabled",
            "metadata",
            "tags",
            "parent_id",
            "is_modified",
            "is_deleted",
        }
    )

    id: str | None
    name: str | None
    description: str | None
    path: str | None
    user_id: str
    agent_id: str
    status: str
    run_status: str
    message_count: int
    last_message_preview: str | None
    last_message_at: str | None
    created_at: str
    updated_at: str
    execution_config: ExecutionConfig | None
    memory_enabled: bool
    metadata: dict[str, Scalar]
    tags: list[str]
    parent_id: str | None
    is_modified: bool
    is_deleted: bool

    def to_dict(self) -> dict[str, Any]:
        """Return all fields with names in camelCase, None included.

        See `historykit.Session.to_dict`.
        """
        result: dict[str, Any] = self._direct("to_dict")
        return result

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the session that a dict describes, with names in camelCase or as in Python.

        See `historykit.Session.from_dict`.
        """
        result: Self = cls._direct_class("from_dict", data=data)
        return result

    def build_save_payload(self, **kwargs: Any) -> dict[str, Any]:
        """Return what a client of the service sends to save the session.

        See `historykit.Session.build_save_payload`.
        """
        result: dict[str, Any] = self._direct("build_save_payload", **kwargs)
        return result

    def clone(self, **overrides: Any) -> Self:
        """Return a session of its own with the same fields, without an id and not saved.

        See `historykit.Session.clone`.
        """
        result: Self = self._direct("clone", **overrides)
        return result

    def messages(
        self,
        *,
        roles: Collection[str] | None = None,
        limit: int | None = None,
        after: Place | None = None,
        before: Place | None = None,
        order: Order = "asc",
        request_id: str | None = None,
    ) -> list[SessionMessage]:
        """Return the messages of the session, all of them where nothing else is said.

        See `historykit.Session.messages`.
        """
        result: list[SessionMessage] = self._call(
            "messages",
            roles=roles,
            limit=limit,
            after=after,
            before=before,
            order=order,
            request_id=request_id,
        )
        return result

    def add_message(
        self,
        role: str,
        content: str,
        request_id: str | None = None,
        attachments: Sequence[str | Path | Mapping[str, Any] | SessionMessageAttachment]
        | None = None,
        files: Sequence[str | Path] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> SessionMessage:
        """Add a message to the end of the session and return it.

        See `historykit.Session.add_message`.
        """
        result: SessionMessage = self._call(
            "add_message",
            role=role,
            content=content,
            request_id=request_id,
            attachments=attachments,
            files=files,
            tools=tools,
        )
        return result

    def add_messages(
        self, messages: Sequence[NewMessage], *, request_id: str | None = None
    ) -> list[SessionMessage]:
        """Add several messages side by side, all of them or none, and return them.

        See `historykit.Session.add_messages`.
        """
        result: list[SessionMessage] = self._call(
            "add_messages", messages=messages, request_id=request_id
        )
        return result

    def get_message(self, message_id: str) -> SessionMessage:
        """Return one message by its id: see `historykit.Session.get_message`."""
        result: SessionMessage = self._call("get_message", message_id=message_id)
        return result

    def delete_message(self, message_id: str, *, cascade: Literal["turn"] | None = None) -> None:
        """Delete a message, and with `cascade` "turn" the turn that it is a part of.

        See `historykit.Session.delete_message`.
        """
        self._call("delete_message", message_id=message_id, cascade=cascade)

    def react(self, message_id: str, reaction: str | None) -> SessionMessage:
        """React to a message of the assistant, or take the reaction back; return the message.

        See `historykit.Session.react`.
        """
        result: SessionMessage = self._call("react", message_id=message_id, reaction=reaction)
        return result

    def save(self, *, replace: bool = False, **changes: Any) -> Self:
        """Store the session and return it, with its fields as they are stored then.

        See `historykit.Session.save`.
        """
        result: Self = self._call("save", replace=replace, **changes)
        return result

    def archive(self) -> Self:
        """Save the session with the status "archived" and return it.

        See `historykit.Session.archive`.
        """
        result: Self = self._call("archive")
        return result

    def refresh(self) -> Self:
        """Read the session again and return it; what was set and not saved is given up.

        See `historykit.Session.refresh`.
        """
        result: Self = self._call("refresh")
        return result

    @classmethod
    def get(cls, id: str) -> Self:
        """Return the session with that id: see `historykit.Session.get`."""
        result: Self = cls._call_class("get", id=id)
        return result

    @classmethod
    def get_or_create(cls, id: str, **fields: Any) -> Self:
        """Return the session with that id; where there is none, create it with these fields.

        See `historykit.Session.get_or_create`.
        """
        result: Self = cls._call_class("get_or_create", id=id, **fields)
        return result

    @classmethod
    def search(
        cls,
        agent: Any = None,
        status: str | None = None,
        user_id: str | None = None,
        created_after: str | dt.datetime | None = None,
        created_before: str | dt.datetime | None = None,
        memory_enabled: bool | None = None,
        page_number: int = 0,
        page_size: int = 20,
        *,
        metadata: Mapping[str, Scalar] | None = None,
        tags: Sequence[str] | None = None,
        query: str | None = None,
        with_total: bool = True,
        **others: Any,
    ) -> Page[Self]:
        """Return a page of the sessions that meet every condition given, the newest first.

        See `historykit.Session.search`.
        """
        result: Page[Self] = cls._call_class(
            "search",
            agent=agent,
            status=status,
            user_id=user_id,
            created_after=created_after,
            created_before=created_before,
            memory_enabled=memory_enabled,
            page_number=page_number,
            page_size=page_size,
            metadata=metadata,
            tags=tags,
            query=query,
            with_total=with_total,
            **others,
        )
        return result

    @classmethod
    def iterate(
        cls, *, page_size: int = 100, query: str | None = None, **conditions: Any
    ) -> Iterator[Self]:
        """Yield all sessions that a `search` would find, the newest first, however many there are.

        See `historykit.Session.iterate`.
        """
        result: Iterator[Self] = cls._iterate_class(
            "iterate", page_size=page_size, query=query, **conditions
        )
        return result

    def fork(
        self, *, up_to: Place | None = None, id: str | None = None, name: str | None = None
    ) -> Self:
        """Return a new session with the same fields and a copy of the messages.

        See `historykit.Session.fork`.
        """
        result: Self = self._call("fork", up_to=up_to, id=id, name=name)
        return result

    def delete(self) -> DeleteResult:
        """Delete the session with its messages and attachments: see `historykit.Session.delete`."""
        result: DeleteResult = self._call("delete")
        return result

    def as_agent_session(self) -> AgentSession:
        """Return the session for the run of an agent, with the state that is stored with it.

        See `historykit.Session.as_agent_session`.
        """
        result: AgentSession = self._direct("as_agent_session")
        return result


class BoundAgent(AgentFace):
    """An agent whose runs in sessions block, as `History.bind` returns it."""

    _ATTRIBUTES = frozenset({"agent"})

    agent: Any

    def run(
        self, query: str | None = None, *, session: Session | str | None = None, **options: Any
    ) -> Any:
        """Run the agent in a session and return what `History.run` returns, with its options.

        See `historykit.BoundAgent.run`.
        """
        result: Any = self._call("run", query=query, session=session, **options)
        return result
