"""Servers of a run's own, started in a process that has their packages and drivers.

python -m bench.servers NAME PLACES

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

__all__ = ["running"]


@contextmanager
def running(name: str, cache: Path, *, places: int) -> Iterator[dict[str, str]]:
    """Run a server for as long as the context lasts, and yield what `main` says of it."""
    process = subprocess.Popen(
        [str(python_of("historykit", cache)), "-m", "bench.servers", name, str(places)],
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


def _redis(places: int) -> PrivateServer:
    from tests.services.redis import REDIS, RedisServer

    # A log that is rewritten in the midst of a measurement would be one of that.
    options = ("--databases", str(2 * places), "--auto-aof-rewrite-percentage", "0")
    return RedisServer(next(REDIS.programs()), *options)


def _postgres(places: int) -> PrivateServer:
    from tests.services.postgres import POSTGRES, PostgresServer

    return PostgresServer(next(POSTGRES.programs()))


def _mongo(places: int) -> PrivateServer:
    from tests.services.mongo import MONGO

    return MONGO.a_private_server()


def _set_up_redis(server: PrivateServer, places: int) -> str:
    from tests.services.redis import REDIS

    return f"{REDIS.describe(server.url)}, appendonly yes, appendfsync always"


def _set_up_postgres(server: PrivateServer, places: int) -> str:
    from tests.services.postgres import POSTGRES, connect

    with connect(server.url) as connection:
        for number in range(places):
            connection.execute(f"CREATE DATABASE bench_{number}".encode())
        names = ("fsync", "synchronous_commit")
        rows = [connection.execute(f"SHOW {name}".encode()).fetchone() for name in names]
    settings = [f"{name} {row[0]}" for name, row in zip(names, rows, strict=True) if row]
    return ", ".join([POSTGRES.describe(server.url), *settings])


def _set_up_mongo(server: PrivateServer, places: int) -> str:
    from tests.services.mongo import MONGO, connect

    with connect(server.url) as client:  # a test's server has to do with a quarter of that
        cache = {"setParameter": 1, "wiredTigerEngineRuntimeConfig": "cache_size=1G"}
        client.admin.command(cache)
    return f"{MONGO.describe(server.url)} of one member, writes by majority and journal"


Make = Callable[[int], "PrivateServer"]
SetUp = Callable[["PrivateServer", int], str]

SERVERS: Final[dict[str, tuple[Make, SetUp]]] = {
    "redis": (_redis, _set_up_redis),
    "postgres": (_postgres, _set_up_postgres),
    "mongo": (_mongo, _set_up_mongo),
}
"""How each server is made, and set up so that it can be named, both for so many places."""


def main(name: str, places: int) -> None:
    """Run a server until standard input ends, and say on standard output how it is reached.

    It has so many places, one for each adapter, and as many for their recordings.
    """
    make, set_up = SERVERS[name]
    with make(places) as server:
        settings = {"server": set_up(server, places), "url": server.url, "places": str(places)}
        print(json.dumps(settings), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
