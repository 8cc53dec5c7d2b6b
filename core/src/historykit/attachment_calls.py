"""What a history does with attachments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, TypeAlias

from historykit.codec import MessageCodec
from historykit.errors import DecodeError, NotFoundError, ResourceError
from historykit.loading import LoadedHistory
from historykit.messages import Message
from historykit.records import AppendReceipt, DeleteReceipt, MessageDraft, StoredMessage
from historykit.session_records import SessionDraft, SessionKey, SessionRecord
from historykit.store import HistoryStore

if TYPE_CHECKING:
    from historykit.attachment_folders import AttachmentFolder, AttachmentSpace
    from historykit.attachment_sweep import SweepReport
    from historykit.attachments import Attachments

__all__ = ["AttachmentCalls"]

Write: TypeAlias = Callable[[Sequence[MessageDraft], str | None], Awaitable[AppendReceipt]]
"""Appends drafts to a session, in the life that is named."""


class AttachmentCalls:
    """The part of `History` that keeps attachments.

    `attachments` says where they are kept, None where they are not.
    """

    store: HistoryStore
    namespace: str
    user_id: str
    codec: MessageCodec
    attachments: Attachments | None
    _space: AttachmentSpace | None

    def _keep_attachments(self, attachments: object) -> None:
        self.attachments = self._space = None
        if attachments is not None:
            from historykit.attachment_folders import AttachmentSpace
            from historykit.attachments import as_attachments

            self.attachments = as_attachments(attachments)
            self._space = AttachmentSpace(self.attachments, self.store, self.namespace)

    async def attachment_folder(self) -> AttachmentFolder:
        """Return where `resolve_attachments` keeps what is of no message yet.

        A message of the same user gets a copy of its own, and the sweep deletes what lies here.
        Raises `ResourceError` where the history keeps no attachments.
        """
        return await self._attachment_space().loose_folder(self.user_id)

    async def sweep_attachments(
        self, *, older_than: float = 3600.0, dry_run: bool = False, verify: bool = False
    ) -> SweepReport:
        """Delete the attachments of this namespace that no message has, and say which there were.

        They are what a crash left, what retention took the messages of, and what
        `resolve_attachments` stored for no message. `older_than` is the age, in seconds, below
        which nothing is touched: it has to be longer than it takes to store a message with all its
        attachments. With `dry_run` nothing is deleted. With `verify` the messages of all sessions
        are read, instead of those of sessions that have attachments, to report any whose bytes are
        missing. Nothing is deleted of a session with a message that cannot be read.

        Needs `Capability.CATALOGUE`. Raises `ForbiddenError` on the history of one user and
        `ResourceError` where it keeps no attachments.
        """
        from historykit.attachment_sweep import sweep

        space = self._attachment_space()
        return await sweep(self, space, older_than=older_than, dry_run=dry_run, verify=verify)

    def _attachment_space(self) -> AttachmentSpace:
        if self._space is None:
            raise ResourceError(
                "this history keeps no attachments; open it with attachments=, a folder or a URL"
            )
        return self._space

    async def _delete_session(self, key: SessionKey) -> DeleteReceipt:
        """Delete a session with its attachments: first the rows, then the bytes."""
        folder = await self._folder_of(key)
        receipt = await self.store.delete_session(key)
        if folder is not None:
            await folder.delete_all()
        return receipt

    async def _attached_to(
        self, key: SessionKey, rows: Iterable[StoredMessage]
    ) -> tuple[AttachmentFolder, set[str]] | None:
        """Return the folder of a session and the URLs in it that rows have; None without any."""
        if self._space is None:
            return None
        from historykit.attachment_folders import texts_of

        store = self._space.attachments.store
        kept = {text for text in texts_of(rows, self.codec) if store.key(text) is not None}
        folder = await self._folder_of(key) if kept else None
        if folder is None:
            return None
        own = {url for url in kept if folder.owns(url)}
        return (folder, own) if own else None

    async def _detach(self, key: SessionKey, folder: AttachmentFolder, urls: set[str]) -> None:
        """Delete those of a session's blobs that none of its messages has, now that one is gone.

        Nothing is deleted where a message that cannot be read may have them.
        """
        from historykit.attachment_sweep import references

        with suppress(NotFoundError):
            record = await self.store.read_session(key)
            try:
                async with aclosing(references(self, record, folder)) as kept:
                    async for _, url in kept:
                        urls = urls - {url}
            except DecodeError:
                return
        await folder.delete(urls)

    async def _folder_in(self, record: SessionRecord) -> AttachmentFolder | None:
        """Return the attachments of a session as it was when it was read."""
        if self._space is None:
            return None
        return await self._space.folder(record.key, record.incarnation)

    async def _folder_of(self, key: SessionKey) -> AttachmentFolder | None:
        """Return the attachments of a session as it is now, None where there can be none."""
        if self._space is None:
            return None
        try:
            record = await self.store.read_session(key)
        except NotFoundError:
            return None
        return await self._folder_in(record)

    async def _offloaded(
        self,
        write: Write,
        drafts: Sequence[MessageDraft],
        messages: Sequence[Message],
        key: SessionKey,
        *,
        over: int,
        incarnation: str | None,
        create: SessionDraft | None,
    ) -> AppendReceipt:
        """Append drafts of messages, with their large data stored apart.

        Data needs a session that it can be stored for: without `create`, one that is there.
        """
        from historykit.offloading import has_large_data, write_offloaded

        if not has_large_data(messages, over):
            return await write(drafts, incarnation)
        space = self._attachment_space()
        if incarnation is None and create is not None:
            record = await self.store.create_session(key, create, if_exists="return")
            incarnation = record.incarnation
        if incarnation is None:
            incarnation = (await self.store.read_tail(key)).incarnation
        if incarnation is None:
            return await write(drafts, None)
        folder = await space.folder(key, incarnation)
        return await write_offloaded(
            lambda moved: write(moved, incarnation), drafts, folder, codec=self.codec, over=over
        )

    async def _inlined(
        self, loaded: LoadedHistory, key: SessionKey, *, strict: bool
    ) -> LoadedHistory:
        """Return what was loaded, with the data in its place that is stored apart."""
        if self._space is None or loaded.incarnation is None:
            return loaded
        from historykit.offloading import inline_data

        folder = await self._space.folder(key, loaded.incarnation)
        return await inline_data(loaded, folder, session_id=key.session_id, strict=strict)
