"""What is killed."""

from __future__ import annotations

import asyncio
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from tests.chaos.crowd import Crowd
from tests.services.clusters import ReplicaSet
from tests.services.postgres import POSTGRES
from tests.services.processes import PrivateServer
from tests.services.redis import REDIS
from tests.services.service import Service

__all__ = ["SCENARIOS", "Scenario"]

AWAY = 0.3
"""Seconds that a killed server stays away."""


class Scenario(ABC):
    """A place to write to, and a blow to it. `what` says both."""

    backend: ClassVar[str]
    what: ClassVar[str]
    settings: Mapping[str, Any]
    product: str = ""

    @contextmanager
    @abstractmethod
    def arena(self) -> Iterator[None]:
        """Make the place, with `settings` for a store on it and the name of its `product`."""
        yield

    @abstractmethod
    async def strike(self, crowd: Crowd) -> None:
        """Kill with -9, and bring back what was killed."""


class KilledServer(Scenario):
    """One server, which is killed and started again."""

    service: ClassVar[Service]
    more: ClassVar[Mapping[str, Any]] = {}

    @contextmanager
    def arena(self) -> Iterator[None]:
        with self.service.a_private_server() as self.server:
            self.settings = {"url": self.server.url, **self.more}
            self.product = self.service.describe(self.server.url)
            yield

    async def strike(self, crowd: Crowd) -> None:
        await killed_for_a_while(self.server)


class KilledRedis(KilledServer):
    backend = "redis"
    what = "server killed, appendfsync always"
    service = REDIS


class KilledPostgres(KilledServer):
    backend = "postgres"
    what = "server killed and restarted"
    service = POSTGRES
    more: ClassVar = {"timeout": 10}


class KilledPrimary(Scenario):
    """Three servers, of which the primary is killed each time."""

    backend = "mongo"
    what = "replica set of three, primary killed"

    @contextmanager
    def arena(self) -> Iterator[None]:
        with ReplicaSet() as self.members:
            self.settings = {"url": self.members.url}
            self.product = self.members.describe()
            yield

    async def strike(self, crowd: Crowd) -> None:
        primary = await asyncio.to_thread(self.members.primary)
        await asyncio.to_thread(primary.kill)
        await asyncio.to_thread(self.members.primary)
        await asyncio.to_thread(primary.start)


class KilledWriters(Scenario):
    """A file, and processes that are killed while they write to it."""

    backend = "sqlite"
    what = "a process of writers killed"

    @contextmanager
    def arena(self) -> Iterator[None]:
        import sqlite3

        self.product = f"SQLite {sqlite3.sqlite_version}"
        with tempfile.TemporaryDirectory() as folder:
            self.settings = {"path": str(Path(folder, "chat.db")), "busy_timeout": 30}
            yield

    async def strike(self, crowd: Crowd) -> None:
        await crowd.replace_one()


async def killed_for_a_while(server: PrivateServer) -> None:
    """Kill a server and start it again."""
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(AWAY)
    await asyncio.to_thread(server.start)


SCENARIOS: dict[str, type[Scenario]] = {
    scenario.backend: scenario
    for scenario in (KilledWriters, KilledRedis, KilledPostgres, KilledPrimary)
}
"""By backend."""
