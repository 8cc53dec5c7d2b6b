"""What a configuration accepts, and what it shows of itself."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from historykit.config import Text, build_config
from historykit.errors import ConfigError
from historykit.plugins import load_backend
from historykit_postgres import PostgresConfig, PostgresStore

URL = "postgresql://ada:se%40cret@db.example:5432/chat?sslmode=require"


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "postgres://localhost/chat",
        "postgresql+asyncpg://localhost/chat",
        "postgresql+psycopg://localhost/chat",
        "postgresql:///chat?host=/run/postgresql",
        "postgresql://one,two:5433/chat?target_session_attrs=read-write",
    ],
)
def test_urls_of_libpq_are_accepted(url: str) -> None:
    """A URL may have any form that libpq takes, with a driver of the two."""
    assert PostgresConfig(url=url).url == url


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({}, "url"),
        ({"url": "mysql://localhost/chat"}, "url"),
        ({"url": "host=localhost dbname=chat"}, "url"),
        ({"url": "postgresql+psycopg2://localhost/chat"}, "url"),
        ({"url": URL, "schema": ""}, "schema"),
        ({"url": URL, "schema": "x" * 64}, "schema"),
        ({"url": URL, "table_prefix": "x" * 33}, "table_prefix"),
        ({"url": URL, "table_prefix": "a\0b"}, "table_prefix"),
        ({"url": URL, "pool_size": 0}, "pool_size"),
        ({"url": URL, "timeout": 0}, "timeout"),
        ({"url": URL, "timeout": float("inf")}, "timeout"),
    ],
)
def test_settings_that_are_wrong_are_refused(settings: dict[str, Any], field: str) -> None:
    """A setting that cannot work is a ConfigError that names its field and shows no secret."""
    with pytest.raises(ConfigError) as caught:
        PostgresConfig(**settings)
    assert caught.value.field == field
    assert "se%40cret" not in str(caught.value)


def test_an_engine_goes_in_the_place_of_a_url_and_not_beside_it() -> None:
    """Exactly one of url, engine and connection is given."""
    engine = create_async_engine("postgresql+asyncpg://localhost/chat")
    assert PostgresConfig(engine=engine).engine is engine
    with pytest.raises(ConfigError, match="url of the postgres backend"):
        PostgresConfig(url=URL, engine=engine)


def test_the_password_is_not_shown() -> None:
    """Neither the configuration nor a store or an engine shows a password."""
    engine = create_async_engine("postgresql+asyncpg://ada:se%40cret@db.example/chat")
    for config in (PostgresConfig(url=URL), PostgresConfig(engine=engine)):
        shown = repr(config) + repr(PostgresStore(config))
        assert "se%40cret" not in shown
        assert "se@cret" not in shown
        assert "db.example" in shown


def test_settings_come_from_text() -> None:
    """All settings but an engine and a connection can be given in the environment."""
    values = {
        "url": "postgresql://localhost/chat",
        "schema": "chat",
        "prepared_statements": "no",
        "pool_size": "3",
        "timeout": "2.5",
        "migrate": "yes",
    }
    texts = {name: Text(value, name.upper()) for name, value in values.items()}
    config = build_config(load_backend("postgres"), texts)
    assert (config.prepared_statements, config.pool_size, config.timeout) == (False, 3, 2.5)
    with pytest.raises(ConfigError, match="ENGINE is not accepted"):
        build_config(load_backend("postgres"), {"engine": Text("x", "ENGINE")})
