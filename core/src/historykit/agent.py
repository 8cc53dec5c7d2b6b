"""An agent: a chat client with instructions, tools and a context pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, overload

from historykit.clients import ChatClient
from historykit.contents import Content
from historykit.dict_forms import is_chat_completions
from historykit.messages import Message
from historykit.providers import BaseContextProvider, BaseHistoryProvider
from historykit.responses import AgentResponse
from historykit.runs import AgentRun, check_providers
from historykit.sessions import AgentSession
from historykit.streaming import AgentStream

if TYPE_CHECKING:
    from historykit.catalogue import Session
    from historykit.session_runs import AgentTurn

__all__ = ["Agent", "SupportsAgentRun"]

AgentInput: TypeAlias = str | Content | Message | Sequence[str | Content | Message] | None


class SupportsAgentRun(Protocol):
    """What a context provider may rely on in the agent that runs it."""

    @property
    def id(self) -> str:
        """The id of the agent."""
        ...

    @property
    def name(self) -> str | None:
        """The name of the agent."""
        ...

    def run(
        self, messages: Any = None, *, stream: Any = False, session: Any = None, **kwargs: Any
    ) -> Any:
        """Run the agent."""
        ...


class Agent:
    """An agent that sends a conversation through its context providers to a chat client.

    `client` is anything that answers messages (`ChatClient`): an async function will do. `id` is
    the name where it is not given, and "" without either. `instructions` go to the client beside
    the messages and are not stored. `tools` are functions, or callable objects with a `name`, that
    the agent calls when the model asks for it. `default_options` are under those of each run; the
    agent itself reads three of them: ``store`` (the service keeps the conversation),
    ``conversation_id`` (under which it does) and ``max_iterations`` (how many times the model may
    call tools in a run, 40).

    Without any context provider, an agent that is run with a session gets an
    `InMemoryHistoryProvider`, unless the model's service keeps the conversation. Raises `TypeError`
    for what is no client or no provider, and `ValueError` for two providers of one `source_id`, and
    for two that save to the same history (agent_framework Sessions API).
    """

    def __init__(
        self,
        client: ChatClient,
        *,
        name: str | None = None,
        id: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        tools: Callable[..., Any] | Sequence[Any] | None = None,
        context_providers: Sequence[BaseContextProvider] | None = None,
        default_options: Mapping[str, Any] | None = None,
    ) -> None:
        _check_client(client)
        self.client = client
        self.id = id or name or ""
        self.name = name
        self.description = description
        self.instructions = instructions
        self.tools: list[Any] = list(tools or ()) if not callable(tools) else [tools]
        self.context_providers = _checked_providers(context_providers)
        self.default_options = dict(default_options or {})
        check_providers(self.context_providers)
        _warn_of_double_history(self.context_providers)

    @overload
    def run(
        self,
        messages: AgentInput = None,
        *,
        stream: Literal[False] = False,
        session: AgentSession | Session | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Coroutine[Any, Any, AgentResponse]: ...
    @overload
    def run(
        self,
        messages: AgentInput = None,
        *,
        stream: Literal[True],
        session: AgentSession | Session | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> AgentStream: ...
    def run(
        self,
        messages: AgentInput = None,
        *,
        stream: bool = False,
        session: AgentSession | Session | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Coroutine[Any, Any, AgentResponse] | AgentStream:
        """Return the answer to the messages when awaited, or a stream of it with `stream`.

        `messages` are a text or a `Content`, which the user says, a `Message`, several of these, or
        None: nothing new. Raises `TypeError` for anything else.

        The context providers see the run in their order before the model, and in the reverse order
        after it. Without a session they get a new one for this run alone. If a provider, the model
        or the task's cancellation ends the run before the answer is whole, nothing is saved.

        With a `Session` the run is like one of `History.run`: it holds the session, stores the
        messages first, which stay whatever becomes of it, and then the answer. A provider that
        loads this history is added where the agent has none. The limits of the session's execution
        config hold, and the client finds the config among its options, as ``execution_config``.

        An error of a provider after the answer is raised when all of them had their turn; the
        answer is its attribute `agent_response`.
        """
        given: dict[str, Any] = {"options": options or {}, "stream": stream}
        run: AgentRun | AgentTurn
        if session is None or isinstance(session, AgentSession):
            run = AgentRun(self, _as_messages(messages), session=session, **given)
        else:
            run = _turn_in(session)(self, _as_messages(messages), session=session, **given)
        answer = AgentStream(run)
        return answer if stream else answer.get_final_response()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r})"


def _as_messages(given: AgentInput) -> list[Message]:
    if given is None:
        return []
    if isinstance(given, str | bytes | Content | Message | Mapping):
        return [_as_message(given)]
    if not isinstance(given, Iterable):
        raise _no_input(given)
    return list(map(_as_message, given))


def _as_message(item: object) -> Message:
    if isinstance(item, Message):
        return item
    if isinstance(item, str | Content):
        return Message("user", [item])
    raise _no_input(item)


def _no_input(item: object) -> TypeError:
    problem = (
        "an agent is run with a text, a Content, a Message, a list of these, or None; not "
        f"{type(item).__name__}"
    )
    if is_chat_completions(item):
        remedy = "historykit.chat_completions.from_chat_completions makes a Message of the dict"
    elif isinstance(item, Mapping):
        remedy = "Message.from_dict or Content.from_dict makes one of the dict"
    elif hasattr(item, "to_dict"):
        remedy = "Message.from_dict makes a Message of what its to_dict returns"
    else:
        return TypeError(problem)
    return TypeError(f"{problem}; {remedy}")


def _check_client(client: object) -> None:
    if not callable(client) and not callable(getattr(client, "stream", None)):
        raise TypeError(
            "the client of an agent is an async function of messages and options, or an object "
            f"that is called like one (ChatClient); not {type(client).__name__}"
        )


def _turn_in(session: object) -> type[AgentTurn]:
    """Return what runs an agent in a `Session`; raise `TypeError` for what is none."""
    from historykit.catalogue import Session  # much that nothing else here needs
    from historykit.session_runs import AgentTurn

    if isinstance(getattr(session, "_target", None), Session):
        raise TypeError(
            "this is a Session of historykit.sync; run the agent on the loop of its history: "
            "history.run(agent, query, session=chat), or history.call(agent.run, query, "
            "session=chat)"
        )
    if not isinstance(session, Session):
        raise TypeError(
            f"a session is an AgentSession or a Session, not {type(session).__name__}; for an id "
            "there is AgentSession(session_id=...), or History.run"
        )
    return AgentTurn


def _checked_providers(given: Any) -> list[BaseContextProvider]:
    if given is None:
        return []
    if not isinstance(given, Iterable):
        raise TypeError(
            f"context_providers is a list of providers, not {type(given).__name__}; put the "
            "provider in a list, as in [history.provider()]"
        )
    providers = list(given)
    for provider in providers:
        if not hasattr(provider, "source_id"):
            raise TypeError(
                f"{type(provider).__name__} is no context provider, which has a source_id; "
                "history.provider() makes one of a history"
            )
    return providers


def _warn_of_double_history(providers: Sequence[BaseContextProvider]) -> None:
    loading = [
        repr(provider.source_id)
        for provider in providers
        if isinstance(provider, BaseHistoryProvider) and provider.load_messages
    ]
    if len(loading) > 1:
        warnings.warn(
            f"the providers {', '.join(loading)} all load history, which the model then gets more"
            " than once; set load_messages=False on all but one",
            UserWarning,
            stacklevel=3,
        )
