"""How commands get to the server, and answers back."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, cast

from hiredis import pack_command
from redis.client import NEVER_DECODE
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

__all__ = ["Command", "Exchange", "PoolExchange", "RoutedExchange", "Turns"]

Command = tuple[bytes | str | int, ...]

# It is several times as fast as a connection's own method.
_packed: Final = cast(Callable[[Command], bytes], pack_command)

_BYTES: Final[dict[str, Any]] = {NEVER_DECODE: True}
"""Leaves answers as they are, whatever the client's ``decode_responses``."""


class Exchange(Protocol):
    """A way to the server."""

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one go and return their answers: texts as bytes, errors as objects."""


class RoutedExchange:
    """Sends through the public methods of a client: a cluster's, or a caller's own."""

    def __init__(self, client: Any, turns: Turns) -> None:
        self._client = client
        self._turns = turns

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one go and return their answers: texts as bytes, errors as objects."""
        async with self._turns:
            return await self._send(commands)

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        if len(commands) == 1:
            try:
                return [await self._client.execute_command(*commands[0], **_BYTES)]
            except ResponseError as error:
                return [error]
        pipeline = self._client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command, **_BYTES)
        answers: list[Any] = await pipeline.execute(raise_on_error=False)
        return answers


SHARED_BYTES: Final = 64 << 10
"""Commands longer than that have a trip to themselves: others would wait for them."""

SHARED_CALLS: Final = 8
"""So many calls share a trip at most. With more of them the server waits while they get ready, and
they wait while the server works: all at once took twice as long for 32 sessions."""

Call = tuple[bytes, asyncio.Future[Any]]
"""A packed command and what is to be its outcome: the answer, or the error that kept it away."""


class PoolExchange:
    """Sends over the connections of a pool that nobody else uses.

    It does without what the methods of a client do beside that, which takes longer than the server.
    And single commands that come at the same moment go together, because taking a connection and
    waking up are most of a trip. `begin` makes the task for that.
    """

    def __init__(
        self,
        pool: Any,
        turns: Turns,
        begin: Callable[[Awaitable[None]], object],
    ) -> None:
        self._pool = pool
        self._turns = turns
        self._begin = begin
        self._calls: deque[Call] = deque()

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one go and return their answers: texts as bytes, errors as objects."""
        packed = b"".join(map(_packed, commands))
        if len(commands) == 1 and len(packed) <= SHARED_BYTES:
            return [await self._share(packed)]
        async with self._turns:
            return await self._exchange(packed, len(commands))

    async def _share(self, packed: bytes) -> Any:
        """Return the answer to a command that goes with others, as soon as there is a turn.

        If the caller is cancelled meanwhile, it is either not sent at all or answered to nobody.
        """
        outcome = asyncio.get_running_loop().create_future()
        if not self._calls:
            self._begin(self._send_calls())
        self._calls.append((packed, outcome))
        answer = await outcome
        if isinstance(answer, BaseException) and not isinstance(answer, ResponseError):
            raise answer
        return answer

    async def _send_calls(self) -> None:
        """Send the calls that have come until there is a turn."""
        async with self._turns:
            calls = [self._calls.popleft() for _ in range(min(len(self._calls), SHARED_CALLS))]
            if self._calls:
                self._begin(self._send_calls())
            calls = [call for call in calls if not call[1].done()]
            if calls:
                await self._send_together(calls)

    async def _send_together(self, calls: Sequence[Call]) -> None:
        outcomes: Sequence[Any]
        try:
            outcomes = await self._exchange(b"".join([packed for packed, _ in calls]), len(calls))
        except Exception as error:
            outcomes = [error] * len(calls)
        except BaseException:
            for _, outcome in calls:
                outcome.cancel()
            raise
        for (_, outcome), answer in zip(calls, outcomes, strict=True):
            if not outcome.done():
                # An error that is set as such is reported if the caller is cancelled just now.
                outcome.set_result(answer)

    async def _exchange(self, packed: bytes, count: int) -> list[Any]:
        connection = await self._pool.get_connection()
        try:
            # A failure is repaired by a new connection, on which the commands are sent again.
            answers: list[Any] = await connection.retry.call_with_retry(
                lambda: _exchanged(connection, packed, count), lambda error: connection.disconnect()
            )
            return answers
        finally:
            await self._pool.release(connection)


async def _exchanged(connection: Any, packed: bytes, count: int) -> list[Any]:
    """Return the answers to commands. What keeps one from coming drops the connection."""
    seconds = connection.socket_timeout
    # The connection's own timers, one for sending and one for each answer, take longer than both.
    connection.socket_timeout = None
    try:
        async with asyncio.timeout(seconds or None):
            if not connection.is_connected:
                await connection.connect()
            await connection.send_packed_command(packed)
            return [await _answer(connection) for _ in range(count)]
    except TimeoutError as error:
        await connection.disconnect(nowait=True)
        raise RedisTimeoutError(f"no answer within {seconds} seconds") from error
    finally:
        connection.socket_timeout = seconds


async def _answer(connection: Any) -> Any:
    """Return an answer, also if it is an error."""
    try:
        return await connection.read_response(disable_decoding=True)
    except ResponseError as error:
        return error


class Turns:
    """Lets so many in at a time, and knows when all who came are out again."""

    def __init__(self, limit: int) -> None:
        self._free = asyncio.Semaphore(limit)
        self._inside = 0
        self._empty = asyncio.Event()

    async def __aenter__(self) -> None:
        self._inside += 1
        try:
            await self._free.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._free.release()
        self._leave()

    def _leave(self) -> None:
        self._inside -= 1
        if not self._inside:
            self._empty.set()

    async def end(self) -> None:
        """Wait until all are out."""
        while self._inside:
            self._empty.clear()
            await self._empty.wait()
