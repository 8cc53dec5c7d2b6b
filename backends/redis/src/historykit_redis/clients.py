"""Clients made from a URL, which goes to redis-py's own parser."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import FullJitterBackoff
from redis.exceptions import ConnectionError, TimeoutError

from historykit.errors import ConfigError
from historykit_redis.config import RedisConfig

__all__ = ["make_client"]

RETRIES = 3
"""How often a command is sent again. All that is sent can be: the scripts recognize it."""


def make_client(config: RedisConfig, closing: AsyncExitStack) -> Any:
    """Return a client for the URL. `closing` closes all that is made.

    Raises `ConfigError` for a URL that cannot be read.
    """
    scheme, _, rest = str(config.url).partition("://")
    scheme, _, kind = scheme.partition("+")
    make = {"cluster": _of_cluster, "sentinel": _behind_sentinels}.get(kind, _of_server)
    try:
        return make(f"{scheme}://{rest}", config, closing)
    except (ValueError, TypeError, LookupError) as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> ConfigError:
    # The text of the error may show the URL, which may hold a password.
    return ConfigError(
        f"url of the redis backend cannot be read ({type(error).__name__}); compare it with the "
        "forms that RedisConfig describes",
        field="url",
    )


def _of_server(url: str, config: RedisConfig, closing: AsyncExitStack) -> Any:
    client = Redis.from_url(url, **_options(config))
    closing.push_async_callback(client.aclose)
    return client


def _of_cluster(url: str, config: RedisConfig, closing: AsyncExitStack) -> Any:
    client = RedisCluster.from_url(url, **_options(config))
    closing.push_async_callback(client.aclose)
    return client


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
    client = manager.master_for(service, ssl=uses_tls, **options)
    closing.push_async_callback(client.aclose)
    return client


def _options(config: RedisConfig) -> dict[str, Any]:
    """Return what is not said in the URL."""
    return {
        "socket_timeout": config.timeout,
        "socket_connect_timeout": config.timeout,
        "retry": Retry(FullJitterBackoff(cap=1.0, base=0.05), RETRIES),
        "retry_on_error": [ConnectionError, TimeoutError],
        "max_connections": config.max_connections,
        # With version 3 a connection takes one trip more to set up and answers nothing better.
        "protocol": 2,
    }
