"""The model's side of an agent: what a chat client is asked, and what it may answer."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from historykit.contents import Content
from historykit.messages import Message, as_contents
from historykit.responses import AgentResponse, AgentResponseUpdate

__all__ = ["ChatClient", "ChatOptions"]

Options = TypeVar("Options")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """What a chat client gets beside the messages.

    `instructions` are those of the agent and of its context providers, joined by newlines, or None.
    `tools` are those of both, as they were given; the agent runs them itself when the answer holds
    ``function_call`` contents. `conversation_id` is the one under which the service keeps the
    conversation. `options` are the options of the run over the defaults of the agent: the agent
    reads ``store``, ``conversation_id`` and ``max_iterations``, the rest is between caller and
    client.
    """

    instructions: str | None = field(default=None, repr=False)
    tools: tuple[Any, ...] = ()
    conversation_id: str | None = None
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)


class ChatClient(Protocol):
    """Anything that answers messages: an async function will do.

    It is called with the messages and a `ChatOptions`, and returns or resolves to a text, a
    `Content`, a `Message`, a list of messages or an `AgentResponse`; or to an async iterator of
    pieces, as an async generator function does: texts, contents, messages (each a whole one) and
    `AgentResponseUpdate` objects. An object with a method ``stream`` of the same arguments is asked
    through it when the run streams.

    ``STORES_BY_DEFAULT = True`` on a client says that its service keeps conversations unless told
    not to; an agent then adds no history of its own. Such a service names its conversation in the
    `conversation_id` of the response, or of an update.
    """

    def __call__(self, messages: list[Message], options: ChatOptions, /) -> Any:
        """Answer the messages."""
        ...


async def ask(
    client: Callable[[list[Message], Options], Any],
    messages: Sequence[Message],
    options: Options,
    *,
    stream: bool,
) -> AsyncGenerator[AgentResponseUpdate | AgentResponse]:
    """Yield the pieces of a client's answer as they come, and at the end the whole answer.

    `options` is what the client gets beside the messages.
    """
    call = getattr(client, "stream", client) if stream else client
    reply = call(list(messages), options)
    if inspect.isawaitable(reply):
        reply = await reply
    if not isinstance(reply, AsyncIterable):
        response = as_response(reply)
        for message in response.messages:
            yield AgentResponseUpdate.from_message(message)
        yield response
        return
    updates = []
    async with _closing(reply):
        async for piece in reply:
            update = _as_update(piece)
            updates.append(update)
            yield update
    yield AgentResponse.from_updates(updates)


@asynccontextmanager
async def _closing(pieces: AsyncIterable[Any]) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        # An iterator of the client's that is broken off must not hold its connection.
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


def as_response(reply: Any) -> AgentResponse:
    """Return the answer that a client or an agent gave, whatever of the possible forms it has.

    A response of another framework has `messages` with a `to_dict` each.
    """
    if isinstance(reply, AgentResponse):
        return reply
    foreign = getattr(reply, "messages", None)
    if isinstance(foreign, Sequence):
        usage = getattr(reply, "usage_details", None)
        return AgentResponse(
            messages=[_from_elsewhere(message) for message in foreign],
            usage_details=usage if isinstance(usage, Mapping) else None,
        )
    replies = reply if isinstance(reply, list | tuple) else [reply]
    return AgentResponse(messages=[_as_message(item) for item in replies])


def _from_elsewhere(message: Any) -> Message:
    return message if isinstance(message, Message) else Message.from_dict(message.to_dict())


def _as_message(reply: Any) -> Message:
    if isinstance(reply, Message):
        return reply
    if isinstance(reply, str | Content):
        return Message("assistant", reply)
    raise TypeError(
        f"a chat client or agent answered with {type(reply).__name__}; it may answer with a text, a"
        f" Content, a Message, a list of them, an AgentResponse or an async iterator{_hint(reply)}"
    )


def _as_update(piece: Any) -> AgentResponseUpdate:
    if isinstance(piece, AgentResponseUpdate):
        return piece
    if isinstance(piece, str | Content):
        return AgentResponseUpdate(contents=as_contents(piece, None))
    if isinstance(piece, Message):
        return AgentResponseUpdate.from_message(piece)
    raise TypeError(
        f"a chat client streamed {type(piece).__name__}; it may stream texts, Contents, Messages"
        f" and AgentResponseUpdates{_hint(piece)}"
    )


def _hint(answer: object) -> str:
    if not isinstance(answer, Mapping):
        return ""
    return (
        "; historykit.chat_completions.from_chat_completions makes a Message of a dict of the"
        " chat-completions API (of a whole response: of its choices[0].message)"
    )
