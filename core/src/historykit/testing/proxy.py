"""A TCP proxy between a store and its server, which brings about what networks do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit, urlunsplit

__all__ = ["TcpProxy", "Traffic"]

HOST: Final = "127.0.0.1"
CHUNK: Final = 1 << 16


@dataclass(slots=True)
class Traffic:
    """What went through a proxy, connections that were opened or closed not counted.

    `trips` counts how often a client spoke after the server had: requests that are sent together
    are one trip. `sent` and `received` count bytes, as the client sees it.
    """

    trips: int = 0
    sent: int = 0
    received: int = 0


class TcpProxy:
    """Passes bytes on between clients and one server, until it is told not to.

    It is used as an asynchronous context manager, and listens on a free port of the loopback::

        async with TcpProxy.to(url) as proxy:
            async with RedisStore(RedisConfig(url=proxy.route(url))) as store:
                proxy.cut()

    `delay` is how many seconds bytes are under way in each direction; it may be set at any time.
    """

    def __init__(self, host: str, port: int, *, delay: float = 0.0) -> None:
        self.host = host
        self.port = port
        self.delay = delay
        self.traffic = Traffic()
        self._links: set[_Link] = set()
        self._is_down = False
        self._answers_pass = asyncio.Event()
        self._requests_pass = asyncio.Event()

    @classmethod
    def to(cls, url: str) -> Self:
        """Return a proxy to the server that a URL names. Raises `ValueError` without a port."""
        parts = urlsplit(url)
        if parts.hostname is None or parts.port is None:
            raise ValueError(
                "a proxy needs host and port of one server: scheme://host:port. For any other "
                "address make the proxy with host and port"
            )
        return cls(parts.hostname, parts.port)

    def route(self, url: str) -> str:
        """Return the URL with the proxy's address in the place of the server's."""
        parts = urlsplit(url)
        user_info, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user_info}{at}{HOST}:{self.listening_port}"))

    @property
    def listening_port(self) -> int:
        """The port that clients connect to."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._links)

    async def __aenter__(self) -> Self:
        self._answers_pass.set()
        self._requests_pass.set()
        self._server = await asyncio.start_server(self._connected, HOST, 0, limit=CHUNK)
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._server.close()
        links = [link.ended.wait() for link in self._links]
        self.cut()
        await asyncio.gather(*links)
        await self._server.wait_closed()

    def cut(self) -> None:
        """Break all connections at once, in the middle of whatever is under way. New ones work."""
        for link in list(self._links):
            link.cut()

    @asynccontextmanager
    async def down(self) -> AsyncIterator[None]:
        """Break all connections, and each new one, for the time of the block."""
        self._is_down = True
        self.cut()
        try:
            yield
        finally:
            self._is_down = False

    @asynccontextmanager
    async def stalled(self, *, requests: bool = True) -> AsyncIterator[None]:
        """Hold all bytes back for the time of the block; connections stay, and can be made.

        Without `requests` the server still hears and does everything, and only answers are held.
        """
        self._answers_pass.clear()
        if requests:
            self._requests_pass.clear()
        try:
            yield
        finally:
            self._answers_pass.set()
            self._requests_pass.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(writer)
        self._links.add(link)
        try:
            if not self._is_down:
                await self._serve(link, reader)
        except (OSError, asyncio.CancelledError):
            pass  # an end like any other
        finally:
            self._links.discard(link)
            link.cut()
            link.ended.set()

    async def _serve(self, link: _Link, reader: asyncio.StreamReader) -> None:
        far_reader, far_writer = await asyncio.open_connection(self.host, self.port, limit=CHUNK)
        link.writers.append(far_writer)
        pumps = [
            asyncio.ensure_future(self._pump(reader, far_writer, self._requests_pass, link.asked)),
            asyncio.ensure_future(
                self._pump(far_reader, link.writers[0], self._answers_pass, link.answered)
            ),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        gate: asyncio.Event,
        note: Callable[[Traffic, int], None],
    ) -> None:
        while chunk := await reader.read(CHUNK):
            await asyncio.sleep(self.delay)
            await gate.wait()
            note(self.traffic, len(chunk))
            writer.write(chunk)
            await writer.drain()


class _Link:
    """One connection through a proxy."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writers = [writer]
        self.ended = asyncio.Event()
        self._client_spoke_last = False

    def asked(self, traffic: Traffic, size: int) -> None:
        """Count what the client said."""
        traffic.sent += size
        traffic.trips += not self._client_spoke_last
        self._client_spoke_last = True

    def answered(self, traffic: Traffic, size: int) -> None:
        """Count what the server said."""
        traffic.received += size
        self._client_spoke_last = False

    def cut(self) -> None:
        """Break the connection without a farewell."""
        for writer in self.writers:
            writer.transport.abort()
