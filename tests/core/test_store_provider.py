from __future__ import annotations

import pytest
import pytest_asyncio

from historykit import (
    Agent,
    AgentSession,
    Content,
    InvalidRequestError,
    Message,
    OwningHistoryProvider,
    SessionDeletedError,
    StoreClosedError,
    TranscriptDivergedError,
)
from historykit.history import History
from historykit.memory import MemoryStore

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def history():
    async with History(MemoryStore()) as history:
        yield history


def user(*texts):
    return [Message("user", text) for text in texts]


def texts(messages):
    return [message.text for message in messages]


async def echo(messages, options):
    """Answer with the number of messages that the model is given."""
    return f"{len(messages)} messages"


async def test_what_is_saved_is_loaded(history):
    """A provider returns the messages that were saved, oldest first."""
    provider = history.provider()
    await provider.save_messages("s", user("a", "b"))
    await provider.save_messages("s", user("c"), state={})
    assert texts(await provider.get_messages("s", state={})) == ["a", "b", "c"]


@pytest.mark.parametrize("session_id", [None, ""])
async def test_without_a_session_id_there_is_no_history(history, session_id):
    """Loading without a session id gives nothing, and saving does nothing."""
    provider = history.provider()
    await provider.save_messages(session_id, user("a"))
    assert await provider.get_messages(session_id) == []
    assert history.store._sessions == {}


async def test_saving_nothing_does_nothing(history):
    """An empty save creates no session."""
    await history.provider().save_messages("s", [])
    assert history.store._sessions == {}


async def test_an_agent_remembers(history):
    """What an agent said and heard in one run is before it in the next."""
    agent = Agent(echo, name="assistant", context_providers=[history.provider()])
    session = AgentSession(session_id="s")
    assert (await agent.run("one", session=session)).text == "1 messages"
    assert (await agent.run("two", session=session)).text == "3 messages"
    assert texts(await history.load("s")) == ["one", "1 messages", "two", "3 messages"]


async def test_a_new_session_belongs_to_the_agent_of_its_first_run(history):
    """A session that a run creates has the agent's id."""
    agent = Agent(echo, id="a-1", name="assistant", context_providers=[history.provider()])
    await agent.run("one", session=AgentSession(session_id="s"))
    assert (await history.store.read_session(history.key("s"))).agent_id == "a-1"


async def test_a_run_does_not_revive_a_session_that_was_deleted_meanwhile(history):
    """A session that is deleted between load and save stays deleted."""

    async def deleting(messages, options):
        await history.delete("s")
        return "late"

    await history.append("s", user("a"))
    agent = Agent(deleting, context_providers=[history.provider()])
    with pytest.raises(SessionDeletedError):
        await agent.run("b", session=AgentSession(session_id="s"))
    assert await history.load("s") == []


async def test_a_second_provider_does_not_revive_it_either(history):
    """What a provider that only saves knows of the session's life, it has from the one that
    loads."""

    async def deleting(messages, options):
        await history.delete("s")
        return "late"

    await history.append("s", user("a"))
    audit = history.provider("audit", stream="audit", load_messages=False)
    main = history.provider(store_inputs=False, store_outputs=False)
    agent = Agent(deleting, context_providers=[main, audit])
    with pytest.raises(SessionDeletedError):
        await agent.run("b", session=AgentSession(session_id="s"))


async def test_an_agent_has_one_saving_provider_for_a_stream(history):
    """Two providers that save to one stream are refused; an audit names its own stream."""
    with pytest.raises(ValueError, match=r"stored twice|same history"):
        Agent(echo, context_providers=[history.provider("a"), history.provider("b")])
    audit = history.provider("audit", stream="audit", load_messages=False)
    agent = Agent(echo, context_providers=[history.provider(), audit])
    await agent.run("one", session=AgentSession(session_id="s"))
    assert texts(await history.load("s")) == texts(await history.load("s", stream="audit"))


async def test_a_run_without_session_id_has_no_history(history):
    """A context without session id loads and saves nothing."""

    class Anonymous(type(history.provider())):
        async def before_run(self, *, context, **others):
            context.session_id = None
            await super().before_run(context=context, **others)

    agent = Agent(echo, context_providers=[Anonymous(history)])
    assert (await agent.run("one", session=AgentSession(session_id="s"))).text == "1 messages"
    assert history.store._sessions == {}


async def test_a_window_bounds_what_is_loaded(history):
    """A window loads the newest messages, `limit` among the keywords goes before it."""
    provider = history.provider(window=2)
    await provider.save_messages("s", user("a", "b", "c"))
    assert texts(await provider.get_messages("s")) == ["b", "c"]
    assert texts(await provider.get_messages("s", limit=1)) == ["c"]
    assert texts(await provider.get_messages("s", limit=None)) == ["a", "b", "c"]
    assert await provider.get_messages("s", limit=0) == []


