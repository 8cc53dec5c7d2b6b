"""Servers of a run's own, started in a process that has their packages and drivers.

python -m bench.servers NAME

A server is durable: what it confirmed is on the disk. Its data lie in the folder for temporary
files, which TMPDIR names, and are gone when the run is.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.environments import ROOT, python_of

if TYPE_CHECKING:
    from tests.services.processes import PrivateServer

__all__ = ["PLACES", "running"]

PLACES: Final = 40
"""So many parts of its own a server has, for as many adapters and their recordings."""


@contextmanager
def running(name: str, cache: Path) -> Iterator[dict[str, str]]:
    """Run a server for as long as the context lasts, and yield what `main` says of it."""
    process = subprocess.Popen(
        [str(python_of("historykit", cache)), "-m", "bench.servers", name],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"no server for {name} could be started; what it said is above")
        settings: dict[str, str] = json.loads(line)
        yield settings
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def _redis() -> PrivateServer:
    from tests.services.redis import REDIS, RedisServer

    # A log that is rewritten in the midst of a measurement would be one of that.
    options = ("--databases", str(PLACES), "--auto-aof-rewrite-percentage", "0")
    return RedisServer(next(REDIS.programs()), *options)


def _postgres() -> PrivateServer:
    from tests.services.postgres import POSTGRES, PostgresServer

    return PostgresServer(next(POSTGRES.programs()))


def _mongo() -> PrivateServer:
    from tests.services.mongo import MONGO

    return MONGO.a_private_server()


def _set_up_redis(server: PrivateServer) -> str:
    from tests.services.redis import REDIS

    return f"{REDIS.describe(server.url)}, appendonly yes, appendfsync always"


def _set_up_postgres(server: PrivateServer) -> str:
    from tests.services.postgres import POSTGRES, connect

    with connect(server.url) as connection:
        for number in range(PLACES):
            connection.execute(f"CREATE DATABASE bench_{number}".encode())
        names = ("fsync", "synchronous_commit")
        rows = [connection.execute(f"SHOW {name}".encode()).fetchone() for name in names]
    settings = [f"{name} {row[0]}" for name, row in zip(names, rows, strict=True) if row]
    return ", ".join([POSTGRES.describe(server.url), *settings])


def _set_up_mongo(server: PrivateServer) -> str:
    from tests.services.mongo import MONGO, connect

    with connect(server.url) as client:  # a test's server has to do with a quarter of that
        cache = {"setParameter": 1, "wiredTigerEngineRuntimeConfig": "cache_size=1G"}
        client.admin.command(cache)
    return f"{MONGO.describe(server.url)} of one member, writes by majority and journal"


SERVERS: Final[dict[str, tuple[Callable[[], PrivateServer], Callable[[PrivateServer], str]]]] = {
    "redis": (_redis, _set_up_redis),
    "postgres": (_postgres, _set_up_postgres),
    "mongo": (_mongo, _set_up_mongo),
}


def main(name: str) -> None:
    """Run a server until standard input ends, and say on standard output how it is reached."""
    make, set_up = SERVERS[name]
    with make() as server:
        print(json.dumps({"server": set_up(server), "url": server.url}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
