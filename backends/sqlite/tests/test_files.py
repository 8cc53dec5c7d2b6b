"""Files that are not there, not ours, not writable, damaged, full."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from historykit.errors import (
    ConflictError,
    InvalidRequestError,
    StorageError,
    StorageUnavailableError,
    TooLargeError,
)
from historykit.records import MessageSelector, Window
from historykit.session_records import SessionKey, SessionQuery
from historykit.testing.drafts import draft, drafts, texts
from historykit_sqlite import SQLiteConfig, SQLiteStore
from historykit_sqlite.files import DatabaseFile
from historykit_sqlite.schema import MIGRATIONS

pytestmark = pytest.mark.asyncio

Make = Callable[..., SQLiteStore]

READ = """
import urllib.parse  # which could not be imported without the rights of root

if os.getuid() == 0:  # root may write anywhere
    os.setgid(65534)
    os.setuid(65534)

async def main():
    async with make(busy_timeout=0.2) as store:
        print(*texts((await store.read(key)).messages), sep=",")
        try:
            await store.append(key, drafts("new", 1))
        except StorageError as error:
            print(error)

try:
    asyncio.run(main())
except StorageError as error:
    print(error)
"""


LIMITED = """
import resource

async def main():
    async with make() as store:
        await store.append(key, drafts("m", 1))
        size = os.path.getsize(f"{path}-wal")
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        try:
            await store.append(key, drafts("n", 1))
        except StorageUnavailableError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        await store.append(key, drafts("o", 1))
        print(*texts((await store.read(key)).messages), sep=",")

