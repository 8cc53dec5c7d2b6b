"""Agents run in sessions, in memory and on SQLite."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
import warnings
from types import ModuleType, SimpleNamespace

import pytest
import pytest_asyncio

import historykit
from historykit import (
    Agent,
    AgentResponse,
    BaseContextProvider,
    Budget,
    CapabilityNotSupportedError,
    Content,
    ExecutionConfig,
    InvalidRequestError,
    Message,
    NotFoundError,
    RunInProgressError,
    SessionDeletedError,
    SessionStateError,
    StorageError,
)
from historykit.history import History
from historykit.memory import MemoryStore
from historykit.turns import Turn
from tests.core.scripted import NotingProvider, ScriptedClient

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture(params=["memory", "sqlite"])
async def history(request, tmp_path):
    settings = {"path": str(tmp_path / "chat.db")} if request.param == "sqlite" else {}
    async with historykit.open_history(request.param, **settings) as history:
        yield history


@pytest_asyncio.fixture
async def session(history):
    return await history.Session(id="s1", name="Carrots").save()


@pytest.fixture
def short_lease(monkeypatch):
    """Let the runs of `Agent.run` hold their sessions for a tenth of a second at a time."""
    monkeypatch.setitem(Turn.__init__.__kwdefaults__, "lease", 0.1)


@pytest.fixture
def agent():
    return Agent(ScriptedClient(), name="helper")


def spoken(messages):
    return [(message.role, message.content) for message in messages]


async def free(session):
    """Whether no run holds a session."""
    await session.refresh()
    return session._record.run_id is None


# -- what a run gives


async def test_a_run_stores_the_query_and_the_answer(history, session, agent):
    """Both are there afterwards, and belong to the request and to the agent."""
    result = await history.run(agent, "Hi", session=session)
    messages = await session.messages()
    assert spoken(messages) == [("user", "Hi"), ("assistant", "echo Hi")]
    assert {message.request_id for message in messages} == {result.request_id}
    assert {message.agent_id for message in messages} == {"helper"}


async def test_a_result_has_the_documented_fields(history, session):
    """Status, ids, output, steps, usage and time."""
    usage = {"input_token_count": 3}
    client = ScriptedClient(
        AgentResponse(messages=[Message("assistant", "Hm")], usage_details=usage)
    )
    session.execution_config = ExecutionConfig(identifier="shop")
    result = await history.run(Agent(client, name="helper"), "Hi", session=session)
    assert (result.status, result.completed, result.session_id) == ("SUCCESS", True, "s1")
    assert (result.data.output, result.data.session_id) == ("Hm", "s1")
    assert result.data.steps == [
        {
            "agent": "helper",
            "role": "assistant",
            "text": "Hm",
            "contents": [{"type": "text", "text": "Hm", "additional_properties": {}}],
        }
    ]
    assert result.usage == usage
    assert result.run_time > 0
    assert result.identifier == "shop"
    assert result.response.text == "Hm"


async def test_an_agent_gets_the_history_and_not_its_query_twice(history, session, agent):
    """What was said before stands before the query, and the query once."""
    await session.add_message("user", "before")
    await history.run(agent, "Hi", session="s1")
    await history.run(agent, "again", session="s1")
    assert agent.client.asked == [["before", "Hi"], ["before", "Hi", "echo Hi", "again"]]


async def test_an_agent_with_a_provider_of_the_history_loads_by_it(history, session):
    """Its window holds, it stores nothing twice, and what it keeps is trimmed as it says."""
    provider = history.provider(window=1, max_messages=2)
    agent = Agent(ScriptedClient(), name="helper", context_providers=[provider])
    for query in ("one", "two", "three"):
        await history.run(agent, query, session=session)
    assert agent.client.asked == [["one"], ["echo one", "two"], ["echo two", "three"]]
    assert spoken(await session.messages()) == [("user", "three"), ("assistant", "echo three")]
    assert agent.context_providers == [provider]


async def test_a_provider_of_another_history_loads_and_saves_there(history, session):
    """The model gets the conversations of both, and the turn is stored in both."""
    await session.add_message("user", "Of this one")
    async with History(MemoryStore()) as other:
        await other.append("s1", [Message("user", "Of the other one")])
        client = ScriptedClient()
        agent = Agent(client, context_providers=[other.provider()])
        await history.run(agent, "Hi", session=session)
        given = client.asked[-1]
        assert sorted(given) == ["Hi", "Of the other one", "Of this one"]
        stored = [message.text for message in await other.load("s1")]
    assert stored == ["Of the other one", "Hi", "echo Hi"]
    texts = [message.content for message in await session.messages()]
    assert texts == ["Of this one", "Hi", "echo Hi"]


async def test_a_provider_that_keeps_large_data_apart_does_so_in_runs(tmp_path):
    """The data of an answer is an attachment, and back in its place in the next run."""
    data = "data:image/png;base64," + "A" * 4000
    picture = Message("assistant", [Content.from_uri(data, media_type="image/png")])
    async with historykit.open_history("memory", attachments=tmp_path) as history:
        session = await history.Session(id="s1").save()
        provider = history.provider(offload_data_over=1000)
        agent = Agent(ScriptedClient(picture), context_providers=[provider])
        result = await history.run(agent, "Draw", session=session)
        (_, stored) = await session.messages()
        assert stored.request_id == result.request_id
        assert stored.attachments[0].url.startswith("file://")
        await history.run(agent, "Again", session=session)
        assert agent.client.messages[1][1].contents[0].uri == data


async def test_other_providers_of_an_agent_keep_their_part(history, session):
    """An audit in another stream and a provider that only stores see the run as ever."""
    audit = history.provider("audit", stream="audit", load_messages=False)
    silent = history.provider("silent", load_messages=False, store_context_messages=True)
    agent = Agent(ScriptedClient(), name="helper", context_providers=[audit, silent])
    await history.run(agent, "Hi", session=session)
    assert [m.text for m in await history.load("s1", stream="audit")] == ["Hi", "echo Hi"]
    assert spoken(await session.messages()) == [("user", "Hi"), ("assistant", "echo Hi")]


async def test_a_provider_of_another_source_id_makes_room(history, session, agent):
    """The provider that loads the history is added under an id that the agent does not use."""
    agent.context_providers.append(NotingProvider("historykit.session", []))
    await session.add_message("user", "before")
    await history.run(agent, "Hi", session=session)
    assert agent.client.asked == [["before", "Hi"]]


async def test_the_history_can_be_bounded(history, session, agent):
    """`window` is how many messages an agent without a provider gets."""
    for text in ("a", "b", "c"):
        await session.add_message("user", text)
    await history.run(agent, "Hi", session=session, window=1)
    assert agent.client.asked == [["c", "Hi"]]


async def test_calls_of_tools_are_steps_of_the_run(history, session):
    """Call, result and answer are stored with the request's id, and are steps of the result."""
    call = Content.from_function_call("c1", "weather", arguments='{"city": "Oslo"}')
    agent = Agent(
        ScriptedClient(Message("assistant", [call]), "sunny"),
        name="helper",
        tools=[lambda **arguments: "ok"],
    )
    agent.tools[0].__name__ = "weather"
    result = await history.run(agent, "Weather?", session=session)
    assert [step["role"] for step in result.data.steps] == ["assistant", "tool", "assistant"]
    stored = await session.messages(request_id=result.request_id)
    assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant"]


