"""What is left of what was deleted, in each database. Memory is no place to look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import bson
import psycopg.sql
import pytest

from tests.catalogue.backends import OnMongo, OnPostgres, OnRedis, OnSQLite
from tests.catalogue.deletion import Contents, Deletion
from tests.services import mongo, postgres, redis

pytestmark = pytest.mark.asyncio


class TestSQLite(Deletion, OnSQLite):
    @pytest.fixture
    def contents(self, tmp_path: Path) -> Contents:
        """The bytes of the file, and of what SQLite keeps beside it."""
        return lambda: b"".join(each.read_bytes() for each in sorted(tmp_path.iterdir()))


class TestRedis(Deletion, OnRedis):
    @pytest.fixture
    def contents(self, redis_url: str, redis_prefix: str) -> Iterator[Contents]:
        """All keys with what they hold."""
        with redis.connect(redis_url) as client:

            def held(key: bytes) -> list[bytes]:
                if client.type(key) in (b"hash", "hash"):
                    return [part for pair in client.hgetall(key).items() for part in pair]
                return list(client.zrange(key, 0, -1))

            def contents() -> bytes:
                keys = sorted(client.scan_iter(f"{redis_prefix}*"))
                return b"".join(part for key in keys for part in (key, *held(key)))

            yield contents


class TestMongo(Deletion, OnMongo):
    @pytest.fixture
    def contents(self, mongo_url: str, mongo_database: str) -> Iterator[Contents]:
        """All documents of all collections."""
        with mongo.connect(mongo_url) as client:
            database = client[mongo_database]
            yield lambda: b"".join(
                bson.encode(document)
                for name in database.list_collection_names()
                for document in database[name].find()
            )


class TestPostgres(Deletion, OnPostgres):
    @pytest.fixture
    def contents(self, postgres_url: str, postgres_schema: str) -> Iterator[Contents]:
        """All rows of all tables."""
        schema = psycopg.sql.Identifier(postgres_schema)
        with postgres.connect(postgres_url) as connection:

            def contents() -> bytes:
                tables = connection.execute(
                    "SELECT tablename FROM pg_tables WHERE schemaname = %s", [postgres_schema]
                ).fetchall()
                parts = []
                for (table,) in tables:
                    name = psycopg.sql.Identifier(table)
                    query = psycopg.sql.SQL("SELECT * FROM {}.{}").format(schema, name)
                    parts += [value for row in connection.execute(query) for value in row]
                return b"".join(
                    value if isinstance(value, bytes) else repr(value).encode() for value in parts
                )

            yield contents
