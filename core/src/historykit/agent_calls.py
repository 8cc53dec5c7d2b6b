"""How agents of all kinds are asked in a turn of a session."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from historykit.agent import Agent
from historykit.clients import as_response, ask
from historykit.execution import ExecutionConfig
from historykit.messages import Message
from historykit.responses import AgentResponse
from historykit.runs import attach_response
from historykit.tools import set_inputs

if TYPE_CHECKING:
    from historykit.turns import Turn

__all__ = ["RunRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What an async function that is run as an agent gets beside the messages.

    `execution_config` is that of the session, with what the run overrides; nothing is set in it
    where there is none. `tools` are the parameters of tools that were given for the run, as
    `Session.add_message` has them.
    """

    session_id: str
    request_id: str
    execution_config: ExecutionConfig
    tools: Sequence[Mapping[str, Any]] = field(default=(), repr=False)


def check_agent_kind(agent: Any) -> None:
    """Raise `TypeError` for what is no agent."""
    if not callable(getattr(agent, "run", None)) and not callable(agent):
        raise TypeError(
            "an agent is an object with a method run, or an async function of messages and a "
            f"RunRequest; not {type(agent).__name__}"
        )


def agent_ids(agent: Any) -> tuple[str, ...]:
    """Return the names under which a session may know an agent, the best one first.

    That is the id of an `Agent`. Other frameworks make random ids, so for their agents the name
    comes first. An async function has none.
    """
    names = [getattr(agent, "id", None), getattr(agent, "name", None)]
    if not isinstance(agent, Agent):
        names.reverse()
    return tuple(name for name in names if isinstance(name, str) and name)


def tool_inputs(agent: Any) -> list[dict[str, Any]] | None:
    """Return the inputs that are set on the tools of an agent; None where there are none."""
    tools = getattr(agent, "tools", None)
    return set_inputs(tools if isinstance(tools, Sequence) else ()) or None


async def answer(agent: Any, turn: Turn, messages: Sequence[Message]) -> AgentResponse:
    """Ask an agent within a turn, store what it answers, and return it.

    An error after the answer has it as its attribute `agent_response`.
    """
    if isinstance(agent, Agent):
        async with turn.working():
            return await agent.run(messages, session=turn.agent_session, options=turn.options({}))
    history = await turn.load()
    async with turn.working():
        response = await _asked(agent, turn, [*history, *messages])
    try:
        await turn.save(response.messages)
    except Exception as error:
        attach_response(error, response)
        raise
    return response


async def _asked(agent: Any, turn: Turn, messages: list[Message]) -> AgentResponse:
    if callable(getattr(agent, "run", None)):
        reply = agent.run(_in_its_own_form(agent, messages))
        return as_response(await reply if isawaitable(reply) else reply)
    request = RunRequest(
        session_id=turn.key.session_id,
        request_id=turn.request_id,
        execution_config=turn.config,
        tools=turn.tools,
    )
    async with aclosing(ask(agent, messages, request, stream=False)) as items:
        (*_, response) = [item async for item in items]
    assert isinstance(response, AgentResponse)
    return response


def _in_its_own_form(agent: Any, messages: list[Message]) -> list[Any]:
    """Return messages as the agent's framework has them: agent_framework takes its own only."""
    framework = sys.modules.get("agent_framework")
    modules = {base.__module__.partition(".")[0] for base in type(agent).__mro__}
    if framework is None or "agent_framework" not in modules:
        return messages
    return [framework.Message.from_dict(message.to_dict()) for message in messages]
