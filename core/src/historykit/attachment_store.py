"""Where the bytes of attachments are kept: one blob each, beside the store of the messages.

`AttachmentStore` is the little that is asked of such a place; `FsspecAttachmentStore` is one in a
folder, in a bucket, or wherever else fsspec reaches (the extra `attachments`)."""

from __future__ import annotations

import asyncio
import datetime as dt
import errno
import hashlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final, Protocol, TypeVar, TypeVarTuple

from historykit.cancellation import undone_if_cancelled
from historykit.errors import (
    ConfigError,
    HistoryKitError,
    NotFoundError,
    StorageError,
    TooLargeError,
)
from historykit.ids import new_id
from historykit.redaction import redact_url

__all__ = ["AttachmentStore", "FsspecAttachmentStore", "StoredBlob"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

CHUNK: Final = 1 << 20
INCOMING: Final = "incoming"

READING: Final = ("copy", "link", "read", "stat")
"""The operations on a blob that has to be there."""

MOVES: Final = 5
"""How often something is tried in a local folder that others change at the same time."""

EXTRAS: Final = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure"}
"""The extra of historykit that a scheme of URLs needs."""

_TIMES: Final = ("mtime", "LastModified", "last_modified", "updated", "created")
"""What file systems call the time of the last change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlob:
    """One blob. `size` is in bytes, `modified` in seconds since 1970-01-01 UTC."""

    key: str
    size: int
    modified: float


class AttachmentStore(Protocol):
    """A place for blobs under keys, which are names with slashes between them.

    A blob appears whole under its key or not at all, and is never changed. Its key ends with the
    SHA-256 of its bytes, in hexadecimal after a dash. What fails is a `StorageError` whose cause is
    the error of the place; a blob that is not there is a `NotFoundError`.
    """

    def url(self, key: str) -> str:
        """Return the URL of a blob, which stays the same as long as the blob exists."""

    def key(self, url: str) -> str | None:
        """Return the key of the blob that has this URL; None for a URL of somewhere else."""

    async def put(
        self, folder: str, source: BinaryIO, *, name: str | None = None, limit: int | None = None
    ) -> StoredBlob:
        """Store what a file holds, from its position on, in a folder, and return the blob.

        `name` is the blob's within the folder, before its digest; a new one is made without it.
        Raises `TooLargeError` as soon as more than `limit` bytes have come.
        """

    async def copy(self, key: str, folder: str) -> StoredBlob:
        """Store a copy of a blob under a new name in a folder, and return it."""

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the bytes of a blob in pieces. Raises `StorageError` where they do not match its
        digest."""

    async def stat(self, key: str) -> StoredBlob:
        """Return what is known of a blob."""

    async def exists(self, key: str) -> bool:
        """Return whether a blob is there."""

    async def find(self, folder: str) -> list[StoredBlob]:
        """Return the blobs in a folder and in the folders in it, and what is left of puts that did
        not end."""

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete blobs; those that are not there are passed over."""

    async def delete_folder(self, folder: str) -> None:
        """Delete all that `find` returns of a folder."""

    async def link(self, key: str, *, expires: float) -> str:
        """Return a URL under which anybody can read a blob for so many seconds, where the place has
        such URLs, else the blob's own."""


class FsspecAttachmentStore:
    """An `AttachmentStore` on a file system of fsspec: `FsspecAttachmentStore("attachments")`.

    `location` is a local folder, which is made at the first put, or a URL: ``file:///srv/chat``,
    ``s3://bucket/prefix``, ``memory://chat`` or any other of fsspec's, for which its package has to
    be there. `options` are those of the fsspec file system, as its credentials, and shown nowhere.

    Each blob is written under a key of its own in the folder ``incoming`` and then moved; in a
    local folder its bytes are on stable storage by then. All calls run in threads, so that the
    event loop is never held. Raises `ConfigError` for a place that fsspec doesn't know or can't
    reach.
    """

    def __init__(self, location: str | os.PathLike[str], **options: Any) -> None:
        self._location = os.fspath(location)
        if not self._location:
            raise ConfigError("attachments needs a folder or a URL", field="attachments")
        self._files, self._root = _file_system(self._location, options)
        self._base = self._files.unstrip_protocol(self._root).rstrip("/")
        self._is_local = "file" in self._files.protocol

    @property
    def local_root(self) -> str | None:
        """The local folder that the blobs are in, None where they are elsewhere."""
        return self._root if self._is_local else None

    def __repr__(self) -> str:
        return f"FsspecAttachmentStore({redact_url(self._location)!r})"

    def url(self, key: str) -> str:
        """Return the URL of a blob: that of the place, and the key."""
        return f"{self._base}/{key}"

    def key(self, url: str) -> str | None:
        """Return the key of the blob that has this URL; None for a URL of somewhere else."""
        start = f"{self._base}/"
        return url.removeprefix(start) if url.startswith(start) else None

    async def put(
        self, folder: str, source: BinaryIO, *, name: str | None = None, limit: int | None = None
    ) -> StoredBlob:
        """Store what a file holds; see `AttachmentStore.put`. Cancelled, it leaves nothing."""
        stop = threading.Event()
        work = self._call("put", self._put, folder, name or new_id(), source, limit, stop)
        return await undone_if_cancelled(work, self._undo, stop=stop.set)

    async def copy(self, key: str, folder: str) -> StoredBlob:
        """Store a copy of a blob in a folder, and return it. Cancelled, it leaves nothing."""
        work = self._call("copy", self._copy, key, folder)
        return await undone_if_cancelled(work, self._undo)

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the bytes of a blob in pieces of at most 1 MiB, and compare their digest."""
        digest, size = hashlib.sha256(), (await self.stat(key)).size
        for start in range(0, max(size, 1), CHUNK):
            end = min(start + CHUNK, size)
            piece = await self._call("read", self._piece, key, start, end)
            digest.update(piece)
            if end == size:
                _compare(key, digest.hexdigest())
            yield piece

    async def stat(self, key: str) -> StoredBlob:
        """Return what is known of a blob."""
        return await self._call("stat", self._stat, key)

    async def exists(self, key: str) -> bool:
        """Return whether a blob is there."""
        return bool(await self._call("exists", self._files.exists, self._path(key)))

    async def find(self, folder: str) -> list[StoredBlob]:
        """Return the blobs in a folder and in the folders in it."""
        return await self._call("find", self._find, folder)

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete blobs; those that are not there are passed over."""
        await self._call("delete", self._delete, list(keys))

    async def delete_folder(self, folder: str) -> None:
        """Delete a folder with all that is in it."""
        await self._call("delete", self._delete_folder, folder)

    async def link(self, key: str, *, expires: float) -> str:
        """Return a URL that is signed for so many seconds, the blob's own where there are none."""
        return await self._call("link", self._link, key, expires)

    async def _undo(self, blob: StoredBlob) -> None:
        await self.delete([blob.key])

    # -- in a thread

    def _put(
        self, folder: str, name: str, source: BinaryIO, limit: int | None, stop: threading.Event
    ) -> StoredBlob:
        incoming = self._path(f"{folder.partition('/')[0]}/{INCOMING}/{new_id()}")
        try:
            digest = self._write(incoming, source, limit, stop)
            return self._move(incoming, f"{folder}/{name}-{digest}")
        except BaseException:
            if self._files.exists(incoming):
                self._files.rm_file(incoming)
            raise

    def _write(self, path: str, source: BinaryIO, limit: int | None, stop: threading.Event) -> str:
        size, digest = 0, hashlib.sha256()
        with self._enduring(lambda: self._files.open(path, "wb")) as target:
            while piece := source.read(CHUNK):
                size += len(piece)
                if limit is not None and size > limit:
                    raise TooLargeError(f"it has more than {limit} bytes")
                if stop.is_set():
                    raise StorageError("the put was cancelled")
                digest.update(piece)
                target.write(piece)
            if self._is_local:
                target.flush()
                os.fsync(target.fileno())
        return digest.hexdigest()

    def _move(self, path: str, key: str) -> StoredBlob:
        target = self._path(key)
        if not self._is_local:
            self._files.mv(path, target)
            return self._stat(key)
        # Looked at before, because it may be deleted as soon as it is there, with its session.
        blob = replace(self._blob(path, self._files.info(path)), key=key)

        def move() -> None:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(path, target)

        self._enduring(move)
        while key:
            key = key.rpartition("/")[0]
            _settle(self._path(key))
        return blob

    def _copy(self, key: str, folder: str) -> StoredBlob:
        if self._is_local:
            with self._files.open(self._path(key), "rb") as source:
                return self._put(folder, new_id(), source, None, threading.Event())
        target = f"{folder}/{new_id()}-{key.rpartition('-')[2]}"
        incoming = self._path(f"{folder.partition('/')[0]}/{INCOMING}/{new_id()}")
        self._files.cp_file(self._path(key), incoming)
        return self._move(incoming, target)

    def _stat(self, key: str) -> StoredBlob:
        path = self._path(key)
        return self._blob(path, self._files.info(path))

    def _piece(self, key: str, start: int, end: int) -> bytes:
        return bytes(self._files.cat_file(self._path(key), start=start, end=end))

    def _find(self, folder: str) -> list[StoredBlob]:
        self._files.invalidate_cache()
        found = self._files.find(self._path(folder), detail=True)
        return [self._blob(path, info) for path, info in found.items()]

    def _blob(self, path: str, info: dict[str, Any]) -> StoredBlob:
        key = path.removeprefix(self._root).lstrip("/")
        modified = next((info[name] for name in _TIMES if name in info), None)
        if modified is None:
            modified = self._files.modified(path)
        if isinstance(modified, dt.datetime):
            modified = modified.timestamp()
        return StoredBlob(key=key, size=info["size"], modified=float(modified))

    def _delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            with suppress(FileNotFoundError):
                self._files.rm_file(self._path(key))
            if self._is_local:
                self._delete_empty(key)

    def _delete_folder(self, folder: str) -> None:
        self._files.invalidate_cache()
        path = self._path(folder)

        def delete() -> None:
            if self._files.exists(path):
                self._files.rm(path, recursive=True)

        self._enduring(delete)
        if self._is_local:
            self._delete_empty(folder)

    def _delete_empty(self, key: str) -> None:
        """Delete the local folders above a key that nothing is in any more."""
        with suppress(OSError):
            while key := key.rpartition("/")[0]:
                os.rmdir(self._path(key))

    def _link(self, key: str, expires: float) -> str:
        try:
            return str(self._files.sign(self._path(key), expiration=int(expires)))
        except NotImplementedError:
            return self.url(key)

    def _enduring(self, action: Callable[[], T]) -> T:
        """Return what an action returns; in a local folder others may make and delete folders."""
        for _ in range(MOVES - 1 if self._is_local else 0):
            try:
                return action()
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
        return action()

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}".rstrip("/")

    async def _call(self, operation: str, function: Callable[[*Ts], T], *arguments: *Ts) -> T:
        """Run a function in a thread, and translate what it raises."""
        try:
            return await asyncio.to_thread(function, *arguments)
        except HistoryKitError:
            raise
        except Exception as error:
            if isinstance(error, FileNotFoundError) and operation in READING:
                raise NotFoundError("the attachment is not in its store") from error
            raise StorageError(
                f"the attachments cannot be reached ({operation}): {redact_url(_said(error))}"
            ) from error


