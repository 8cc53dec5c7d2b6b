"""What the tests of the Redis backend share: private servers, alone and together, and stores."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio
import redis

from historykit.session_records import SessionKey
from historykit_redis import RedisConfig, RedisStore
from tests.services.plugin import Servers
from tests.services.processes import HOST, free_port, wait_until
from tests.services.redis import RedisServer, RedisService, connect

Start = Callable[..., RedisServer]

SLOTS = 16384
SERVICE = "chat"
"""The name by which sentinels know a primary."""


@pytest.fixture(scope="session")
def start(request: pytest.FixtureRequest, redis_url: str) -> Iterator[Start]:
    """Return a function that starts a private server of the product selected, with options."""
    servers = cast(Servers, request.config.pluginmanager.getplugin("historykit-servers"))
    service = cast(RedisService, servers.services["redis"])
    with ExitStack() as stack:

        def start(*options: str, kind: type[RedisServer] = RedisServer, **more: Any) -> RedisServer:
            return stack.enter_context(kind(next(service.programs()), *options, **more))

        yield start


@pytest.fixture(scope="session")
def own_server(start: Start) -> RedisServer:
    """A server that tests may freeze and empty, but have to leave as they found it."""
    return start()


@pytest.fixture
def server(own_server: RedisServer) -> Iterator[RedisServer]:
    """The same, empty."""
    with connect(own_server.url) as client:
        client.flushall()
    yield own_server
    own_server.thaw()


@pytest.fixture
def inside(server: RedisServer) -> Iterator[redis.Redis]:
    """A client of the server that is not asynchronous, to look behind the store."""
    with connect(server.url) as client:
        yield client


@pytest.fixture(scope="session")
def cluster(start: Start) -> list[RedisServer]:
    """A cluster of three primaries."""
    nodes = [start("--cluster-enabled", "yes", port=_low_port()) for _ in range(3)]
    clients = [connect(node.url) for node in nodes]
    for number, client in enumerate(clients):
        first, last = SLOTS * number // 3, SLOTS * (number + 1) // 3 - 1
        client.execute_command("CLUSTER ADDSLOTSRANGE", first, last)
        client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
        client.execute_command("CLUSTER MEET", HOST, nodes[0].port)
    while any(_cluster_state(client) != "ok" for client in clients):
        time.sleep(0.05)
    for client in clients:
        client.close()
    return nodes


@pytest.fixture(scope="session")
def cluster_url(cluster: list[RedisServer]) -> str:
    """The URL of the cluster."""
    return f"redis+cluster://{HOST}:{cluster[0].port}"


def _require(found: object) -> None:
    """Raise `LookupError` if nothing was found."""
    if not found:
        raise LookupError


def _low_port() -> int:
    """Return a free port for a node, which listens on the one 10,000 above as well."""
    while (port := free_port()) >= 55_000:
        pass
    return port


def _cluster_state(client: redis.Redis) -> str:
    information = cast(dict[str, str], client.execute_command("CLUSTER INFO"))
    return information["cluster_state"]


class SentinelServer(RedisServer):
    """A sentinel that looks after one primary alone."""

    def __init__(self, *arguments: Any, primary: int) -> None:
        super().__init__(*arguments)
        self._primary = primary

    def prepare(self) -> None:
        """Write the file that a sentinel insists on."""
        (self.folder / "sentinel.conf").write_text(
            f"sentinel monitor {SERVICE} {HOST} {self._primary} 1\n"
            f"sentinel down-after-milliseconds {SERVICE} 300\n"
            f"sentinel failover-timeout {SERVICE} 2000\n"
        )

    def command(self) -> list[str | Path]:
        """Return the command that starts the sentinel in the foreground."""
        return [
            self.program.path,
            *(self.folder / "sentinel.conf", "--sentinel"),
            *("--port", str(self.port), "--bind", HOST, "--unixsocket", str(self.path)),
        ]


@pytest.fixture
def behind_sentinel(start: Start) -> Iterator[tuple[RedisServer, RedisServer, str]]:
    """A primary with a replica, and the URL of the sentinel that looks after them."""
    primary = start()
    replica = start("--replicaof", HOST, str(primary.port))
    sentinel = start(kind=SentinelServer, primary=primary.port)
    with connect(f"redis://{HOST}:{sentinel.port}") as client:
        wait_until(lambda: _require(client.sentinel_slaves(SERVICE)), failed=lambda: None)
    url = f"redis+sentinel://{HOST}:1,{HOST}:{sentinel.port}/{SERVICE}/0?health_check_interval=5"
    yield primary, replica, url
    for each in (sentinel, replica, primary):
        each.close()


@pytest.fixture
def key() -> SessionKey:
    return SessionKey("app", "ada", "s1")


@pytest_asyncio.fixture
async def open_store(server: RedisServer) -> AsyncIterator[Callable[..., Any]]:
    """Return a function that opens a store with settings: by default on the server."""
    async with AsyncExitStack() as stack:

        async def open_store(**settings: Any) -> RedisStore:
            if "client" not in settings:
                settings.setdefault("url", server.url)
            return await stack.enter_async_context(RedisStore(RedisConfig(**settings)))

        yield open_store


@pytest_asyncio.fixture
async def store(open_store: Callable[..., Any]) -> RedisStore:
    """A store on the server."""
    opened: RedisStore = await open_store()
    return opened
