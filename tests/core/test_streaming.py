from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from historykit import (
    Agent,
    AgentResponseUpdate,
    AgentSession,
    ChatOptions,
    Content,
    InMemoryHistoryProvider,
    Message,
)
from tests.core.scripted import NotingProvider, ScriptedClient

pytestmark = pytest.mark.asyncio


class StreamingClient:
    """Streams the pieces of a script, and notes when its answer is ended."""

    def __init__(self, *pieces: Any) -> None:
        self.pieces = pieces
        self.asked = 0
        self.ended = 0

    async def __call__(self, messages: list[Message], options: ChatOptions) -> str:
        raise AssertionError("a run that streams asks through stream")

    async def stream(self, messages: list[Message], options: ChatOptions) -> AsyncIterator[Any]:
        self.asked += 1
        try:
            for piece in self.pieces:
                await asyncio.sleep(0)
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            self.ended += 1


def saved(session: AgentSession) -> list[str]:
    return [message.text for message in session.state["in_memory"].get("messages", [])]


async def test_a_stream_gives_pieces_and_saves_at_its_end() -> None:
    """The pieces come as the client sends them; the whole text is saved without more asking."""
    session = AgentSession()
    stream = Agent(StreamingClient("Hel", "lo")).run("q", stream=True, session=session)
    assert [update.text async for update in stream] == ["Hel", "lo"]
    assert saved(session) == ["q", "Hello"]


async def test_nothing_happens_before_a_stream_is_read() -> None:
    """A stream that nobody reads asks neither provider nor model."""
    log: list[str] = []
    client = StreamingClient("a")
    agent = Agent(client, context_providers=[NotingProvider("x", log)])
    stream = agent.run("q", stream=True)
    await asyncio.sleep(0)
    assert (log, client.asked) == ([], 0)
    await anext(stream)
    assert (log, client.asked) == (["before x"], 1)


async def test_the_final_response_reads_the_rest() -> None:
    """Asking for the final response reads what is left, and the run is saved once."""
    session = AgentSession()
    stream = Agent(StreamingClient("a", "b", "c"), name="g").run("q", stream=True, session=session)
    assert (await anext(stream)).text == "a"
    response = await stream.get_final_response()
    assert response.text == "abc"
    assert response.messages[0].author_name == "g"
    assert await stream.get_final_response() is response
    assert saved(session) == ["q", "abc"]


async def test_a_stream_broken_off_saves_nothing() -> None:
    """A loop that is left early saves nothing, as long as nobody asks for the rest."""
    session = AgentSession()
    stream = Agent(StreamingClient("a", "b")).run("q", stream=True, session=session)
    async for _ in stream:
        break
    assert saved(session) == []
    assert (await stream.get_final_response()).text == "ab"
    assert saved(session) == ["q", "ab"]


async def test_a_stream_that_is_closed_ends_the_answer() -> None:
    """Closing ends the client's answer and saves nothing; the final response is an error then."""
    session, client = AgentSession(), StreamingClient("a", "b")
    async with Agent(client).run("q", stream=True, session=session) as stream:
        await anext(stream)
        assert client.ended == 0
    assert client.ended == 1
    assert [update async for update in stream] == []
    with pytest.raises(RuntimeError, match="ended before"):
        await stream.get_final_response()
    assert saved(session) == []


async def test_closing_a_stream_that_was_read_keeps_its_answer() -> None:
    """A stream that was read to its end has its final response after closing too."""
    async with Agent(StreamingClient("a")).run("q", stream=True) as stream:
        assert [update.text async for update in stream] == ["a"]
    assert (await stream.get_final_response()).text == "a"


async def test_a_stream_that_fails_is_never_saved() -> None:
    """An error midway is raised, then and at the final response, and no part is saved."""
    session, log = AgentSession(), []
    providers = [InMemoryHistoryProvider(), NotingProvider("x", log)]
    agent = Agent(StreamingClient("a", OSError("cut")), context_providers=providers)
    stream = agent.run("q", stream=True, session=session)
    assert (await anext(stream)).text == "a"
    with pytest.raises(OSError, match="cut"):
        await anext(stream)
    with pytest.raises(OSError, match="cut"):
        await stream.get_final_response()
    assert log == ["before x"]
    assert saved(session) == []


