"""Providers that lie about one thing each, over rows in a list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from historykit import BaseContextProvider, BaseHistoryProvider, Message
from historykit.codec import MessageCodec

Provider = TypeVar("Provider", bound="type[RowProvider]")

WRONG_PROVIDERS: dict[type[RowProvider], tuple[str, ...]] = {}
"""The wrong providers, each with the tests that have to refute it."""

CODEC = MessageCodec()


def wrong(*tests: str) -> Callable[[Provider], Provider]:
    """Register a wrong provider with the tests that have to refute it."""

    def register(provider: Provider) -> Provider:
        WRONG_PROVIDERS[provider] = tests
        return provider

    return register


class RowProvider(BaseHistoryProvider):
    """A provider that is right, until a subclass says otherwise. `rows` is its storage."""

    def __init__(self, rows: list[tuple[str, Any]]) -> None:
        super().__init__("rows")
        self.rows = rows

    async def get_messages(self, session_id: str | None, **kwargs: Any) -> list[Message]:
        return self.read(session_id) if session_id else []

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **kwargs: Any
    ) -> None:
        if session_id:
            self.rows += [(session_id, self.encode(message)) for message in messages]

    def read(self, session_id: str) -> list[Message]:
        return [self.decode(row) for id, row in self.rows if id == session_id]

    def encode(self, message: Message) -> Any:
        return CODEC.encode(message.to_dict())

    def decode(self, row: Any) -> Message:
        return Message.from_dict(CODEC.decode(row))


@wrong("test_provider_is_a_history_provider")
class ForgetsItsBase(RowProvider):
    """Does not call the initializer of its base class."""

    def __init__(self, rows: list[tuple[str, Any]]) -> None:
        BaseContextProvider.__init__(self, "rows")
        self.rows = rows


@wrong("test_unknown_session_is_empty")
class HasNoEmptySessions(RowProvider):
    """Fails where nobody saved anything."""

    def read(self, session_id: str) -> list[Message]:
        if session_id not in dict(self.rows):
            raise KeyError(session_id)
        return super().read(session_id)


@wrong("test_batch_is_kept_in_order")
class ReadsNewestFirst(RowProvider):
    """Reads the newest message first."""

    def read(self, session_id: str) -> list[Message]:
        return super().read(session_id)[::-1]


@wrong("test_save_adds_to_the_history", "test_agent_continues_its_conversation")
class ReplacesItsHistory(RowProvider):
    """Keeps what was saved last."""

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **kwargs: Any
    ) -> None:
        if messages:
            self.rows[:] = [(id, row) for id, row in self.rows if id != session_id]
        await super().save_messages(session_id, messages)


@wrong("test_saving_nothing_changes_nothing")
class NeedsMessages(RowProvider):
    """Takes the first message of a save that has none."""

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **kwargs: Any
    ) -> None:
        assert messages[0]
        await super().save_messages(session_id, messages)


@wrong("test_long_history_is_kept")
class ReadsOnePage(RowProvider):
    """Reads the last hundred messages."""

    def read(self, session_id: str) -> list[Message]:
        return super().read(session_id)[-100:]


@wrong("test_sessions_are_apart", "test_parallel_loads_do_not_mix")
class HasOneSession(RowProvider):
    """Reads the messages of all sessions."""

    def read(self, session_id: str) -> list[Message]:
        return [self.decode(row) for _, row in self.rows]


@wrong("test_hostile_session_ids_are_plain_text", "test_session_ids_are_compared_byte_for_byte")
class TrimsIds(RowProvider):
    """Compares session ids without case and spaces."""

    def read(self, session_id: str) -> list[Message]:
        wanted = session_id.strip().lower()
        return [self.decode(row) for id, row in self.rows if id.strip().lower() == wanted]


@wrong("test_no_session_is_no_history")
class HasADefaultSession(RowProvider):
    """Puts conversations without a name into one session."""

    async def get_messages(self, session_id: str | None, **kwargs: Any) -> list[Message]:
        return await super().get_messages(session_id or "default")

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **kwargs: Any
    ) -> None:
        await super().save_messages(session_id or "default", messages)


@wrong("test_equal_messages_are_all_kept")
class DropsEqualMessages(RowProvider):
    """Takes an equal message for a repeat."""

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **kwargs: Any
    ) -> None:
        known = {row for id, row in self.rows if id == session_id}
        new = [message for message in messages if self.encode(message) not in known]
        await super().save_messages(session_id, new)


@wrong("test_messages_come_back_exactly", "test_history_outlives_the_provider")
class KeepsTexts(RowProvider):
    """Keeps role and text of a message."""

    def encode(self, message: Message) -> Any:
        return CODEC.encode(Message(message.role, text=message.text).to_dict())


@wrong("test_values_beyond_json_are_kept_or_refused", "test_save_that_fails_stores_nothing")
class WritesWhatIsLikeIt(RowProvider):
    """Writes the text of what JSON does not have."""

    def encode(self, message: Message) -> Any:
        return json.dumps(message.to_dict(), default=str)

    def decode(self, row: Any) -> Message:
        return Message.from_json(row)


@wrong("test_save_that_fails_stores_nothing")
class SavesOneByOne(RowProvider):
    """Saves the messages before one that it cannot save."""

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **kwargs: Any
    ) -> None:
        for message in messages:
            await super().save_messages(session_id, [message])


@wrong("test_what_is_handed_in_is_copied", "test_what_is_handed_out_is_fresh")
class KeepsObjects(RowProvider):
    """Keeps the objects that it is given."""

    def encode(self, message: Message) -> Any:
        super().encode(message)
        return message

    def decode(self, row: Any) -> Message:
        assert isinstance(row, Message)
        return row


@wrong("test_keywords_are_accepted", "test_agent_continues_its_conversation")
class KnowsNoKeywords(RowProvider):
    """Takes no keywords."""

    async def get_messages(self, session_id: str | None) -> list[Message]:  # type: ignore[override]  # the lie
        return self.read(session_id) if session_id else []


class SlowProvider(RowProvider):
    """A provider that saves one message after the other, while others save theirs."""

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **kwargs: Any
    ) -> None:
        rows = [(session_id, self.encode(message)) for message in messages if session_id]
        for id, row in rows:
            self.rows.append((str(id), row))
            await asyncio.sleep(0)


@wrong("test_parallel_saves_lose_nothing", "test_cancelled_save_is_done_or_not_done")
class TearsBatches(SlowProvider):
    """Saves one message after the other, while others save theirs."""


@wrong("test_parallel_loads_do_not_mix")
class MixesLoads(RowProvider):
    """Notes what is to be loaded in one place for all."""

    async def get_messages(self, session_id: str | None, **kwargs: Any) -> list[Message]:
        self.wanted = session_id
        await asyncio.sleep(0)
        return await super().get_messages(self.wanted)


@wrong("test_first_use_may_be_concurrent")
class IsSetUpOnce(RowProvider):
    """Fails where another one is being set up."""

    async def get_messages(self, session_id: str | None, **kwargs: Any) -> list[Message]:
        if ("setup", None) in self.rows:
            raise RuntimeError("table exists")
        self.rows.append(("setup", None))
        await asyncio.sleep(0)
        self.rows.remove(("setup", None))
        return await super().get_messages(session_id)


@wrong("test_second_provider_sees_what_was_saved", "test_history_outlives_the_provider")
class KeepsItToItself(RowProvider):
    """Has rows of its own."""

    def __init__(self, rows: list[tuple[str, Any]]) -> None:
        super().__init__([])
