from __future__ import annotations

from dataclasses import replace
from typing import Any

from historykit.memory_sessions import MemorySession
from historykit.planning import cut_page
from historykit.records import PAGE_BYTES, Slice, StoredMessage, Window
from historykit.session_records import SessionKey
from tests.kit.wrong_stores.lies import Lie, wrong


class WindowLie(Lie):
    """A store that reads another window."""

    def changed(self, window: Window, session: MemorySession) -> Window:
        raise NotImplementedError

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        session = self._sessions.get(key)
        return await super()._read(
            key, self.changed(window, session) if session else window, stream
        )


@wrong("test_limit_means_the_newest_oldest_first", "test_long_history_is_loaded_whole")
class ReadsTheOldest(WindowLie):
    """Takes a limit for that of the oldest messages."""

    def changed(self, window: Window, session: MemorySession) -> Window:
        if window.before is None and window.after is None and window.limit:
            return Window(limit=window.limit, after=0)
        return window


@wrong("test_limit_of_zero_reads_no_messages")
class TakesZeroForNoLimit(WindowLie):
    """Takes a limit of 0 for none."""

    def changed(self, window: Window, session: MemorySession) -> Window:
        return replace(window, limit=window.limit or None)


@wrong(
    "test_bounds_of_a_window_are_excluded",
    "test_walk_back_meets_each_message_once",
    "test_walk_forward_meets_each_message_once",
    "test_page_holds_at_least_one_message",
)
class IncludesItsBounds(WindowLie):
    """Reads the message at a bound as well."""

    def changed(self, window: Window, session: MemorySession) -> Window:
        return replace(
            window,
            before=window.before and window.before + 1,
            after=window.after and window.after - 1,
        )


@wrong("test_window_beyond_the_end_is_empty")
class TakesZeroForNoBound(WindowLie):
    """Takes a bound of 0 for none."""

    def changed(self, window: Window, session: MemorySession) -> Window:
        return replace(window, before=window.before or None)


class CutLie(Lie):
    """A store that cuts its pages in a way of its own."""

    def cut(self, rows: list[StoredMessage], window: Window) -> tuple[Any, bool]:
        raise NotImplementedError

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        page = await super()._read(key, window, stream)
        if page.incarnation is None:
            return page
        rows = list(self._sessions[key].stream(stream).walk(window))
        messages, more = self.cut(rows, window)
        return page._replace(messages=tuple(messages), more=more)


def ordered(rows: list[StoredMessage], window: Window) -> list[StoredMessage]:
    return rows[::-1] if window.after is None else rows


@wrong("test_page_holds_so_many_messages")
class ReadsAsManyAsAsked(CutLie):
    """Reads pages of any number of messages."""

    def cut(self, rows: list[StoredMessage], window: Window) -> tuple[Any, bool]:
        limit = len(rows) if window.limit is None else window.limit
        return ordered(rows[:limit], window), limit < len(rows)


@wrong("test_page_holds_so_many_bytes")
class ReadsAsManyBytesAsThereAre(CutLie):
    """Reads pages of any size."""

    def cut(self, rows: list[StoredMessage], window: Window) -> tuple[Any, bool]:
        return ordered(rows[: window.page], window), window.page < len(rows)


@wrong("test_page_holds_at_least_one_message")
class SkipsLargeMessages(CutLie):
    """Leaves out a message that is larger than a page."""

    def cut(self, rows: list[StoredMessage], window: Window) -> tuple[Any, bool]:
        return cut_page([row for row in rows if len(row.body) <= PAGE_BYTES], window)


@wrong("test_long_history_is_loaded_whole", "test_page_holds_so_many_messages")
class HasOnePage(CutLie):
    """Says that there is nothing beyond the first page."""

    def cut(self, rows: list[StoredMessage], window: Window) -> tuple[Any, bool]:
        return cut_page(rows, window)[0], False


@wrong("test_walk_back_meets_each_message_once")
class CountsFromTheEnd(Lie):
    """Counts pages from the end, which moves when messages are appended."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        session = self._sessions.get(key)
        if session is None:
            return await super()._read(key, window, stream)
        if window.before is None:
            self._end = session.next_sequence
        else:
            window = replace(window, before=window.before + session.next_sequence - self._end)
        return await super()._read(key, window, stream)


@wrong("test_opening_system_message_comes_beside_the_window", "test_window_keeps_tool_groups_whole")
class HasNoOpening(Lie):
    """Does not read the system message beside a window."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        return (await super()._read(key, window, stream))._replace(opening=None)


@wrong("test_other_first_message_is_no_opening")
class OpensWithAnything(Lie):
    """Takes the first message for an opening, whoever said it."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        page = await super()._read(key, window, stream)
        if page.more and window.limit and window.after is None:
            return page._replace(opening=self._sessions[key].stream(stream).messages[0])
        return page


@wrong("test_read_says_where_the_session_stands")
class ReadsAnOldVersion(Lie):
    """Says in a read which version it was at the read before."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        page = await super()._read(key, window, stream)
        version, self._version = getattr(self, "_version", page.version), page.version
        return page._replace(version=version)


@wrong("test_stream_without_messages_belongs_to_its_session", "test_new_session_is_empty")
class FindsSessionsByMessages(Lie):
    """Knows a session by the messages of the stream that is read."""

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        page = await super()._read(key, window, stream)
        if page.incarnation and not self._sessions[key].stream(stream).messages:
            return Slice((), None, 0, 0, False)
        return page
