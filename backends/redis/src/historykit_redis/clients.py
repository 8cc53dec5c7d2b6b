"""Clients made from a URL, which goes to redis-py's own parser."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import FullJitterBackoff
from redis.exceptions import ConnectionError, TimeoutError

from historykit.errors import ConfigError
from historykit_redis.config import RedisConfig

__all__ = ["make_client"]

RETRIES = 3
"""How often a command is sent again. All that is sent can be: the scripts recognize it."""


def make_client(config: RedisConfig, closing: AsyncExitStack) -> Any:
    """Return the client for `config`. What is made for it is closed by `closing`.

    Raises `ConfigError` for a URL that cannot be read.
    """
    if config.client is not None:
        return config.client
    scheme, _, rest = str(config.url).partition("://")
    scheme, _, kind = scheme.partition("+")
    try:
        if kind == "sentinel":
            return _behind_sentinels(f"{scheme}://{rest}", config, closing)
        client = _of_cluster if kind == "cluster" else _of_server
        made = client(f"{scheme}://{rest}", config)
    except (ValueError, TypeError, LookupError) as error:
        raise _unreadable(error) from None
    closing.push_async_callback(made.aclose)
    return made


def _unreadable(error: Exception) -> ConfigError:
    # The text of the error may show the URL, which may hold a password.
    return ConfigError(
        f"url of the redis backend cannot be read ({type(error).__name__}); compare it with the "
        "forms that RedisConfig describes",
        field="url",
    )


def _of_server(url: str, config: RedisConfig) -> Any:
    pool = BlockingConnectionPool.from_url(
        url, max_connections=config.max_connections, timeout=None, **_options(config)
    )
    return Redis.from_pool(pool)


def _of_cluster(url: str, config: RedisConfig) -> Any:
    return RedisCluster.from_url(url, **_options(config))


def _behind_sentinels(url: str, config: RedisConfig, closing: AsyncExitStack) -> Any:
    """Return a client for the primary that sentinels know by the name in the path."""
    parts = urlsplit(url)
    credentials, at, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError("no service")
    sentinels = [urlsplit(f"//{host}") for host in hosts.split(",")]
    primary = parts._replace(netloc=f"{credentials}{at}primary", path=f"/{database}")
    options = {**_options(config), **parse_url(urlunsplit(primary))}
    uses_tls = options.pop("connection_class", None) is not None
    del options["host"]
    sentinel_client: Any = Sentinel
    manager = sentinel_client(
        [(each.hostname or "localhost", each.port or 26379) for each in sentinels],
        sentinel_kwargs={"ssl": uses_tls, **_options(config)},
    )
    for sentinel in manager.sentinels:
        closing.push_async_callback(sentinel.aclose)
    client = manager.master_for(
        service,
        connection_pool_class=_SentinelPool,
        ssl=uses_tls,
        max_connections=config.max_connections,
        timeout=None,
        **options,
    )
    closing.push_async_callback(client.aclose)
    return client


class _SentinelPool(SentinelConnectionPool, BlockingConnectionPool):
    """A pool whose callers wait for a connection instead of being refused one."""


def _options(config: RedisConfig) -> dict[str, Any]:
    """Return what is not said in the URL."""
    return {
        "socket_timeout": config.timeout,
        "socket_connect_timeout": config.timeout,
        "retry": Retry(FullJitterBackoff(cap=1.0, base=0.05), RETRIES),
        "retry_on_error": [ConnectionError, TimeoutError],
        # With version 3 a connection takes one trip more to set up and answers nothing better.
        "protocol": 2,
    }
