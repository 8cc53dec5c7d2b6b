"""How the tables come to be, and how they get to the newest version."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from historykit.errors import StorageError
from historykit.session_records import SessionDraft, SessionKey, SessionQuery
from historykit.testing.drafts import drafts, texts
from historykit_postgres import PostgresConfig, PostgresStore, ddl
from historykit_postgres.schema import MIGRATIONS
from tests.services.postgres import connect

pytestmark = pytest.mark.asyncio

Inside = Callable[..., list[Any]]
Make = Callable[..., PostgresStore]
Start = Callable[..., Any]

NEXT = (
    "ALTER TABLE {sessions} ADD COLUMN colour text NOT NULL DEFAULT 'green'",
    "UPDATE {sessions} SET colour = 'blue'",
)
NEWER = (*MIGRATIONS, NEXT)

UPGRADE = """
from historykit_postgres.schema import MIGRATIONS

class Newer(PostgresStore):
    _migrations = (*MIGRATIONS, arguments)

async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    config = PostgresConfig(url=url, schema=schema, migrate=True)
    async with Newer(config) as store:
        print(len((await store.read(key)).messages))

asyncio.run(main())
"""

CREATE = """
async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    async with make() as store:
        await store.read(key)
        await store.append(key, drafts(arguments[0], 2))

asyncio.run(main())
"""

README = Path(__file__).parents[1] / "README.md"

THIS = len(MIGRATIONS)
"""The version of the schema."""


class NewerStore(PostgresStore):
    """A store of the next version, which needs a column more."""

    _migrations = NEWER


@pytest.fixture
def config(url: str, postgres_schema: str) -> Callable[..., PostgresConfig]:
    """Return a function that makes a configuration for the test's schema."""

    def config(**settings: Any) -> PostgresConfig:
        return PostgresConfig(**{"url": url, "schema": postgres_schema, **settings})

    return config


@pytest_asyncio.fixture
async def older(make: Make, key: SessionKey) -> None:
    """Tables of this version, which is the older one for `NewerStore`."""
    async with make() as store:
        await store.append(key, drafts("m", 3))


@pytest.fixture
def reader(postgres_url: str, postgres_schema: str) -> Iterator[str]:
    """A role that may use the tables of the schema and create nothing."""
    name = f"hk_{secrets.token_hex(6)}"
    with connect(postgres_url) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'p%w'")  # type: ignore[arg-type]  # no user's
        yield name
        connection.execute(f"DROP OWNED BY {name}")  # type: ignore[arg-type]  # no user's
        connection.execute(f"DROP ROLE {name}")  # type: ignore[arg-type]  # no user's


def version(inside: Inside) -> int:
    ((number,),) = inside("SELECT version FROM historykit_schema_version")
    return int(number)


async def test_an_older_schema_is_not_upgraded_unasked(
    older: None, config: Callable[..., PostgresConfig], inside: Inside
) -> None:
    """Opening older tables says which setting upgrades them, and leaves them as they are."""
    with pytest.raises(
        StorageError, match=rf"schema version {THIS}.*needs {THIS + 1}.*migrate=True"
    ):
        await NewerStore(config()).open()
    assert version(inside) == THIS


async def test_an_older_schema_is_upgraded_when_asked(
    older: None, config: Callable[..., PostgresConfig], key: SessionKey, inside: Inside
) -> None:
    """With `migrate` the tables get the new columns and keep the messages."""
    async with NewerStore(config(migrate=True)) as store:
        page = await store.read(key)
        assert (await store.ping()).settings["schema_version"] == str(THIS + 1)
    assert texts(page.messages) == ["m 0", "m 1", "m 2"]
    assert inside("SELECT colour FROM historykit_sessions") == [("blue",)]


@pytest.mark.parametrize("earlier", range(1, THIS))
async def test_tables_of_each_version_get_the_schema_of_this_one(
    config: Callable[..., PostgresConfig], key: SessionKey, inside: Inside, earlier: int
) -> None:
    """Tables that any earlier version made have after the upgrade what new ones have."""

    class Older(PostgresStore):
        _migrations = MIGRATIONS[:earlier]

    async with Older(config()) as store:
        await store.append(key, drafts("m", 3))
    async with PostgresStore(config(migrate=True)) as store:
        assert len((await store.read(key)).messages) == 3
    upgraded = described(inside)
    inside("DROP SCHEMA " + config().schema + " CASCADE")
    async with PostgresStore(config()):
        assert described(inside) == upgraded