asyncio.run(main())
"""


class Unshared(DatabaseFile):
    """A file on a system that shares no memory between processes."""

    def _connect(self, parameters: str) -> sqlite3.Connection:
        return DatabaseFile._connect(self, f"{parameters}&vfs=unix-dotfile")


async def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    """The error names the directory that does not exist, and no directory is made."""
    directory = tmp_path / "missing"
    with pytest.raises(StorageError, match=f"directory {directory} does not exist; create it"):
        await SQLiteStore(SQLiteConfig(path=directory / "chat.db")).open()
    assert not directory.exists()


async def test_a_file_that_is_not_to_be_made(tmp_path: Path) -> None:
    """Without `create` a file that is not there is an error that names it, and stays away."""
    path = tmp_path / "chat.db"
    with pytest.raises(
        StorageError, match=f"the file {path} does not exist, and with create=False"
    ):
        await SQLiteStore(SQLiteConfig(path=path, create=False)).open()
    assert not path.exists()


async def test_a_file_that_is_there_needs_no_making(path: Path, key: SessionKey) -> None:
    """Without `create` a file that is there opens for reading and writing."""
    async with SQLiteStore(SQLiteConfig(path=path)) as store:
        await store.append(key, drafts("a", 1))
    async with SQLiteStore(SQLiteConfig(path=path, create=False)) as store:
        await store.append(key, drafts("b", 1))
        assert len((await store.read(key)).messages) == 2


async def test_a_path_that_is_a_directory(tmp_path: Path) -> None:
    """The error says that a file is wanted."""
    with pytest.raises(StorageError, match="is a directory; name a file"):
        await SQLiteStore(SQLiteConfig(path=tmp_path)).open()


async def test_a_name_that_a_url_would_read_otherwise(tmp_path: Path, key: SessionKey) -> None:
    """Characters with a meaning in URLs are part of the name, as any others."""
    path = tmp_path / "a?mode=ro#b%41 ü.db"
    async with SQLiteStore(SQLiteConfig(path=path)) as store:
        await store.append(key, drafts("m", 1))
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


async def test_a_file_that_is_no_database(path: Path, make: Make) -> None:
    """A file of something else is refused by name and kept."""
    path.write_text("not a database, but long enough for a header of one hundred bytes " * 9)
    before = path.read_bytes()
    with pytest.raises(StorageError, match=f"{path.name} failed: it is no SQLite database"):
        await make().open()
    assert path.read_bytes() == before


async def test_a_damaged_file_is_an_error_and_no_empty_history(
    path: Path, make: Make, key: SessionKey
) -> None:
    """A load from a file with overwritten pages says that it is damaged."""
    async with make() as store:
        await store.append(key, drafts("m", 300))
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096 * 2)
        file.write(os.urandom(size - 4096 * 2))
    with pytest.raises(StorageError, match="damaged; restore it from a copy"):
        async with make() as store:
            await store.read(key)


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that other users reach, with a file that they may only read."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory) / "chat.db"
        Path(directory).chmod(0o755)


@pytest.fixture
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if "public" in request.fixturenames:
        return request.getfixturevalue("public")
    return tmp_path / "chat.db"


async def test_a_file_without_write_access_can_be_read(
    public: Path, make: Make, key: SessionKey, run: Callable[..., Any]
) -> None:
    """A file that may only be read opens; a write says what is missing."""
    async with make() as store:
        await store.append(key, drafts("m", 2))
    public.chmod(0o444)
    public.parent.chmod(0o555)
    messages, error = run(READ).stdout.splitlines()
    assert messages == "m 0,m 1"
    assert error == (
        f"append in {public} failed: no write access; grant it to the file and its directory"
    )


async def test_a_file_in_use_can_be_read_without_write_access(
    public: Path, make: Make, key: SessionKey, run: Callable[..., Any]
) -> None:
    """What another process has in the write-ahead log is seen without write access, too."""
    async with make() as store:
        await store.append(key, drafts("m", 2))
        for file in public.parent.iterdir():
            file.chmod(0o444)
        public.parent.chmod(0o555)
        assert run(READ).stdout.splitlines()[0] == "m 0,m 1"


async def test_a_file_that_may_not_be_read(
    public: Path, make: Make, key: SessionKey, run: Callable[..., Any]
) -> None:
    """A file without read access is an error and no empty history."""
    async with make() as store:
        await store.append(key, drafts("m", 2))
    public.chmod(0)
    (error,) = run(READ).stdout.splitlines()
    assert error.startswith(f"open in {public} failed")
    assert error.endswith("grant access to the file and its directory")


async def test_a_directory_without_write_access_gets_no_new_file(
    public: Path, run: Callable[..., Any]
) -> None:
    """A file that cannot be created is an error that says so."""
    public.parent.chmod(0o555)
    (error,) = run(READ).stdout.splitlines()
    assert error.startswith(f"open in {public} failed")


async def test_a_full_disk_is_survived(make: Make, key: SessionKey) -> None:
    """A write for which there is no room stores nothing; reading goes on, and so does writing
    once there is room."""
    async with make() as store:
        await store.append(key, drafts("m", 2))
        await store._writer.do(lambda db: db.execute("PRAGMA max_page_count = 20").fetchall())
        with pytest.raises(StorageUnavailableError, match="disk is full; make room") as caught:
            await store.append(key, [draft("new 0"), draft(b"x" * 1_000_000)])
        assert isinstance(caught.value.__cause__, sqlite3.Error)
        assert texts((await store.read(key)).messages) == ["m 0", "m 1"]
        await store._writer.do(lambda db: db.execute("PRAGMA max_page_count = 2000").fetchall())
        await store.append(key, [draft(b"x" * 1_000_000)])
        assert [len(row.body) for row in (await store.read(key)).messages[1:]] == [3, 1_000_000]


async def test_a_full_disk_does_not_take_along_what_has_room(make: Make, key: SessionKey) -> None:
    """Of writes that share a transaction, those that fit are stored."""
    async with make() as store:
        await store.append(key, drafts("m", 1))
        await store._writer.do(lambda db: db.execute("PRAGMA max_page_count = 40").fetchall())
        large = [draft(b"x" * 1_000_000)]
        writes = (store.append(key, batch) for batch in (drafts("a", 1), large, drafts("b", 1)))
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(outcome).__name__ for outcome in outcomes] == [
            "AppendReceipt",
            "StorageUnavailableError",
            "AppendReceipt",
        ]
        assert texts((await store.read(key)).messages) == ["m 0", "a 0", "b 0"]


async def test_a_write_that_fails_is_survived(run: Callable[..., Any], path: Path) -> None:
    """Where the system refuses to write, nothing is stored; the store goes on afterwards."""
    error, messages = run(LIMITED).stdout.splitlines()
    assert error == f"append in {path} failed: disk I/O error; look at the disk it lies on"
    assert messages == "m 0,o 0"


async def test_a_file_system_without_shared_memory_is_refused(path: Path) -> None:
    """Where there can be no write-ahead log, opening says so rather than doing without."""
    file = Unshared(
        path=path, create=True, synchronous="full", migrate=False, migrations=MIGRATIONS
    )
    with pytest.raises(StorageError, match="put it on a local disk"):
        file.connect()


async def test_numbers_that_sqlite_has_not_are_refused(make: Make, key: SessionKey) -> None:
    """A time beyond 64 bits is a refused request, and nothing is stored."""
    async with make() as store:
        with pytest.raises(InvalidRequestError, match="64 bits at most"):
            await store.append(key, [draft("a"), draft("b", created_at=1 << 63)])
        assert (await store.read(key)).incarnation is None


async def test_bounds_beyond_all_numbers_are_bounds(make: Make, key: SessionKey) -> None:
    """A window or a selector may have any bound: it is above or below everything that is there."""
    beyond = 1 << 80
    async with make() as store:
        await store.append(key, drafts("m", 2))
        assert len((await store.read(key, Window(before=beyond))).messages) == 2
        assert len((await store.read(key, Window(after=beyond))).messages) == 0
        assert await store.delete_messages(key, MessageSelector(first=-beyond, last=beyond)) == 2


async def test_a_name_that_sqlite_has_not_is_refused(make: Make, key: SessionKey) -> None:
    """A surrogate in a role is a refused request."""
    async with make() as store:
        with pytest.raises(InvalidRequestError, match="no surrogates"):
            await store.append(key, [replace(draft(), role="\ud800")])


async def test_a_row_that_sqlite_has_not_room_for(make: Make, key: SessionKey) -> None:
    """A message above SQLite's own limit is too large, and nothing of the batch is stored."""
    async with make() as store:
        await store._writer.do(lambda db: db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000))
        with pytest.raises(TooLargeError):
            await store.append(key, [draft("a"), draft(b"x" * 20_000)])
        assert (await store.read(key)).incarnation is None


