"""The tables, and how a database gets from one version of them to the next.

No index holds a column that an append changes, so that it rewrites a session's row within its page
(a heap-only tuple) and touches no index of it. Nothing refers to a session by a foreign key, which
would be checked anew for each message: whoever writes to a session holds the lock of its row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from historykit.errors import StorageError
from historykit_postgres.config import PostgresConfig
from historykit_postgres.drivers import Driver
from historykit_postgres.names import Names, quoted
from historykit_postgres.transactions import atomically

__all__ = ["MIGRATIONS", "Migration", "ddl", "prepare", "schema_version"]

Migration = Sequence[str]
"""The statements that lead from one version to the next, with names of tables in braces."""

SESSIONS: Final = """
CREATE TABLE {sessions} (
    id bigint GENERATED ALWAYS AS IDENTITY (CACHE 50) PRIMARY KEY,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    last_message_at bigint,
    version bigint NOT NULL DEFAULT 0,
    revision bigint NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    next_sequence bigint NOT NULL DEFAULT 1,
    largest bigint NOT NULL DEFAULT 0,
    run_expires_at bigint,
    memory_enabled boolean NOT NULL,
    key bytea NOT NULL UNIQUE,
    namespace text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    incarnation text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    run_id text COLLATE "C",
    live jsonb NOT NULL DEFAULT '{{}}',
    trimmed jsonb NOT NULL DEFAULT '{{}}',
    recent text[] COLLATE "C" NOT NULL DEFAULT '{{}}'
) WITH (fillfactor = 50)
"""
"""One row a session. Every append rewrites it: so it is small, and its pages have room for that.

`key` is a digest of namespace, user and session id. By these themselves a session could be found
through several indexes, and some would be walked from one end to the other.

