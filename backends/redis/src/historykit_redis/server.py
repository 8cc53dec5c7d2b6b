"""The server, or the cluster, behind a store: scripts are run on it, and it says what it is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

from redis.asyncio import RedisCluster
from redis.client import NEVER_DECODE
from redis.exceptions import NoScriptError, ResponseError

from historykit.capabilities import Guarantee
from historykit.records import ServerInfo, SessionKey
from historykit_redis.clients import make_client
from historykit_redis.config import RedisConfig
from historykit_redis.errors import damaged
from historykit_redis.keys import Keys
from historykit_redis.packing import Fields
from historykit_redis.scripts import SCRIPTS, Script

__all__ = ["Server", "new_operation"]

SETTINGS: Final = ("appendonly", "appendfsync", "maxmemory-policy")
DURABLE: Final = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}

_BYTES: Final[dict[str, Any]] = {NEVER_DECODE: True}
"""Leaves answers as they are, whatever the client's ``decode_responses``."""

_inherited: list[object] = []
"""Clients that a forked process got from its parent, kept for good: their end would take sockets
out of an event loop's poll object, which the parent shares and goes on using."""


class Server:
    """What a client connects to. `is_split`: keys of different slots cannot be used together."""

    def __init__(self, config: RedisConfig) -> None:
        self._process = os.getpid()
        self._closing = AsyncExitStack()
        self.keys = Keys(config.prefix)
        self._client = make_client(config, self._closing)
        self._is_cluster = isinstance(self._client, RedisCluster)
        self.is_split = self._is_cluster

    async def connect(self) -> None:
        """Find out what the server is, and let it know the scripts."""
        information = await self._information()
        self.is_split = self._is_cluster or _mode(information) == "cluster"
        if not self._is_cluster:
            pipeline = self._client.pipeline(transaction=False)
            for script in SCRIPTS:
                pipeline.execute_command("SCRIPT LOAD", script.text, **_BYTES)
            await pipeline.execute(raise_on_error=False)

    async def aclose(self) -> None:
        """Close what was made for this object: not a client of the caller's own."""
        await self._closing.aclose()

    def abandon(self) -> None:
        """Let go of the connections without touching them."""
        if self._process != os.getpid():
            _inherited.append(self._client)

    def index(self, key: SessionKey) -> tuple[bytes, bytes]:
        """Return where scripts find the catalogue, empty where they cannot use it, and the user."""
        index = b"" if self.is_split else self.keys.index(key.namespace)
        return index, key.user_id.encode()

    async def run(
        self, script: Script, key: SessionKey, *arguments: bytes, stream: bytes = b"main"
    ) -> Any:
        """Run a script on a session and one of its streams, and return the answer."""
        answer = await self.run_on(script, self.keys.stream(key, stream), *arguments)
        return _intact(answer, key)

    async def run_on(self, script: Script, keys: Sequence[bytes], *arguments: bytes) -> Any:
        """Run a script on keys of one slot and return the answer, texts as bytes."""
        rest = (len(keys), *keys, *arguments)
        try:
            return await self._client.execute_command("EVALSHA", script.digest, *rest, **_BYTES)
        except NoScriptError:
            return await self._client.execute_command("EVAL", script.text, *rest, **_BYTES)

    async def run_before(
        self,
        commands: Sequence[Sequence[bytes | str | int]],
        script: Script,
        key: SessionKey,
        *arguments: bytes,
        stream: bytes,
    ) -> list[Any]:
        """Run a script, then commands, in one trip, and return the answers.

        Others may come in between.
        """
        keys = self.keys.stream(key, stream)
        rest: Sequence[bytes | int] = (len(keys), *keys, *arguments)
        answers = await self._together([("EVALSHA", script.digest, *rest), *commands])
        if isinstance(answers[0], NoScriptError):
            answers = await self._together([("EVAL", script.text, *rest), *commands])
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        _intact(answers[0], key)
        return answers

    async def _together(self, commands: Sequence[Sequence[bytes | str | int]]) -> list[Any]:
        """Return the answers to several commands, errors among them, after one trip."""
        pipeline = self._client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command, **_BYTES)
        answers: list[Any] = await pipeline.execute(raise_on_error=False)
        return answers

    async def read_sessions(self, sessions: Sequence[SessionKey]) -> list[Fields]:
        """Return the fields of each session, none of one that is not there.

        It takes one trip to each node.
        """
        pipeline = self._client.pipeline(transaction=False)
        for key in sessions:
            pipeline.execute_command("HGETALL", self.keys.session(key), **_BYTES)
        answers: list[Fields] = await pipeline.execute()
        return answers

    async def change_sets(
        self, wanted: Mapping[bytes, frozenset[bytes]], sets: frozenset[bytes]
    ) -> None:
        """Put each member into those of the sets where it is wanted, and take it out of the others.

        The sets are all of one slot.
        """
        pipeline = self._client.pipeline(transaction=False)
        for member, names in wanted.items():
            for name in names:
                pipeline.execute_command("ZADD", name, 0, member)
            for name in sets - names:
                pipeline.execute_command("ZREM", name, member)
        await pipeline.execute()

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
            answer = await self._client.execute_command("CONFIG GET", *SETTINGS, **options)
        except ResponseError:  # many hosted servers keep them to themselves
            return {}
        nodes = list(answer.values()) if self._is_cluster else [answer]
        return {
            name: ", ".join(sorted({str(node.get(name)) for node in nodes})) for name in SETTINGS
        }

    async def _information(self) -> dict[str, Any]:
        try:
            information: dict[str, Any] = await self._client.info("server")
        except ResponseError:
            return {}
        return information


def _intact(answer: Any, key: SessionKey) -> Any:
    """Return the answer of a script that found all parts of the session."""
    if answer[0] == b"damaged":
        raise damaged(key)
    return answer


def new_operation() -> bytes:
    """Return a name for one change, by which a script knows it when it is sent again."""
    return os.urandom(8).hex().encode()


def _mode(information: Mapping[str, Any]) -> str:
    """Return ``standalone``, ``cluster`` or ``sentinel``; Valkey has another word for it."""
    return str(information.get("redis_mode") or information.get("server_mode", "unknown"))
