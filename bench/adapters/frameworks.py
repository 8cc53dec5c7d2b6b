"""How each framework's stores are called, whatever database is behind them.

An adapter of a database derives from one of these and connects.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar

from bench.adapter import Adapter

__all__ = [
    "AdkSessions",
    "AgentFrameworkProvider",
    "HistoryKitHistory",
    "HistoryKitProvider",
    "LangChainHistory",
    "LlamaIndexStore",
    "OpenAISession",
]


class _HistoryKit(Adapter):
    kind = "historykit"
    largest = 100_000
    reads_last = True

    def message(self, role: str, text: str) -> Any:
        return self._message_class()(role, text)

    def text(self, message: Any) -> str:
        text: str = message.text
        return text

    def _message_class(self) -> Any:
        return import_module("historykit").Message


class HistoryKitProvider(_HistoryKit):
    """`save_messages` and `get_messages` of the provider in `self.provider`."""

    provider: Any

    async def close(self) -> None:
        await self.provider.aclose()

    async def append(self, session: Any, messages: Any) -> None:
        await self.provider.save_messages(session, messages)

    async def load(self, session: Any) -> Sequence[Any]:
        messages: Sequence[Any] = await self.provider.get_messages(session)
        return messages

    async def last(self, session: Any, count: int) -> Sequence[Any]:
        messages: Sequence[Any] = await self.provider.get_messages(session, limit=count)
        return messages


class HistoryKitHistory(_HistoryKit):
    """`append` and `load` of the `History` in `self.history`."""

    history: Any

    async def close(self) -> None:
        await self.history.aclose()

    async def append(self, session: Any, messages: Any) -> None:
        await self.history.append(session, messages)

    async def load(self, session: Any) -> Sequence[Any]:
        messages: Sequence[Any] = await self.history.load(session)
        return messages

    async def last(self, session: Any, count: int) -> Sequence[Any]:
        messages: Sequence[Any] = await self.history.load(session, limit=count)
        return messages


class OpenAISession(Adapter):
    """The OpenAI Agents SDK: an object for each conversation; messages are dicts."""

    environment = "openai-agents"
    distributions: ClassVar[tuple[str, ...]] = ("openai-agents", "sqlalchemy", "aiosqlite")
    reads_last = True

    async def session(self, session_id: str) -> Any:
        session = self.make(session_id)
        await session.get_items(limit=1)  # it connects and makes tables at first use
        return session

    def make(self, session_id: str) -> Any:
        """Return a session object."""
        raise NotImplementedError

    def message(self, role: str, text: str) -> Any:
        return {"role": role, "content": text}

    def text(self, message: Any) -> str:
        content: str = message["content"]
        return content

    async def append(self, session: Any, messages: Any) -> None:
        await session.add_items(messages)

    async def load(self, session: Any) -> Sequence[Any]:
        items: Sequence[Any] = await session.get_items()
        return items

    async def last(self, session: Any, count: int) -> Sequence[Any]:
        items: Sequence[Any] = await session.get_items(limit=count)
        return items


class AdkSessions(Adapter):
    """Google ADK: `self.service` appends single events to a session object that it has loaded."""

    environment = "google-adk"
    distributions = ("google-adk", "sqlalchemy", "aiosqlite")
    reads_last = True
    largest = 1_000
    notes = (
        "two events a turn, each a transaction; the session, which has to be loaded whole before "
        "anything is appended to it, was loaded outside the clock"
    )

    service: Any
    user: ClassVar = {"app_name": "bench", "user_id": "somebody"}

    async def close(self) -> None:
        await self.service.close()

    def message(self, role: str, text: str) -> Any:
        types = import_module("google.genai.types")
        return import_module("google.adk.events.event").Event(
            author="user" if role == "user" else "agent",
            content=types.Content(role=role, parts=[types.Part(text=text)]),
        )

    def text(self, message: Any) -> str:
        text: str = message.content.parts[0].text
        return text

    async def session(self, session_id: str) -> Any:
        exists = import_module("google.adk.errors.already_exists_error").AlreadyExistsError
        found = await self.service.get_session(**self.user, session_id=session_id)
        if found is not None:
            return found
        try:
            return await self.service.create_session(**self.user, session_id=session_id)
        except exists:  # another writer came first
            return await self.service.get_session(**self.user, session_id=session_id)

    async def append(self, session: Any, messages: Any) -> None:
        for event in messages:
            await self.service.append_event(session, event)

    async def load(self, session: Any) -> Sequence[Any]:
        loaded = await self.service.get_session(**self.user, session_id=session.id)
        events: Sequence[Any] = loaded.events
        return events

    async def last(self, session: Any, count: int) -> Sequence[Any]:
        base = import_module("google.adk.sessions.base_session_service")
        loaded = await self.service.get_session(
            **self.user,
            session_id=session.id,
            config=base.GetSessionConfig(num_recent_events=count),
        )
        events: Sequence[Any] = loaded.events
        return events


class LangChainHistory(Adapter):
    """LangChain: an object for each conversation, or each call."""

    environment = "langchain"

    def message(self, role: str, text: str) -> Any:
        messages = import_module("langchain_core.messages")
        return (messages.HumanMessage if role == "user" else messages.AIMessage)(text)

    def text(self, message: Any) -> str:
        content: str = message.content
        return content

    async def append(self, session: Any, messages: Any) -> None:
        await session.aadd_messages(messages)

    async def load(self, session: Any) -> Sequence[Any]:
        messages: Sequence[Any] = await session.aget_messages()
        return messages


class LlamaIndexStore(Adapter):
    """LlamaIndex: `self.store` takes one message at a time, and a whole history at once."""

    environment = "llama-index"
    notes = "two messages a turn, each a transaction"

    store: Any

    async def close(self) -> None:
        """Nothing: the stores have no such method."""

    def message(self, role: str, text: str) -> Any:
        return import_module("llama_index.core.llms").ChatMessage(role=role, content=text)

    def text(self, message: Any) -> str:
        content: str = message.content
        return content

    async def append(self, session: Any, messages: Any) -> None:
        for message in messages:
            await self.store.async_add_message(session, message)

    async def load(self, session: Any) -> Sequence[Any]:
        messages: Sequence[Any] = await self.store.aget_messages(session)
        return messages

    async def seed(self, session: Any, messages: list[Any]) -> None:
        await self.store.aset_messages(session, messages)


class AgentFrameworkProvider(Adapter):
    """Microsoft Agent Framework: the history provider in `self.provider`."""

    environment = "agent-framework"
    distributions: ClassVar[tuple[str, ...]] = ("agent-framework-core",)
    notes = "a save reads the whole history, to leave out what it takes for a repeat"

    provider: Any

    async def close(self) -> None:
        """Nothing: most of the providers have no such method."""

    def message(self, role: str, text: str) -> Any:
        return import_module("agent_framework").Message(role, [text])

    def text(self, message: Any) -> str:
        text: str = message.text
        return text

    async def append(self, session: Any, messages: Any) -> None:
        await self.provider.save_messages(session, messages)

    async def load(self, session: Any) -> Sequence[Any]:
        messages: Sequence[Any] = await self.provider.get_messages(session)
        return messages
