"""The step of an agent's pipeline that loads and saves a history in a store."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict

from historykit.bounds import check_bound
from historykit.codec import MessageCodec
from historykit.errors import InvalidRequestError, StoreClosedError
from historykit.history import DEFAULT_NAMESPACE, History
from historykit.ids import check_id
from historykit.lifecycle import AsyncContext
from historykit.loading import LoadedHistory
from historykit.messages import Message
from historykit.providers import BaseHistoryProvider
from historykit.records import Retention
from historykit.session_records import MAIN_STREAM, SessionDraft, SessionKey
from historykit.sessions import AgentSession, SessionContext
from historykit.store import HistoryStore
from historykit.windows import whole_groups

if TYPE_CHECKING:
    from historykit.agent import SupportsAgentRun
    from historykit.turns import Turn

__all__ = ["OwningHistoryProvider", "SaveMode", "StoreHistoryProvider"]

SaveMode = Literal["append", "transcript"]
"""What a save is given: what is new, or the whole conversation each time."""


class StoreHistoryProvider(BaseHistoryProvider):
    """A `BaseHistoryProvider` over a `History`.

    `load_messages`, `store_inputs`, `store_outputs`, `store_context_messages` and
    `store_context_from` are those of the base class.

    - `stream` names the stream to use. The conversation itself is "main"; a provider that keeps an
    audit beside it takes another one. - `save_mode` "append" takes what is new; "transcript" takes
    the whole conversation each time, as callers send it who keep it themselves, and stores what is
    new in it. `diverged` says what a transcript that does not continue the history is: an "error",
    or the history from now on: "replace". - `window` is the most messages that are loaded,
    `window_turns` the most turns; None is all. A system message that opens the session is loaded
    beside them, and no tool call is parted from its result: of a group that does not fit, nothing
    is loaded. - `max_messages` is the most messages that are kept in the store, up to one turn
    more. 0 stores nothing. - `memory_enabled` False creates sessions without memory: they are
    in the catalogue, and no message of theirs is stored. - `offload_data_over` stores data URIs of
    more characters as attachments of the history, and puts them back into the messages that are
    loaded; None leaves them in the messages.

    Without a session id there is nothing to load and saving does nothing. Raises
    `InvalidRequestError`, a `ValueError`, for bounds below 0.
    """

    def __init__(
        self,
        history: History,
        source_id: str = "history",
        *,
        stream: str = MAIN_STREAM,
        save_mode: SaveMode = "append",
        diverged: Literal["error", "replace"] = "error",
        window: int | None = None,
        window_turns: int | None = None,
        max_messages: int | None = None,
        memory_enabled: bool = True,
        offload_data_over: int | None = None,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
    ) -> None:
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        if save_mode not in ("append", "transcript"):
            raise InvalidRequestError(
                f"save_mode must be 'append' or 'transcript', not {save_mode!r}"
            )
        if diverged not in ("error", "replace"):
            raise InvalidRequestError(f"diverged must be 'error' or 'replace', not {diverged!r}")
        self.history = history
        self.stream = check_id(stream, "stream")
        self.save_mode = save_mode
        self.diverged = diverged
        self.window = check_bound(window, "window")
        self.window_turns = check_bound(window_turns, "window_turns")
        self.max_messages = check_bound(max_messages, "max_messages")
        self.memory_enabled = memory_enabled
        self.offload_data_over = check_bound(offload_data_over, "offload_data_over")
        if offload_data_over is not None and history.attachments is None:
            raise InvalidRequestError(
                "offload_data_over needs a history that keeps attachments; open it with "
                "attachments=, a folder or a URL"
            )

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({self.source_id!r}, stream={self.stream!r}, history={self.history!r})"

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the stored messages of a session, oldest first, as far as the window goes.

        `limit` and `turns` among the keywords go before `window` and `window_turns`, and `before`
        is a sequence below which the history ends. The messages are fresh objects. Raises
        `DecodeError` for a record that cannot be read.
        """
        if not session_id:
            return []
        loaded = await self._load(
            session_id,
            limit=check_bound(kwargs.get("limit", self.window), "limit"),
            turns=check_bound(kwargs.get("turns", self.window_turns), "turns"),
            before=check_bound(kwargs.get("before"), "before"),
        )
        return loaded.messages

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Add messages to a session, all or none of them, or what is new in a transcript.

        With an `idempotency_key` among the keywords a repeat of the save stores nothing. Raises the
        errors of `History.append` and `History.append_transcript`.
        """
        await self._save(session_id, messages, idempotency_key=kwargs.get("idempotency_key"))

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun | None,
        session: AgentSession | None,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Load the history of `context.session_id`, and note which life of the session it is of."""
        messages: list[Message] = []
        if context.session_id:
            turn = self._turn(context)
            loaded = await self._load(
                context.session_id,
                limit=self.window,
                turns=self.window_turns,
                before=turn.sequence if turn is not None else None,
            )
            messages = loaded.messages
            context._carried[self._place(context.session_id)] = loaded.incarnation
        context.extend_messages(self, messages)

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun | None,
        session: AgentSession | None,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Save what the flags choose of the run.

        In a run of a `Session` that is the context messages at most: the run stores what was asked
        and answered by itself. Raises `SessionDeletedError` if the session was deleted since this
        run loaded it.
        """
        in_turn = self._turn(context) is not None
        messages = (self._context_to_save if in_turn else self._messages_to_save)(context)
        if not context.session_id or not messages:
            return
        await self._save(
            context.session_id,
            messages,
            incarnation=context._carried.get(self._place(context.session_id)),
            agent_id=(agent and agent.id) or "",
        )

    async def _load(
        self, session_id: str, *, limit: int | None, turns: int | None, before: int | None = None
    ) -> LoadedHistory:
        await self._ready()
        loaded = await self.history.read(
            session_id, stream=self.stream, limit=limit, turns=turns, before=before
        )
        if limit is not None or turns is not None:
            loaded.messages[:] = whole_groups(loaded.messages)
        return loaded

    async def _save(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        incarnation: str | None = None,
        agent_id: str = "",
        idempotency_key: str | None = None,
    ) -> None:
        if not session_id or not messages or self.max_messages == 0:
            return
        await self._ready()
        common: _Common = {
            "stream": self.stream,
            "incarnation": incarnation,
            "retention": None if self.max_messages is None else Retention(self.max_messages),
            "create": SessionDraft(agent_id=agent_id, memory_enabled=self.memory_enabled),
            "offload_data_over": self.offload_data_over,
        }
        if self.save_mode == "transcript":
            await self.history.append_transcript(
                session_id, messages, diverged=self.diverged, **common
            )
        else:
            await self.history.append(
                session_id, messages, idempotency_key=idempotency_key, **common
            )

    async def _ready(self) -> None:
        """Do what has to be done before the store is used: nothing, where somebody else opened
        it."""

    def _turn(self, context: SessionContext) -> Turn | None:
        """Return the turn of a `Session` that the run is, if this is where it is stored."""
        turn = context._turn
        if turn is None or self.stream != MAIN_STREAM or not context.session_id:
            return None
        return turn if turn.place == self._place(context.session_id) else None

    def _place(self, session_id: str) -> tuple[object, SessionKey]:
        return self.history.store, self.history.key(session_id)

    def _storage_identity(self) -> object:
        history = self.history
        return id(history.store), history.namespace, history.user_id, self.stream


class OwningHistoryProvider(AsyncContext, StoreHistoryProvider):
    """A provider that owns its store: opens it at first use, and closes it with `aclose`.

    The base of the provider classes that backends export. `namespace`, `user_id`, `attachments`
    and `codec` are those of `History`, `options` the flags of `StoreHistoryProvider`. As an
    asynchronous context manager it opens the store at once.
    """

    def __init__(
        self,
        store: HistoryStore,
        source_id: str = "history",
        *,
        namespace: str = DEFAULT_NAMESPACE,
        user_id: str = "",
        attachments: Any = None,
        codec: MessageCodec | None = None,
        **options: Any,
    ) -> None:
        history = History(
            store, namespace=namespace, user_id=user_id, attachments=attachments, codec=codec
        )
        super().__init__(history, source_id, **options)
        self._closed = False

    async def open(self) -> Self:
        """Open the store and return the provider itself."""
        self._closed = False
        await self._ready()
        return self

    async def aclose(self) -> None:
        """Close the store. Closing twice does nothing."""
        self._closed = True
        await self.history.aclose()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _ready(self) -> None:
        if self._closed:
            raise StoreClosedError(
                f"{type(self).__name__} is closed; make another one, or open() it"
            )
        await self.history.open()


class _Common(TypedDict):
    stream: str
    incarnation: str | None
    retention: Retention | None
    create: SessionDraft | None
    offload_data_over: int | None
