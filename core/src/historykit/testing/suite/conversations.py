"""Messages on their way through history and provider into the store, and back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from historykit.errors import (
    DecodeError,
    EncodeError,
    NotFoundError,
    SessionDeletedError,
)
from historykit.messages import Message
from historykit.records import Window
from historykit.responses import AgentResponse
from historykit.sessions import SessionContext
from historykit.store import HistoryStore
from historykit.store_provider import StoreHistoryProvider
from historykit.testing.drafts import draft, numbered
from historykit.testing.rules import since
from historykit.testing.samples import awkward_messages, exactly, tool_conversation
from historykit.testing.subject import StoreSubject

__all__ = ["ConversationTests"]


class ConversationTests:
    """What a user of `History` and its provider relies on."""

    @since("0.1")
    async def test_messages_come_back_exactly(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Unknown types and fields, NUL, lone surrogates, wide integers, NaN, bytes, decimals and
        times come back with the same value and type."""
        subject.key()
        messages = awkward_messages()
        await subject.history(store).append("s1", messages)
        async with subject.witness(store) as witness:
            loaded = await subject.history(witness).load("s1")
        assert exactly(loaded) == exactly(messages)

    @since("0.1")
    async def test_long_history_is_loaded_whole(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A history of several pages is loaded in order, and so is its end."""
        subject.key()
        history = subject.history(store)
        for part in range(3):
            texts = numbered(f"part {part}", 400)
            await history.append("s1", [Message("user", text=text) for text in texts])
        expected = [text for part in range(3) for text in numbered(f"part {part}", 400)]
        assert _texts(await history.load("s1")) == expected
        assert _texts(await history.load("s1", limit=650)) == expected[-650:]
        assert await history.load("s1", limit=0) == []

    @since("0.1")
    async def test_runs_of_a_provider_continue_each_other(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """What the provider saved after a run it loads before the next one, in its order."""
        subject.key()
        for turn in range(3):
            async with subject.witness(store) as witness:
                provider = subject.history((store, witness)[turn % 2]).provider()
                context = await _run(provider, [Message("user", text=f"question {turn}")], "answer")
                loaded = _texts(context.get_messages())
            assert loaded == [t for n in range(turn) for t in (f"question {n}", "answer")]

    @since("0.1")
    async def test_genuine_repeats_stay(self, subject: StoreSubject, store: HistoryStore) -> None:
        """People do say "yes" twice: equal messages of different turns are all kept, with ids and
        without."""
        subject.key("s1"), subject.key("s2")
        for session, ids in (("s1", ["1", "2"]), ("s2", [None, None])):
            provider = subject.history(store).provider()
            for id in ids:
                turn = [Message("user", text="yes", message_id=id), Message("assistant", text="ok")]
                await provider.save_messages(session, turn)
            assert _texts(await provider.get_messages(session)) == ["yes", "ok", "yes", "ok"]

    @since("0.1")
    async def test_save_with_a_key_is_stored_once(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A save that is repeated with its idempotency key stores nothing, and gives the same
        ids."""
        subject.key()
        history = subject.history(store)
        turn = [Message("user", text="q"), Message("assistant", text="a")]
        first = await history.append("s1", turn, idempotency_key="k")
        await history.append("s1", [Message("user", text="later")], idempotency_key="l")
        again = await history.append("s1", turn, idempotency_key="k")
        assert first is not None
        assert again is not None
        assert (again.ids, again.sequences, again.stored) == (first.ids, first.sequences, 0)
        assert _texts(await history.load("s1")) == ["q", "a", "later"]

    @since("0.1")
    async def test_transcripts_store_what_is_new(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A provider in transcript mode is given the whole conversation each time, and stores each
        message once."""
        subject.key()
        provider = subject.history(store).provider(save_mode="transcript")
        texts = numbered("m", 12)
        for count in (1, 2, 3, 3, 10, 12):
            transcript = [Message("user", text=text) for text in texts[:count]]
            await provider.save_messages("s1", transcript)
            assert _texts(await provider.get_messages("s1")) == texts[:count]

    @since("0.1")
    async def test_window_keeps_tool_groups_whole(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Whatever the window, the system message is there, and no call without its results nor a
        result without its call."""
        subject.key()
        history = subject.history(store)
        messages = tool_conversation()
        await history.append("s1", messages)
        for window in range(1, 8):
            loaded = await history.provider(window=window).get_messages("s1")
            kept = messages[-window:] if window not in (3, 4) else messages[-2:]
            expected = kept if window == 7 else [messages[0], *kept]
            assert exactly(loaded) == exactly(expected), window

    @since("0.1")
    async def test_provider_keeps_as_many_as_it_may(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """With max_messages the newest turns stay; 0 stores nothing; below that is refused."""
        history = subject.history(store)
        for bound, expected in ((0, 0), (1, 2), (5, 6)):
            session = subject.key(f"s{bound}").session_id
            provider = history.provider(max_messages=bound)
            for n in range(6):
                turn = [Message("user", text=f"q {n}"), Message("assistant", text=f"a {n}")]
                await provider.save_messages(session, turn)
            texts = [text for n in range(6) for text in (f"q {n}", f"a {n}")]
            kept = texts[-expected:] if expected else []
            assert _texts(await history.load(session)) == kept
        with pytest.raises(ValueError, match="max_messages"):
            history.provider(max_messages=-5)

    @since("0.1")
    async def test_unreadable_record_is_named(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """One damaged record is an error that names session and sequence; a lenient load leaves it
        out and reports it; an append goes on."""
        key = subject.key()
        history = subject.history(store)
        await history.append("s1", [Message("user", text=text) for text in "ab"])
        damaged = draft(b"\x01{damaged")
        receipt = await store.append(key, [damaged])
        await history.append("s1", [Message("user", text=text) for text in "cd"])
        with pytest.raises(DecodeError) as caught:
            await history.load("s1")
        assert (caught.value.session_id, caught.value.sequence) == ("s1", receipt.sequences[0])
        read = await history.read("s1", strict=False)
        assert _texts(read.messages) == ["a", "b", "c", "d"]
        assert [error.sequence for error in read.skipped] == [receipt.sequences[0]]
        page = await store.read(key, Window())
        assert page.messages[2].body == damaged.body

    @since("0.1")
    async def test_message_that_cannot_be_stored_stops_the_batch(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A value that cannot be encoded is an error that names it; nothing of the batch is
        stored, no session is made, and saving nothing makes none either."""
        key = subject.key()
        history = subject.history(store)
        bad = Message("user", text="c", additional_properties={"x": object()})
        with pytest.raises(EncodeError) as caught:
            await history.append("s1", [Message("user", text="a"), bad])
        assert caught.value.path.startswith("messages[1]")
        await history.provider().save_messages("s1", [])
        assert await history.load("s1") == []
        with pytest.raises(NotFoundError):
            await store.read_session(key)
        async with subject.witness(store) as witness:
            await subject.history(witness).append("s1", [Message("user", text="d")])
        assert _texts(await history.load("s1")) == ["d"]

    @since("0.1")
    async def test_run_does_not_revive_a_deleted_session(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A run that loaded a session which is deleted before it ends fails to save."""
        subject.key()
        history = subject.history(store)
        provider = history.provider()
        await provider.save_messages("s1", [Message("user", text="a")])
        context = SessionContext(session_id="s1", input_messages=[Message("user", text="b")])
        await provider.before_run(agent=None, session=None, context=context, state={})
        await history.delete("s1")
        with pytest.raises(SessionDeletedError):
            await provider.after_run(agent=None, session=None, context=context, state={})
        assert await history.load("s1") == []

    @since("0.1")
    async def test_users_of_a_history_are_apart(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The same session id is another conversation for each user of a history."""
        history = subject.history(store)
        users = {user: history.as_user(user) for user in ("ada", "Ada")}
        subject.key()
        for user, each in users.items():
            subject.key(user=user)
            await each.provider().save_messages("s1", [Message("user", text=user)])
        for user, each in users.items():
            assert _texts(await each.provider().get_messages("s1")) == [user]
        assert await history.load("s1") == []

    @since("0.1")
    async def test_streams_of_providers_are_apart(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """An audit in a stream of its own has the same messages, ids included, beside the
        conversation."""
        subject.key()
        history = subject.history(store)
        providers = [history.provider(), history.provider("audit", stream="audit")]
        turn = [Message("user", text="q", message_id="m1"), Message("assistant", text="a")]
        for provider in providers:
            await provider.save_messages("s1", turn)
        for provider in providers:
            assert exactly(await provider.get_messages("s1")) == exactly(turn)


async def _run(
    provider: StoreHistoryProvider, messages: Sequence[Message], answer: str
) -> SessionContext:
    """Do what an agent does with a provider in one run."""
    context = SessionContext(session_id="s1", input_messages=list(messages))
    await provider.before_run(agent=None, session=None, context=context, state={})
    context._response = AgentResponse(messages=[Message("assistant", text=answer)])
    await provider.after_run(agent=None, session=None, context=context, state={})
    return context


def _texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]
