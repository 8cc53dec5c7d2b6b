"""Files that belong to messages: how they come into a history, and what may come.

The bytes are kept in an `AttachmentStore`, one blob for each attachment under a folder of its
session; the message has the blob's URL."""

from __future__ import annotations

import asyncio
import io
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

from historykit.attachment_entries import (
    DataEntry,
    Entry,
    FileEntry,
    HostedEntry,
    completed,
    entries_of,
    read_entry,
    read_file,
)
from historykit.attachment_store import AttachmentStore, FsspecAttachmentStore
from historykit.callers import warn_caller
from historykit.cancellation import undone_if_cancelled
from historykit.errors import (
    ConfigError,
    FileUploadError,
    ForbiddenError,
    HistoryKitError,
    InvalidRequestError,
    TooLargeError,
)
from historykit.media_types import HEAD_BYTES, detect_media_type
from historykit.statuses import AttachmentType
from historykit.suggestions import suggest

if TYPE_CHECKING:
    from historykit.attachment_folders import AttachmentFolder
    from historykit.session_messages import SessionMessageAttachment

__all__ = [
    "SIZE_LIMITS",
    "AttachmentContext",
    "Attachments",
    "as_attachments",
    "resolve_attachments",
]

MIB: Final = 1 << 20

SIZE_LIMITS: Final[Mapping[str, int]] = {
    "audio": 50 * MIB,
    "application": 25 * MIB,
    "video": 300 * MIB,
    "image": 25 * MIB,
    "database": 300 * MIB,
    "other": 50 * MIB,
}
"""The most bytes that an attachment has, by the main type of its media type; a SQLite file is a
"database", and texts are "other"."""

_SETTINGS: Final = ("location", "allow_local_paths", "allowed_roots", "size_limits")
_DATABASES: Final = ("application/vnd.sqlite3", "application/x-sqlite3")
_OPENING: Final = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
) | getattr(os, "O_BINARY", 0)


class Attachments:
    """Where a history keeps the bytes of attachments, and which files it takes.

    `location` is a local folder, a URL of fsspec such as ``s3://bucket/prefix``, or an
    `AttachmentStore`.

    - `allow_local_paths` False refuses local paths altogether: what a server wants that takes
      attachments from its users.
    - `allowed_roots` are the folders in which local files must lie, symbolic links resolved; None
      is anywhere.
    - `size_limits` are bytes by class, before those of `SIZE_LIMITS`; None is no limit.

    Raises `ConfigError` for a place that can't be used and a class of sizes that there isn't.
    """

    def __init__(
        self,
        location: str | os.PathLike[str] | AttachmentStore,
        *,
        allow_local_paths: bool = True,
        allowed_roots: Sequence[str | os.PathLike[str]] | None = None,
        size_limits: Mapping[str, int | None] | None = None,
    ) -> None:
        if isinstance(location, str | os.PathLike):
            location = FsspecAttachmentStore(location)
        self.store: AttachmentStore = location
        self.allow_local_paths = allow_local_paths
        if isinstance(allowed_roots, str | os.PathLike):
            raise ConfigError(
                "allowed_roots is a list of folders; put it in a list", field="allowed_roots"
            )
        self.allowed_roots = (
            None
            if allowed_roots is None
            else [Path(os.path.expanduser(each)) for each in allowed_roots]
        )
        self.size_limits: dict[str, int | None] = {**SIZE_LIMITS, **(size_limits or {})}
        for name, limit in self.size_limits.items():
            _check_limit(name, limit)

    def __repr__(self) -> str:
        return f"Attachments({self.store!r})"

    def size_limit(self, media_type: str) -> tuple[str, int | None]:
        """Return the class of sizes that a media type is of, and the most bytes it may have."""
        main = media_type.partition("/")[0]
        if media_type in _DATABASES:
            main = "database"
        name = main if main in SIZE_LIMITS else "other"
        return name, self.size_limits[name]

    def open_file(self, path: str) -> BinaryIO:
        """Open a local file to attach it. A path that begins with ``~`` is in a user's home.

        Raises `ForbiddenError` where it may not be attached, whether it exists or not,
        `InvalidRequestError` for what is no path, and `OSError`.
        """
        if not self.allow_local_paths:
            raise ForbiddenError("local files may not be attached here (allow_local_paths)")
        if "\0" in path:
            raise InvalidRequestError("a path cannot contain NUL")
        path = os.path.expanduser(path)
        real = Path(os.path.realpath(path))
        self._check_place(real)
        file = os.fdopen(os.open(real, _OPENING), "rb")
        try:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ForbiddenError("it is not a file")
            # Somebody may have put a link in its way since.
            if not os.path.samestat(os.fstat(file.fileno()), os.stat(os.path.realpath(path))):
                raise ForbiddenError("it was exchanged while it was opened")
            self._check_place(Path(os.path.realpath(path)))
        except BaseException:
            file.close()
            raise
        return file

    def _check_place(self, real: Path) -> None:
        root = getattr(self.store, "local_root", None)
        if root is not None and real.is_relative_to(os.path.realpath(root)):
            raise ForbiddenError("it is a stored attachment; attach it by its URL")
        if self.allowed_roots is None:
            return
        if not any(real.is_relative_to(os.path.realpath(each)) for each in self.allowed_roots):
            raise ForbiddenError("it is in no folder that files may be attached from")