async def test_an_async_function_is_an_agent(history, session):
    """It gets the history, ids, the config and the parameters of tools."""
    requests = []

    async def answering(messages, request):
        requests.append(request)
        yield "a "
        yield f"of {len(messages)}"

    tools = [{"id": "m2", "parameters": [{"name": "top_k", "value": 9}]}]
    await session.add_message("user", "before")
    session.execution_config = ExecutionConfig(criteria="brief")
    result = await history.run(answering, "Hi", session=session, tools=tools)
    assert result.data.output == "a of 2"
    (request,) = requests
    assert (request.session_id, request.request_id) == ("s1", result.request_id)
    assert request.execution_config.criteria == "brief"
    assert list(request.tools) == tools
    await session.refresh()
    assert session.agent_id == ""


async def test_an_agent_of_another_kind_is_asked_with_messages(history, session):
    """Anything with `run` gets the history and the query; its response is stored."""

    class Foreign:
        id = "0f3e"
        name = "foreign"

        def run(self, messages):
            texts = [message.text for message in messages]
            answer = SimpleNamespace(to_dict=Message("assistant", ", ".join(texts)).to_dict)
            return SimpleNamespace(messages=[answer], usage_details={"tokens": 1})

    await session.add_message("user", "before")
    result = await history.run(Foreign(), "Hi", session=session)
    assert (result.data.output, result.usage) == ("before, Hi", {"tokens": 1})
    await session.refresh()
    assert session.agent_id == "foreign"


async def test_an_agent_of_agent_framework_gets_messages_of_its_own(history, session, monkeypatch):
    """Its messages are made of the same dicts."""
    framework = ModuleType("agent_framework")
    framework.Message = SimpleNamespace(from_dict=lambda data: SimpleNamespace(data=data))
    monkeypatch.setitem(sys.modules, "agent_framework", framework)
    seen = []

    class Foreign:
        __module__ = "agent_framework._agents"

        async def run(self, messages):
            seen.extend(message.data for message in messages)
            return "ok"

    await history.run(Foreign(), "Hi", session=session)
    assert seen == [Message("user", "Hi").to_dict()]


async def test_a_caller_can_name_the_request(history, session, agent):
    """The given request id is that of the messages and of the result."""
    result = await history.run(agent, "Hi", session=session, request_id="r1")
    assert result.request_id == "r1"
    assert len(await session.messages(request_id="r1")) == 2


async def test_an_answer_that_repeats_a_message_is_stored_once(history, session):
    """A message with the id and the content of an earlier one is no second message."""
    same = [Message("assistant", "a", message_id="m1") for _ in range(2)]
    other = [Message("assistant", "b", message_id="m1"), Message("assistant", "a")]
    await history.run(Agent(ScriptedClient([*same, *other])), "Hi", session=session)
    assert [message.content for message in await session.messages()] == ["Hi", "a", "b", "a"]


async def test_an_agent_that_answers_nothing_leaves_the_query(history, session):
    """A run may have no answer."""
    result = await history.run(Agent(ScriptedClient([])), "Hi", session=session)
    assert (result.data.output, result.data.steps) == ("", [])
    assert len(await session.messages()) == 1


async def test_a_session_without_memory_can_be_run(history, agent):
    """The run goes through, and no message is kept."""
    session = await history.Session(id="s2", memory_enabled=False).save()
    result = await history.run(agent, "Hi", session=session)
    assert result.data.output == "echo Hi"
    assert await session.messages() == []


