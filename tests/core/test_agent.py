from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from historykit import (
    Agent,
    AgentResponse,
    AgentSession,
    BaseContextProvider,
    ChatOptions,
    Content,
    InMemoryHistoryProvider,
    Message,
)
from historykit.history import History
from historykit.memory import MemoryStore
from tests.core.scripted import DictProvider, NotingProvider, ScriptedClient

pytestmark = pytest.mark.asyncio


def history(session: AgentSession) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in session.state["in_memory"]["messages"]]


class TestMaking:
    async def test_the_id_is_the_explicit_one_or_the_name(self) -> None:
        """An agent is called by its id, else by its name, and is never given a random id."""
        client = ScriptedClient()
        assert Agent(client, id="a", name="b").id == "a"
        assert Agent(client, name="b").id == "b"
        assert Agent(client).id == ""
        assert repr(Agent(client, id="a")) == "Agent(id='a')"

    async def test_it_keeps_what_it_is_given(self) -> None:
        """The description of an agent is kept, and its lists are its own."""
        tools: list[Any] = [len]
        providers: list[BaseContextProvider] = []
        agent = Agent(ScriptedClient(), description="d", tools=tools, context_providers=providers)
        tools.clear()
        await agent.run("a", session=AgentSession())
        assert (agent.description, agent.tools) == ("d", [len])
        assert providers == []

    @pytest.mark.parametrize("client", ["gpt-4", None, object()])
    async def test_a_client_is_something_that_answers(self, client: Any) -> None:
        """What cannot be asked is refused when the agent is made, and the error says what can."""
        with pytest.raises(TypeError, match=rf"async function .*not {type(client).__name__}$"):
            Agent(client)

    async def test_a_client_may_only_stream(self) -> None:
        """An object with a method `stream` alone is a client for runs that stream."""

        class Streaming:
            async def stream(self, messages: list[Message], options: ChatOptions) -> Any:
                yield "a"

        client: Any = Streaming()
        assert [piece.text async for piece in Agent(client).run("q", stream=True)] == ["a"]

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"role": "user", "content": "hi"}, "not dict; .*from_chat_completions"),
            ([{"role": "user", "content": "hi"}], "not dict; .*from_chat_completions"),
            ({"type": "message", "role": "user", "contents": ["hi"]}, r"Message\.from_dict"),
            (["hi", 3], "not int$"),
            (3, "not int$"),
            (b"hi", "not bytes$"),
            ([None], "not NoneType$"),
            (AgentResponse(), "not AgentResponse; .*to_dict"),
        ],
    )
    @pytest.mark.parametrize("stream", [False, True])
    async def test_what_an_agent_is_run_with(self, given: Any, says: str, stream: bool) -> None:
        """Anything but texts, contents and messages is refused before the run, with a remedy."""
        client = ScriptedClient()
        with pytest.raises(TypeError, match=rf"a text, a Content, a Message, .*{says}"):
            Agent(client).run(given, stream=stream)  # type: ignore[call-overload]
        assert client.asked == []

    @pytest.mark.parametrize("given", [None, [], ()])
    async def test_an_agent_runs_with_nothing_new(self, given: Any) -> None:
        """The documented inputs hold: None and an empty list are no message."""
        client = ScriptedClient("a")
        await Agent(client).run(given)
        assert client.asked == [[]]

    async def test_one_tool_needs_no_list(self) -> None:
        """A function alone is the agent's only tool."""
        assert Agent(ScriptedClient(), tools=len).tools == [len]

    async def test_a_provider_alone_is_refused(self) -> None:
        """The error says that the provider goes into a list."""
        provider: Any = InMemoryHistoryProvider()
        with pytest.raises(TypeError, match=r"not InMemoryHistoryProvider; put the provider in a"):
            Agent(ScriptedClient(), context_providers=provider)

    async def test_a_history_is_no_provider(self) -> None:
        """The error says how to get a provider from a history."""
        providers: Any = [History(MemoryStore())]
        with pytest.raises(TypeError, match=r"History is no context provider.*history.provider\("):
            Agent(ScriptedClient(), context_providers=providers)

    async def test_two_providers_of_one_source_are_refused(self) -> None:
        """Two providers of one source id would share their state: the error names both."""
        providers = [InMemoryHistoryProvider("x"), NotingProvider("x", [])]
        with pytest.raises(ValueError, match=r"InMemoryHistoryProvider and NotingProvider.*'x'"):
            Agent(ScriptedClient(), context_providers=providers)

    async def test_a_provider_added_later_is_checked_too(self) -> None:
        """A provider that is appended to the list is checked when the agent runs."""
        agent = Agent(ScriptedClient(), context_providers=[NotingProvider("x", [])])
        agent.context_providers.append(NotingProvider("x", []))
        with pytest.raises(ValueError, match="'x'"):
            await agent.run("a")

    async def test_two_savers_of_one_history_are_refused(self) -> None:
        """Two providers that save to one place would store all twice: the error names both."""
        providers = [
            DictProvider("one", identity=("db", "main")),
            DictProvider("two", identity=("db", "main"), load_messages=False),
        ]
        with pytest.raises(ValueError, match=r"'one' and 'two'.*same history"):
            Agent(ScriptedClient(), context_providers=providers)

    @pytest.mark.parametrize(
        ("identity", "flags"),
        [
            (("db", "audit"), {}),
            (None, {}),
            (("db", "main"), {"store_inputs": False, "store_outputs": False}),
        ],
    )
    async def test_an_audit_of_its_own_is_accepted(
        self, identity: object, flags: dict[str, bool]
    ) -> None:
        """A second provider may save elsewhere, or not at all."""
        providers = [
            DictProvider("one", identity=("db", "main")),
            DictProvider("two", identity=identity, load_messages=False, **flags),
        ]
        assert len(Agent(ScriptedClient(), context_providers=providers).context_providers) == 2

    async def test_two_loading_providers_are_warned_of(self) -> None:
        """Two histories that load give the model everything twice."""
        with pytest.warns(UserWarning, match="'one', 'two'"):
            Agent(ScriptedClient(), context_providers=[DictProvider("one"), DictProvider("two")])