async def test_a_window_of_turns_bounds_what_is_loaded(history):
    """A window of turns loads those turns whole."""
    provider = history.provider(window_turns=1)
    for text in "ab":
        await provider.save_messages("s", [*user(text), Message("assistant", text + "!")])
    assert texts(await provider.get_messages("s")) == ["b", "b!"]
    assert len(await provider.get_messages("s", turns=2)) == 4


async def test_a_window_parts_no_tool_call_from_its_result(history):
    """A window that would begin within a tool group leaves the group out."""
    call = Message("assistant", [Content.from_function_call("1", "f")])
    result = Message("tool", [Content.from_function_result("1", result="r")])
    await history.append("s", [*user("a"), call, result, Message("assistant", "done")])
    assert texts(await history.provider(window=2).get_messages("s")) == ["done"]
    assert len(await history.provider(window=3).get_messages("s")) == 3


async def test_max_messages_bounds_what_is_kept(history):
    """Older turns are removed from the store as newer ones are saved."""
    provider = history.provider(max_messages=2)
    for text in "abc":
        await provider.save_messages("s", [*user(text), Message("assistant", text + "!")])
    assert texts(await history.load("s")) == ["c", "c!"]


async def test_max_messages_of_zero_stores_nothing(history):
    """A provider that keeps no messages stores none."""
    await history.provider(max_messages=0).save_messages("s", user("a"))
    assert history.store._sessions == {}


@pytest.mark.parametrize("bound", ["window", "window_turns", "max_messages"])
@pytest.mark.parametrize("value", [-5, True, "3", 1.5])
async def test_bounds_are_numbers_of_zero_or_more(history, bound, value):
    """Another bound is refused at construction, by its name."""
    with pytest.raises(InvalidRequestError, match=bound):
        history.provider(**{bound: value})


@pytest.mark.parametrize("limit", [-1, "3"])
async def test_a_limit_is_a_number_of_zero_or_more(history, limit):
    """Another limit is a ValueError when it is given."""
    with pytest.raises(ValueError, match="limit"):
        await history.provider().get_messages("s", limit=limit)


async def test_the_save_mode_is_one_of_two(history):
    """Another save mode is refused."""
    with pytest.raises(InvalidRequestError, match="'append' or 'transcript'"):
        history.provider(save_mode="merge")


async def test_what_diverges_is_an_error_or_replaces(history):
    """Another word is refused when the provider is made, and not by its first save."""
    with pytest.raises(InvalidRequestError, match="'error' or 'replace', not 'overwrite'"):
        history.provider(save_mode="transcript", diverged="overwrite")


async def test_transcripts_are_saved_once(history):
    """In transcript mode the whole conversation can be saved each time."""
    provider = history.provider(save_mode="transcript")
    for end in (1, 2, 3):
        await provider.save_messages("s", user(*"abc"[:end]))
    assert texts(await provider.get_messages("s")) == ["a", "b", "c"]
    with pytest.raises(TranscriptDivergedError):
        await provider.save_messages("s", user("x"))
    replacing = history.provider(save_mode="transcript", diverged="replace")
    await replacing.save_messages("s", user("x"))
    assert texts(await provider.get_messages("s")) == ["x"]


async def test_a_save_can_be_repeated_under_its_key(history):
    """A save with an idempotency key that is repeated stores nothing more."""
    provider = history.provider()
    for _ in range(2):
        await provider.save_messages("s", user("yes"), idempotency_key="k")
    assert texts(await provider.get_messages("s")) == ["yes"]


async def test_an_owning_provider_opens_at_first_use():
    """A provider that owns its store works without being opened, and is closed by `aclose`."""
    provider = OwningHistoryProvider(MemoryStore())
    await provider.save_messages("s", user("a"))
    assert texts(await provider.get_messages("s")) == ["a"]
    await provider.aclose()
    await provider.aclose()
    with pytest.raises(StoreClosedError, match="is closed"):
        await provider.get_messages("s")


async def test_an_owning_provider_is_a_context_manager():
    """`async with` opens the store and closes it."""
    store = MemoryStore()
    async with OwningHistoryProvider(store) as provider:
        assert (await store.ping()).product == "memory"
        await provider.save_messages("s", user("a"))
    with pytest.raises(StoreClosedError):
        await store.ping()


async def test_the_repr_names_what_a_provider_works_on(history):
    """A provider shows its source id, its stream and its history."""
    provider = history.as_user("ada").provider("audit", stream="log")
    assert repr(provider) == (
        "StoreHistoryProvider('audit', stream='log', "
        "history=History('memory', namespace='default', user_id='ada'))"
    )
    assert repr(OwningHistoryProvider(history.store)).startswith(
        "OwningHistoryProvider('history', "
    )
