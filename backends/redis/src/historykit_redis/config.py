"""The settings of the Redis backend."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from historykit.errors import ConfigError
from historykit.redaction import redacted_repr

__all__ = ["RedisConfig"]

SCHEMES: Final = frozenset(
    {
        "redis",
        "rediss",
        "unix",
        "redis+cluster",
        "rediss+cluster",
        "redis+sentinel",
        "rediss+sentinel",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RedisConfig:
    """Where a history lives, and how it is reached: by a `url`, or with a `client`.

    Raises `ConfigError` for a setting that is wrong.
    """

    url: str | None = None
    """The server, in the form that redis-py takes, options of its connections included:

    - ``redis://user:password@host:6379/0``, ``rediss://…`` with TLS, ``unix:///path?db=0``
    - ``redis+cluster://user:password@host:7000``, any node of a cluster; with TLS
      ``rediss+cluster://…``
    - ``redis+sentinel://user:password@sentinel1:26379,sentinel2:26379/service/0``: the sentinels,
      the name they know the primary by, and its database; user and password are the primary's, the
      sentinels ask for none; with TLS ``rediss+sentinel://…``"""

    client: Any = None
    """A `redis.asyncio.Redis` or `RedisCluster` of the caller's own, who closes it.

    With its own timeouts and retries, and whatever its ``decode_responses``."""

    prefix: str = ""
    """What all keys begin with, so that others can share the database."""

    timeout: float = 5.0
    """How many seconds a connection attempt, or a command, may take before it is tried again.

    After three more attempts the call fails as unavailable. Not for a `client`."""

    max_connections: int = 50
    """How many connections are open at most, to each node of a cluster; more calls wait.

    Not for a `client`."""

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        if (self.url is None) == (self.client is None):
            raise ConfigError(
                "the redis backend needs a url or a client, and not both: "
                "url='redis://localhost:6379/0'",
                field="url",
            )
        if self.url is not None and self.url.partition("://")[0] not in SCHEMES:
            raise ConfigError(
                f"url of the redis backend must begin with one of {', '.join(sorted(SCHEMES))}, "
                "followed by ://",
                field="url",
            )
        if self.client is not None:
            _check_client(self.client)
        if not {"{", "}"}.isdisjoint(self.prefix):
            raise ConfigError(
                "prefix of the redis backend must not contain braces, which choose the slot of a "
                "key",
                field="prefix",
            )
        if not 0 < self.timeout < math.inf:
            raise ConfigError(
                f"timeout of the redis backend must be more than 0 seconds, not {self.timeout}",
                field="timeout",
            )
        if self.max_connections < 1:
            raise ConfigError(
                "max_connections of the redis backend must be 1 or more, "
                f"not {self.max_connections}",
                field="max_connections",
            )


def _check_client(client: object) -> None:
    from redis.asyncio import Redis, RedisCluster  # whoever has a client has the driver

    if not isinstance(client, Redis | RedisCluster):
        raise ConfigError(
            "client of the redis backend must be a redis.asyncio.Redis or RedisCluster, not "
            f"{type(client).__module__}.{type(client).__qualname__}",
            field="client",
        )