class TestInput:
    @pytest.mark.parametrize(
        ("given", "asked"),
        [
            (None, []),
            ("a", ["a"]),
            (Content.from_text("a"), ["a"]),
            (Message("user", "a"), ["a"]),
            (["a", Message("user", "b"), Content.from_text("c")], ["a", "b", "c"]),
        ],
    )
    async def test_the_input_has_many_forms(self, given: Any, asked: list[str]) -> None:
        """Nothing, a text, a content, a message, or several of them, are the input."""
        client = ScriptedClient("ok")
        await Agent(client).run(given)
        assert client.asked == [asked]
        assert {message.role for message in client.messages[0]} <= {"user"}

    async def test_messages_are_sent_as_the_same_objects(self) -> None:
        """The messages that go in are those that the model gets."""
        client, message = ScriptedClient(), Message("user", "a")
        await Agent(client).run([message])
        assert client.messages[0][0] is message

    async def test_a_session_is_no_text(self) -> None:
        """An id in place of a session is an error that says what to pass."""
        with pytest.raises(TypeError, match=r"str.*AgentSession\(session_id"):
            Agent(ScriptedClient()).run("a", session="s1")  # type: ignore[call-overload]


class TestReplies:
    @pytest.mark.parametrize(
        "reply",
        [
            "a",
            Content.from_text("a"),
            Message("assistant", "a"),
            [Message("assistant", "a")],
            ["a"],
            AgentResponse(messages=Message("assistant", "a")),
        ],
    )
    async def test_a_client_answers_in_many_forms(self, reply: Any) -> None:
        """A text, a content, a message, several, or a response are an answer."""
        response = await Agent(ScriptedClient(reply), name="g").run("q")
        assert response.text == "a"
        assert [m.role for m in response.messages] == ["assistant"]
        assert response.agent_id == "g"

    @pytest.mark.parametrize("reply", [None, 3, [3]])
    async def test_any_other_answer_is_refused(self, reply: Any) -> None:
        """An answer of another type is an error that names it."""
        with pytest.raises(TypeError, match=r"NoneType|int"):
            await Agent(ScriptedClient(reply)).run("q")

    async def test_a_client_may_be_a_plain_function(self) -> None:
        """A function that answers at once is a client as well."""
        response = await Agent(lambda messages, options: "a").run("q")
        assert response.text == "a"

    async def test_the_response_keeps_what_the_client_says(self) -> None:
        """The fields of the client's response are those of the agent's, which is another object."""
        reply = AgentResponse(
            messages=Message("assistant", "a"),
            response_id="r",
            agent_id="theirs",
            usage_details={"total": 3},
            value=7,
        )
        response = await Agent(ScriptedClient(reply), name="g").run("q")
        assert response is not reply
        assert (response.response_id, response.agent_id, response.value) == ("r", "theirs", 7)
        assert response.usage_details == {"total": 3}
        assert response.messages[0] is reply.messages[0]

    async def test_answers_are_signed_with_the_name_of_the_agent(self) -> None:
        """A message without an author gets the agent's name, one that has an author keeps it."""
        replies = [Message("assistant", "a"), Message("assistant", "b", author_name="bob")]
        response = await Agent(ScriptedClient(replies), name="g").run("q")
        assert [m.author_name for m in response.messages] == ["g", "bob"]
        unnamed = await Agent(ScriptedClient("a"), id="i").run("q")
        assert unnamed.messages[0].author_name == "UnnamedAgent"