def _file_system(location: str, options: dict[str, Any]) -> tuple[Any, str]:
    """Return the file system of fsspec for a folder or a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise ConfigError(
            "attachments need fsspec and puremagic; install them with: "
            "pip install 'historykit[attachments]'",
            field="attachments",
        ) from None
    scheme = location.partition("://")[0].lower() if "://" in location else "file"
    if scheme == "file":
        options = {"auto_mkdir": True, **options}
    try:
        files, root = url_to_fs(location, use_listings_cache=False, **options)
    except ImportError as error:
        extra = EXTRAS.get(scheme)
        remedy = f"; install it with: pip install 'historykit[{extra}]'" if extra else ""
        raise ConfigError(
            f"attachments under {scheme}:// need another package{remedy} ({error})",
            field="attachments",
        ) from error
    except Exception as error:
        raise ConfigError(
            f"attachments cannot be kept in {redact_url(location)!r}: "
            f"{redact_url(_said(error))}; name a folder or a URL that fsspec knows",
            field="attachments",
        ) from error
    return files, root.rstrip("/")


def _compare(key: str, digest: str) -> None:
    if key.rpartition("-")[2] != digest:
        raise StorageError("the attachment is damaged: its bytes are not those that were stored")


def _settle(folder: str) -> None:
    """Bring the entries of a local folder to stable storage, where the system has a way to."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (AttributeError, OSError):  # Windows has neither
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _said(error: BaseException) -> str:
    """Return what an error says, that of a system call without its number."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
