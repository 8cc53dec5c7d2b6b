from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from historykit.testing.proxy import TcpProxy

pytestmark = pytest.mark.asyncio

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo:
    """A server that answers each line with the same line, and remembers it."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                self.heard.append(line)
                writer.write(line)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


@pytest_asyncio.fixture
async def echo() -> AsyncIterator[Echo]:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    echo.port = server.sockets[0].getsockname()[1]
    yield echo
    server.close()
    await server.wait_closed()


@pytest_asyncio.fixture
async def proxy(echo: Echo) -> AsyncIterator[TcpProxy]:
    async with TcpProxy("127.0.0.1", echo.port) as proxy:
        yield proxy


async def connected(proxy: TcpProxy) -> Streams:
    return await asyncio.open_connection("127.0.0.1", proxy.listening_port)


async def ask(streams: Streams, text: bytes = b"hello\n") -> bytes:
    reader, writer = streams
    writer.write(text)
    await writer.drain()
    return await asyncio.wait_for(reader.readline(), 5)


async def close(*clients: Streams) -> None:
    for _, writer in clients:
        writer.transport.abort()


async def test_bytes_go_both_ways(proxy: TcpProxy) -> None:
    """A client behind a proxy talks with the server, and nobody notices."""
    client = await connected(proxy)
    assert [await ask(client, b"a\n"), await ask(client, b"b\n")] == [b"a\n", b"b\n"]
    assert proxy.connections == 1
    await close(client)


async def test_trips_and_bytes_are_counted(proxy: TcpProxy) -> None:
    """What is sent before an answer comes is one trip, however often it is written."""
    client = await connected(proxy)
    await ask(client)
    assert (proxy.traffic.trips, proxy.traffic.sent, proxy.traffic.received) == (1, 6, 6)
    async with proxy.stalled(requests=False):
        for text in (b"a\n", b"b\n"):
            client[1].write(text)
            await client[1].drain()
            await asyncio.sleep(0.02)
    assert await ask(client, b"") == b"a\n"
    assert (proxy.traffic.trips, proxy.traffic.sent) == (2, 10)
    await close(client)


async def test_a_delay_is_waited_in_each_direction(proxy: TcpProxy) -> None:
    """An answer comes after twice the delay."""
    client = await connected(proxy)
    await ask(client)
    proxy.delay = 0.05
    begin = time.monotonic()
    await ask(client)
    assert 0.1 <= time.monotonic() - begin < 1
    await close(client)


async def test_a_cut_ends_connections_and_lets_new_ones_in(proxy: TcpProxy) -> None:
    """After a cut a client finds its connection broken, and can make another."""
    clients = [await connected(proxy) for _ in range(3)]
    for client in clients:
        await ask(client)
    proxy.cut()
    for client in clients:
        with pytest.raises((ConnectionError, AssertionError)):
            assert await ask(client)
    another = await connected(proxy)
    assert await ask(another) == b"hello\n"
    await close(another, *clients)


async def test_nobody_gets_through_while_it_is_down(proxy: TcpProxy) -> None:
    """While the proxy is down connections old and new are broken; afterwards new ones work."""
    old = await connected(proxy)
    await ask(old)
    async with proxy.down():
        for client in (old, await connected(proxy)):
            with pytest.raises((ConnectionError, AssertionError)):
                assert await ask(client)
            await close(client)
    client = await connected(proxy)
    assert await ask(client) == b"hello\n"
    await close(client)


async def test_a_stall_holds_requests_back(proxy: TcpProxy, echo: Echo) -> None:
    """While the proxy is stalled the server hears nothing; afterwards all of it."""
    client = await connected(proxy)
    await ask(client, b"before\n")
    async with proxy.stalled():
        asking = asyncio.create_task(ask(client, b"during\n"))
        await asyncio.sleep(0.05)
        assert echo.heard == [b"before\n"]
        assert not asking.done()
    assert await asking == b"during\n"
    await close(client)


async def test_a_stall_of_answers_lets_the_server_work(proxy: TcpProxy, echo: Echo) -> None:
    """Where only answers are held, the server hears what the client never learns about."""
    client = await connected(proxy)
    async with proxy.stalled(requests=False):
        asking = asyncio.create_task(ask(client, b"during\n"))
        await asyncio.sleep(0.05)
        assert echo.heard == [b"during\n"]
        proxy.cut()
        with pytest.raises((ConnectionError, AssertionError)):
            assert await asking
    await close(client)


async def test_a_server_that_is_away_is_a_broken_connection(proxy: TcpProxy) -> None:
    """A proxy to a port that nobody listens on breaks each connection."""
    async with TcpProxy("127.0.0.1", 1) as nowhere:
        client = await connected(nowhere)
        with pytest.raises((ConnectionError, AssertionError)):
            assert await ask(client)
        await close(client)


async def test_a_url_is_routed_through_the_proxy() -> None:
    """Only host and port of a URL change: user, database and parameters stay."""
    url = "acme://user:p%40ss@[::1]:7000/3?timeout=5"
    proxy = TcpProxy.to(url)
    assert (proxy.host, proxy.port) == ("::1", 7000)
    async with proxy:
        port = proxy.listening_port
        assert proxy.route(url) == f"acme://user:p%40ss@127.0.0.1:{port}/3?timeout=5"


async def test_a_url_without_a_port_is_refused() -> None:
    """A proxy does not guess the port of a server."""
    for url in ("acme://localhost/", "acme:///socket", "acme"):
        with pytest.raises(ValueError, match="host and port"):
            TcpProxy.to(url)


async def test_the_end_of_the_proxy_ends_its_connections(echo: Echo) -> None:
    """A proxy that ends leaves no connection and no task."""
    before = asyncio.all_tasks()
    async with TcpProxy("127.0.0.1", echo.port) as proxy:
        client = await connected(proxy)
        await ask(client)
    assert proxy.connections == 0
    await close(client)
    await asyncio.sleep(0.02)
    assert {task for task in asyncio.all_tasks() - before if "pump" in repr(task)} == set()