`live` and `trimmed` hold, by the names of streams, how many messages are there and how many more
retention removed. `recent` holds marks of the newest message ids. No body that was ever there has
more bytes than `largest`."""

BODIES: Final = """
CREATE TABLE {session_bodies} (
    session bigint PRIMARY KEY,
    body bytea NOT NULL
)
"""

LABELS: Final = """
CREATE TABLE {session_labels} (
    session bigint NOT NULL,
    label text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, label)
)
"""

MESSAGES: Final = """
CREATE TABLE {messages} (
    session bigint NOT NULL,
    sequence bigint NOT NULL,
    created_at bigint NOT NULL,
    revision integer NOT NULL DEFAULT 0,
    turn_start boolean NOT NULL,
    stream text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    reaction text COLLATE "C",
    digest bytea NOT NULL,
    body bytea NOT NULL,
    extra bytea,
    PRIMARY KEY (session, stream, sequence),
    UNIQUE (session, id)
)
"""

VERSION: Final = "CREATE TABLE {schema_version} (version integer NOT NULL)"

MIGRATIONS: Final[tuple[Migration, ...]] = (
    (
        SESSIONS,
        BODIES,
        LABELS,
        MESSAGES,
        "CREATE INDEX {sessions_by_time} "
        "ON {sessions} (namespace, created_at, session_id, user_id)",
        "CREATE INDEX {sessions_by_user} "
        "ON {sessions} (namespace, user_id, created_at, session_id)",
        "CREATE INDEX {sessions_by_agent} "
        "ON {sessions} (namespace, agent_id, created_at, session_id, user_id)",
        "CREATE INDEX {sessions_by_status} "
        "ON {sessions} (namespace, status, created_at, session_id, user_id)",
        "CREATE INDEX {sessions_by_label} ON {session_labels} (label, session)",
        "CREATE INDEX {messages_by_turn} "
        "ON {messages} (session, stream, sequence) WHERE turn_start",
    ),
    (
        "CREATE INDEX {sessions_by_memory} "
        "ON {sessions} (namespace, memory_enabled, created_at, session_id, user_id)",
    ),
)
"""The way from an empty database to version 1, from version 1 to version 2, and so on."""

# Not to_regclass: behind a lock that was waited for, it may still answer as before.
FIND_TABLE: Final = """
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname = $1::text
      AND CASE WHEN $2::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = $2::text END
)
"""
READ_VERSION: Final = "SELECT version FROM {schema_version}"
FIND_SCHEMA: Final = """
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1::text)
"""
LOCK: Final = "SELECT pg_advisory_xact_lock($1::bigint)"


def ddl(config: PostgresConfig) -> str:
    """Return the statements that make all tables, for somebody whose role may do so.

    Opening a store afterwards finds the tables and makes none. The store's own role needs USAGE on
    the schema and SELECT, INSERT, UPDATE and DELETE on the tables.
    """
    names = Names(config)
    statements = [*_creation(names), *_steps(names, MIGRATIONS, 0), _note(names, len(MIGRATIONS))]
    return "".join(f"{statement};\n" for statement in ["BEGIN", *statements, "COMMIT"])


async def prepare(
    driver: Driver, names: Names, migrations: Sequence[Migration], *, migrate: bool
) -> None:
    """Bring the tables to the newest version, in one transaction however many steps it takes.

    Killed midway, they stay at the version that they had. Of several workers at once, one does it
    and the others find it done. Raises `StorageError` for tables that are newer than `migrations`,
    or older where `migrate` is False.
    """
    found = await schema_version(driver, names, migrations)
    if found == len(migrations):
        return
    if found and not migrate:
        raise StorageError(
            f"{names.table('sessions')} has schema version {found}, and this version of "
            f"historykit-postgres needs {len(migrations)}; back the database up, then open it once "
            "with migrate=True"
        )
    await atomically(driver, lambda driver: _migrate(driver, names, migrations))


async def schema_version(driver: Driver, names: Names, migrations: Sequence[Migration]) -> int:
    """Return the version that the tables have, 0 where there are none.

    Raises `StorageError` for one that is newer than `migrations`.
    """
    ((exists,),) = await driver.fetch(FIND_TABLE, names.prefix + "schema_version", names.schema)
    if not exists:
        return 0
    ((version,),) = await driver.fetch(names(READ_VERSION))
    if version > len(migrations):
        raise StorageError(
            f"{names.table('sessions')} has schema version {version}, and this version of "
            f"historykit-postgres knows {len(migrations)} at most; upgrade historykit-postgres"
        )
    return int(version)


async def _migrate(driver: Driver, names: Names, migrations: Sequence[Migration]) -> None:
    # CREATE TABLE IF NOT EXISTS fails where two do it at once.
    await driver.fetch(LOCK, names.lock)
    found = await schema_version(driver, names, migrations)
    if found == len(migrations):
        return
    if found == 0:
        for statement in await _missing(driver, names):
            await driver.execute(statement)
    for statement in (*_steps(names, migrations, found), _note(names, len(migrations))):
        await driver.execute(statement)


async def _missing(driver: Driver, names: Names) -> list[str]:
    """Return what has to be created before the first migration.

    CREATE SCHEMA needs the right to do so even where IF NOT EXISTS has nothing to do.
    """
    statements = _creation(names)
    if names.schema is None:
        return statements
    ((exists,),) = await driver.fetch(FIND_SCHEMA, names.schema)
    return statements[1:] if exists else statements


def _creation(names: Names) -> list[str]:
    statements = [names(VERSION), names("INSERT INTO {schema_version} VALUES (0)")]
    if names.schema is not None:
        statements.insert(0, f"CREATE SCHEMA IF NOT EXISTS {quoted(names.schema)}")
    return statements


def _steps(names: Names, migrations: Sequence[Migration], found: int) -> list[str]:
    return [names(statement) for step in migrations[found:] for statement in step]


def _note(names: Names, version: int) -> str:
    return names(f"UPDATE {{schema_version}} SET version = {version}")
