from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
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
from tests.core.scripted import ScriptedClient

pytestmark = pytest.mark.asyncio


def call(
    name: str = "add", arguments: Any = '{"a": 1, "b": 2}', call_id: str = "c1", **fields: Any
):
    return Content.from_function_call(call_id, name, arguments=arguments, **fields)


def add(a: int, b: int) -> int:
    return a + b


async def add_later(a: int, b: int) -> dict[str, int]:
    await asyncio.sleep(0)
    return {"sum": a + b}


def results(response: AgentResponse) -> list[tuple[str | None, Any, str | None]]:
    contents = [content for message in response.messages for content in message.contents]
    return [
        (content.call_id, content.result, content.exception)
        for content in contents
        if content.type == "function_result"
    ]


async def run(*replies: Any, tools: Any = (add,), **options: Any) -> AgentResponse:
    return await Agent(ScriptedClient(*replies), tools=tools).run("q", options=options)


async def test_the_agent_runs_tools_until_the_model_calls_none() -> None:
    """Calls are answered and sent back with all before them, and the whole turn is saved."""
    client, session = ScriptedClient(call(), call(call_id="c2"), "3"), AgentSession()
    response = await Agent(client, tools=[add]).run("q", session=session)
    saved = session.state["in_memory"]["messages"]
    assert [message.role for message in saved] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert response.text == "3"
    assert [m.to_dict() for m in saved[1:]] == [m.to_dict() for m in response.messages]
    assert [len(messages) for messages in client.messages] == [1, 3, 5]
    assert results(response) == [("c1", "3", None), ("c2", "3", None)]


async def test_parallel_calls_run_at_the_same_time_and_answer_in_order() -> None:
    """The calls of one message run together; their results are one message, in their order."""
    both = asyncio.Barrier(2)

    async def wait(name: str) -> str:
        await asyncio.wait_for(both.wait(), 5)
        return name

    calls = [call("wait", {"name": name}, name) for name in ("x", "y")]
    response = await run(Message("assistant", calls), "done", tools=[wait])
    assert results(response) == [("x", "x", None), ("y", "y", None)]
    assert [message.role for message in response.messages] == ["assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        (add, '{"a": 1, "b": 2}', "3"),
        (add, {"a": 1, "b": 2}, "3"),
        (add_later, {"a": 1, "b": 2}, '{"sum": 3}'),
        (lambda: None, None, ""),
        (lambda: "x", "", "x"),
        (lambda: Content.from_text("x"), " ", "x"),
    ],
)
async def test_tools_and_arguments_have_many_forms(tool: Any, arguments: Any, result: str) -> None:
    """A tool is any function; arguments are a JSON text, an object, or absent."""
    response = await run(call("f", arguments), "done", tools=[named("f", lambda **a: tool(**a))])
    assert results(response) == [("c1", result, None)]


async def test_a_tool_may_be_an_object_with_a_name() -> None:
    """A callable object goes by its attribute name."""

    class Tool:
        name = "search"

        def __call__(self, query: str) -> str:
            return f"found {query}"

    response = await run(call("search", {"query": "x"}), "done", tools=[Tool()])
    assert results(response) == [("c1", "found x", None)]


async def test_a_provider_may_bring_the_tool() -> None:
    """A tool that was added for the run can be called in it."""

    class Adding(BaseContextProvider):
        async def before_run(self, *, context: Any, **arguments: Any) -> None:
            context.extend_tools(self.source_id, [add])

    agent = Agent(ScriptedClient(call(), "3"), context_providers=[Adding("x")])
    assert results(await agent.run("q")) == [("c1", "3", None)]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (call(arguments='{"a": 1}'), "TypeError: "),
        (call(arguments="{"), "JSONDecodeError: "),
        (call(arguments="[1]"), "TypeError: the arguments of a call are a JSON object"),
        (call("multiply"), "there is no tool 'multiply'"),
        (call("fail", None), "LookupError: no such order"),
    ],
)
async def test_a_call_that_fails_answers_with_the_error(asked: Content, reason: str) -> None:
    """The model gets the error as the result, and the run goes on."""

    def fail() -> None:
        raise LookupError("no such order")

    response = await run(asked, "sorry", tools=[add, fail])
    [(call_id, result, exception)] = results(response)
    assert call_id == "c1"
    assert exception is not None
    assert exception.startswith(reason)
    assert result == f"Error: {exception}"
    assert response.text.endswith("sorry")