class TestPipeline:
    async def test_providers_run_in_order_and_back(self) -> None:
        """The hooks before the model run in the order of the list, those after it in reverse."""
        log: list[str] = []

        async def client(messages: list[Message], options: ChatOptions) -> str:
            log.append("model")
            return "ok"

        providers = [NotingProvider("a", log), NotingProvider("b", log)]
        await Agent(client, context_providers=providers).run("q")
        assert log == ["before a", "before b", "model", "after b", "after a"]

    async def test_hooks_see_the_run(self) -> None:
        """A hook gets the agent, the session, the context and its own part of the state."""
        provider, session = NotingProvider("a", []), AgentSession(service_session_id="t")
        agent = Agent(ScriptedClient("ok"), context_providers=[provider])
        response = await agent.run("q", session=session, options={"o": 1})
        before, after = provider.seen
        assert before["agent"] is agent
        assert before["session"] is session
        assert before["context"] is after["context"]
        assert before["state"] is after["state"] is session.state["a"]
        context = after["context"]
        assert (context.session_id, context.service_session_id) == (session.session_id, "t")
        assert context.options == {"o": 1}
        assert [m.text for m in context.input_messages] == ["q"]
        assert context.response is response

    async def test_a_hook_may_replace_its_state(self) -> None:
        """The state is looked up for each hook, and one that was set to None stays None."""

        class Replacing(BaseContextProvider):
            async def before_run(self, *, session: Any, **arguments: Any) -> None:
                session.state["a"] = None

            async def after_run(self, *, state: Any, **arguments: Any) -> None:
                seen.append(state)

        seen: list[Any] = []
        await Agent(ScriptedClient(), context_providers=[Replacing("a")]).run("q")
        assert seen == [None]

    async def test_the_model_gets_context_before_input(self) -> None:
        """Context messages come in the order of their sources, then the input."""

        class Adding(BaseContextProvider):
            async def before_run(self, *, context: Any, **arguments: Any) -> None:
                context.extend_messages(self, [Message("system", self.source_id)])
                context.extend_messages("shared", [Message("system", f"from {self.source_id}")])

        client = ScriptedClient()
        await Agent(client, context_providers=[Adding("a"), Adding("b")]).run("q")
        assert client.asked == [["a", "from a", "from b", "b", "q"]]

    async def test_instructions_and_tools_are_joined(self) -> None:
        """The instructions of agent and providers are joined by lines, their tools in one list."""

        class Adding(BaseContextProvider):
            async def before_run(self, *, context: Any, **arguments: Any) -> None:
                context.extend_instructions("x", ["two", "three"])
                context.extend_tools("x", [min])

        client = ScriptedClient("ok")
        await Agent(client, instructions="one", tools=[len], context_providers=[Adding("x")]).run()
        assert client.options[0].instructions == "one\ntwo\nthree"
        assert client.options[0].tools == (len, min)

    async def test_without_instructions_there_are_none(self) -> None:
        """A client gets None where nobody gave an instruction."""
        client = ScriptedClient()
        await Agent(client).run("q")
        assert client.options[0] == ChatOptions()

    async def test_instructions_are_not_stored(self) -> None:
        """The agent's instructions travel beside the messages and are not part of the history."""
        session = AgentSession()
        await Agent(ScriptedClient("ok"), instructions="be kind").run("q", session=session)
        assert history(session) == [("user", "q"), ("assistant", "ok")]

    async def test_options_of_the_run_are_over_the_defaults(self) -> None:
        """The client gets the defaults and the run's options over them, None leaves the default."""
        client = ScriptedClient()
        agent = Agent(client, default_options={"a": 1, "b": 1, "c": 1})
        await agent.run("q", options={"b": 2, "c": None, "d": 3})
        assert client.options[0].options == {"a": 1, "b": 2, "c": 1, "d": 3}
        with pytest.raises(TypeError):
            client.options[0].options["a"] = 2  # type: ignore[index]
        with pytest.raises(FrozenInstanceError):
            client.options[0].tools = ()  # type: ignore[misc]

    async def test_the_options_given_are_copied(self) -> None:
        """Changing options or defaults that were passed changes nothing for the agent."""
        provider, defaults, options = NotingProvider("a", []), {"a": 1}, {"b": 1}
        agent = Agent(ScriptedClient(), context_providers=[provider], default_options=defaults)
        defaults["a"] = 2
        await agent.run("q", options=options)
        provider.seen[0]["context"].options["b"] = 2
        assert agent.default_options == {"a": 1}
        assert options == {"b": 1}

    async def test_a_client_may_change_its_list(self) -> None:
        """The list of messages that a client gets is its own."""

        def client(messages: list[Message], options: ChatOptions) -> Any:
            roles = [message.role for message in messages]
            messages.clear()
            return call if roles == ["user"] else str(roles)

        call = Content.from_function_call("c", "max", arguments="{}")
        response = await Agent(client, tools=[max]).run("q")
        assert response.text == "['user', 'assistant', 'tool']"

    async def test_without_loading_only_after_run_is_called(self) -> None:
        """A history provider that does not load is not asked before the run, and saves after it."""
        provider = DictProvider(load_messages=False)
        session, client = AgentSession(session_id="s"), ScriptedClient("1", "2")
        agent = Agent(client, context_providers=[provider])
        await agent.run("a", session=session)
        assert session.state == {"dict": {}}
        await agent.run("b", session=session)
        assert client.asked == [["a"], ["b"]]
        assert provider.texts("s") == ["a", "1", "b", "2"]

    async def test_a_provider_may_choose_the_session_id(self) -> None:
        """A session id that a provider sets is the one that later providers load and save under."""

        class Renaming(BaseContextProvider):
            async def before_run(self, *, context: Any, **arguments: Any) -> None:
                context.session_id = "tenant/s"

        provider = DictProvider()
        agent = Agent(ScriptedClient("ok"), context_providers=[Renaming("r"), provider])
        await agent.run("q", session=AgentSession(session_id="s"))
        assert provider.texts("tenant/s") == ["q", "ok"]

    async def test_without_a_session_each_run_has_its_own(self) -> None:
        """A run without a session gets a new one, so that runs do not see each other."""
        provider, client = DictProvider(), ScriptedClient("1", "2")
        agent = Agent(client, context_providers=[provider])
        await agent.run("a")
        await agent.run("b")
        assert client.asked == [["a"], ["b"]]
        assert len(provider.stored) == 2

    async def test_runs_at_the_same_time_append_whole_turns(self) -> None:
        """Two runs on one session see the history from before, and store their turns unmixed."""
        session, gate = AgentSession(), asyncio.Event()

        async def client(messages: list[Message], options: ChatOptions) -> str:
            await gate.wait()
            return f"answer to {messages[-1].text} of {len(messages)}"

        agent = Agent(client)
        runs = [asyncio.create_task(agent.run(text, session=session)) for text in "ab"]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*runs)
        assert sorted([history(session)[:2], history(session)[2:]]) == [
            [("user", "a"), ("assistant", "answer to a of 1")],
            [("user", "b"), ("assistant", "answer to b of 1")],
        ]