# -- Agent.run and bind


async def test_an_agent_runs_in_a_session_by_itself(session, agent):
    """`Agent.run` takes a `Session`, stores both sides under one request, and gives the answer."""
    answer = await agent.run("Hi", session=session)
    assert answer.text == "echo Hi"
    first, second = await session.messages()
    assert (first.content, second.content) == ("Hi", "echo Hi")
    assert first.request_id == second.request_id is not None
    await session.refresh()
    assert (session.agent_id, session.run_status) == ("helper", "completed")


async def test_an_agent_streams_in_a_session(session):
    """The pieces come as ever, and the whole is stored at the end."""

    async def words(messages, options):
        yield "to be"
        yield " continued"

    stream = Agent(words).run("Hi", session=session, stream=True)
    assert [update.text async for update in stream] == ["to be", " continued"]
    assert (await stream.get_final_response()).text == "to be continued"
    assert spoken(await session.messages()) == [("user", "Hi"), ("assistant", "to be continued")]


async def test_a_stream_that_is_broken_off_keeps_the_query(session):
    """The answer is not stored, and the session is let go."""

    log = []

    async def words(messages, options):
        try:
            yield "to be"
            yield " continued"
        finally:
            log.append("closed")

    async with Agent(words).run("Hi", session=session, stream=True) as stream:
        await anext(stream)
    assert log == ["closed"]
    assert spoken(await session.messages()) == [("user", "Hi")]
    assert await free(session)
    assert session.run_status == "idle"


async def streamed(messages, options):
    yield "to be"
    yield " continued"


async def test_a_stream_that_nobody_reads_on_lets_its_session_go(session, agent, short_lease):
    """The lease of a stream that was left, and not closed, ends; what comes next stays."""
    stream = Agent(streamed).run("Hi", session=session, stream=True)
    async for _ in stream:
        break
    await session.refresh()
    assert session.run_status == "running"
    await asyncio.sleep(0.15)
    await session.refresh()
    assert session.run_status == "idle"

    await agent.run("Ho", session=session)
    with pytest.raises(RunInProgressError, match="does not hold"):
        await stream.get_final_response()
    await session.refresh()
    assert session.run_status == "completed"
    assert [m.content for m in await session.messages()] == ["Hi", "Ho", "echo Ho"]


async def test_a_stream_that_is_closed_late_says_nothing_of_the_run_after_it(
    session, agent, short_lease
):
    """How the newest run went stays noted."""
    stream = Agent(streamed).run("Hi", session=session, stream=True)
    await anext(stream)
    await asyncio.sleep(0.15)
    await agent.run("Ho", session=session)
    await stream.aclose()
    await session.refresh()
    assert session.run_status == "completed"


async def test_a_stream_can_be_read_on_after_its_lease(session, agent, short_lease):
    """It holds its session again where no other run came, and then for as long as it takes."""

    async def slow(messages, options):
        yield "to be"
        await asyncio.sleep(0.3)
        yield " continued"

    stream = Agent(slow).run("Hi", session=session, stream=True)
    await anext(stream)
    await asyncio.sleep(0.15)
    reading = asyncio.create_task(anext(stream))
    await asyncio.sleep(0.2)
    with pytest.raises(RunInProgressError):
        await agent.run("Ho", session=session)
    await reading
    assert (await stream.get_final_response()).text == "to be continued"
    assert spoken(await session.messages()) == [("user", "Hi"), ("assistant", "to be continued")]


async def test_messages_of_any_kind_run_in_a_session(session, agent):
    """`Agent.run` stores the messages that it is given, whatever they contain, or none."""
    picture = Content.from_uri("https://example.com/a.png", media_type="image/png")
    await agent.run([Message("user", ["Look", picture])], session=session)
    (first, _) = await session.messages()
    assert first.attachments[0].url == "https://example.com/a.png"
    agent.client.replies = ["and so on"]
    await agent.run(session=session)
    assert [message.role for message in await session.messages()] == [
        "user",
        "assistant",
        "assistant",
    ]


async def test_the_client_sees_the_config_of_the_session(session, agent):
    """It is among the options, under those of the run; without a config there is none."""
    await agent.run("Hi", session=session)
    session.execution_config = ExecutionConfig(criteria="brief", budget=Budget(max_iterations=2))
    await session.save()
    await agent.run("Hi", session=session, options={"seed": 7})
    first, second = agent.client.options
    assert "execution_config" not in first.options
    assert second.options["execution_config"].criteria == "brief"
    assert (second.options["max_iterations"], second.options["seed"]) == (2, 7)


async def test_another_session_is_refused_by_an_agent(agent):
    """What is neither an `AgentSession` nor a `Session` is a `TypeError`."""
    with pytest.raises(TypeError, match="AgentSession or a Session, not str"):
        agent.run("Hi", session="s1")


async def test_an_agent_that_runs_in_its_own_way_is_run_so(history, session):
    """`History.run` calls the agent's `run`, whatever a subclass makes of it."""

    class Polite(Agent):
        async def run(self, messages=None, **options):
            answer = await super().run(messages, **options)
            answer.additional_properties["polite"] = True
            return answer

    result = await history.run(Polite(ScriptedClient(), name="helper"), "Hi", session=session)
    assert result.response.additional_properties == {"polite": True}
    assert spoken(await session.messages()) == [("user", "Hi"), ("assistant", "echo Hi")]