async def test_new_tables_have_the_newest_schema_at_once(
    config: Callable[..., PostgresConfig], inside: Inside
) -> None:
    """Tables that are not there are made with all steps and without asking."""
    async with NewerStore(config()):
        pass
    assert version(inside) == THIS + 1
    assert inside("SELECT colour FROM historykit_sessions") == []


async def test_a_schema_of_a_newer_version_is_refused(
    older: None, make: Make, inside: Inside
) -> None:
    """Tables that a newer version made are refused and left as they are."""
    inside("UPDATE historykit_schema_version SET version = 9")
    with pytest.raises(StorageError, match=r"schema version 9.*upgrade historykit-postgres"):
        await make(migrate=True).open()
    assert version(inside) == 9


async def test_a_migration_that_fails_leaves_the_old_version(
    older: None, config: Callable[..., PostgresConfig], make: Make, inside: Inside
) -> None:
    """A step that cannot be done leaves nothing of it behind, and the old version goes on."""

    class Broken(PostgresStore):
        _migrations = (*NEWER, ("DROP TABLE nothing",))

    with pytest.raises(StorageError, match="nothing"):
        await Broken(config(migrate=True)).open()
    async with make() as store:
        assert (await store.ping()).settings["schema_version"] == str(THIS)
    columns = "SELECT 1 FROM information_schema.columns WHERE column_name = 'colour'"
    assert inside(f"{columns} AND table_schema = current_schema()") == []


async def test_a_migration_killed_midway_leaves_the_old_version(
    older: None,
    config: Callable[..., PostgresConfig],
    start: Start,
    key: SessionKey,
    make: Make,
    inside: Inside,
) -> None:
    """A process killed while it migrates leaves tables that open as before and can migrate."""
    process = start(UPGRADE, *NEXT, "SELECT pg_sleep(60)")
    go([process])
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%%'"
    while inside(sleeping) == [(0,)]:
        assert process.poll() is None, process.stderr.read()
        await asyncio.sleep(0.02)
    process.kill()
    process.wait()
    inside(sleeping.replace("count(*)", "pg_terminate_backend(pid)"))
    async with make() as store:
        assert len((await store.read(key)).messages) == 3
    async with NewerStore(config(migrate=True)) as store:
        assert len((await store.read(key)).messages) == 3
    assert version(inside) == THIS + 1


async def test_of_five_processes_one_migrates(older: None, start: Start, inside: Inside) -> None:
    """Processes that migrate at the same time all find the tables migrated, once."""
    processes = [start(UPGRADE, *NEXT) for _ in range(5)]
    go(processes)
    assert [process.communicate() for process in processes] == [("3\n", "")] * 5
    assert version(inside) == THIS + 1


async def test_first_use_by_eight_workers(
    postgres_url: str, url: str, postgres_schema: str, key: SessionKey
) -> None:
    """Eight stores that meet at a database without the schema all make it, read and write: 20
    times."""
    config = PostgresConfig(url=url, schema=postgres_schema, pool_size=1)

    async def use(number: int) -> None:
        async with PostgresStore(config) as store:
            assert len((await store.read(key)).messages) in range(0, 17, 2)
            await store.append(key, drafts(str(number), 2))

    for _ in range(20):
        await asyncio.gather(*(use(number) for number in range(8)))
        async with PostgresStore(config) as store:
            assert len((await store.read(key)).messages) == 16
        with connect(postgres_url) as connection:
            connection.execute(f"DROP SCHEMA {postgres_schema} CASCADE")  # type: ignore[arg-type]  # no user's


async def test_first_use_by_five_processes(make: Make, key: SessionKey, start: Start) -> None:
    """The same with processes that begin at the same time."""
    processes = [start(CREATE, number) for number in range(5)]
    go(processes)
    assert [process.communicate() for process in processes] == [("", "")] * 5
    async with make() as store:
        assert len((await store.read(key)).messages) == 10