async def test_an_id_of_another_stream_cannot_be_put_there_again(
    make: Make, key: SessionKey
) -> None:
    """Message ids are those of the session: a replacement with one of another stream is a
    conflict, and nothing changes."""
    async with make() as store:
        await store.append(key, [draft("a", id="x")])
        receipt = await store.append(key, [draft("b", id="y")], stream="audit")
        with pytest.raises(ConflictError):
            await store.replace(key, [draft("c", id="y")], expected_version=receipt.version)
        assert texts((await store.read(key)).messages) == ["a"]


async def test_ids_are_never_sql(make: Make) -> None:
    """Ids with quotes, wildcards and comments are names like any others."""
    hostile = ["x' OR 1=1--", '"; DROP TABLE messages;', "*", "[a-z]", "a\\", "%", "?1", ":id"]
    async with make() as store:
        for name in hostile:
            await store.append(SessionKey(name, name, name), [draft(name, id=name)])
        for name in hostile:
            page = await store.read(SessionKey(name, name, name))
            assert texts(page.messages) == [name]
            found = await store.find_sessions(SessionQuery(namespace=name, user_id=name))
            assert [record.key.session_id for record in found.records] == [name]


async def test_a_tilde_is_the_home_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a configuration no shell replaces it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    async with SQLiteStore(SQLiteConfig(path="~/chat.db")):
        assert tmp_path.joinpath("chat.db").exists()
