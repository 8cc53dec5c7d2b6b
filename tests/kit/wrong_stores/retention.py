from __future__ import annotations

from dataclasses import replace

from historykit.memory_sessions import MemorySession
from historykit.records import AppendReceipt, AppendRequest, Retention, Tail
from historykit.session_records import SessionKey
from tests.kit.wrong_stores.lies import Lie, wrong


@wrong("test_retention_keeps_the_newest", "test_provider_keeps_as_many_as_it_may")
class KeepsEverything(Lie):
    """Does not trim."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        return await super()._append(replace(request, retention=None))


class TrimLie(Lie):
    """A store that trims in a way of its own."""

    def trim(self, session: MemorySession, stream: str, retention: Retention) -> None:
        raise NotImplementedError

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        receipt = await super()._append(replace(request, retention=None))
        if request.retention is not None:
            session = self._sessions[request.key]
            self.trim(session, request.stream, request.retention)
            recount(session)
        return receipt


def recount(session: MemorySession) -> None:
    counts = {name: len(stream.messages) for name, stream in session.streams.items()}
    session.record = replace(
        session.record, streams={name: count for name, count in counts.items() if count}
    )


def remove(session: MemorySession, stream: str, count: int, first: int = 0) -> None:
    doomed = session.stream(stream).messages[first : first + max(count, 0)]
    session.remove(stream, doomed)
    session.stream(stream).trimmed += len(doomed)


@wrong(
    "test_retention_trims_at_the_start_of_a_turn",
    "test_retention_without_turns_trims_nothing",
    "test_retention_keeps_the_opening_system_message",
)
class SplitsTurns(TrimLie):
    """Keeps exactly the newest N messages."""

    def trim(self, session: MemorySession, stream: str, retention: Retention) -> None:
        count = len(session.stream(stream).messages) - retention.max_messages
        remove(session, stream, count)


@wrong("test_retention_leaves_a_short_stream_alone", "test_retention_keeps_the_newest")
class KeepsOneLess(TrimLie):
    """Keeps one turn less than it may."""

    def trim(self, session: MemorySession, stream: str, retention: Retention) -> None:
        session.trim(stream, retention)
        rows = session.stream(stream).messages
        starts = [n for n, row in enumerate(rows) if row.turn_start][1:]
        if len(rows) >= retention.max_messages and starts:
            remove(session, stream, starts[0])


@wrong("test_retention_leaves_other_streams_alone")
class TrimsEveryStream(TrimLie):
    """Trims all streams of a session."""

    def trim(self, session: MemorySession, stream: str, retention: Retention) -> None:
        for each in list(session.streams):
            session.trim(each, retention)


@wrong("test_trimmed_messages_are_counted")
class ForgetsWhatItTrimmed(Lie):
    """Does not count what it trimmed."""

    async def _read_tail(self, key: SessionKey, stream: str) -> Tail:
        return replace(await super()._read_tail(key, stream), trimmed=0)


@wrong(
    "test_sequences_go_on_after_trimming",
    "test_sequence_of_a_deleted_message_is_not_reused",
    "test_replacement_takes_the_place_of_a_stream",
)
class ReusesSequences(Lie):
    """Gives out the sequence behind the last message that is there."""

    async def _append(self, request: AppendRequest) -> AppendReceipt:
        self._rewind(request.key)
        receipt = await super()._append(request)
        if request.retention is not None:
            self._renumber(request.key)
        return receipt

    async def _replace(self, request):
        session = self._sessions.get(request.key)
        if session is not None and session.record.version == request.expected_version:
            session.next_sequence = 1
        return await super()._replace(request)

    def _rewind(self, key: SessionKey) -> None:
        session = self._sessions.get(key)
        if session is not None:
            last = [s.messages[-1].sequence for s in session.streams.values() if s.messages]
            session.next_sequence = max(last, default=0) + 1

    def _renumber(self, key: SessionKey) -> None:
        session = self._sessions[key]
        for stream in session.streams.values():
            stream.messages = [r._replace(sequence=n) for n, r in enumerate(stream.messages, 1)]