async def test_names_that_have_to_be_quoted(url: str, postgres_url: str, key: SessionKey) -> None:
    """Schema and prefix may be any names; what differs in them is apart."""
    schemas = [f'my "{secrets.token_hex(4)}" Schema; é', f"hk_{secrets.token_hex(6)}"]
    prefixes = ['p"; DROP TABLE x; --', "", "Prefix."]
    places = [(schema, prefix) for schema in schemas for prefix in prefixes]
    try:
        for number, (schema, prefix) in enumerate(places):
            config = PostgresConfig(url=url, schema=schema, table_prefix=prefix)
            async with PostgresStore(config) as store:
                fields = SessionDraft(labels=frozenset({"l"}), body=b"b")
                await store.create_session(key, fields)
                await store.append(key, drafts(str(number), 1))
                assert texts((await store.read(key)).messages) == [f"{number} 0"]
                assert (await store.find_sessions(SessionQuery(namespace="app"))).total == 1
    finally:
        with connect(postgres_url) as connection:
            for schema in schemas:
                name = psycopg.sql.Identifier(schema)
                connection.execute(psycopg.sql.SQL("DROP SCHEMA {} CASCADE").format(name))


async def test_without_a_schema_the_search_path_decides(
    url: str, postgres_schema: str, key: SessionKey, inside: Inside
) -> None:
    """Tables without a named schema are made and found in the first schema of the search path."""
    inside(f"CREATE SCHEMA {postgres_schema}")
    config = PostgresConfig(url=f"{url}?options=-c%20search_path%3D{postgres_schema}")
    for count in (1, 2):
        async with PostgresStore(config) as store:
            await store.append(key, drafts("m", 1))
            assert (await store.read_tail(key)).count == count
    assert version(inside) == THIS


async def test_a_role_that_may_not_create(
    url: str, postgres_schema: str, reader: str, key: SessionKey, inside: Inside
) -> None:
    """A role without the right to create is told where the statements are; once another role has
    executed them it can do all that a store does."""
    own_url = url.replace("//postgres@", f"//{reader}:p%25w@").replace(
        "//postgres:secret@", f"//{reader}:p%25w@"
    )
    assert own_url != url
    config = PostgresConfig(url=own_url, schema=postgres_schema)
    with pytest.raises(StorageError, match=r"historykit_postgres\.ddl\(config\)") as caught:
        await PostgresStore(config).open()
    assert "p%w" not in str(caught.value)
    assert "p%25w" not in str(caught.value)
    inside(ddl(config).replace("%", "%%"))
    inside(f"GRANT USAGE ON SCHEMA {postgres_schema} TO {reader}")
    rights = "SELECT, INSERT, UPDATE, DELETE"
    inside(f"GRANT {rights} ON ALL TABLES IN SCHEMA {postgres_schema} TO {reader}")
    async with PostgresStore(config) as store:
        await store.create_session(key, SessionDraft(labels=frozenset({"l"}), body=b"b"))
        await store.append(key, drafts("m", 2))
        assert (await store.delete_session(key)).messages == 2


async def test_printed_statements_make_what_a_store_makes(
    config: Callable[..., PostgresConfig], make: Make, inside: Inside
) -> None:
    """What `ddl` returns makes the same tables, columns and indexes as opening a store does."""
    async with make():
        pass
    made = described(inside)
    inside("DROP SCHEMA " + config().schema + " CASCADE")
    inside(ddl(config()))
    assert described(inside) == made
    assert len(made) > 40
    async with make() as store:
        assert (await store.ping()).settings["schema_version"] == str(THIS)


async def test_the_documented_statements_are_those_that_ddl_returns() -> None:
    """The README shows what is executed."""
    statements = ddl(PostgresConfig(url="postgresql://localhost/chat"))
    _, _, rest = README.read_text("utf-8").partition("```sql\n")
    documented, _, _ = rest.partition("```")
    assert documented == statements


def described(inside: Inside) -> list[Any]:
    """Return the columns and indexes that a schema has."""
    columns = """
        SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name
        FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 2
    """
    indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1"
    return inside(columns) + inside(indexes)


def go(processes: list[Any]) -> None:
    """Let processes begin when all of them are ready."""
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
