"""A part of a server for one test, gone afterwards with all that is in it.

The server may be one that other people use: nothing else in it is touched."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg.sql
import pytest

from tests.services import mongo, postgres, redis

__all__ = ["mongo_database", "pgbouncer_schema", "postgres_schema", "redis_prefix"]


def name() -> str:
    """Return a name that nobody else has."""
    return f"hk_{secrets.token_hex(6)}"


@pytest.fixture
def redis_prefix(redis_url: str) -> Iterator[str]:
    """A prefix for keys."""
    prefix = f"{name()}:"
    yield prefix
    redis.delete_keys(redis_url, prefix)


@pytest.fixture
def postgres_schema(postgres_url: str) -> Iterator[str]:
    """The name of a schema that does not exist."""
    with _schema(postgres_url) as schema:
        yield schema


@pytest.fixture
def pgbouncer_schema(pgbouncer_url: str) -> Iterator[str]:
    """The same, behind the PgBouncer."""
    with _schema(pgbouncer_url) as schema:
        yield schema


@contextmanager
def _schema(url: str) -> Iterator[str]:
    schema = name()
    yield schema
    with postgres.connect(url) as connection:
        drop = psycopg.sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE")
        connection.execute(drop.format(psycopg.sql.Identifier(schema)))


@pytest.fixture
def mongo_database(mongo_url: str) -> Iterator[str]:
    """The name of a database that does not exist."""
    database = name()
    yield database
    with mongo.connect(mongo_url) as client:
        client.drop_database(database)
