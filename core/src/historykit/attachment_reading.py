"""Reading what belongs to a message: through the message, by who can read it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from historykit.attachment_entries import data_of
from historykit.attachment_folders import AttachmentFolder, decoded
from historykit.errors import NotFoundError, ResourceError
from historykit.redaction import redact_url
from historykit.session_records import SessionKey

if TYPE_CHECKING:
    from historykit.history import History

__all__ = ["AttachmentReader"]


class AttachmentReader:
    """Gives the bytes of one message's attachments out, as long as the message has them."""

    def __init__(self, history: History, key: SessionKey, message_id: str) -> None:
        self._history = history
        self._key = key
        self._message_id = message_id

    async def read(self, url: str) -> AsyncIterator[bytes]:
        """Yield the bytes of an attachment in pieces."""
        if url[:5].lower() == "data:":
            yield data_of(url)
            return
        if not self._is_kept(url):
            raise ResourceError(
                f"attachment {redact_url(url)!r} is not kept by this history, {self._remedy(url)}"
            )
        folder = await self.folder(url)
        async for piece in folder.read(url):
            yield piece

    async def link(self, url: str, *, expires: float) -> str:
        """Return a URL that is good for so many seconds; that of a hosted attachment as it is."""
        if not self._is_kept(url):
            return url
        folder = await self.folder(url)
        return await folder.link(url, expires=expires)

    async def folder(self, url: str) -> AttachmentFolder:
        """Return the folder that an attachment is in. Raises `NotFoundError` where the message does
        not have it, or is not there any more."""
        row = await self._history.store.read_message(self._key, self._message_id)
        folder = await self._history._folder_of(self._key)
        body = decoded(row.body, self._history.codec)
        if folder is None or url not in folder.references(body):
            raise NotFoundError(
                f"message {self._message_id!r} has no attachment {redact_url(url)!r}"
            )
        return folder

    def _remedy(self, url: str) -> str:
        where = "fetch it from where it is"
        if url.lower().startswith(("http:", "https:")):
            return where
        opened = "is opened without attachments="
        if self._history.attachments is not None:
            opened = "keeps its attachments in another place"
        return (
            f"which {opened}; open it with attachments= and the folder or URL that the attachment "
            f"was stored in, or {where}"
        )

    def _is_kept(self, url: str) -> bool:
        attachments = self._history.attachments
        return attachments is not None and attachments.store.key(url) is not None