async def test_a_bound_agent_runs_in_sessions(history, session, agent):
    """`bind` gives the form in which the agent comes first; without a session it is its own run."""
    bound = history.bind(agent)
    result = await bound.run("Hi", session=session)
    assert result.data.output == "echo Hi"
    assert (await bound.run("Hi")).text == "echo Hi"
    assert len(await session.messages()) == 2
    assert repr(bound) == f"BoundAgent({agent!r}, history={history!r})"


async def test_a_function_is_bound_to_sessions(history):
    """Without a session there is nothing that a function could be run by."""
    with pytest.raises(TypeError, match="pass session="):
        await history.bind(lambda messages, request: "x").run("Hi")


# -- what is refused


@pytest.mark.parametrize("name", ["tasks", "prompt", "inspectors", "history", "variables"])
async def test_keywords_of_other_runs_are_refused(history, session, agent, name):
    """They are named, even where they are empty; None is as good as absent."""
    with pytest.raises(ValueError, match=name):
        await history.run(agent, "Hi", session=session, **{name: []})
    await history.run(agent, "Hi", session=session, **{name: None})


async def test_unknown_keywords_are_refused(history, session, agent):
    """As by any function."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'critera'"):
        await history.run(agent, "Hi", session=session, critera="x")


@pytest.mark.parametrize("query", [None, ""])
async def test_a_run_needs_a_query_or_attachments(history, session, agent, query):
    """An empty turn is refused."""
    with pytest.raises(ValueError, match="requires a query or attachments"):
        await history.run(agent, query, session=session)
    assert await session.messages() == []


async def test_a_query_is_a_text(history, session, agent):
    """Other things are refused."""
    with pytest.raises(ValueError, match="only supports string queries"):
        await history.run(agent, ["Hi"], session=session)


async def test_attachments_are_enough(history, session, agent):
    """Without a query the content is empty, and the attachment is what the agent gets."""
    await history.run(
        agent, session=session, attachments=[{"url": "https://x.test/a.wav", "type": "audio"}]
    )
    (asked, _) = await session.messages()
    assert (asked.content, asked.attachments[0].type) == ("", "audio")
    assert agent.client.messages[0][-1].contents[0].uri == "https://x.test/a.wav"


async def test_a_session_is_a_session_or_an_id(history, agent):
    """Anything else is a `TypeError`; an id that is not there is not found."""
    with pytest.raises(TypeError, match="session must be a Session instance or a session id"):
        await history.run(agent, "Hi", session=123)
    with pytest.raises(NotFoundError):
        await history.run(agent, "Hi", session="nowhere")


async def test_an_agent_is_something_that_runs(history, session):
    """Anything else is a `TypeError`, when it is bound and when it is run."""
    with pytest.raises(TypeError, match="an agent is an object with a method run"):
        await history.run("helper", "Hi", session=session)
    with pytest.raises(TypeError, match="an agent is an object with a method run"):
        history.bind(None)


async def test_an_unsaved_session_is_not_run(history, agent):
    """It has to be saved first."""
    with pytest.raises(SessionStateError, match="not been saved"):
        await history.run(agent, "Hi", session=history.Session())


async def test_a_session_without_a_history_is_bound(history, session, agent):
    """A plain `Session` becomes one of the history that runs it."""
    from historykit.catalogue import Session

    plain = Session(id="s1")
    await history.run(agent, "Hi", session=plain)
    assert plain.context is history
    assert len(await session.messages()) == 2


async def test_sessions_of_others_are_not_run(history, session, agent):
    """Of another store it is refused, of another user it is not found."""
    async with History(MemoryStore()) as other:
        with pytest.raises(InvalidRequestError, match="'s1' is one of another history"):
            await other.run(agent, "Hi", session=session)
    mine = await history.as_user("ada").Session(id="s2").save()
    with pytest.raises(NotFoundError):
        await history.as_user("bob").run(agent, "Hi", session=mine)
    with pytest.raises(NotFoundError):
        await history.as_user("bob").run(agent, "Hi", session="s2")
    result = await history.run(agent, "Hi", session=mine)
    assert result.data.output == "echo Hi"
    assert len(await mine.messages()) == 2


async def test_a_session_of_a_user_that_was_found_is_run_as_that_users(history, agent):
    """A search of all users finds sessions that are run where they belong."""
    await history.as_user("ada").Session(id="s2").save()
    (found,) = await history.Session.search(user_id="ada")
    await found.add_message("user", "before")
    await history.run(agent, "Hi", session=found)
    assert agent.client.asked == [["before", "Hi"]]
    assert len(await history.as_user("ada").load("s2")) == 3
    assert await history.load("s2") == []


async def test_a_provider_for_another_user_is_refused(history):
    """It would keep a second history under the same id."""
    mine = await history.as_user("ada").Session(id="s2").save()
    agent = Agent(ScriptedClient(), context_providers=[history.provider()])
    with pytest.raises(InvalidRequestError, match="of user 'ada', and provider 'history'"):
        await history.run(agent, "Hi", session=mine)
    assert await history.load("s2") == []


async def test_a_session_is_with_one_agent(history, session, agent):
    """The first run binds it; another agent is refused, unless that is asked for."""
    other = Agent(ScriptedClient(), name="other")
    await history.run(agent, "Hi", session=session)
    with pytest.raises(InvalidRequestError, match="with agent 'helper', not with 'other'"):
        await history.run(other, "Hi", session=session)
    with pytest.raises(InvalidRequestError, match="with agent 'helper', not with 'other'"):
        await other.run("Hi", session=session)
    await history.run(other, "And?", session=session, check_agent=False)
    asked, answered = (await session.messages())[2:]
    assert (asked.agent_id, answered.agent_id) == ("helper", "other")
    await session.refresh()
    assert session.agent_id == "helper"


async def test_a_run_goes_by_what_is_stored(history, session, agent):
    """Not by what an object that was read earlier says of the session."""
    stale = await history.Session.get("s1")
    other = Agent(ScriptedClient(), name="other")
    await session.save(agent=other, execution_config=ExecutionConfig(criteria="new"))
    with pytest.raises(InvalidRequestError, match="with agent 'other', not with 'helper'"):
        await history.run(agent, "Hi", session=stale)
    await history.run(other, "Hi", session=stale)
    await other.run("Hi", session=stale)
    criteria = [asked.options["execution_config"].criteria for asked in other.client.options]
    assert criteria == ["new", "new"]


async def test_what_was_set_on_the_object_holds_for_the_run(history, session, agent):
    """Though it was not saved yet; what is stored beside it holds too."""
    await session.save(execution_config=ExecutionConfig(criteria="brief", identifier="shop"))
    session.execution_config = ExecutionConfig(criteria="long")
    session.agent_id = "helper"
    await history.run(agent, "Hi", session=session)
    config = agent.client.options[0].options["execution_config"]
    assert config == ExecutionConfig(criteria="long", identifier="shop")


async def test_of_two_agents_that_come_first_one_is_the_sessions(history, session):
    """The second one finds, when its turn comes, whose session it is."""
    agents = [Agent(pausing([], name), name=name) for name in "ab"]
    runs = [history.run(agent, "Hi", session="s1", when_busy="wait") for agent in agents]
    outcomes = await asyncio.gather(*runs, return_exceptions=True)
    (failure,) = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert isinstance(failure, InvalidRequestError)
    assert len(await session.messages()) == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"when_busy": "never"}, "when_busy"),
        ({"timeout": "5"}, "timeout is a number of seconds"),
        ({"per_run": True, "execution_params": {"max_time": True}}, "max_time of the execution"),
        ({"run_response_generation": "no"}, "run_response_generation"),
        ({"lease": 0}, "lease must be a number of seconds above 0"),
        ({"lease": "5"}, "lease must be"),
        ({"request_id": 3}, "request_id must be"),
        ({"tools": [{"parameters": []}]}, "tools"),
    ],
)
async def test_options_that_make_no_sense_are_refused(history, session, agent, options, says):
    """Nothing is stored, and the session is free."""
    with pytest.raises(InvalidRequestError, match=says):
        await history.run(agent, "Hi", session=session, **options)
    assert await session.messages() == []
    assert await free(session)


async def test_a_store_without_runs_says_so(agent):
    """A store that cannot hold sessions runs nothing in them, and stores nothing."""

    class Simple(MemoryStore):
        capabilities = frozenset(c for c in MemoryStore.capabilities if c.name != "RUNS")

    async with History(Simple()) as history:
        session = await history.Session().save()
        with pytest.raises(CapabilityNotSupportedError, match="RUNS"):
            await history.run(agent, "Hi", session=session)
        assert await session.messages() == []


# -- overrides


async def test_overrides_change_the_session_and_are_warned_of(history, session, agent):
    """They are merged and saved once; the warning names the session, at the caller's line."""
    await session.save(
        execution_config=ExecutionConfig(execution_params={"max_tokens": 64}, budget=Budget(1.0))
    )
    revision = session._record.revision
    with pytest.warns(UserWarning, match=r"criteria, budget .* session 's1'") as caught:
        await history.run(
            agent, "Hi", session="s1", criteria="be brief", budget={"max_iterations": 3}
        )
    assert caught[0].filename == __file__
    await session.refresh()
    assert session._record.revision == revision + 2  # the overrides with the agent, and the status
    assert session.execution_config == ExecutionConfig(
        execution_params={"maxTokens": 64}, criteria="be brief", budget=Budget(1.0, None, 3)
    )