class Storing(ScriptedClient):
    STORES_BY_DEFAULT = True


class TestAutoAdded:
    async def test_a_session_gets_a_history_in_memory(self) -> None:
        """With a session and no provider the agent gets one, which stays, and remembers."""
        client, session = ScriptedClient("1", "2"), AgentSession()
        agent = Agent(client)
        await agent.run("a", session=session)
        [provider] = agent.context_providers
        await agent.run("b", session=session)
        assert agent.context_providers == [provider]
        assert isinstance(provider, InMemoryHistoryProvider)
        assert client.asked == [["a"], ["a", "1", "b"]]
        assert history(session) == [
            ("user", "a"),
            ("assistant", "1"),
            ("user", "b"),
            ("assistant", "2"),
        ]

    async def test_without_a_session_there_is_none(self) -> None:
        """A run without session and providers has no session id and leaves nothing behind."""
        agent = Agent(ScriptedClient())
        await agent.run("a")
        assert agent.context_providers == []

    async def test_any_provider_prevents_it(self) -> None:
        """An agent that has a provider, of whatever kind, is left as it is."""
        agent = Agent(ScriptedClient(), context_providers=[BaseContextProvider("x")])
        session = AgentSession()
        await agent.run("a", session=session)
        assert len(agent.context_providers) == 1
        assert session.state == {"x": {}}

    @pytest.mark.parametrize(
        ("client", "defaults", "options", "added"),
        [
            (ScriptedClient, {}, {}, True),
            (ScriptedClient, {}, {"store": False}, True),
            (ScriptedClient, {}, {"store": True}, False),
            (ScriptedClient, {"store": True}, {}, False),
            (ScriptedClient, {"store": True}, {"store": False}, True),
            (ScriptedClient, {"store": True}, {"store": None}, False),
            (Storing, {}, {}, False),
            (Storing, {}, {"store": False}, True),
            (Storing, {}, {"store": True}, False),
            (Storing, {"store": False}, {}, True),
            (ScriptedClient, {}, {"conversation_id": "c"}, False),
            (ScriptedClient, {"conversation_id": "c"}, {}, False),
        ],
    )
    async def test_the_service_decides(
        self, client: Any, defaults: dict[str, Any], options: dict[str, Any], added: bool
    ) -> None:
        """No history is added where the run, the agent or the client says the service stores."""
        agent = Agent(client(), default_options=defaults)
        await agent.run("a", session=AgentSession(), options=options)
        assert bool(agent.context_providers) is added

    async def test_a_session_of_the_service_prevents_it(self) -> None:
        """A session that the service keeps gets no second history."""
        agent = Agent(ScriptedClient())
        await agent.run("a", session=AgentSession(service_session_id="t"))
        assert agent.context_providers == []


