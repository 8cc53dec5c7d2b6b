"""Finding and deleting attachments that no message has."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from historykit.attachment_folders import AttachmentFolder, AttachmentSpace, decoded
from historykit.attachment_store import StoredBlob
from historykit.errors import (
    DecodeError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
)
from historykit.exporting import find_all
from historykit.records import Window
from historykit.session_records import PAGE_SESSIONS, SessionKey, SessionQuery, SessionRecord

if TYPE_CHECKING:
    from historykit.attachment_calls import AttachmentCalls

__all__ = ["MissingAttachment", "SweepReport", "references", "sweep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingAttachment:
    """A message whose bytes are gone, which no crash brings about: somebody deleted them."""

    user_id: str
    session_id: str
    message_id: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """What a sweep found among `blobs` blobs.

    `orphans` are the URLs of those that no message has and that are old enough to delete,
    `orphan_bytes` their bytes; they were deleted unless it was a `dry_run`. `young` counts those
    that no message has, and that may still get one. `missing` are attachments without bytes, and
    `unreadable` the sessions of which nothing was deleted, because a message can't be read.
    """

    blobs: int
    orphans: tuple[str, ...]
    orphan_bytes: int
    young: int
    missing: tuple[MissingAttachment, ...]
    unreadable: tuple[SessionKey, ...]
    dry_run: bool


async def sweep(
    history: AttachmentCalls,
    space: AttachmentSpace,
    *,
    older_than: float,
    dry_run: bool,
    verify: bool,
) -> SweepReport:
    """Do what `History.sweep_attachments` says.

    The blobs are listed before the messages are read: one that is listed and old has its message by
    then, or will never have one.
    """
    if history.user_id:
        raise ForbiddenError(
            f"the history of user {history.user_id!r} does not see the attachments of others; "
            "sweep with a history of no user"
        )
    if not older_than >= 0:
        raise InvalidRequestError(f"older_than must be 0 seconds or more, not {older_than}")
    before = time.time() - older_than
    work = _Sweep(history, space, verify)
    blobs = await space.attachments.store.find(await space.owner())
    unclaimed = await work.unclaimed(blobs)
    orphans = [blob for blob in unclaimed if blob.modified <= before]
    if not dry_run:
        await space.attachments.store.delete(blob.key for blob in orphans)
    return SweepReport(
        blobs=len(blobs),
        orphans=tuple(space.attachments.store.url(blob.key) for blob in orphans),
        orphan_bytes=sum(blob.size for blob in orphans),
        young=len(unclaimed) - len(orphans),
        missing=tuple(work.missing),
        unreadable=tuple(work.unreadable),
        dry_run=dry_run,
    )


@dataclass(slots=True)
class _Sweep:
    history: AttachmentCalls
    space: AttachmentSpace
    verify: bool
    missing: list[MissingAttachment] = field(default_factory=list)
    unreadable: list[SessionKey] = field(default_factory=list)

    async def unclaimed(self, blobs: list[StoredBlob]) -> list[StoredBlob]:
        """Return the blobs that no message has."""
        folders: defaultdict[str, list[StoredBlob]] = defaultdict(list)
        for blob in blobs:
            folders[blob.key.rpartition("/")[0]].append(blob)
        found: list[StoredBlob] = []
        query = SessionQuery(namespace=self.history.namespace, limit=PAGE_SESSIONS)
        async with aclosing(find_all(self.history.store, query)) as records:
            async for record in records:
                folder = await self.space.folder(record.key, record.incarnation)
                kept = folders.pop(folder.path, [])
                if kept or self.verify:
                    found += await self._session(record, folder, kept)
        return found + [blob for kept in folders.values() for blob in kept]

    async def _session(
        self, record: SessionRecord, folder: AttachmentFolder, kept: list[StoredBlob]
    ) -> list[StoredBlob]:
        """Return the blobs of a session that none of its messages has."""
        store = self.space.attachments.store
        there = {store.url(blob.key): blob for blob in kept}
        try:
            async with aclosing(references(self.history, record, folder)) as found:
                async for message_id, url in found:
                    if there.pop(url, None) is None:
                        await self._missing(record, message_id, url)
        except DecodeError:
            self.unreadable.append(record.key)
            return []
        return list(there.values())

    async def _missing(self, record: SessionRecord, message_id: str, url: str) -> None:
        """Report a message without its bytes, unless they came or it went after the listing."""
        store = self.space.attachments.store
        if await store.exists(store.key(url) or ""):
            return
        try:
            await self.history.store.read_message(record.key, message_id)
        except NotFoundError:
            return
        key = record.key
        self.missing.append(
            MissingAttachment(
                user_id=key.user_id, session_id=key.session_id, message_id=message_id, url=url
            )
        )


async def references(
    history: AttachmentCalls, record: SessionRecord, folder: AttachmentFolder
) -> AsyncGenerator[tuple[str, str], None]:
    """Yield which message has which blob of the session's folder. Raises `DecodeError`."""
    for stream in record.streams:
        window, more = Window(after=0), True
        while more:
            page = await history.store.read(record.key, window, stream=stream)
            for row in page.messages:
                for url in folder.references(decoded(row.body, history.codec)):
                    yield row.id, url
            more = page.more
            if more:
                window = Window(after=page.messages[-1].sequence)