async def test_overrides_that_change_nothing_are_not_saved(history, session, agent):
    """The same values neither warn nor save."""
    await session.save(agent=agent, execution_config=ExecutionConfig(criteria="be brief"))
    await history.run(agent, "Hi", session=session)
    await session.refresh()
    revision = session._record.revision
    await history.run(agent, "Hi", session=session, criteria="be brief")
    await session.refresh()
    assert session._record.revision == revision


async def test_overrides_can_be_for_one_run(history, session, agent):
    """With `per_run` the session stays as it is."""
    await history.run(agent, "Hi", session=session, per_run=True, criteria="be brief")
    assert agent.client.options[0].options["execution_config"].criteria == "be brief"
    await session.refresh()
    assert session.execution_config is None


async def test_a_deprecated_override_is_warned_of_at_the_caller(history, session, agent):
    """The iteration limit becomes a cap of the budget."""
    with pytest.warns(DeprecationWarning, match="max_iterations") as caught:
        await history.run(
            agent,
            "Hi",
            session=session,
            per_run=True,
            execution_params={"max_iterations": 2},
        )
    assert [warning.filename for warning in caught] == [__file__]
    assert agent.client.options[0].options["max_iterations"] == 2


async def test_an_override_that_is_refused_as_a_warning_leaves_the_session_free(
    history, session, agent
):
    """Where warnings are errors, nothing is changed or stored."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="'s1'"):
            await history.run(agent, "Hi", session=session, criteria="x")
    assert await free(session)
    assert await session.messages() == []


# -- parameters of tools


class Search:
    """A tool with inputs that can be set on it."""

    id = "m2"
    name = "search"

    def __init__(self):
        self.inputs = {"temperature": 0.7, "top_k": None}
        self.calls = []

    def __call__(self, **arguments):
        self.calls.append(arguments)
        return "found"


async def test_inputs_set_on_tools_are_kept_with_the_query(history, session):
    """Only tools with values are named, and only their values."""
    tools = [Search(), lambda: None]
    await history.run(Agent(ScriptedClient(), tools=tools), "Hi", session=session)
    asked, _ = await session.messages()
    assert asked.tools == [{"id": "m2", "parameters": [{"name": "temperature", "value": 0.7}]}]


async def test_an_agent_keeps_the_inputs_of_its_tools_with_a_text(session):
    """`Agent.run` keeps them too, where the user says a text and nothing else."""
    agent = Agent(ScriptedClient(), tools=[Search()])
    await agent.run("Hi", session=session)
    await agent.run(["Hi", "again"], session=session)
    await agent.run(Message("user", "Hi", author_name="ada"), session=session)
    stored = [message.tools for message in await session.messages(roles=["user"])]
    inputs = [{"id": "m2", "parameters": [{"name": "temperature", "value": 0.7}]}]
    assert stored == [inputs, None, None, None]


async def test_a_query_without_inputs_has_no_tools(history, session, agent):
    """None are kept."""
    await history.run(agent, "Hi", session=session)
    assert (await session.messages())[0].tools is None


async def test_parameters_of_a_run_go_before_those_of_the_model(history, session):
    """A tool that the model calls gets them, whether it is named by its id or its name."""
    call = Content.from_function_call("c1", "search", arguments={"temperature": 0.1, "q": "x"})
    search = Search()
    agent = Agent(ScriptedClient(Message("assistant", [call])), tools=[search, lambda: None])
    tools = [
        {"id": "search", "parameters": [{"name": "temperature", "value": 0.9}]},
        {"id": "m2", "parameters": [{"name": "top_k", "value": 3}]},
        {"id": "other"},
    ]
    await history.run(agent, "Hi", session=session, tools=tools)
    assert search.calls == [{"temperature": 0.9, "q": "x", "top_k": 3}]


# -- runs that fail


async def test_the_query_is_kept_when_the_model_fails(history, session):
    """The error comes out with the run in its notes, and the session is free and idle."""
    agent = Agent(ScriptedClient("fine", ValueError("no model")), name="helper")
    await history.run(agent, "One", session=session)
    with pytest.raises(ValueError, match="no model") as caught:
        await history.run(agent, "Two", session=session, request_id="r2")
    assert caught.value.__notes__ == ["in run r2 of session 's1'"]
    assert spoken(await session.messages(request_id="r2")) == [("user", "Two")]
    assert await free(session)
    assert session.run_status == "idle"


async def test_the_query_is_kept_when_the_run_is_cancelled(history, session):
    """The session is free when the cancellation comes out."""
    asked = asyncio.Event()

    async def never(messages, options):
        asked.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(history.run(Agent(never), "Hi", session=session))
    await asked.wait()
    await session.refresh()
    assert session.run_status == "running"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert spoken(await session.messages()) == [("user", "Hi")]
    assert await free(session)
    assert session.run_status == "idle"


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({"timeout": 0.05}, "0.05"),
        ({"budget": {"max_duration_seconds": 0.06}, "timeout": 5}, "0.06"),
        ({"execution_params": {"max_time": 0.07}}, "0.07"),
    ],
)
async def test_a_run_takes_no_longer_than_it_may(history, session, options, seconds):
    """The least of all limits holds."""

    async def slow(messages, request):
        await asyncio.sleep(30)

    for agent in (slow, Agent(slow)):
        with pytest.raises(TimeoutError, match=f"took longer than {seconds} s"):
            await history.run(agent, "Hi", session=session, per_run=True, **options)
    assert spoken(await session.messages()) == [("user", "Hi")] * 2
    assert await free(session)


async def test_who_reads_a_stream_may_take_longer(session):
    """Only the time that the agent takes counts."""

    async def words(messages, options):
        yield "to be"
        yield " continued"

    session.execution_config = ExecutionConfig(budget=Budget(max_duration_seconds=0.1))
    async for _ in Agent(words).run("Hi", session=session, stream=True):
        await asyncio.sleep(0.15)
    assert len(await session.messages()) == 2


async def test_the_pieces_of_a_stream_share_the_time(session):
    """The limit is for all of them together."""

    async def words(messages, options):
        for word in "abcdefgh":
            await asyncio.sleep(0.05)
            yield word

    session.execution_config = ExecutionConfig(budget=Budget(max_duration_seconds=0.2))
    with pytest.raises(TimeoutError, match=r"took longer than 0\.2 s"):
        await Agent(words).run("Hi", session=session)


async def test_a_timeout_of_the_client_is_its_own(history, session):
    """It is not taken for the limit of the run."""
    agent = Agent(ScriptedClient(TimeoutError("the model is slow")))
    with pytest.raises(TimeoutError, match="the model is slow"):
        await history.run(agent, "Hi", session=session, timeout=5)


async def test_keeping_the_answer_is_not_limited(history, session):
    """An answer that came in time is stored, however long that takes."""

    class Slow(BaseContextProvider):
        async def after_run(self, **arguments):
            await asyncio.sleep(0.1)

    agent = Agent(ScriptedClient(), context_providers=[Slow("slow")])
    result = await history.run(agent, "Hi", session=session, timeout=0.05)
    assert result.data.output == "echo Hi"


async def test_an_answer_whose_saving_fails_is_in_the_error(session):
    """A provider that fails after the answer does not keep it from being stored."""
    agent = Agent(
        ScriptedClient(), context_providers=[NotingProvider("n", [], after=OSError("full"))]
    )
    with pytest.raises(OSError, match="full") as caught:
        await agent.run("Hi", session=session)
    assert caught.value.agent_response.text == "echo Hi"
    assert spoken(await session.messages()) == [("user", "Hi"), ("assistant", "echo Hi")]


async def test_a_session_that_is_deleted_meanwhile_is_not_revived(history, session):
    """The answer is in the error, and nothing is stored."""

    async def deleting(messages, options):
        await history.delete("s1")
        return "too late"

    for agent in (Agent(deleting), deleting):
        await history.Session(id="s1").save()
        with pytest.raises(SessionDeletedError) as caught:
            await history.run(agent, "Hi", session="s1")
        assert caught.value.agent_response.text == "too late"
        assert (await history.store.delete_session(history.key("s1"))).sessions == 0


async def test_a_failing_store_does_not_hide_how_the_run_went():
    """What can't be noted at the end of a run is not raised in its place."""

    class Failing(MemoryStore):
        failing = False

        async def _patch_session(self, *arguments):
            if self.failing:
                raise StorageError("down")
            return await super()._patch_session(*arguments)

        async def _release_run(self, *arguments):
            if self.failing:
                raise StorageError("down")
            return await super()._release_run(*arguments)

    async with History(Failing()) as history:
        session = await history.Session(agent="helper").save()
        history.store.failing = True
        agent = Agent(ScriptedClient(), name="helper")
        assert (await history.run(agent, "Hi", session=session)).data.output == "echo Hi"


