"""The server, or the cluster, behind a store: scripts are run on it, and it says what it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

from redis.asyncio import RedisCluster
from redis.exceptions import NoScriptError, ResponseError

from historykit.capabilities import Guarantee
from historykit.records import ServerInfo
from historykit.session_records import SessionKey
from historykit.tasks import ShieldedTasks
from historykit_redis.clients import make_client
from historykit_redis.config import RedisConfig
from historykit_redis.errors import damaged
from historykit_redis.exchange import Command, Exchange, PoolExchange, RoutedExchange, Turns
from historykit_redis.keys import Keys
from historykit_redis.packing import Fields, unpack_fields
from historykit_redis.scripts import SCRIPTS, Script

__all__ = ["Server", "new_operation"]

SETTINGS: Final = ("appendonly", "appendfsync", "maxmemory-policy")
DURABLE: Final = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}

T = TypeVar("T")

_inherited: list[object] = []
"""Clients that a forked process got from its parent, kept for good: their end would take sockets
out of an event loop's poll object, which the parent shares and goes on using."""


class Server:
    """What a client connects to. `is_split`: keys of different slots cannot be used together."""

    def __init__(self, config: RedisConfig) -> None:
        self._process = os.getpid()
        self._closing = AsyncExitStack()
        self.keys = Keys(config.prefix)
        is_own = config.client is None
        self._client = make_client(config, self._closing) if is_own else config.client
        self._is_cluster = isinstance(self._client, RedisCluster)
        self.is_split = self._is_cluster
        self._turns = Turns(config.max_connections if is_own else sys.maxsize)
        self._works = ShieldedTasks()
        self._exchange: Exchange = RoutedExchange(self._client, self._turns)
        if is_own and not self._is_cluster:
            pool = self._client.connection_pool
            self._exchange = PoolExchange(pool, self._turns, self._works.begin)

    async def connect(self) -> None:
        """Find out what the server is, and let it know the scripts."""
        information = await self._information()
        self.is_split = self._is_cluster or _mode(information) == "cluster"
        if not self._is_cluster:  # where a script is sent to the node that lacks it, when it does
            await self._load_scripts()

    async def _load_scripts(self) -> None:
        names = [script.digest for script in SCRIPTS]
        (known,) = await self.send([("SCRIPT", "EXISTS", *names)])
        if isinstance(known, Exception):  # it is not allowed; they are sent when they are needed
            return
        lacking = [script for script, is_known in zip(SCRIPTS, known, strict=True) if not is_known]
        if lacking:
            await self.send([("SCRIPT", "LOAD", script.text) for script in lacking])

    async def aclose(self) -> None:
        """Wait for what is under way, and close what was made: not a client of the caller's own."""
        await self._works.wait()
        await self._turns.end()
        await self._closing.aclose()

    def abandon(self) -> None:
        """Let go of the connections without touching them."""
        if self._process != os.getpid():
            _inherited.append(self._client)

    async def finish(self, work: Awaitable[T]) -> T:
        """Do what takes several trips to its end, whatever becomes of the caller."""
        return await self._works.run(work)

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one go and return their answers: texts as bytes, errors as objects.

        Others may come in between.
        """
        return await self._exchange.send(commands)

    def index(self, key: SessionKey) -> tuple[bytes, bytes]:
        """Return where scripts find the catalogue, empty where they cannot use it, and the user."""
        index = b"" if self.is_split else self.keys.index(key.namespace)
        return index, key.user_id.encode()

    async def run(
        self, script: Script, key: SessionKey, *arguments: bytes, stream: bytes = b"main"
    ) -> Any:
        """Run a script on a session and one of its streams, and return the answer."""
        (answer,) = await self.run_before((), script, key, *arguments, stream=stream)
        return answer

    async def run_before(
        self,
        commands: Sequence[Command],
        script: Script,
        key: SessionKey,
        *arguments: bytes,
        stream: bytes,
    ) -> list[Any]:
        """Run a script as `run` does, then commands, in one trip, and return all the answers."""
        answers = await self._run(script, self.keys.stream(key, stream), arguments, commands)
        if answers[0][0] == b"damaged":
            raise damaged(key)
        return answers

    async def run_on(self, script: Script, keys: Sequence[bytes], *arguments: bytes) -> Any:
        """Run a script on keys of one slot and return the answer."""
        (answer,) = await self._run(script, keys, arguments, ())
        return answer

    async def run_on_each(
        self, script: Script, sessions: Sequence[SessionKey], *arguments: bytes, stream: bytes
    ) -> list[Any]:
        """Run a script on each of several sessions, in one go, and return the answers."""
        if not sessions:
            return []
        rests: list[Command] = []
        for key in sessions:
            keys = self.keys.stream(key, stream)
            rests.append((len(keys), *keys, *arguments))
        answers = await self.send([("EVALSHA", script.digest, *rest) for rest in rests])
        lacking = [n for n, each in enumerate(answers) if isinstance(each, NoScriptError)]
        if lacking:
            again = await self.send([("EVAL", script.text, *rests[n]) for n in lacking])
            for n, answer in zip(lacking, again, strict=True):
                answers[n] = answer
        for key, answer in zip(sessions, _checked(answers), strict=True):
            if answer[0] == b"damaged":
                raise damaged(key)
        return answers

    async def _run(
        self,
        script: Script,
        keys: Sequence[bytes],
        arguments: Sequence[bytes],
        commands: Sequence[Command],
    ) -> list[Any]:
        rest: Command = (len(keys), *keys, *arguments)
        answers = await self.send([("EVALSHA", script.digest, *rest), *commands])
        if isinstance(answers[0], NoScriptError):
            answers = await self.send([("EVAL", script.text, *rest), *commands])
        return _checked(answers)

    async def read_sessions(self, sessions: Sequence[SessionKey]) -> list[Fields]:
        """Return the fields of each session, none of one that is not there."""
        if not sessions:
            return []
        answers = await self.send([("HGETALL", self.keys.session(key)) for key in sessions])
        return [
            answer if isinstance(answer, dict) else unpack_fields(answer)
            for answer in _checked(answers)
        ]

    async def change_sets(
        self, wanted: Mapping[bytes, frozenset[bytes]], sets: frozenset[bytes]
    ) -> None:
        """Put each member into those of the sets where it is wanted, and take it out of the others.

        The sets are all of one slot.
        """
        commands: list[Command] = []
        for member, names in wanted.items():
            commands += [("ZADD", name, 0, member) for name in names]
            commands += [("ZREM", name, member) for name in sets - names]
        _checked(await self.send(commands))

    async def describe(self) -> ServerInfo:
        """Return product, version and settings."""
        information = await self._information()
        settings = await self.settings()
        product = str(information.get("server_name", "redis")).capitalize()
        version = information.get("valkey_version", information.get("redis_version", ""))
        return ServerInfo(
            product=product,
            version=str(version),
            settings={"mode": _mode(information), **settings},
        )

    async def guarantees(self) -> frozenset[Guarantee]:
        """Return what the server's settings promise; little where it does not tell them."""
        if await self.settings() != DURABLE:
            return frozenset({Guarantee.SHARED})
        return frozenset({Guarantee.SHARED, Guarantee.SURVIVES_KILL, Guarantee.SURVIVES_POWER_LOSS})

    async def settings(self) -> dict[str, str]:
        """Return the settings that decide on durability; in a cluster those of all its nodes."""
        options: dict[str, Any] = {"target_nodes": "primaries"} if self._is_cluster else {}
        try:
            async with self._turns:
                answer = await self._client.execute_command("CONFIG GET", *SETTINGS, **options)
        except ResponseError:  # many hosted servers keep them to themselves
            return {}
        nodes = list(answer.values()) if self._is_cluster else [answer]
        return {
            name: ", ".join(sorted({str(node.get(name)) for node in nodes})) for name in SETTINGS
        }

    async def _information(self) -> dict[str, Any]:
        try:
            async with self._turns:
                information: dict[str, Any] = await self._client.info("server")
        except ResponseError:
            return {}
        return information


def _checked(answers: list[Any]) -> list[Any]:
    """Return answers if none of them is an error, which is raised."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers


def new_operation() -> bytes:
    """Return a name for one change, by which a script knows it when it is sent again."""
    return os.urandom(8).hex().encode()


def _mode(information: Mapping[str, Any]) -> str:
    """Return ``standalone``, ``cluster`` or ``sentinel``; Valkey has another word for it."""
    return str(information.get("redis_mode") or information.get("server_mode", "unknown"))
