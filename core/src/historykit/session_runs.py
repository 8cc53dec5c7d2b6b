"""Agents run in sessions: `History.run`, `History.bind`, and `Agent.run` with a `Session`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from historykit.agent_calls import agent_ids, answer, check_agent_kind, tool_inputs
from historykit.callers import warn_caller
from historykit.dict_forms import is_same
from historykit.errors import InvalidRequestError, NotFoundError
from historykit.execution import ExecutionConfig
from historykit.ids import check_id
from historykit.leases import LEASE, WhenBusy, check_lease, check_when_busy
from historykit.messages import Message
from historykit.responses import AgentResponse, AgentResponseUpdate
from historykit.runs import AgentRun
from historykit.turns import Turn

if TYPE_CHECKING:
    from historykit.agent import Agent
    from historykit.catalogue import Session
    from historykit.history import History

__all__ = ["BoundAgent", "RunData", "RunResult"]

Attachment: TypeAlias = str | Path | Mapping[str, Any]

OVERRIDES: Final = (
    "execution_params",
    "criteria",
    "evolve",
    "identifier",
    "run_response_generation",
    "budget",
)
"""Keywords of a run that are fields of the execution config."""

ELSEWHERE: Final = ("tasks", "prompt", "inspectors", "history", "variables")
"""Keywords of runs without a session, which a session has no place for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """What a run gave: `output` is the text of the answer.

    `steps` are its messages in order, calls and results of tools among them: each a dict with
    ``agent`` (the agent's id), ``role``, ``text``, and ``contents`` as dicts.
    """

    output: str = field(repr=False)
    steps: list[dict[str, Any]] = field(repr=False)
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A run that succeeded; one that did not is an error.

    `status` is "SUCCESS" and `completed` True. `request_id` is that of all messages of the run.
    `usage` are the counts that the model reported, None where it did not. `run_time` is in seconds.
    `identifier` is that of the execution config. `response` is the answer itself.
    """

    status: str = "SUCCESS"
    completed: bool = True
    session_id: str
    request_id: str
    data: RunData
    usage: Mapping[str, Any] | None
    run_time: float
    identifier: str | None
    response: AgentResponse = field(repr=False)


class SessionRun:
    """A run of `History.run` that has not begun; `result` runs it, once.

    Raises, of the arguments, what `History.run` raises before it reads anything.
    """

    def __init__(
        self,
        history: History,
        agent: Any,
        query: str | None,
        /,
        *,
        session: Session | str,
        attachments: Sequence[Attachment] | None = None,
        files: Sequence[str | Path] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        request_id: str | None = None,
        when_busy: WhenBusy = "reject",
        check_agent: bool = True,
        per_run: bool = False,
        timeout: float | None = None,
        lease: float = LEASE,
        window: int | None = None,
        window_turns: int | None = None,
        **overrides: Any,
    ) -> None:
        check_agent_kind(agent)
        _check_query(query, attachments, files)
        self._overrides = _checked_overrides(overrides)
        self._overridden = [name for name in OVERRIDES if overrides.get(name) is not None]
        self._history = history
        self._agent = agent
        self._session = session
        self._words = {
            "role": "user",
            "content": query or "",
            "attachments": attachments,
            "files": files,
            "tools": tool_inputs(agent) if tools is None else tools,
        }
        self._checks_agent = check_agent
        self._per_run = per_run
        self._timeout = timeout
        self._options: dict[str, Any] = {
            "request_id": check_id(request_id, "request_id") if request_id else None,
            "when_busy": check_when_busy(when_busy),
            "lease": check_lease(lease),
            "window": {"window": window, "window_turns": window_turns},
        }

    async def result(self) -> RunResult:
        """Run the agent and return what it gave."""
        begun = perf_counter()
        session = await self._resolved()
        ids = agent_ids(self._agent)
        turn = Turn(session, runner=ids[0] if ids else "", **self._options)
        async with turn:
            if self._checks_agent:
                check_binding(turn, ids)
            config = turn.config.merged(self._overrides)
            known = turn.config
            turn.limit(config, time_limit(config, self._timeout))
            await self._keep(turn, known, ids)
            said = await turn.say([self._words])
            messages = [message.to_message() for message in said]
            response = await answer(self._agent, turn, messages)
        return RunResult(
            session_id=turn.key.session_id,
            request_id=turn.request_id,
            data=_data(response, turn, ids[0] if ids else ""),
            usage=response.usage_details,
            run_time=perf_counter() - begun,
            identifier=turn.config.identifier,
            response=response,
        )

    async def _resolved(self) -> Session:
        from historykit.catalogue import Session

        session, history = self._session, self._history
        if isinstance(session, str):
            return await history.Session.get(session)
        if not isinstance(session, Session):
            raise TypeError(
                "session must be a Session instance or a session id string, got "
                f"{type(session).__name__}"
            )
        if session.context is None:
            session.context = history
        elif session.context.store is not history.store:
            raise InvalidRequestError(f"session {session.id!r} is one of another history")
        elif history.user_id not in ("", session._key().user_id):
            raise NotFoundError(f"session {session.id!r} not found")
        return session

    async def _keep(self, turn: Turn, known: ExecutionConfig, ids: Sequence[str]) -> None:
        """Save what the run changes of its session: its config, and whose session it is."""
        changes: dict[str, Any] = {}
        if not self._per_run and not is_same(turn.config.to_dict(), known.to_dict()):
            names = ", ".join(self._overridden)
            warn_caller(
                f"{names} of a run in session {turn.key.session_id!r}: the session's execution "
                "config is changed, and with it all later runs; per_run=True overrides it for this "
                "run alone",
                UserWarning,
            )
            changes["execution_config"] = turn.config
        if ids and not turn.agent_id:
            changes["agent_id"] = ids[0]
        if changes:
            await turn.session.save(**changes)


class AgentTurn:
    """A run of `Agent.run` with a `Session`; `updates` runs it, once, as those of `AgentRun`."""

    def __init__(
        self,
        agent: Agent,
        messages: Sequence[Message],
        *,
        session: Session,
        options: Mapping[str, Any],
        stream: bool,
    ) -> None:
        self.response: AgentResponse | None = None
        self._agent = agent
        self._messages = messages
        self._session = session
        self._options = options
        self._stream = stream

    async def updates(self) -> AsyncGenerator[AgentResponseUpdate]:
        """Yield the pieces of the answer; what the user says is stored before the first one."""
        ids = agent_ids(self._agent)
        async with Turn(self._session, runner=self._agent.id) as turn:
            check_binding(turn, ids)
            turn.limit(turn.config, time_limit(turn.config, None))
            if ids and not turn.agent_id:
                await self._session.save(agent_id=ids[0])
            said = await turn.say(self._words())
            run = AgentRun(
                self._agent,
                [message.to_message() for message in said],
                session=turn.agent_session,
                options=turn.options(self._options),
                stream=self._stream,
            )
            async with aclosing(turn.watch(run.updates())) as updates:
                async for update in updates:
                    yield update
            self.response = run.response

    def _words(self) -> Sequence[Message | Mapping[str, Any]]:
        """Return what the user says, with the inputs that are set on the agent's tools.

        Only a text can have them beside it.
        """
        tools = tool_inputs(self._agent)
        if tools is None or len(self._messages) != 1:
            return self._messages
        (message,) = self._messages
        if message.to_dict() != Message("user", message.text).to_dict():
            return self._messages
        return [{"role": "user", "content": message.text, "tools": tools}]


def check_binding(turn: Turn, ids: Sequence[str]) -> None:
    """Raise `InvalidRequestError` where the session of a turn is with another agent."""
    if turn.agent_id and ids and turn.agent_id not in ids:
        raise InvalidRequestError(
            f"session {turn.key.session_id!r} is with agent {turn.agent_id!r}, not with "
            f"{ids[0]!r}; History.run with check_agent=False runs any agent in it"
        )


def time_limit(config: ExecutionConfig, timeout: float | None) -> float | None:
    """Return how many seconds a run may take: the least of all limits, None where there is none.

    Raises `InvalidRequestError` for a limit that is no number of seconds.
    """
    stored = config.to_dict()["executionParams"] or {}
    limits = {
        "timeout": timeout,
        "max_time of the execution params": stored.get("maxTime"),
        "max_duration_seconds of the budget": stored.get("budget", {}).get("maxDurationSeconds"),
    }
    for name, limit in limits.items():
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0
        ):
            raise InvalidRequestError(f"{name} is a number of seconds or None, not {limit!r}")
    return min((limit for limit in limits.values() if limit is not None), default=None)


def _check_query(query: object, attachments: object, files: object) -> None:
    if query is not None and not isinstance(query, str):
        raise InvalidRequestError(
            f"a session run only supports string queries, not {type(query).__name__}"
        )
    if not query and not attachments and not files:
        raise InvalidRequestError("A session run requires a query or attachments.")


def _checked_overrides(given: Mapping[str, Any]) -> ExecutionConfig:
    elsewhere = [name for name in ELSEWHERE if given.get(name) is not None]
    if elsewhere:
        raise InvalidRequestError(
            f"session runs do not support {', '.join(elsewhere)}; leave them out, or run the agent "
            "without a session"
        )
    unknown = given.keys() - {*OVERRIDES, *ELSEWHERE}
    if unknown:
        raise TypeError(f"run() got an unexpected keyword argument {min(unknown)!r}")
    overrides = ExecutionConfig(**{name: given.get(name) for name in OVERRIDES})
    overrides.to_api_dict()  # which warns of what is deprecated
    return overrides


def _data(response: AgentResponse, turn: Turn, agent_id: str) -> RunData:
    steps = [
        {
            "agent": agent_id,
            "role": message.role,
            "text": message.text,
            "contents": message.to_dict()["contents"],
        }
        for message in response.messages
    ]
    return RunData(output=response.text, steps=steps, session_id=turn.key.session_id)


class BoundAgent:
    """An agent that is run in the sessions of a history, as `History.bind` returns it."""

    def __init__(self, history: History, agent: Any) -> None:
        check_agent_kind(agent)
        self.history = history
        self.agent = agent

    async def run(
        self, query: str | None = None, *, session: Session | str | None = None, **options: Any
    ) -> Any:
        """Run the agent in a session and return what `History.run` returns, with its options.

        Without a session it is an ordinary run: the agent's own `run`, with these options.
        """
        if session is not None:
            return await self.history.run(self.agent, query, session=session, **options)
        if not callable(getattr(self.agent, "run", None)):
            raise TypeError("an async function is run as an agent in a session: pass session=")
        return await self.agent.run(query, **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.agent!r}, history={self.history!r})"
