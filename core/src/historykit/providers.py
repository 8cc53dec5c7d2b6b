"""The steps of an agent's context pipeline, those that keep history above all."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from historykit.messages import Message
from historykit.sessions import AgentSession, SessionContext

if TYPE_CHECKING:
    from historykit.agent import SupportsAgentRun

__all__ = [
    "BaseContextProvider",
    "BaseHistoryProvider",
    "ContextProvider",
    "HistoryProvider",
    "InMemoryHistoryProvider",
]


class BaseContextProvider:
    """A step that sees each run of an agent before and after the model.

    `source_id` tells what this provider adds from what others add; it is a non-empty text, and one
    agent has one provider of an id. Both hooks do nothing unless overridden. `state` is the
    provider's own part of the session's state: `session.state[source_id]`
    (agent_framework Sessions API).
    """

    def __init__(self, source_id: str) -> None:
        self.source_id = _checked_source_id(source_id)

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun | None,
        session: AgentSession | None,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Add messages, instructions or tools to the context of the run."""

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun | None,
        session: AgentSession | None,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Look at the finished run: `context.response` is there."""


class BaseHistoryProvider(BaseContextProvider):
    """A provider that loads the history before a run and saves the run's messages after it.

    A subclass overrides `get_messages` and `save_messages`; both take `state` among the keywords.
    With `load_messages=False` the agent does not call `before_run`. What is saved, in this order:
    the context messages of other providers with `store_context_messages` (only of the sources in
    `store_context_from`, where given), the input with `store_inputs`, and the response's messages
    with `store_outputs` (agent_framework Sessions API).
    """

    def __init__(
        self,
        source_id: str,
        *,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: Collection[str] | None = None,
        store_outputs: bool = True,
    ) -> None:
        super().__init__(source_id)
        self.load_messages = load_messages
        self.store_inputs = store_inputs
        self.store_context_messages = store_context_messages
        self.store_context_from = store_context_from
        self.store_outputs = store_outputs
        if store_context_from is not None and source_id in store_context_from:
            warnings.warn(
                f"store_context_from of {source_id!r} names {source_id!r} itself: what it loads is"
                " saved again with each run, and doubles",
                UserWarning,
                stacklevel=2,
            )

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the stored messages of a session, oldest first."""
        raise NotImplementedError(f"{type(self).__name__} does not override get_messages")

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Add messages to those of a session."""
        raise NotImplementedError(f"{type(self).__name__} does not override save_messages")

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun | None,
        session: AgentSession | None,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Load the history of `context.session_id` into the context."""
        history = await self.get_messages(context.session_id, state=state)
        context.extend_messages(self, history)

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun | None,
        session: AgentSession | None,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Save what the flags choose of the run, in one call, or nothing if that is nothing."""
        messages = self._messages_to_save(context)
        if messages:
            await self.save_messages(context.session_id, messages, state=state)

    def _messages_to_save(self, context: SessionContext) -> list[Message]:
        messages = self._context_to_save(context)
        if self.store_inputs:
            messages += context.input_messages
        if self.store_outputs and context.response is not None:
            messages += context.response.messages
        return messages

    def _context_to_save(self, context: SessionContext) -> list[Message]:
        if not self.store_context_messages:
            return []
        if self.store_context_from is not None:
            return context.get_messages(sources=self.store_context_from)
        return context.get_messages(exclude_sources={self.source_id})

    def _saves(self) -> bool:
        return self.store_inputs or self.store_outputs or self.store_context_messages

    def _storage_identity(self) -> object | None:
        """Return what is equal for two providers that write to one history, None if unknown."""
        return None


class InMemoryHistoryProvider(BaseHistoryProvider):
    """A history provider that keeps messages in the session's state, under ``messages``.

    It has no state of its own: the session's `to_dict` and `from_dict` carry the messages. They
    are copied in and out. With `skip_excluded` messages that are marked ``_excluded`` in their
    `additional_properties` are not loaded (agent_framework Sessions API).
    """

    DEFAULT_SOURCE_ID: ClassVar[str] = "in_memory"

    def __init__(
        self,
        source_id: str | None = None,
        *,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: Collection[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
    ) -> None:
        super().__init__(
            source_id or self.DEFAULT_SOURCE_ID,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self.skip_excluded = skip_excluded

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return copies of the messages in `state`; the session id is not looked at."""
        messages: list[Message] = [] if state is None else state.get("messages", [])
        return [
            message._snapshot()
            for message in messages
            if not (self.skip_excluded and message.additional_properties.get("_excluded"))
        ]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Add copies of messages to those in `state`, as a new list; without state do nothing."""
        if state is not None:
            added = [message._snapshot() for message in messages]
            state["messages"] = [*state.get("messages", []), *added]

    def _storage_identity(self) -> object:
        return type(self), self.source_id


ContextProvider = BaseContextProvider
"""Another name of `BaseContextProvider` (agent_framework Sessions API)."""

HistoryProvider = BaseHistoryProvider
"""Another name of `BaseHistoryProvider` (agent_framework Sessions API)."""


def _checked_source_id(source_id: object) -> str:
    if not isinstance(source_id, str) or not source_id:
        raise ValueError(f"a source_id is a non-empty text, not {source_id!r}")
    return source_id
