"""One run of an agent: the context providers, the model, the tools, the context providers."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from copy import copy
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from historykit.clients import ChatOptions, ask
from historykit.messages import Message
from historykit.providers import BaseContextProvider, BaseHistoryProvider, InMemoryHistoryProvider
from historykit.responses import AgentResponse, AgentResponseUpdate, added_usage
from historykit.sessions import AgentSession, SessionContext
from historykit.tools import calls_to_run, fixed_arguments, refuse_calls, run_calls

if TYPE_CHECKING:
    from historykit.agent import Agent

UNNAMED_AGENT: Final = "UnnamedAgent"
MAX_ITERATIONS: Final = 40
"""How many times a run lets the model call tools, unless ``max_iterations`` says otherwise."""


class AgentRun:
    """A run that has not started; `updates` runs it, once.

    `response` is the answer, once the model and the tools are through.
    """

    def __init__(
        self,
        agent: Agent,
        messages: list[Message],
        *,
        session: AgentSession | None,
        options: Mapping[str, Any],
        stream: bool,
    ) -> None:
        self.response: AgentResponse | None = None
        self._agent = agent
        self._input = messages
        self._session = session or AgentSession()
        self._is_kept = session is not None
        self._run_options = dict(options)
        given = {name: value for name, value in options.items() if value is not None}
        self._options = MappingProxyType({**agent.default_options, **given})
        self._stream = stream
        self._turn = session._turn if session is not None else None
        self._replies: list[AgentResponse] = []
        self._messages: list[Message] = []

    async def updates(self) -> AsyncGenerator[AgentResponseUpdate]:
        """Yield the pieces of the answer; the providers see the end when the last one was taken."""
        self._start()
        await self._before_run()
        async with aclosing(self._answer()) as updates:
            async for update in updates:
                yield update
        self._finish()
        await self._after_run()

    def _start(self) -> None:
        service_session_id = self._session.service_session_id
        self._conversation_id = service_session_id or self._options.get("conversation_id")
        self._rounds = _checked_rounds(self._options.get("max_iterations", MAX_ITERATIONS))
        providers = self._agent.context_providers
        if self._turn is not None:
            providers = self._turn.providers(providers)
        if self._is_kept and not providers and not self._service_stores():
            providers.append(InMemoryHistoryProvider())
        check_providers(providers)
        self._providers = tuple(providers)
        has_id = self._is_kept or self._providers
        self._context = SessionContext(
            session_id=self._session.session_id if has_id else None,
            service_session_id=service_session_id,
            input_messages=self._input,
            options=self._run_options,
        )
        self._context._turn = self._turn

    def _service_stores(self) -> bool:
        stores = self._options.get("store")
        if stores is None:
            stores = getattr(self._agent.client, "STORES_BY_DEFAULT", False)
        return bool(self._conversation_id or stores)

    async def _before_run(self) -> None:
        for provider in self._providers:
            if not self._skips_loading(provider):
                await provider.before_run(**self._hook_arguments(provider))

    def _skips_loading(self, provider: BaseContextProvider) -> bool:
        # A service that keeps the conversation adds the history itself: sent too, it is there twice
        return isinstance(provider, BaseHistoryProvider) and (
            not provider.load_messages or bool(self._conversation_id)
        )

    def _hook_arguments(self, provider: BaseContextProvider) -> dict[str, Any]:
        return {
            "agent": self._agent,
            "session": self._session,
            "context": self._context,
            "state": self._session.state.setdefault(provider.source_id, {}),
        }

    async def _answer(self) -> AsyncGenerator[AgentResponseUpdate]:
        """Ask the model and run its tools until it calls none, or is not let to any more."""
        tools = (*self._agent.tools, *self._context.tools)
        outgoing = self._context.get_messages(include_input=True)
        for rounds in range(self._rounds, -1, -1):
            async with aclosing(self._ask(outgoing, tools if rounds else ())) as updates:
                async for update in updates:
                    yield update
            reply = self._replies[-1]
            calls = calls_to_run(reply.messages, tools)
            if not calls:
                return
            results = (
                await run_calls(calls, tools, self._fixed(tools))
                if rounds
                else refuse_calls(calls, _TOO_MANY)
            )
            self._messages.append(results)
            yield AgentResponseUpdate.from_message(results)
            sent = [*outgoing, *reply.messages] if not self._conversation_id else []
            outgoing = [*sent, results]

    def _fixed(self, tools: Iterable[Any]) -> dict[str, dict[str, Any]]:
        return fixed_arguments(tools, self._turn.tools if self._turn is not None else ())

    async def _ask(
        self, messages: Sequence[Message], tools: tuple[Any, ...]
    ) -> AsyncGenerator[AgentResponseUpdate]:
        instructions = [self._agent.instructions, *self._context.instructions]
        options = ChatOptions(
            instructions="\n".join(filter(None, instructions)) or None,
            tools=tools,
            conversation_id=self._conversation_id,
            options=self._options,
        )
        answer = ask(self._agent.client, messages, options, stream=self._stream)
        async with aclosing(answer) as items:
            async for item in items:
                self._follow(item.conversation_id)
                if isinstance(item, AgentResponseUpdate):
                    yield item
                else:
                    self._replies.append(item)
                    self._messages += item.messages

    def _follow(self, conversation_id: str | None) -> None:
        if conversation_id is not None:
            self._conversation_id = conversation_id
            self._context.service_session_id = conversation_id
            self._session.service_session_id = conversation_id

    def _finish(self) -> None:
        response = copy(self._replies[-1])
        response.messages = self._messages
        response.usage_details = added_usage(reply.usage_details for reply in self._replies)
        response.agent_id = response.agent_id or self._agent.id or None
        for message in response.messages:
            if message.author_name is None:
                message.author_name = self._agent.name or UNNAMED_AGENT
        self.response = self._context._response = response

    async def _after_run(self) -> None:
        failure: Exception | None = None
        for name, step in self._last_steps():
            try:
                await step()
            except Exception as error:
                if failure is not None:
                    failure.add_note(f"{name} failed too: {type(error).__name__}")
                    continue
                failure = error
                attach_response(error, self.response)
            except BaseException as error:
                attach_response(error, self.response)
                raise
        if failure is not None:
            raise failure

    def _last_steps(self) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
        """Yield what has to be done with the answer, each whether or not the others fail."""
        if self._turn is not None:
            yield "saving the answer", partial(self._turn.save, self._messages)
        for provider in reversed(self._providers):
            step = partial(provider.after_run, **self._hook_arguments(provider))
            yield f"after_run of {provider.source_id!r}", step
        if self._turn is not None:
            yield "saving the state", self._turn.keep_state


def attach_response(error: BaseException, response: AgentResponse | None) -> None:
    """Give an error the answer that it came too late to prevent."""
    vars(error)["agent_response"] = response
    error.add_note("the answer was there before this failure: see agent_response of this error")


_TOO_MANY: Final = "not run, because this run reached its max_iterations"


def check_providers(providers: Sequence[BaseContextProvider]) -> None:
    """Raise `ValueError` for two providers of one source id, or that save to the same history."""
    for index, provider in enumerate(providers):
        for other in providers[:index]:
            _check_pair(other, provider)


def _check_pair(one: BaseContextProvider, other: BaseContextProvider) -> None:
    names = f"{type(one).__name__} and {type(other).__name__}"
    if one.source_id == other.source_id:
        raise ValueError(
            f"{names} both have the source_id {one.source_id!r}; give each provider of an agent an"
            " id of its own"
        )
    histories = [_saved_history(one), _saved_history(other)]
    if histories[0] is not None and histories[0] == histories[1]:
        raise ValueError(
            f"{names} ({one.source_id!r} and {other.source_id!r}) save to the same history, which"
            " would hold each message twice; give one of them another stream"
        )


def _saved_history(provider: BaseContextProvider) -> object | None:
    if isinstance(provider, BaseHistoryProvider) and provider._saves():
        return provider._storage_identity()
    return None


def _checked_rounds(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"max_iterations is a number of at least 0, not {value!r}")
    return value