class TestServiceSessions:
    async def test_the_id_of_the_service_is_passed_on(self) -> None:
        """The session's service id, or the option, is the conversation id that the client gets."""
        client = ScriptedClient()
        agent = Agent(client)
        await agent.run("a", session=AgentSession(service_session_id="t"))
        await agent.run("a", options={"conversation_id": "c"})
        await agent.run(
            "a", session=AgentSession(service_session_id="t"), options={"conversation_id": "c"}
        )
        assert [options.conversation_id for options in client.options] == ["t", "c", "t"]

    async def test_the_session_follows_the_service(self) -> None:
        """The conversation id of a response is the session's service id before after_run."""
        seen: list[Any] = []

        class Looking(BaseContextProvider):
            async def after_run(self, *, session: Any, context: Any, **arguments: Any) -> None:
                seen.append((session.service_session_id, context.service_session_id))

        reply = AgentResponse(
            messages=Message("assistant", "a"), conversation_id="c2", response_id="r"
        )
        session = AgentSession(service_session_id="c1")
        await Agent(ScriptedClient(reply), context_providers=[Looking("x")]).run(
            "q", session=session
        )
        assert session.service_session_id == "c2"
        assert seen == [("c2", "c2")]

    async def test_the_id_of_a_response_is_not_the_session(self) -> None:
        """A response id leaves the service session alone."""
        session = AgentSession()
        reply = AgentResponse(messages=Message("assistant", "a"), response_id="r")
        await Agent(ScriptedClient(reply)).run("q", session=session)
        assert session.service_session_id is None

    async def test_history_is_not_sent_twice(self) -> None:
        """What the service has is not loaded as well, and is still saved."""
        first = AgentResponse(messages=Message("assistant", "1"), conversation_id="c")
        client, provider = ScriptedClient(first, "2"), DictProvider()
        agent = Agent(client, context_providers=[provider])
        session = AgentSession(session_id="s")
        await agent.run("a", session=session)
        await agent.run("b", session=session)
        assert client.asked == [["a"], ["b"]]
        assert provider.texts("s") == ["a", "1", "b", "2"]


