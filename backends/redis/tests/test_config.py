from __future__ import annotations

import math
from typing import Any

import pytest

from historykit.config import build_config
from historykit.errors import ConfigError
from historykit.plugins import load_backend
from historykit_redis import RedisConfig


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({}, "url"),
        ({"url": "localhost:6379"}, "url"),
        ({"url": "http://localhost"}, "url"),
        ({"url": "redis://localhost", "prefix": "{x}"}, "prefix"),
        ({"url": "redis://localhost", "timeout": 0}, "timeout"),
        ({"url": "redis://localhost", "timeout": math.inf}, "timeout"),
        ({"url": "redis://localhost", "max_connections": 0}, "max_connections"),
        ({"client": "redis://localhost"}, "client"),
        ({"client": object(), "url": "redis://localhost"}, "url"),
    ],
)
def test_wrong_setting_is_named(settings: dict[str, Any], field: str) -> None:
    """A setting that is wrong is a ConfigError with its name."""
    with pytest.raises(ConfigError) as caught:
        RedisConfig(**settings)
    assert caught.value.field == field


def test_synchronous_client_is_refused() -> None:
    """A client of redis-py that is not asynchronous is refused by its name."""
    import redis

    with pytest.raises(ConfigError, match=r"redis\.client\.Redis"):
        RedisConfig(client=redis.Redis())


def test_password_is_not_shown() -> None:
    """The configuration shows where the server is and not the password."""
    shown = repr(RedisConfig(url="redis://ada:secret@db.example:6379/0?password=secret"))
    assert "secret" not in shown
    assert "db.example" in shown


def test_backend_is_found_by_name() -> None:
    """The backend is installed as redis and takes its settings from anywhere."""
    spec = load_backend("redis")
    config = build_config(spec, {"url": "redis://localhost", "timeout": 1})
    assert config == RedisConfig(url="redis://localhost", timeout=1.0)
