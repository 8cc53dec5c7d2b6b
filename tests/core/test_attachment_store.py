from __future__ import annotations

import asyncio
import datetime as dt
import errno
import io
import os
import sys
import threading
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
import pytest_asyncio
from fsspec.implementations.memory import MemoryFileSystem

from historykit.attachment_store import CHUNK, FsspecAttachmentStore, StoredBlob
from historykit.errors import ConfigError, NotFoundError, StorageError, TooLargeError
from historykit.ids import new_id

pytestmark = pytest.mark.asyncio


class Bucket(MemoryFileSystem):
    """Where `MemoryFileSystem` is unlike buckets, as s3fs has them, this is like them."""

    protocol = "bucket"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        info = super().info(path, **options)
        time = info.pop("created", None)
        if isinstance(time, float):
            time = dt.datetime.fromtimestamp(time, dt.UTC)
        return info if time is None else {**info, "LastModified": time}

    def cat_file(
        self,
        path: str,
        version_id: str | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> bytes:
        assert version_id is None
        return super().cat_file(path, start=start, end=end)


fsspec.register_implementation("bucket", Bucket)


@pytest_asyncio.fixture(params=["folder", "memory", "bucket"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    place = tmp_path / "blobs" if request.param == "folder" else f"{request.param}://{new_id()}"
    yield FsspecAttachmentStore(place)


@pytest.fixture
def folder(tmp_path: Path) -> FsspecAttachmentStore:
    return FsspecAttachmentStore(tmp_path / "blobs")


async def put(store: Any, data: bytes, folder: str = "o/s", **options: Any) -> StoredBlob:
    return await store.put(folder, io.BytesIO(data), **options)


async def read(store: Any, key: str) -> bytes:
    return b"".join([piece async for piece in store.read(key)])


@pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1])
async def test_what_is_put_can_be_read(store: Any, size: int) -> None:
    """The bytes come back as they went in, from where the file stood, in pieces."""
    data = os.urandom(size)
    source = io.BytesIO(b"before" + data)
    source.seek(6)
    blob = await store.put("o/s", source)
    assert (await read(store, blob.key), blob.size) == (data, size)
    assert await store.stat(blob.key) == blob
    assert await store.exists(blob.key)
    assert max([len(piece) async for piece in store.read(blob.key)]) <= CHUNK


async def test_a_key_ends_with_the_digest_of_the_bytes(store: Any) -> None:
    """Folder, name and SHA-256 make the key; without a name it is a new one each time."""
    named = await put(store, b"data", name="n")
    assert named.key == f"o/s/n-{sha256(b'data').hexdigest()}"
    first, second = await put(store, b"data"), await put(store, b"data")
    assert first.key != second.key
    assert first.key.endswith(sha256(b"data").hexdigest())


async def test_a_url_leads_back_to_the_key(store: Any) -> None:
    """The URL of a blob has the key in it; a URL of another place has none."""
    blob = await put(store, b"data")
    assert store.key(store.url(blob.key)) == blob.key
    for url in ("https://example.org/a", "file:///elsewhere/a", store.url("")[:-1], blob.key):
        assert store.key(url) is None


async def test_a_blob_that_is_too_large_leaves_nothing(store: Any) -> None:
    """The limit is looked at while the bytes come, and what came is deleted."""
    with pytest.raises(TooLargeError, match="more than 10 bytes"):
        await put(store, b"x" * 11, limit=10)
    assert (await put(store, b"x" * 10, limit=10)).size == 10
    assert len(await store.find("o")) == 1


async def test_a_source_that_fails_leaves_nothing(store: Any) -> None:
    """Where the file cannot be read to its end, there is no blob and no part of one."""

    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().read(2)

    with pytest.raises(StorageError, match="Input/output error"):
        await store.put("o/s", Failing(b"data"))
    assert await store.find("o") == []


async def test_a_put_that_is_cancelled_leaves_nothing(store: Any) -> None:
    """A put stops between two pieces, and is over when its cancellation is."""
    reading, going_on = threading.Event(), threading.Event()

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            reading.set()
            going_on.wait(10)
            return super().read(2)

    source = Slow(b"data" * 10)
    task = asyncio.create_task(store.put("o/s", source))
    await asyncio.to_thread(reading.wait, 10)
    task.cancel()
    await asyncio.sleep(0.01)
    going_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert source.tell() == 2
    assert await store.find("o") == []


async def test_a_put_that_is_cancelled_too_late_leaves_nothing(store: Any) -> None:
    """A blob that was whole when the cancellation came is deleted again."""
    reading, going_on = threading.Event(), threading.Event()

    class Ending(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            piece = super().read(size)
            if not piece:
                reading.set()
                going_on.wait(10)
            return piece

    task = asyncio.create_task(store.put("o/s", Ending(b"data")))
    await asyncio.to_thread(reading.wait, 10)
    task.cancel()
    await asyncio.sleep(0.01)
    going_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await store.find("o") == []


async def test_a_copy_is_a_blob_of_its_own(store: Any) -> None:
    """A copy has the bytes of the blob, and stays when that is deleted."""
    blob = await put(store, b"data")
    copy = await store.copy(blob.key, "o/t")
    await store.delete([blob.key])
    assert copy.key.startswith("o/t/")
    assert await read(store, copy.key) == b"data"
    with pytest.raises(NotFoundError):
        await store.copy(blob.key, "o/t")
    assert [each.key for each in await store.find("o")] == [copy.key]


async def test_blobs_are_found_by_their_folder(store: Any) -> None:
    """A folder holds what is in it and in its folders, and no more."""
    keys = {(await put(store, b"data", folder)).key for folder in ("o/s/1", "o/s/2", "o/s2/1")}
    assert {blob.key for blob in await store.find("o")} == keys
    assert {blob.key for blob in await store.find("o/s")} == {key for key in keys if "s/" in key}
    assert await store.find("p") == []


async def test_a_blob_has_the_time_of_its_making(store: Any) -> None:
    """`modified` is in seconds since 1970, UTC."""
    before = dt.datetime.now(dt.UTC).timestamp()
    blob = await put(store, b"data")
    assert before - 5 < blob.modified < before + 60
    assert (await store.find("o"))[0].modified == blob.modified


async def test_what_is_not_there_is_deleted_without_complaint(store: Any) -> None:
    """Blobs and folders can be deleted twice; what is not there cannot be read."""
    blob, other = await put(store, b"data"), await put(store, b"data", "o/t")
    await store.delete([blob.key, blob.key])
    await store.delete_folder("o/s")
    await store.delete_folder("o/t")
    await store.delete_folder("o/t")
    for key in (blob.key, other.key):
        assert not await store.exists(key)
        with pytest.raises(NotFoundError):
            await store.stat(key)
        with pytest.raises(NotFoundError):
            await read(store, key)


async def test_a_place_without_signed_links_gives_the_url(store: Any) -> None:
    """Local folders and memory have no links that expire."""
    blob = await put(store, b"data")
    assert await store.link(blob.key, expires=60) == store.url(blob.key)


async def test_a_place_with_signed_links_gives_one(store: Any, monkeypatch: Any) -> None:
    """The link of a file system that signs is valid for as many seconds as were asked for."""
    sign = staticmethod(lambda path, expiration: f"https://signed{path}?expires={expiration}")
    monkeypatch.setattr(type(store._files), "sign", sign)
    blob = await put(store, b"data")
    link = await store.link(blob.key, expires=60)
    assert link.startswith("https://signed")
    assert link.endswith("?expires=60")


async def test_a_blob_that_was_changed_is_not_read(folder: FsspecAttachmentStore) -> None:
    """Bytes that do not match the digest in the key are an error, as are missing ones."""
    for size in (4, 3):
        blob = await put(folder, b"data")
        Path(folder.url(blob.key).removeprefix("file://")).write_bytes(b"d" * size)
        with pytest.raises(StorageError, match="damaged"):
            await read(folder, blob.key)


async def test_a_file_that_got_shorter_while_it_was_read_is_an_error(
    folder: FsspecAttachmentStore,
) -> None:
    """Where a piece is missing at the end, the digest tells."""
    blob = await put(folder, b"x" * (CHUNK + 5))
    pieces = folder.read(blob.key)
    await anext(pieces)
    os.truncate(folder.url(blob.key).removeprefix("file://"), CHUNK)
    with pytest.raises(StorageError, match="damaged"):
        await anext(pieces)


async def test_a_local_folder_is_as_it_was_when_all_is_deleted(
    folder: FsspecAttachmentStore, tmp_path: Path
) -> None:
    """No empty folder of a session is left."""
    one, two = await put(folder, b"1", "o/s/1"), await put(folder, b"2", "o/s/2")
    await folder.delete([one.key])
    await folder.delete_folder(two.key.rpartition("/")[0])
    assert [path.name for path in (tmp_path / "blobs" / "o").iterdir()] == ["incoming"]


async def test_a_folder_that_goes_while_a_blob_comes_is_made_again(
    folder: FsspecAttachmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting the last blob of a folder and storing one do not get into each other's way."""
    replace, left = os.replace, [2]

    def hindered(source: str, target: str) -> None:
        if left[0]:
            left[0] -= 1
            os.rmdir(os.path.dirname(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", hindered)
    blob = await put(folder, b"data")
    assert await read(folder, blob.key) == b"data"
    left[0] = 100
    with pytest.raises(StorageError):
        await put(folder, b"data", "o/t")
    assert len(await folder.find("o")) == 1


async def test_a_folder_that_goes_before_a_blob_is_written_is_made_again(
    folder: FsspecAttachmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another session is deleted, the last one that there was."""
    opened, left = folder._files.open, [2]

    def hindered(path: str, mode: str) -> Any:
        if left[0]:
            left[0] -= 1
            raise FileNotFoundError(path)
        return opened(path, mode)

    monkeypatch.setattr(folder._files, "open", hindered)
    blob = await put(folder, b"data")
    monkeypatch.undo()
    assert await read(folder, blob.key) == b"data"


@pytest.mark.parametrize(
    "obstacle", [FileNotFoundError(errno.ENOENT, "gone"), OSError(errno.ENOTEMPTY, "not empty")]
)
async def test_a_folder_is_deleted_while_blobs_come_and_go(
    folder: FsspecAttachmentStore, monkeypatch: pytest.MonkeyPatch, obstacle: OSError
) -> None:
    """What another one deletes, or adds, at the same time is in nobody's way."""
    await put(folder, b"data")
    delete, left = folder._files.rm, [2]

    def hindered(path: str, *, recursive: bool) -> None:
        if left[0]:
            left[0] -= 1
            raise obstacle
        delete(path, recursive=recursive)

    monkeypatch.setattr(folder._files, "rm", hindered)
    await folder.delete_folder("o/s")
    assert await folder.find("o/s") == []


async def test_a_blob_may_be_deleted_as_soon_as_it_is_there(
    folder: FsspecAttachmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session was deleted meanwhile, and it is for the row to find that out."""
    replace = os.replace

    def deleted(source: str, target: str) -> None:
        replace(source, target)
        os.unlink(target)

    monkeypatch.setattr(os, "replace", deleted)
    assert (await put(folder, b"data")).size == 4


async def test_a_folder_that_may_not_be_deleted_says_so_at_once(
    folder: FsspecAttachmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another attempt would not help."""
    await put(folder, b"data")
    tried = []

    def refused(path: str, *, recursive: bool) -> None:
        tried.append(path)
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(folder._files, "rm", refused)
    with pytest.raises(StorageError, match="Permission denied"):
        await folder.delete_folder("o/s")
    assert len(tried) == 1


async def test_a_system_that_cannot_sync_folders_is_no_hindrance(
    folder: FsspecAttachmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a folder cannot be opened, as on Windows, blobs are stored all the same."""
    monkeypatch.delattr(os, "O_DIRECTORY")
    blob = await put(folder, b"data")
    assert await read(folder, blob.key) == b"data"


async def test_a_time_may_be_a_datetime_or_asked_for(store: Any) -> None:
    """File systems name the time of the last change in many ways, and some not at all."""
    time = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    blob = await put(store, b"data")
    path = store._path(blob.key)
    assert store._blob(path, {"size": 4, "LastModified": time}).modified == time.timestamp()
    assert abs(store._blob(path, {"size": 4}).modified - blob.modified) < 1


async def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    """The error of the system is the cause, and no number stands before its words."""
    (tmp_path / "file").write_text("")
    store = FsspecAttachmentStore(tmp_path / "file")
    with pytest.raises(StorageError, match=r"cannot be reached \(put\): ") as caught:
        await put(store, b"data")
    assert isinstance(caught.value.__cause__, OSError)


async def test_the_repr_shows_no_password() -> None:
    """Of the place everything is shown but a password; options are not shown."""
    store = FsspecAttachmentStore("memory://user:secret@host/path")
    assert repr(store) == "FsspecAttachmentStore('memory://user:***@host/path')"


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("", "a folder or a URL"),
        ("foo://x", "Protocol not known: foo"),
        ("s3://bucket/prefix", r"pip install 'historykit\[s3\]'"),
        ("gs://bucket/prefix", r"pip install 'historykit\[gcs\]'"),
        ("abfs://container/prefix", r"pip install 'historykit\[azure\]'"),
        ("webhdfs://host", "need another package"),
    ],
)
async def test_a_place_that_cannot_be_reached_says_what_to_do(
    place: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown scheme and a package that is missing are errors when the place is named."""
    for package in ("s3fs", "gcsfs", "adlfs", "requests"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=says):
        FsspecAttachmentStore(place)


async def test_without_fsspec_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the extra is not installed, the error has the line for pip."""
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ConfigError, match=r"pip install 'historykit\[attachments\]'"):
        FsspecAttachmentStore("folder")