async def test_a_cancelled_stream_is_never_saved() -> None:
    """A read that was cancelled ends the run: asking for its response is an error, not a save."""
    session = AgentSession()

    async def client(messages: list[Message], options: ChatOptions) -> AsyncIterator[str]:
        yield "a"
        await asyncio.sleep(60)
        yield "b"

    stream = Agent(client).run("q", stream=True, session=session)
    await anext(stream)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(stream), 0.01)
    with pytest.raises(RuntimeError, match="ended before"):
        await stream.get_final_response()
    assert saved(session) == []


async def test_an_error_after_the_answer_carries_it() -> None:
    """An error of a hook after the model is raised at the end, with the answer."""
    failing = NotingProvider("x", [], after=OSError("disk"))
    stream = Agent(StreamingClient("a"), context_providers=[failing]).run("q", stream=True)
    assert (await anext(stream)).text == "a"
    for _ in range(2):
        with pytest.raises(OSError, match="disk") as caught:
            await stream.get_final_response()
        assert caught.value.agent_response.text == "a"  # type: ignore[attr-defined]


async def test_a_client_that_does_not_stream_gives_whole_messages() -> None:
    """A client that answers at once is streamed as one piece for each message."""
    messages = [Message("assistant", "a"), Message("assistant", "b", author_name="bob")]
    stream = Agent(ScriptedClient(messages)).run("q", stream=True)
    updates = [update async for update in stream]
    assert [(update.text, update.role) for update in updates] == [
        ("a", "assistant"),
        ("b", "assistant"),
    ]
    assert (await stream.get_final_response()).messages == messages


async def test_a_stream_may_hold_every_kind_of_piece() -> None:
    """Texts, contents, updates and whole messages are pieces; anything else is refused."""
    whole = Message("assistant", "d", additional_properties={"k": 1})
    pieces = ["a", Content.from_text("b"), AgentResponseUpdate(contents=["c"]), whole]
    stream = Agent(StreamingClient(*pieces)).run("q", stream=True)
    response = await stream.get_final_response()
    assert [message.text for message in response.messages] == ["abc", "d"]
    assert response.messages[1] is whole
    with pytest.raises(TypeError, match="int"):
        await Agent(StreamingClient(3)).run("q", stream=True).get_final_response()


async def test_any_async_iterator_is_a_stream() -> None:
    """A client may resolve to an iterator that is no generator."""

    class Pieces:
        def __init__(self) -> None:
            self.left = ["a", "b"]

        def __aiter__(self) -> Pieces:
            return self

        async def __anext__(self) -> str:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    async def client(messages: list[Message], options: ChatOptions) -> Pieces:
        return Pieces()

    stream = Agent(client).run("q", stream=True)
    assert [update.text async for update in stream] == ["a", "b"]


async def test_the_service_session_is_followed_at_once() -> None:
    """The conversation id of a piece is the session's before the stream ends."""
    session = AgentSession()
    pieces = [AgentResponseUpdate(contents=["a"], conversation_id="c"), "b"]
    stream = Agent(StreamingClient(*pieces)).run("q", stream=True, session=session)
    await anext(stream)
    assert session.service_session_id == "c"
    assert (await stream.get_final_response()).conversation_id == "c"


async def test_a_dropped_stream_is_cleaned_up() -> None:
    """A stream that was broken off and forgotten ends the client's answer and saves nothing."""
    session, client = AgentSession(), StreamingClient("a", "b")
    stream = Agent(client).run("q", stream=True, session=session)
    await anext(stream)
    del stream
    for _ in range(5):
        await asyncio.sleep(0)
    assert client.ended == 1
    assert saved(session) == []