@pytest.mark.parametrize(
    ("reply", "tools"),
    [
        ([call()], []),
        ([call()], [{"name": "add"}]),
        ([call()], [{"type": "function", "function": {"name": "add"}}, min]),
        ([call(), Content("function_approval_request", user_input_request=True)], [add]),
        ([call(hosted=True)], [add]),
        ([call(informational_only=True)], [add]),
        ([call(), Content.from_function_result("c1", result="3")], [add]),
    ],
)
async def test_calls_of_others_are_left_to_them(reply: list[Content], tools: list[Any]) -> None:
    """Calls that the caller or the service answers end the run as they are."""
    response = await run(Message("assistant", reply), "not asked", tools=tools)
    assert [message.contents for message in response.messages] == [reply]


async def test_the_number_of_rounds_is_bounded() -> None:
    """After max_iterations rounds the model is asked once more, without tools to call."""
    client = ScriptedClient(call(call_id="c1"), call(call_id="c2"), "enough")
    response = await Agent(client, tools=[add]).run("q", options={"max_iterations": 2})
    assert [options.tools for options in client.options] == [(add,), (add,), ()]
    assert response.messages[-1].text == "enough"


async def test_a_call_beyond_the_bound_is_answered_and_not_run() -> None:
    """A model that goes on calling gets no call run, and leaves no call without a result."""
    ran: list[int] = []
    response = await run(call("ran", {"n": 1}), call("ran", {"n": 2}, "c2"), tools=[ran.append])
    assert ran == []
    ran_once = await run(
        call("note", {"n": 1}),
        call("note", {"n": 2}, "c2"),
        tools=[named("note", lambda n: ran.append(n))],
        max_iterations=1,
    )
    assert ran == [1]
    [_, (call_id, _, exception)] = results(ran_once)
    assert call_id == "c2"
    assert exception == "not run, because this run reached its max_iterations"
    assert ran_once.messages[-1].role == "tool"
    assert response.messages[-1].role == "assistant"


def named(name: str, tool: Any) -> Any:
    tool.__name__ = name
    return tool


async def test_an_error_of_the_model_after_a_tool_saves_nothing() -> None:
    """A run whose model fails after a tool ran is not saved, its call neither."""
    session = AgentSession()
    agent = Agent(
        ScriptedClient(call(), OSError("down")),
        tools=[add],
        context_providers=[InMemoryHistoryProvider()],
    )
    with pytest.raises(OSError, match="down"):
        await agent.run("q", session=session)
    assert session.state == {"in_memory": {}}


async def test_a_cancelled_tool_ends_the_run() -> None:
    """Cancelling while a tool runs cancels the tool and saves nothing."""
    started, ended, session = asyncio.Event(), asyncio.Event(), AgentSession()

    async def slow() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    agent = Agent(ScriptedClient(call("slow", None)), tools=[slow])
    task = asyncio.create_task(agent.run("q", session=session))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert session.state == {"in_memory": {}}


async def test_a_service_gets_only_the_results() -> None:
    """A service that keeps the conversation is sent the results and not the turn once more."""
    reply = AgentResponse(messages=Message("assistant", [call()]), conversation_id="c")
    client = ScriptedClient(reply, "3")
    await Agent(client, tools=[add]).run("q")
    assert [[message.role for message in messages] for messages in client.messages] == [
        ["user"],
        ["tool"],
    ]
    assert client.options[1].conversation_id == "c"


async def test_usage_of_all_rounds_is_added_up() -> None:
    """The usage of a run is the sum of its rounds, its ids are those of the last one."""
    replies = [
        AgentResponse(
            messages=Message("assistant", content), usage_details={"total": 2}, response_id=name
        )
        for content, name in [([call()], "r1"), ("3", "r2")]
    ]
    response = await run(*replies)
    assert response.usage_details == {"total": 4}
    assert response.response_id == "r2"
    assert [len(reply.messages) for reply in replies] == [1, 1]


async def test_a_stream_shows_calls_and_results() -> None:
    """A streamed run gives the pieces of calls, the results, and then the text."""

    async def client(messages: list[Message], options: ChatOptions) -> AsyncIterator[Any]:
        if len(messages) == 1:
            yield call(arguments='{"a": 1, ')
            yield call("", '"b": 2}', "")
        else:
            yield "It is "
            yield "3"

    session = AgentSession()
    stream = Agent(client, tools=[add]).run("q", stream=True, session=session)
    kinds = [[content.type for content in update.contents] async for update in stream]
    assert kinds == [
        ["function_call"],
        ["function_call"],
        ["function_result"],
        ["text"],
        ["text"],
    ]
    saved = session.state["in_memory"]["messages"]
    assert [message.role for message in saved] == ["user", "assistant", "tool", "assistant"]
    assert saved[1].contents[0].arguments == '{"a": 1, "b": 2}'
    assert saved[3].text == "It is 3"