def as_attachments(value: object) -> Attachments:
    """Return the `Attachments` that a configuration means: a folder, a URL, a store, or a table.

    A table has the arguments of `Attachments`. Raises `ConfigError`.
    """
    if isinstance(value, Attachments):
        return value
    if isinstance(value, Mapping):
        for name in value:
            if name not in _SETTINGS:
                raise ConfigError(
                    f"attachments has no setting {name!r}; {suggest(name, _SETTINGS)}", field=name
                )
        if "location" not in value:
            raise ConfigError(
                "attachments needs 'location', a folder or a URL", field="attachments"
            )
        return Attachments(**value)
    if isinstance(value, str | os.PathLike) or hasattr(value, "put"):
        place: Any = value
        return Attachments(place)
    raise ConfigError(
        f"attachments must be a folder, a URL or Attachments, not {type(value).__name__}",
        field="attachments",
    )


class AttachmentContext(Protocol):
    """What `resolve_attachments` needs, and a `History` is."""

    @property
    def attachments(self) -> Attachments | None:
        """Where attachments are kept, None where they are not."""

    async def attachment_folder(self) -> AttachmentFolder:
        """Return where those go that are stored now."""


async def resolve_attachments(
    context: AttachmentContext,
    attachments: Sequence[str | Path | Mapping[str, Any] | SessionMessageAttachment] | None = None,
    files: Sequence[str | Path] | None = None,
    *,
    error_label: str = "",
) -> list[dict[str, Any]]:
    """Return attachments as dicts with ``url``, ``name``, ``type`` and ``mimeType``, storing files.

    `context` is a `History`; what is stored is its user's until a message of that user gets it.
    Each entry is one of these:

    - a URL as text (``http``, ``https``, ``s3``, ``gs``, ``gcs``, ``az``, ``abfs``) or in a dict
      under ``url``, which stays as it is and is never fetched;
    - a local path as text, as `pathlib.Path`, as ``file://`` URL or in a dict under ``path``, whose
      file is stored;
    - a ``data:`` URI, whose bytes are stored;
    - an attachment of another message, which is copied.

    The type and media type of a URL are told by its media type, name and extension, where a dict
    does not have them; those of a file by what is in it, and other keys of its dict go before.

    `files` are more local paths, which are deprecated in favour of `attachments`. Entries are not
    changed. All of them are stored or none.

    Raises `InvalidRequestError` for an entry that is none of these, before anything is stored, and
    `FileUploadError`: "Failed to upload file 'a.png' for <error_label>: <cause>" (aiXplain session
    module).
    """
    kept = context.attachments
    is_stored = _never if kept is None else lambda url: kept.store.key(url) is not None
    entries = [read_entry(each, is_stored) for each in entries_of(attachments, "attachments")]
    more = [read_file(each) for each in entries_of(files, "files")]
    if more:
        warn_caller(
            "`files` is deprecated; pass local paths (or URLs) through `attachments` instead.",
            DeprecationWarning,
        )
    work = _Resolving(context, f" for {error_label}" if error_label else "")
    try:
        return [await work.resolve(entry) for entry in (*entries, *more)]
    except BaseException:
        await work.undo()
        raise


