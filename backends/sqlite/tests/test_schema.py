"""Which files a store opens, and how a file gets to the newest schema."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from historykit.errors import StorageError
from historykit.session_records import SessionKey
from historykit.testing.drafts import drafts, texts
from historykit_sqlite import SQLiteConfig, SQLiteStore
from historykit_sqlite.schema import MIGRATIONS

pytestmark = pytest.mark.asyncio

NEWER = (
    *MIGRATIONS,
    (
        "ALTER TABLE sessions ADD COLUMN colour TEXT NOT NULL DEFAULT 'green'",
        "UPDATE sessions SET colour = 'blue'",
    ),
)

UPGRADE = """
from historykit_sqlite.schema import MIGRATIONS

class Newer(SQLiteStore):
    _migrations = (*MIGRATIONS, arguments)

async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    async with Newer(SQLiteConfig(path=path, migrate=True, busy_timeout=20)) as store:
        print(len((await store.read(key)).messages))

asyncio.run(main())
"""

CREATE = """
async def main():
    for number in range(int(arguments[1])):
        print("ready", flush=True)
        sys.stdin.readline()
        store = SQLiteStore(SQLiteConfig(path=os.path.join(os.path.dirname(path), f"{number}.db")))
        async with store:
            await store.read(key)
            await store.append(key, drafts(arguments[0], 2))
        print("done", flush=True)

