from __future__ import annotations

from collections.abc import Sequence

from historykit.errors import NotFoundError
from historykit.records import StoredMessage, Window
from historykit.session_records import SessionKey
from tests.kit.wrong_stores.lies import Lie, wrong

Newest = list[StoredMessage | None]


@wrong("test_message_is_read_by_its_id")
class LooksAtTheNewestPage(Lie):
    """Finds a message by its id among the newest only."""

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        row = await super()._read_message(key, message_id)
        page = await self._read(key, Window(limit=50), "main")
        if row.sequence < page.messages[0].sequence:
            raise NotFoundError(f"Message not found: {message_id!r}")
        return row


@wrong("test_message_is_read_by_its_id")
class ForgetsExtras(Lie):
    """Leaves out what is kept beside a message that it reads by its id."""

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        return (await super()._read_message(key, message_id))._replace(extra=None)


@wrong("test_message_is_read_from_any_stream")
class ReadsMessagesOfTheMainStream(Lie):
    """Finds messages of the main stream only by their id."""

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        row = await super()._read_message(key, message_id)
        if self._sessions[key].places[message_id][0] != "main":
            raise NotFoundError(f"Message not found: {message_id!r}")
        return row


@wrong("test_message_that_is_not_there_is_an_error")
class ReadsNothing(Lie):
    """Gives an empty message for one that is not there."""

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        try:
            return await super()._read_message(key, message_id)
        except NotFoundError:
            return StoredMessage(0, message_id, "user", b"", 0, False)


@wrong("test_message_that_is_not_there_is_an_error")
class ReadsWhatWasTrimmed(Lie):
    """Keeps what retention removed where it is found by its id."""

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        if message_id in self._ids:
            return self._ids[message_id]
        return await super()._read_message(key, message_id)

    async def _append(self, request):
        receipt = await super()._append(request)
        self._ids = getattr(self, "_ids", {})
        for draft in request.drafts:
            row = StoredMessage(1, draft.id, draft.role, draft.body, draft.created_at, False)
            self._ids[draft.id] = row
        return receipt


@wrong("test_message_is_read_from_its_session_only")
class ReadsMessagesOfAnybody(Lie):
    """Finds a message by its id alone, whosever it is."""

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        for session in self._sessions.values():
            row = session.message(message_id)
            if row is not None:
                return row
        return await super()._read_message(key, message_id)


@wrong("test_message_is_read_as_it_is_now")
class RemembersMessages(Lie):
    """Gives a message as it was when it was read first."""

    async def _read_message(self, key: SessionKey, message_id: str) -> StoredMessage:
        self._seen = getattr(self, "_seen", {})
        if message_id not in self._seen:
            self._seen[message_id] = await super()._read_message(key, message_id)
        return self._seen[message_id]


@wrong("test_newest_of_each_session_is_read")
class LeavesOutEmptySessions(Lie):
    """Gives nothing for a session without messages."""

    async def _read_newest(self, keys: Sequence[SessionKey], stream: str) -> Newest:
        return [row for row in await super()._read_newest(keys, stream) if row is not None]


@wrong("test_newest_of_each_session_is_read")
class ReadsTheOldest(Lie):
    """Reads the first message of each session."""

    async def _read_newest(self, keys: Sequence[SessionKey], stream: str) -> Newest:
        pages = [await self._read(key, Window(limit=1, after=0), stream) for key in keys]
        return [page.messages[0] if page.messages else None for page in pages]


@wrong("test_newest_of_each_session_is_read")
class SortsTheSessions(Lie):
    """Gives the newest messages in the order of the sessions' ids."""

    async def _read_newest(self, keys: Sequence[SessionKey], stream: str) -> Newest:
        ordered = sorted(keys, key=lambda key: (key.session_id, key.user_id))
        return await super()._read_newest(ordered, stream)


@wrong("test_newest_is_of_the_session_and_stream_asked_for")
class ReadsTheNewestOfAllStreams(Lie):
    """Takes the newest message of a session, whatever its stream."""

    async def _read_newest(self, keys: Sequence[SessionKey], stream: str) -> Newest:
        found = [await super(Lie, self)._read_newest(keys, name) for name in ("main", "audit")]
        return [max(filter(None, rows), default=None) for rows in zip(*found, strict=True)]


@wrong("test_newest_is_of_the_session_and_stream_asked_for")
class ReadsTheNewestOfAllUsers(Lie):
    """Looks for the newest message by the session's id alone."""

    async def _read_newest(self, keys: Sequence[SessionKey], stream: str) -> Newest:
        ids = {key.session_id: key for key in self._sessions}
        return await super()._read_newest([ids.get(key.session_id, key) for key in keys], stream)


@wrong("test_newest_follows_edits")
class RemembersTheNewest(Lie):
    """Takes the message that was appended last for the newest, and knows it as it was then."""

    async def _append(self, request):
        receipt = await super()._append(request)
        self._last = getattr(self, "_last", {})
        page = await self._read(request.key, Window(limit=1), request.stream)
        self._last[request.key, request.stream] = page.messages[-1]
        return receipt

    async def _read_newest(self, keys: Sequence[SessionKey], stream: str) -> Newest:
        return [self._last.get((key, stream)) for key in keys]