async def test_the_error_of_a_store_that_fails_is_the_first_one():
    """What fails after it, while the session is let go, does not take its place."""

    class Failing(MemoryStore):
        async def _read_session(self, key):
            raise StorageError("no reading")

        async def _release_run(self, *arguments):
            raise StorageError("no letting go")

    async with History(Failing()) as history:
        session = await history.Session().save()
        with pytest.raises(StorageError, match="no reading"):
            await Agent(ScriptedClient()).run("Hi", session=session)


async def test_a_run_whose_session_cannot_be_read_lets_it_go(history):
    """A record that is damaged is an error before anything is stored."""
    from historykit.session_records import SessionPatch

    session = await history.Session(id="s1").save()
    key = history.key("s1")
    await history.store.patch_session(key, SessionPatch(body=b"\xff damaged"))
    with pytest.raises(historykit.HistoryKitError, match="s1"):
        await Agent(ScriptedClient()).run("Hi", session=session)
    assert (await history.store.read_session(key)).run_id is None


# -- one run at a time


def pausing(log, name, begun=None):
    async def answering(messages, request):
        log.append(f"{name} begins")
        if begun is not None:
            begun.set()
        await asyncio.sleep(0.1)
        log.append(f"{name} ends")
        return name

    return answering


async def test_a_second_run_is_refused(history, session):
    """Nothing of it is stored."""
    begun = asyncio.Event()
    first = asyncio.create_task(history.run(pausing([], "a", begun), "A", session="s1"))
    await begun.wait()
    with pytest.raises(RunInProgressError, match=r"try later, .*when_busy='wait'"):
        await history.run(pausing([], "b"), "B", session="s1", criteria="x")
    await first
    assert spoken(await session.messages()) == [("user", "A"), ("assistant", "a")]
    await session.refresh()
    assert session.execution_config is None


