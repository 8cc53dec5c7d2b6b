"""What an agent relies on in a history provider, however it is made."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from historykit.agent import Agent
from historykit.capabilities import Guarantee
from historykit.messages import Message
from historykit.providers import BaseHistoryProvider
from historykit.sessions import AgentSession
from historykit.testing.drafts import numbered
from historykit.testing.provider_subject import ProviderSubject
from historykit.testing.rules import requires, since
from historykit.testing.samples import awkward_messages, exactly, plain_messages
from historykit.testing.suite.isolation import HOSTILE_TEXTS, LOOK_ALIKES

__all__ = ["ProviderTests"]


class ProviderTests:
    """`get_messages` and `save_messages`."""

    @since("0.1")
    async def test_provider_is_a_history_provider(self, provider: BaseHistoryProvider) -> None:
        """It derives from BaseHistoryProvider and was initialized by it."""
        assert isinstance(provider, BaseHistoryProvider)
        assert provider.source_id
        for flag in ("load_messages", "store_inputs", "store_outputs", "store_context_messages"):
            assert isinstance(getattr(provider, flag), bool)

    @since("0.1")
    async def test_unknown_session_is_empty(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """A session that nobody saved to has no messages, and asking for them makes none."""
        for _ in range(2):
            assert list(await provider.get_messages(subject.session())) == []

    @since("0.1")
    async def test_batch_is_kept_in_order(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """The messages of one save come back as messages, in their order."""
        session = subject.session()
        await _save(provider, session, numbered("m", 50))
        loaded = await provider.get_messages(session)
        assert all(isinstance(message, Message) for message in loaded)
        assert _texts(loaded) == numbered("m", 50)

    @since("0.1")
    async def test_save_adds_to_the_history(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Each save adds to what is there; it does not replace it."""
        session = subject.session()
        for text in numbered("m", 12):
            await _save(provider, session, [text])
        assert _texts(await provider.get_messages(session)) == numbered("m", 12)

    @since("0.1")
    async def test_saving_nothing_changes_nothing(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """An empty save is accepted, before the first message and after it."""
        session = subject.session()
        await provider.save_messages(session, [])
        assert list(await provider.get_messages(session)) == []
        await _save(provider, session, ["m"])
        await provider.save_messages(session, [])
        assert _texts(await provider.get_messages(session)) == ["m"]

    @since("0.1")
    async def test_long_history_is_kept(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """A thousand messages come back, in order, and one of 1 MB."""
        session = subject.session()
        await _save(provider, session, numbered("m", 1000))
        await _save(provider, session, ["x" * 1_000_000])
        loaded = _texts(await provider.get_messages(session))
        assert loaded[:-1] == numbered("m", 1000)
        assert len(loaded[-1]) == 1_000_000

    @since("0.1")
    async def test_sessions_are_apart(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """What is saved to one session is in no other."""
        sessions = [subject.session(name) for name in ("s1", "s2", "s10")]
        for session in sessions:
            await _save(provider, session, [session])
        for session in sessions:
            assert _texts(await provider.get_messages(session)) == [session]

    @since("0.1")
    async def test_hostile_session_ids_are_plain_text(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Any text is a session id: no path, query, pattern or key is made of its parts."""
        texts = [text for text in HOSTILE_TEXTS if len(text) < 200]
        sessions = [*texts[:5], *map(subject.session, texts)]
        for session in sessions:
            await _save(provider, session, [session])
        for session in sessions:
            assert _texts(await provider.get_messages(session))[-1:] == [session]
        for session in sessions[5:]:
            assert len(await provider.get_messages(session)) == 1

    @since("0.1")
    async def test_session_ids_are_compared_byte_for_byte(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Case, spaces at the end, accents and other spellings make another session."""
        sessions = [subject.session(text) for text in itertools.chain.from_iterable(LOOK_ALIKES)]
        for session in sessions:
            await _save(provider, session, [session])
        for session in sessions:
            assert _texts(await provider.get_messages(session)) == [session]

    @since("0.1")
    async def test_no_session_is_no_history(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Without a session id nothing is saved and nothing is there: conversations without a name
        do not meet in one place."""
        for session in (None, ""):
            await provider.save_messages(session, [Message("user", text="mine")])
            assert list(await provider.get_messages(session)) == []

    @since("0.1")
    async def test_equal_messages_are_all_kept(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """The same text again is said again."""
        session = subject.session()
        for _ in range(2):
            await _save(provider, session, ["yes", "ok"])
        await _save(provider, session, ["yes", "yes"])
        loaded = _texts(await provider.get_messages(session))
        assert loaded == ["yes", "ok", "yes", "ok", "yes", "yes"]

    @since("0.1")
    async def test_messages_come_back_exactly(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Roles, names, ids, calls of tools, null and empty texts, unknown types and unknown
        fields come back as they were."""
        session = subject.session()
        await provider.save_messages(session, plain_messages())
        assert exactly(await provider.get_messages(session)) == exactly(plain_messages())

    @since("0.1")
    async def test_values_beyond_json_are_kept_or_refused(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Bytes, decimals, times, NaN, wide integers and lone surrogates are kept exactly, or the
        save is an error and stores nothing; they are never changed."""
        session = subject.session()
        try:
            await provider.save_messages(session, awkward_messages())
        except Exception:
            expected: list[Message] = []
        else:
            expected = awkward_messages()
        assert exactly(await provider.get_messages(session)) == exactly(expected)

    @since("0.1")
    async def test_save_that_fails_stores_nothing(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Where one message cannot be stored the save is an error, nothing of it is stored, and
        the provider goes on."""
        session = subject.session()
        await _save(provider, session, ["before"])
        bad = Message("user", text="bad", additional_properties={"x": object()})
        with pytest.raises(Exception) as caught:  # noqa: PT011  - a bare provider has its own
            await provider.save_messages(session, [Message("user", text="lost"), bad])
        assert not isinstance(caught.value, AssertionError)
        await _save(provider, session, ["after"])
        assert _texts(await provider.get_messages(session)) == ["before", "after"]

    @since("0.1")
    async def test_what_is_handed_in_is_copied(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """A message that is changed after it was saved is stored as it was."""
        session = subject.session()
        message = Message("user", ["a"], additional_properties={"list": [1]})
        messages = [message]
        await provider.save_messages(session, messages)
        before = exactly(messages)
        message.role = "tool"
        message.contents.append(message.contents[0])
        message.additional_properties["list"].append(2)
        messages.append(message)
        assert exactly(await provider.get_messages(session)) == before

    @since("0.1")
    async def test_what_is_handed_out_is_fresh(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Messages that are changed after they were loaded do not change what is stored."""
        session = subject.session()
        message = Message("user", ["a"], additional_properties={"list": [1]})
        await provider.save_messages(session, [message])
        before = exactly([message])
        loaded = await provider.get_messages(session)
        loaded[0].role = "tool"
        loaded[0].additional_properties["list"].append(2)
        loaded[0].contents.clear()
        assert exactly(await provider.get_messages(session)) == before

    @since("0.1")
    async def test_keywords_are_accepted(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Both methods take `state`, and keywords that they do not know."""
        session = subject.session()
        keywords: dict[str, Any] = {"state": {}, "a_keyword_of_tomorrow": 1}
        await provider.save_messages(session, [Message("user", text="m")], **keywords)
        assert _texts(await provider.get_messages(session, **keywords)) == ["m"]

    @since("0.1")
    async def test_agent_continues_its_conversation(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """An agent that is run three times with a session sends the model what was said before."""
        asked: list[list[str]] = []

        async def answer(messages: Sequence[Message], options: object) -> str:
            asked.append([message.text for message in messages])
            return f"answer {len(asked)}"

        agent = Agent(answer, context_providers=[provider])
        for n in (1, 2, 3):
            session = AgentSession(session_id=subject.session())
            await agent.run(f"question {n}", session=session)
        said = [text for n in (1, 2, 3) for text in (f"question {n}", f"answer {n}")]
        assert asked == [said[:1], said[:3], said[:5]]
        assert _texts(await provider.get_messages(subject.session())) == said

    @since("0.1")
    async def test_parallel_saves_lose_nothing(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Of ten tasks that save at once every batch is there, whole and in order."""
        session = subject.session()

        async def write(writer: str) -> None:
            for batch in numbered(writer, 4):
                await _save(provider, session, numbered(batch, 3))

        writers = [f"w{n}" for n in range(10)]
        await asyncio.gather(*map(write, writers))
        found = _batches(_texts(await provider.get_messages(session)))
        assert Counter(found) == Counter(batch for w in writers for batch in numbered(w, 4))

    @since("0.1")
    async def test_cancelled_save_is_done_or_not_done(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Saves that are cancelled are there whole or not at all; the provider goes on."""
        session = subject.session()
        for moment in range(20):
            task = asyncio.ensure_future(_save(provider, session, numbered(f"w{moment} 0", 3)))
            for _ in range(moment):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        await _save(provider, session, numbered("last 0", 3))
        found = _batches(_texts(await provider.get_messages(session)))
        assert "last 0" in found
        assert len(set(found)) == len(found)

    @since("0.1")
    async def test_parallel_loads_do_not_mix(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Loads of several sessions at once each get their own session."""
        sessions = [subject.session(f"s{n}") for n in range(8)]
        for session in sessions:
            await _save(provider, session, [session])
        loads = await asyncio.gather(*(provider.get_messages(each) for each in sessions * 3))
        assert [_texts(load) for load in loads] == [[session] for session in sessions * 3]

    @since("0.1")
    async def test_first_use_may_be_concurrent(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """Six new providers that are used for the first time at once all work."""

        async def use(session: str) -> None:
            other = await subject.provider()
            assert list(await other.get_messages(session)) == []
            await _save(other, session, ["m"])
            assert _texts(await other.get_messages(session)) == ["m"]

        await asyncio.gather(*(use(subject.session(f"s{n}")) for n in range(6)))

    @since("0.1")
    @requires(Guarantee.SHARED)
    async def test_second_provider_sees_what_was_saved(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """What one provider saved, another one over the same storage loads and continues."""
        session = subject.session()
        other = await subject.provider()
        await _save(provider, session, ["a"])
        assert _texts(await other.get_messages(session)) == ["a"]
        await _save(other, session, ["b"])
        assert _texts(await provider.get_messages(session)) == ["a", "b"]

    @since("0.1")
    @requires(Guarantee.SHARED)
    async def test_history_outlives_the_provider(
        self, subject: ProviderSubject, provider: BaseHistoryProvider
    ) -> None:
        """What was saved is there for a provider that is made after the first one was closed."""
        session = subject.session()
        await provider.save_messages(session, plain_messages())
        await subject.close()
        other = await subject.provider()
        assert exactly(await other.get_messages(session)) == exactly(plain_messages())


async def _save(provider: BaseHistoryProvider, session: str, texts: Sequence[str]) -> None:
    await provider.save_messages(session, [Message("user", text=text) for text in texts])


def _texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


def _batches(found: Sequence[str]) -> list[str]:
    """Return the names of the batches of three that the texts are of, which have to be whole."""
    names = [text.rpartition(" ")[0] for text in found[::3]]
    assert list(found) == [text for name in names for text in numbered(name, 3)], "torn"
    return names
