"""A chat client that answers from a script, and providers that note what they see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from historykit import BaseContextProvider, BaseHistoryProvider, ChatOptions, Message


class ScriptedClient:
    """Answers with one reply of the script after the other, and keeps what it was asked.

    An exception in the script is raised. Without a script it echoes the last text.
    """

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.asked: list[list[str]] = []
        self.messages: list[list[Message]] = []
        self.options: list[ChatOptions] = []

    async def __call__(self, messages: list[Message], options: ChatOptions) -> Any:
        self.asked.append([message.text for message in messages])
        self.messages.append(messages)
        self.options.append(options)
        reply = self.replies.pop(0) if self.replies else f"echo {messages[-1].text}"
        if isinstance(reply, BaseException):
            raise reply
        return reply


class NotingProvider(BaseContextProvider):
    """Writes its hooks into a common log."""

    def __init__(self, source_id: str, log: list[str], **fails: BaseException) -> None:
        super().__init__(source_id)
        self.log = log
        self.fails = fails
        self.seen: list[dict[str, Any]] = []

    async def before_run(self, **arguments: Any) -> None:
        await self._note("before", arguments)

    async def after_run(self, **arguments: Any) -> None:
        await self._note("after", arguments)

    async def _note(self, hook: str, arguments: dict[str, Any]) -> None:
        self.log.append(f"{hook} {self.source_id}")
        self.seen.append(arguments)
        if hook in self.fails:
            raise self.fails[hook]


class DictProvider(BaseHistoryProvider):
    """Keeps histories in a dict that can be shared."""

    def __init__(self, source_id: str = "dict", *, identity: object = None, **flags: Any) -> None:
        super().__init__(source_id, **flags)
        self.stored: dict[str | None, list[Message]] = {}
        self.identity = identity

    def texts(self, session_id: str | None) -> list[str]:
        return [message.text for message in self.stored.get(session_id, [])]

    async def get_messages(self, session_id: str | None, **kwargs: Any) -> list[Message]:
        return list(self.stored.get(session_id, []))

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **kwargs: Any
    ) -> None:
        self.stored.setdefault(session_id, []).extend(messages)

    def _storage_identity(self) -> object | None:
        return self.identity
