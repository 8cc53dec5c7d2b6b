"""Several private servers that are one to their clients."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Self

import pymongo.errors

from tests.services.mongo import MONGO, MongoServer, connect, initiate

__all__ = ["ReplicaSet"]

SETTINGS = {"electionTimeoutMillis": 1000, "heartbeatIntervalMillis": 200}
"""A primary that is gone is replaced after a second, not after ten."""

PATIENCE = 30.0


class ReplicaSet:
    """A replica set of MongoDB with three members, used as a context manager."""

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        with self._stack:
            program = next(MONGO.programs())
            self.members = [self._stack.enter_context(MongoServer(program)) for _ in range(3)]
            initiate(
                self.members[0].direct_url,
                *(member.host for member in self.members),
                settings=SETTINGS,
            )
            self.primary()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """How clients name the set."""
        hosts = ",".join(member.host for member in self.members)
        return f"mongodb://{hosts}/?replicaSet=rs0"

    def primary(self) -> MongoServer:
        """Return the primary, when there is one. Raises `TimeoutError`."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for member in self.members:
                if member.is_running and _is_primary(member):
                    return member
            time.sleep(0.05)
        raise TimeoutError(f"the replica set has no primary after {PATIENCE:.0f} seconds")

    def describe(self) -> str:
        """Return product, version and kind of what answers."""
        return f"{MONGO.describe(self.url)} of {len(self.members)}"


def _is_primary(member: MongoServer) -> bool:
    with connect(member.direct_url) as client:
        try:
            return bool(client.admin.command("hello")["isWritablePrimary"])
        except pymongo.errors.PyMongoError:
            return False