class _Resolving:
    """Entries on their way into one folder, which is asked for when the first needs it."""

    def __init__(self, context: AttachmentContext, label: str) -> None:
        self._context = context
        self._label = label
        self._folder: AttachmentFolder | None = None
        self._made: list[str] = []

    async def resolve(self, entry: Entry) -> dict[str, Any]:
        match entry:
            case HostedEntry(fields, source):
                return completed(await self._hosted(fields, source))
            case FileEntry(path, fields):
                return await self._upload(path, os.path.basename(path), None, fields)
            case DataEntry(data, fields):
                return await self._upload("data:", fields.get("name"), data, fields)

    async def undo(self) -> None:
        """Delete what was stored."""
        if self._folder is not None and self._made:
            await self._folder.delete(self._made)

    async def _hosted(
        self, fields: dict[str, Any], source: SessionMessageAttachment | None
    ) -> dict[str, Any]:
        """Copy what is in one's own store: each attachment has its blob."""
        kept = self._context.attachments
        if kept is None or kept.store.key(fields["url"]) is None:
            return fields
        theirs = None
        if source is not None and source._reader is not None:
            theirs = await source._reader.folder(source.url)
        folder = await self._place()
        url = await folder.copy(fields["url"], theirs)
        self._made.append(url)
        return {**fields, "url": url}

    async def _upload(
        self, path: str, name: str | None, data: bytes | None, fields: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            if self._context.attachments is None:
                raise InvalidRequestError(
                    "this history keeps no attachments; open it with attachments=, a folder or a "
                    "URL, or attach URLs"
                )
            folder = await self._place()
            url, media_type = await self._store(folder, path, name, data)
        except (HistoryKitError, OSError, ValueError) as error:
            raise FileUploadError(
                f"Failed to upload file {path!r}{self._label}: {_cause(error)}"
            ) from error
        self._made.append(url)
        resolved = {"url": url, "name": name, "type": None, "mimeType": media_type, **fields}
        resolved["type"] = resolved["type"] or AttachmentType.of(resolved["mimeType"]).value
        return resolved

    async def _store(
        self, folder: AttachmentFolder, path: str, name: str | None, data: bytes | None
    ) -> tuple[str, str]:
        attachments = folder.attachments
        if data is None:
            opening = asyncio.to_thread(_opened, attachments, path)
            source, head = await undone_if_cancelled(opening, _close)
        else:
            source, head = io.BytesIO(data), data[:HEAD_BYTES]
        with source:
            media_type = detect_media_type(head, name or "")
            kind, limit = attachments.size_limit(media_type)
            try:
                return await folder.put(source, limit=limit), media_type
            except TooLargeError as error:
                raise TooLargeError(
                    f"it has more than {limit} bytes, the limit for {kind} files (size_limits)"
                ) from error

    async def _place(self) -> AttachmentFolder:
        if self._folder is None:
            self._folder = await self._context.attachment_folder()
        return self._folder


def _opened(attachments: Attachments, path: str) -> tuple[BinaryIO, bytes]:
    file = attachments.open_file(path)
    try:
        head = file.read(HEAD_BYTES)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file, head


async def _close(opened: tuple[BinaryIO, bytes]) -> None:
    opened[0].close()


def _cause(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _check_limit(name: str, limit: object) -> None:
    if name not in SIZE_LIMITS:
        raise ConfigError(
            f"size_limits has no class {name!r}; {suggest(name, SIZE_LIMITS)}", field="size_limits"
        )
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise ConfigError(
            f"size_limits[{name!r}] must be a number of bytes or None, not {limit!r}",
            field="size_limits",
        )


def _never(url: str) -> bool:
    return False
