"""How commands get to the server, and answers back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, cast

from hiredis import pack_command
from redis.client import NEVER_DECODE
from redis.exceptions import ResponseError

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

    def __init__(self, client: Any) -> None:
        self._client = client

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one go and return their answers: texts as bytes, errors as objects."""
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


class PoolExchange:
    """Sends over the connections of a pool that nobody else uses.

    It does without what the methods of a client do beside that, which takes longer than the server.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one go and return their answers: texts as bytes, errors as objects."""
        connection = await self._pool.get_connection()
        try:
            # A failure is repaired by a new connection, on which the commands are sent again.
            answers: list[Any] = await connection.retry.call_with_retry(
                lambda: _exchanged(connection, commands), lambda error: connection.disconnect()
            )
            return answers
        finally:
            await self._pool.release(connection)


async def _exchanged(connection: Any, commands: Sequence[Command]) -> list[Any]:
    """Return the answers to commands. What keeps one from coming drops the connection."""
    if not connection.is_connected:
        await connection.connect()
    await connection.send_packed_command(b"".join(map(_packed, commands)))
    answers: list[Any] = []
    for _ in commands:
        try:
            answers.append(await connection.read_response(disable_decoding=True))
        except ResponseError as error:
            answers.append(error)
    return answers


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
