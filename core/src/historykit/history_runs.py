"""The part of a history that runs agents in its sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from historykit.catalogue import Session
    from historykit.history import History
    from historykit.session_runs import BoundAgent, RunResult

__all__ = ["RunCalls"]


class RunCalls:
    """The part of `History` that runs agents."""

    async def run(
        self,
        agent: Any,
        query: str | None = None,
        *,
        session: Session | str,
        attachments: Sequence[str | Path | Mapping[str, Any]] | None = None,
        files: Sequence[str | Path] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        request_id: str | None = None,
        when_busy: Literal["reject", "wait"] = "reject",
        check_agent: bool = True,
        per_run: bool = False,
        timeout: float | None = None,
        lease: float = 30.0,
        window: int | None = None,
        window_turns: int | None = None,
        **overrides: Any,
    ) -> RunResult:
        """Run an agent in a session: store the query, ask the agent, store the answer.

        `agent` is an `Agent`, an object of another framework with a `run` that takes messages, or
        an async function of messages and a `RunRequest`, which answers like a `ChatClient`.
        `session` is a `Session` or the id of one. `attachments`, `files` and `tools` are those of
        `Session.add_message`; without `tools`, the inputs that are set on the agent's tools are
        taken.

        The query is stored first, and stays whatever becomes of the run. It and all messages of the
        answer have the same `request_id`, a new one where none is given. While the run lasts it
        holds the session; another one is refused, or waits with `when_busy` "wait". A run that was
        killed lets go after `lease` seconds.

        `execution_params`, `criteria`, `evolve`, `identifier`, `run_response_generation` and
        `budget` are overrides: they are merged into the execution config of the session and saved,
        with a `UserWarning` where that changes it; with `per_run` they hold for this run alone. The
        agent may take `timeout` seconds, the budget's `max_duration_seconds` and ``max_time`` of
        the execution params, whichever is least.

        `window` and `window_turns` are how much of the history the agent gets, where it does not
        load this history by a provider of its own. A session that is with no agent yet is with this
        one from now on; that it is with another one is an error, unless `check_agent` is false.

        Needs `Capability.RUNS`. Raises `InvalidRequestError`, a `ValueError`, for a query that is
        no text, for none without attachments, for keywords of runs without a session (`tasks`,
        `prompt`, `inspectors`, `history`, `variables`), and for the agent of another session;
        `TypeError` for what is no session and no agent; `NotFoundError`; `RunInProgressError` where
        another run holds the session, or took it over; `SessionDeletedError` where it was deleted
        meanwhile; `TimeoutError`; and what the agent raises (aiXplain session module).
        """
        from historykit.session_runs import SessionRun

        return await SessionRun(
            cast("History", self),
            agent,
            query,
            session=session,
            attachments=attachments,
            files=files,
            tools=tools,
            request_id=request_id,
            when_busy=when_busy,
            check_agent=check_agent,
            per_run=per_run,
            timeout=timeout,
            lease=lease,
            window=window,
            window_turns=window_turns,
            **overrides,
        ).result()

    def bind(self, agent: Any) -> BoundAgent:
        """Return an agent whose `run` is that of this history: ``bound.run(query, session=...)``.

        Raises `TypeError` for what is no agent.
        """
        from historykit.session_runs import BoundAgent

        return BoundAgent(cast("History", self), agent)