class TestFailure:
    async def test_an_error_before_the_model_ends_the_run(self) -> None:
        """A hook that fails stops the run: no later hook, no model, nothing after it."""
        log: list[str] = []
        providers = [
            NotingProvider("a", log),
            NotingProvider("b", log, before=LookupError("no")),
            NotingProvider("c", log),
        ]
        client = ScriptedClient()
        with pytest.raises(LookupError, match="no"):
            await Agent(client, context_providers=providers).run("q")
        assert log == ["before a", "before b"]
        assert client.asked == []

    async def test_an_error_of_the_model_saves_nothing(self) -> None:
        """When the model fails not even the input is saved, and no hook is called after it."""
        log: list[str] = []
        session = AgentSession()
        providers = [InMemoryHistoryProvider(), NotingProvider("a", log)]
        agent = Agent(ScriptedClient(OSError("down"), "ok"), context_providers=providers)
        with pytest.raises(OSError, match="down"):
            await agent.run("q", session=session)
        assert log == ["before a"]
        assert session.state == {"in_memory": {}, "a": {}}
        await agent.run("again", session=session)
        assert history(session) == [("user", "again"), ("assistant", "ok")]

    async def test_a_cancelled_run_saves_nothing(self) -> None:
        """Cancelling while the model answers saves nothing, and the cancellation goes through."""
        started, session = asyncio.Event(), AgentSession()

        async def client(messages: list[Message], options: ChatOptions) -> str:
            started.set()
            await asyncio.sleep(60)
            return "late"

        run = asyncio.create_task(Agent(client).run("q", session=session))
        await started.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert session.state == {"in_memory": {}}

    async def test_an_error_after_the_model_carries_the_answer(self) -> None:
        """The error of a hook after the model is raised with the answer, that was paid for."""
        log: list[str] = []
        providers = [
            NotingProvider("a", log, after=KeyError("a")),
            DictProvider(),
            NotingProvider("c", log, after=LookupError("c")),
            NotingProvider("d", log),
        ]
        agent = Agent(ScriptedClient("answer"), context_providers=providers)
        with pytest.raises(LookupError, match="c") as caught:
            await agent.run("q", session=AgentSession(session_id="s"))
        assert caught.value.agent_response.text == "answer"  # type: ignore[attr-defined]
        assert caught.value.__notes__ == [
            "the answer was there before this failure: see agent_response of this error",
            "after_run of 'a' failed too: KeyError",
        ]

    async def test_hooks_after_a_failed_one_still_run(self) -> None:
        """A hook that fails after the model keeps no other from saving."""
        provider = DictProvider()
        failing = NotingProvider("x", [], after=OSError("disk"))
        agent = Agent(ScriptedClient("answer"), context_providers=[provider, failing])
        with pytest.raises(OSError, match="disk"):
            await agent.run("q", session=AgentSession(session_id="s"))
        assert provider.texts("s") == ["q", "answer"]

    async def test_a_cancellation_after_the_model_goes_through_at_once(self) -> None:
        """A cancelled hook ends the run, with the answer on the cancellation."""
        log: list[str] = []
        cancelled = asyncio.CancelledError()
        providers = [NotingProvider("a", log), NotingProvider("b", log, after=cancelled)]
        with pytest.raises(asyncio.CancelledError) as caught:
            await Agent(ScriptedClient("answer"), context_providers=providers).run("q")
        assert log == ["before a", "before b", "after b"]
        assert caught.value.agent_response.text == "answer"  # type: ignore[attr-defined]

    @pytest.mark.parametrize("limit", [-1, 1.5, "2"])
    async def test_a_wrong_limit_is_refused(self, limit: Any) -> None:
        """A limit of iterations below 0 or of another type is refused before the model is asked."""
        client = ScriptedClient()
        with pytest.raises(ValueError, match="max_iterations"):
            await Agent(client).run("q", options={"max_iterations": limit})
        assert client.asked == []


async def test_a_generator_function_is_a_client() -> None:
    """A client that streams answers a run that does not."""

    async def client(messages: list[Message], options: ChatOptions) -> AsyncIterator[str]:
        yield "Hel"
        yield "lo"

    session = AgentSession()
    response = await Agent(client).run("q", session=session)
    assert response.text == "Hello"
    assert history(session) == [("user", "q"), ("assistant", "Hello")]


class TestForeignAnswers:
    @pytest.mark.parametrize("stream", [False, True])
    async def test_a_dict_of_chat_completions_is_explained(self, stream: bool) -> None:
        """A client that answers with the API's own dict is told which function reads it."""
        answer = {"role": "assistant", "content": "Hi"}

        async def client(messages: list[Message], options: ChatOptions) -> Any:
            return answer

        async def streamer(messages: list[Message], options: ChatOptions) -> Any:
            yield answer

        agent = Agent(streamer if stream else client)
        with pytest.raises(TypeError, match=r"chat_completions\.from_chat_completions"):
            await agent.run("Hi")