asyncio.run(main())
"""

Inside = Callable[..., list[Any]]

THIS = len(MIGRATIONS)
"""The version of the schema."""


class NewerStore(SQLiteStore):
    """A store of the next version, which needs a column more."""

    _migrations = NEWER


@pytest_asyncio.fixture
async def older(make: Callable[..., SQLiteStore], key: SessionKey, path: Path) -> Path:
    """A file of this version, which is the older one for `NewerStore`."""
    async with make() as store:
        await store.append(key, drafts("m", 3))
    return path


async def test_an_older_file_is_not_upgraded_unasked(older: Path, inside: Inside) -> None:
    """Opening an older file says which setting upgrades it, and leaves it as it is."""
    before = older.read_bytes()
    with pytest.raises(
        StorageError, match=rf"schema version {THIS}.*needs {THIS + 1}.*migrate=True"
    ):
        await NewerStore(SQLiteConfig(path=older)).open()
    assert older.read_bytes() == before


async def test_an_older_file_is_upgraded_when_asked(
    older: Path, key: SessionKey, inside: Inside
) -> None:
    """With `migrate` the file gets the new schema and keeps its messages."""
    async with NewerStore(SQLiteConfig(path=older, migrate=True)) as store:
        page = await store.read(key)
    assert texts(page.messages) == ["m 0", "m 1", "m 2"]
    assert inside("SELECT colour FROM sessions") == [("blue",)]
    assert inside("PRAGMA user_version") == [(THIS + 1,)]


@pytest.mark.parametrize("version", range(1, THIS))
async def test_a_file_of_each_version_gets_the_schema_of_this_one(
    path: Path, key: SessionKey, inside: Inside, version: int
) -> None:
    """A file that any earlier version made has after the upgrade what a new one has."""

    class Older(SQLiteStore):
        _migrations = MIGRATIONS[:version]

    async with Older(SQLiteConfig(path=path)) as store:
        await store.append(key, drafts("m", 3))
    async with SQLiteStore(SQLiteConfig(path=path, migrate=True)) as store:
        assert len((await store.read(key)).messages) == 3
    schema = "SELECT name, sql FROM sqlite_master ORDER BY name"
    upgraded = inside(schema)
    path.unlink()
    async with SQLiteStore(SQLiteConfig(path=path)):
        assert inside(schema) == upgraded


async def test_a_new_file_gets_the_newest_schema_at_once(path: Path, inside: Inside) -> None:
    """A file that is not there is set up with all steps and without asking."""
    async with NewerStore(SQLiteConfig(path=path)):
        pass
    assert inside("PRAGMA user_version") == [(THIS + 1,)]
    assert inside("SELECT colour FROM sessions") == []


async def test_an_empty_file_is_a_new_one(path: Path, make: Callable[..., SQLiteStore]) -> None:
    """A file without content, as tempfile makes one, is set up like one that is not there."""
    path.touch()
    async with make() as store:
        assert (await store.ping()).settings["user_version"] == str(THIS)


async def test_a_file_of_a_newer_version_is_refused(older: Path, inside: Inside) -> None:
    """A file that a newer version wrote is refused and left as it is."""
    inside("PRAGMA user_version = 9")
    before = older.read_bytes()
    with pytest.raises(StorageError, match=r"schema version 9.*upgrade historykit-sqlite"):
        await SQLiteStore(SQLiteConfig(path=older, migrate=True)).open()
    assert older.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE notes (note TEXT)", "PRAGMA user_version = 3", "PRAGMA application_id = 7"],
)
async def test_the_file_of_another_application_is_refused(
    path: Path, make: Callable[..., SQLiteStore], inside: Inside, statement: str
) -> None:
    """A database that somebody else made is refused and keeps its journal mode."""
    inside(statement)
    before = path.read_bytes()
    with pytest.raises(StorageError, match=f"{path.name} is the database of another application"):
        await make(migrate=True).open()
    assert path.read_bytes() == before


async def test_a_migration_that_fails_leaves_the_old_version(older: Path, inside: Inside) -> None:
    """A step that cannot be done leaves nothing of it behind, and the old version goes on."""

    class Broken(SQLiteStore):
        _migrations = (*NEWER, ("DROP TABLE nothing",))

    with pytest.raises(StorageError) as caught:
        await Broken(SQLiteConfig(path=older, migrate=True)).open()
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    async with SQLiteStore(SQLiteConfig(path=older)) as store:
        assert (await store.ping()).settings["user_version"] == str(THIS)
    assert inside("SELECT * FROM pragma_table_info('sessions') WHERE name = 'colour'") == []


async def test_a_table_can_be_built_anew(older: Path, key: SessionKey) -> None:
    """A step that drops a table does not drag along what refers to it."""

    class Rebuilt(SQLiteStore):
        _migrations = (
            *MIGRATIONS,
            (
                "CREATE TABLE kept AS SELECT * FROM sessions",
                "DROP TABLE sessions",
                MIGRATIONS[0][0],
                "INSERT INTO sessions SELECT * FROM kept",
                "DROP TABLE kept",
            ),
        )

    async with Rebuilt(SQLiteConfig(path=older, migrate=True)) as store:
        assert len((await store.read(key)).messages) == 3


async def test_a_migration_killed_midway_leaves_the_old_version(
    older: Path, start: Callable[..., Any], key: SessionKey, inside: Inside
) -> None:
    """A process killed while it migrates leaves a file that opens as before and can migrate."""
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "INSERT INTO session_labels SELECT 1, i FROM n"
    )
    process = start(UPGRADE, *NEWER[-1], endless)
    process.stdout.readline()
    process.stdin.write("\n")
    process.stdin.flush()
    log = older.with_name("chat.db-wal")
    while not (log.exists() and log.stat().st_size > 1_000_000):
        assert process.poll() is None, process.stderr.read()
    process.kill()
    process.wait()
    async with SQLiteStore(SQLiteConfig(path=older)) as store:
        assert len((await store.read(key)).messages) == 3
    async with NewerStore(SQLiteConfig(path=older, migrate=True)) as store:
        assert len((await store.read(key)).messages) == 3
    assert inside("SELECT count(*) FROM session_labels") == [(0,)]


async def test_of_five_processes_one_migrates(
    older: Path, start: Callable[..., Any], inside: Inside
) -> None:
    """Processes that migrate at the same time all find the file migrated, once."""
    processes = [start(UPGRADE, *NEWER[-1]) for _ in range(5)]
    go(processes)
    assert [process.communicate() for process in processes] == [("3\n", "")] * 5
    assert inside("PRAGMA user_version") == [(THIS + 1,)]


async def test_first_use_by_eight_processes(tmp_path: Path, start: Callable[..., Any]) -> None:
    """Processes that meet at a file that is not there all create it, read and write: 20 times."""
    rounds = 20
    processes = [start(CREATE, number, rounds) for number in range(8)]
    for _ in range(rounds):
        go(processes)
        for process in processes:
            assert process.stdout.readline() == "done\n", process.stderr.read()
    for number in range(rounds):
        async with SQLiteStore(SQLiteConfig(path=tmp_path / f"{number}.db")) as store:
            page = await store.read(SessionKey("app", "", "s"))
        assert len(page.messages) == 16


def go(processes: list[Any]) -> None:
    """Let processes begin when all of them are ready."""
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