async def test_a_second_run_can_wait(history, session):
    """Two runs never mix their messages."""
    log = []
    await asyncio.gather(
        *(
            history.run(pausing(log, name), name.upper(), session="s1", when_busy="wait")
            for name in "abc"
        )
    )
    assert [entry.split()[1] for entry in log] == ["begins", "ends"] * 3
    stored = await session.messages()
    ids = [message.request_id for message in stored]
    assert len(set(ids)) == 3
    assert ids == [ids[0]] * 2 + [ids[2]] * 2 + [ids[4]] * 2


async def test_a_run_that_died_lets_go_in_time(history, session, agent):
    """Its lease ends, and its session reads as idle."""
    await history.run(agent, "Hi", session=session)
    await history.store.claim_run(history.key("s1"), "dead", ttl=0.1)
    with pytest.raises(RunInProgressError):
        await history.run(agent, "Hi", session="s1")
    await session.refresh()
    assert session.run_status == "running"
    await history.run(agent, "Hi", session="s1", when_busy="wait")
    await history.store.claim_run(history.key("s1"), "dead", ttl=0.001)
    await asyncio.sleep(0.01)
    await session.refresh()
    assert session.run_status == "idle"


KILLED = """
import asyncio, sys
import historykit
from historykit import Agent

async def stuck(messages, options):
    print("asked", flush=True)
    await asyncio.Event().wait()

async def main():
    async with historykit.open_history("sqlite", path=sys.argv[1]) as history:
        await history.run(Agent(stuck), "Hi", session="s1", lease=1)

asyncio.run(main())
"""


