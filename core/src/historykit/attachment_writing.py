"""Storing the bytes of a message before its row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from historykit.attachment_folders import AttachmentFolder
from historykit.attachments import Attachments, resolve_attachments
from historykit.errors import HistoryKitError, StorageError, TooLargeError
from historykit.ids import new_id
from historykit.session_records import SessionKey, SessionRecord

if TYPE_CHECKING:
    from historykit.history import History

__all__ = ["CopiedFirst", "StoredFirst", "not_stored"]


class StoredFirst:
    """The attachments of messages that are about to be added to a session.

    It is the context of their resolving, and deletes them where the messages are not stored.
    """

    def __init__(self, history: History, record: SessionRecord) -> None:
        self._history = history
        self._record = record
        self._urls: list[str] = []

    @property
    def attachments(self) -> Attachments | None:
        """Where the history keeps attachments."""
        return self._history.attachments

    async def attachment_folder(self) -> AttachmentFolder:
        """Return the folder of the session."""
        space = self._history._attachment_space()
        return await space.folder(self._record.key, self._record.incarnation)

    async def resolve(self, attachments: Any, files: Any) -> list[dict[str, Any]]:
        """Return what `resolve_attachments` returns."""
        label = f"session {self._record.key.session_id!r}"
        resolved = await resolve_attachments(self, attachments, files, error_label=label)
        self._urls += [attachment["url"] for attachment in resolved]
        return resolved

    async def delete(self) -> None:
        """Delete the bytes of messages that were not stored."""
        if self.attachments is not None and self._urls:
            await (await self.attachment_folder()).delete(self._urls)

    async def give_up(self, error: BaseException) -> None:
        """Delete the bytes where it is certain, after an error, that no message has them."""
        if not_stored(error):
            await self.delete()


class CopiedFirst:
    """The attachments of messages that are copied into a session that does not exist yet.

    `incarnation` is the one that the session has to be created with.
    """

    def __init__(self, history: History, key: SessionKey) -> None:
        self.incarnation = new_id()
        self._history = history
        self._key = key
        self._folder: AttachmentFolder | None = None

    async def copy(self, attached: tuple[AttachmentFolder, Iterable[str]] | None) -> dict[str, str]:
        """Copy what is attached, and return the URL of each copy by that of the original."""
        if attached is None:
            return {}
        source, urls = attached
        space = self._history._attachment_space()
        self._folder = await space.folder(self._key, self.incarnation)
        return {url: await self._folder.copy(url, source) for url in urls}

    async def delete(self) -> None:
        """Delete the copies."""
        if self._folder is not None:
            await self._folder.delete_all()

    async def give_up(self, error: BaseException) -> None:
        """Delete the copies where it is certain, after an error, that no message has them."""
        if not_stored(error):
            await self.delete()


def not_stored(error: BaseException) -> bool:
    """Return whether it is certain, after this error of a write, that nothing was written.

    Where the store did not answer, or nobody waited for its answer, it may have been.
    """
    if isinstance(error, TooLargeError):
        return True
    return isinstance(error, HistoryKitError) and not isinstance(error, StorageError)
