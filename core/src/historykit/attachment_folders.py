"""Whose blob is whose: the folders of the attachment store, one for each life of a session.

A key is ``OWNER/SESSION/INCARNATION/BLOB``. The owner is an id that the store of the messages has
for the namespace, so that several stores can share a bucket; the session is a digest of user and
session id. What is kept for no session yet is in ``OWNER/loose/USER``, what is on its way in
``OWNER/incoming``."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO, Final

from historykit.attachments import Attachments
from historykit.codec import MessageCodec
from historykit.errors import DecodeError, ForbiddenError, NotFoundError
from historykit.ids import derive_id
from historykit.records import StoredMessage
from historykit.session_records import SessionDraft, SessionKey
from historykit.store import HistoryStore

__all__ = ["AttachmentFolder", "AttachmentSpace", "decoded", "relinked", "texts_in", "texts_of"]

LOOSE: Final = "loose"

OWNERS: Final = "historykit.attachments"
"""The namespace of the sessions whose incarnations are owners."""


class AttachmentFolder:
    """The blobs of one session, in the order of their making; they are named by their URLs."""

    def __init__(
        self, attachments: Attachments, path: str, *, readable: Iterable[str] = ()
    ) -> None:
        self.attachments = attachments
        self.path = path
        self._store = attachments.store
        self._readable = (path, *readable)

    def __repr__(self) -> str:
        return f"AttachmentFolder({self.path!r})"

    def owns(self, url: str) -> bool:
        """Return whether a URL is that of a blob of this folder."""
        return self._key(url, (self.path,)) is not None

    def url(self, name: str) -> str:
        """Return the URL of the blob with this name."""
        return self._store.url(f"{self.path}/{name}")

    async def has(self, url: str) -> bool:
        """Return whether a blob is there."""
        return await self._store.exists(self._own(url))

    async def put(
        self, source: BinaryIO, *, name: str | None = None, limit: int | None = None
    ) -> str:
        """Store what a file holds and return the blob's URL."""
        blob = await self._store.put(self.path, source, name=name, limit=limit)
        return self._store.url(blob.key)

    async def copy(self, url: str, source: AttachmentFolder | None = None) -> str:
        """Store a copy of a blob, of `source` or one that this folder may read, and return its URL.

        Raises `ForbiddenError` for one of another session.
        """
        key = self._key(url, self._readable if source is None else (source.path,))
        if key is None:
            raise ForbiddenError(
                "the attachment is one of another session; read it through its message, and attach "
                "what it holds"
            )
        return self._store.url((await self._store.copy(key, self.path)).key)

    def read(self, url: str) -> AsyncIterator[bytes]:
        """Yield the bytes of a blob. Raises `NotFoundError`, for those of other folders too."""
        return self._store.read(self._own(url))

    async def link(self, url: str, *, expires: float) -> str:
        """Return a URL under which anybody can read a blob for so many seconds."""
        return await self._store.link(self._own(url), expires=expires)

    async def delete(self, urls: Iterable[str]) -> None:
        """Delete those blobs that are of this folder."""
        keys = [key for url in urls if (key := self._key(url, (self.path,))) is not None]
        if keys:
            await self._store.delete(keys)

    async def delete_all(self) -> None:
        """Delete the folder with all its blobs."""
        await self._store.delete_folder(self.path)

    def references(self, value: Any) -> set[str]:
        """Return the URLs of this folder's blobs that are anywhere in a message's dict."""
        return {text for text in texts_in(value) if self.owns(text)}

    def _own(self, url: str) -> str:
        key = self._key(url, (self.path,))
        if key is None:
            raise NotFoundError("the attachment is none of this session's")
        return key

    def _key(self, url: str, paths: Iterable[str]) -> str | None:
        """Return the key of a blob right in one of the folders: nothing may lead out of it."""
        key = self._store.key(url)
        if key is None:
            return None
        folder, _, name = key.rpartition("/")
        return key if folder in paths and name not in ("", ".", "..") else None


class AttachmentSpace:
    """The attachments of one namespace of a store of messages."""

    def __init__(self, attachments: Attachments, store: HistoryStore, namespace: str) -> None:
        self.attachments = attachments
        self._store = store
        self._namespace = namespace
        self._owner: str | None = None

    async def owner(self) -> str:
        """Return the first part of all keys, which the store of the messages remembers."""
        if self._owner is None:
            key = SessionKey(OWNERS, "", self._namespace)
            with suppress(NotFoundError):
                self._owner = (await self._store.read_session(key)).incarnation
        if self._owner is None:
            record = await self._store.create_session(key, SessionDraft(), if_exists="return")
            self._owner = record.incarnation
        return self._owner

    async def folder(self, key: SessionKey, incarnation: str) -> AttachmentFolder:
        """Return the folder of a life of a session."""
        owner = await self.owner()
        path = f"{owner}/{session_digest(key)}/{incarnation}"
        return AttachmentFolder(self.attachments, path, readable=[_loose_path(owner, key.user_id)])

    async def loose_folder(self, user_id: str) -> AttachmentFolder:
        """Return the folder of what a user has for no session yet."""
        return AttachmentFolder(self.attachments, _loose_path(await self.owner(), user_id))


def decoded(body: bytes, codec: MessageCodec) -> dict[str, Any]:
    """Return what a body holds, objects of unknown state types as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return codec.decode(body, strict=False)


def texts_of(rows: Iterable[StoredMessage], codec: MessageCodec) -> Iterator[str]:
    """Yield all texts that are values in messages; none of those that cannot be read."""
    for row in rows:
        with suppress(DecodeError):
            yield from texts_in(decoded(row.body, codec))


def session_digest(key: SessionKey) -> str:
    """Return the part of a key that stands for a session of a namespace."""
    return derive_id(key.user_id, key.session_id)


def relinked(value: Any, urls: Mapping[str, str]) -> Any:
    """Return a message's dict with other URLs in the place of those that are keys of `urls`."""
    if isinstance(value, str):
        return urls.get(value, value)
    if type(value) is dict:
        return {name: relinked(item, urls) for name, item in value.items()}
    if type(value) is list:
        return [relinked(item, urls) for item in value]
    return value


def _loose_path(owner: str, user_id: str) -> str:
    return f"{owner}/{LOOSE}/{derive_id(user_id)}"


def texts_in(value: Any) -> Iterator[str]:
    """Yield all texts that are values anywhere in a message's dict."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            pending += value.values()
        elif isinstance(value, list | tuple):
            pending += value
