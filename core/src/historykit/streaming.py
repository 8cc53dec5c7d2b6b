"""The answer of an agent while it arrives."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Protocol, Self

from historykit.lifecycle import AsyncContext
from historykit.responses import AgentResponse, AgentResponseUpdate

__all__ = ["AgentStream"]


class Run(Protocol):
    """What runs once, and has the whole answer when it is through."""

    response: AgentResponse | None

    def updates(self) -> AsyncGenerator[AgentResponseUpdate]:
        """Run, and yield the pieces of the answer as they come."""
        ...


class AgentStream(AsyncContext):
    """An async iterator of the pieces of an answer, as `Agent.run` with `stream=True` returns it.

    Nothing happens before it is iterated. What is left unread is never saved: a stream that is
    broken off saves nothing, unless `get_final_response` is asked for. As a context manager it
    ends the model's answer when the block is left, and a run in a `Session` lets that go::

        async with agent.run("Hello", stream=True, session=chat) as stream:
            async for update in stream:
                print(update.text, end="")
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._updates = run.updates()
        self._failure: BaseException | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentResponseUpdate:
        try:
            return await anext(self._updates)
        except StopAsyncIteration:
            raise
        except BaseException as error:
            self._failure = error
            raise

    async def get_final_response(self) -> AgentResponse:
        """Return the whole answer, after reading what is left of it.

        Raises the error that ended the stream, if one did: the part that had arrived is not kept.
        Raises `RuntimeError` after `aclose`, or after the reading was cancelled.
        """
        async for _ in self:
            pass
        if isinstance(self._failure, Exception):
            raise self._failure
        if self._failure is not None or self._run.response is None:
            raise RuntimeError("the stream was ended before the run was through; run it again")
        return self._run.response

    async def aclose(self) -> None:
        """End the stream. What has not been read is dropped, and a run not read whole not saved."""
        await self._updates.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