async def test_a_process_that_was_killed_lets_go_in_time(tmp_path, agent):
    """Its query is there, and its session free when the lease ends."""
    path = str(tmp_path / "chat.db")
    async with historykit.open_history("sqlite", path=path) as history:
        session = await history.Session(id="s1").save()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, path, stdout=asyncio.subprocess.PIPE
        )
        assert await process.stdout.readline() == b"asked\n"
        process.kill()
        await process.wait()
        with pytest.raises(RunInProgressError):
            await history.run(agent, "again", session=session)
        await history.run(agent, "again", session=session, when_busy="wait")
        assert [message.content for message in await session.messages()] == [
            "Hi",
            "again",
            "echo again",
        ]


async def test_a_query_with_an_id_is_stored_once(session):
    """A run that failed is repeated with the same message, and answered in its place."""
    agent = Agent(ScriptedClient("one", ValueError("no model"), "two"))
    await agent.run("Hi", session=session)
    again = Message("user", "Go on", message_id="m1")
    with pytest.raises(ValueError, match="no model"):
        await agent.run(again, session=session)
    await agent.run(again, session=session)
    assert [m.content for m in await session.messages()] == ["Hi", "one", "Go on", "two"]
    assert agent.client.asked[-1] == ["Hi", "one", "Go on"]


async def test_a_run_that_lost_its_session_stores_no_answer(history, session):
    """Another run took it over while this one was frozen: its answer would stand in the wrong
    place."""

    async def frozen(messages, request):
        key = history.key("s1")
        await history.store.release_run(key, "r1")
        await history.store.claim_run(key, "other", ttl=60)
        await asyncio.sleep(30)

    await history.run(Agent(ScriptedClient([])), "Hi", session="s1")
    for agent in (frozen, Agent(frozen)):
        with pytest.raises(RunInProgressError, match="'r1' does not hold"):
            await history.run(agent, "Hi", session="s1", lease=0.06, request_id="r1")
        await history.store.release_run(history.key("s1"), "other")
    assert {message.role for message in await session.messages()} == {"user"}
    await session.refresh()
    assert session.run_status == "completed"  # as the last run that held it to its end left it


async def test_a_run_that_blocked_the_loop_finds_out_before_it_stores(history, session):
    """It could not renew its hold meanwhile, and another run took the session over."""

    async def blocking(messages, request):
        key = history.key("s1")
        await history.store.release_run(key, request.request_id)
        await history.store.claim_run(key, "other", ttl=60)
        time.sleep(0.2)
        return "too late"

    with pytest.raises(RunInProgressError, match="does not hold") as caught:
        await history.run(blocking, "Hi", session="s1", lease=0.15)
    assert caught.value.agent_response.text == "too late"
    assert spoken(await session.messages()) == [("user", "Hi")]


async def test_a_long_run_keeps_its_session(history, session):
    """The hold is renewed for as long as the run lasts."""

    async def long(messages, request):
        await asyncio.sleep(0.3)
        with pytest.raises(RunInProgressError):
            await history.run(pausing([], "b"), "B", session="s1")
        return "done"

    result = await history.run(long, "Hi", session="s1", lease=0.1)
    assert result.data.output == "done"


# -- state


class Counting(BaseContextProvider):
    async def before_run(self, *, state, **arguments):
        state["runs"] = state.get("runs", 0) + 1


async def test_the_state_of_an_agent_is_kept_with_the_session(history, session):
    """Providers find it in the next run, of another process too."""
    for expected in (1, 2):
        agent = Agent(ScriptedClient(), name="helper", context_providers=[Counting("counting")])
        await history.run(agent, "Hi", session="s1")
        found = await history.Session.get("s1")
        assert found.as_agent_session().state["counting"] == {"runs": expected}


async def test_a_state_that_stays_the_same_is_not_saved(history, session, agent):
    """A run changes the session no more than it has to."""
    await history.run(agent, "Hi", session=session)
    await session.refresh()
    revision = session._record.revision
    await history.run(agent, "Hi", session=session)
    await session.refresh()
    assert session._record.revision == revision


async def test_a_service_that_keeps_the_conversation_is_followed(history, session):
    """Its id for the conversation is kept with the session, and history is not sent to it."""
    client = ScriptedClient(
        AgentResponse(messages=[Message("assistant", "a")], conversation_id="conv_1"), "b"
    )
    agent = Agent(client, name="helper")
    await history.run(agent, "Hi", session="s1")
    await history.run(agent, "And?", session="s1")
    assert client.options[1].conversation_id == "conv_1"
    assert client.asked == [["Hi"], ["And?"]]
    assert len(await session.messages()) == 4


async def test_the_session_that_providers_saw_is_an_ordinary_one_afterwards(history, session):
    """An agent that is run with it later is not in the turn that is over."""
    noting = NotingProvider("noting", [])
    agent = Agent(ScriptedClient(), name="helper", context_providers=[noting])
    await history.run(agent, "Hi", session=session)
    await agent.run("later", session=noting.seen[0]["session"])
    assert len(await session.messages()) == 2


async def test_a_run_leaves_no_task_behind(history, session, agent):
    """What keeps the hold ends with the run."""
    before = len(asyncio.all_tasks())
    await history.run(agent, "Hi", session=session)
    gc.collect()
    assert len(asyncio.all_tasks()) == before
