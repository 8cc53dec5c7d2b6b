"""Retention trims a stream in the same step as the append, at the start of a turn."""

from __future__ import annotations

from historykit.records import Retention
from historykit.store import HistoryStore
from historykit.testing.drafts import conversation, draft, drafts, numbered
from historykit.testing.rules import since
from historykit.testing.subject import StoreSubject

__all__ = ["RetentionTests"]


class RetentionTests:
    """The newest N messages stay, and as many more as it takes to begin with a turn."""

    @since("0.1")
    async def test_retention_keeps_the_newest(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Where every message starts a turn, exactly the newest N stay, append after append."""
        for bound in (1, 5):
            key = subject.key(f"s{bound}")
            for count, text in enumerate(numbered("m", 12), 1):
                await store.append(key, [draft(text, turn_start=True)], retention=Retention(bound))
                expected = numbered("m", count)[-bound:]
                assert await subject.texts(store, key) == expected

    @since("0.1")
    async def test_retention_trims_at_the_start_of_a_turn(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A turn that the bound would cut stays whole."""
        key = subject.key()
        await store.append(key, conversation(4, length=4), retention=Retention(6))
        assert await subject.texts(store, key) == [
            f"turn {t}.{p}" for t in (2, 3) for p in range(4)
        ]

    @since("0.1")
    async def test_retention_without_turns_trims_nothing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Where no turn starts within reach there is no place to cut, and everything stays."""
        key = subject.key()
        await store.append(key, drafts("m", 9), retention=Retention(3))
        assert await subject.texts(store, key) == numbered("m", 9)
        await store.append(key, [draft("turn", turn_start=True)], retention=Retention(3))
        assert len(await subject.messages(store, key)) == 10
        await store.append(key, drafts("m", 2), retention=Retention(3))
        assert await subject.texts(store, key) == ["turn", *numbered("m", 2)]

    @since("0.1")
    async def test_retention_leaves_a_short_stream_alone(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A stream of no more than N messages is not trimmed."""
        key = subject.key()
        await store.append(key, conversation(3), retention=Retention(6))
        assert len(await subject.messages(store, key)) == 6
        assert (await store.read_tail(key)).trimmed == 0

    @since("0.1")
    async def test_retention_keeps_the_opening_system_message(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A system message that opens the stream stays; a later one goes with its turn."""
        key = subject.key()
        rules = draft("rules", role="system")
        await store.append(key, [rules, *conversation(1)])
        await store.append(key, [draft("aside", role="system"), *conversation(3)])
        await store.append(key, [draft("end", turn_start=True)], retention=Retention(3))
        assert await subject.texts(store, key) == ["rules", "turn 2.0", "turn 2.1", "end"]

    @since("0.1")
    async def test_retention_leaves_other_streams_alone(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Only the stream that is appended to is trimmed, and its session alone."""
        key, other = subject.key(), subject.key("s2")
        for each in (key, other):
            await store.append(each, conversation(3))
        await store.append(key, conversation(3), stream="audit")
        await store.append(key, conversation(1), retention=Retention(2))
        assert await subject.texts(store, key) == ["turn 0.0", "turn 0.1"]
        assert len(await subject.messages(store, key, stream="audit")) == 6
        assert len(await subject.messages(store, other)) == 6

    @since("0.1")
    async def test_trimmed_messages_are_counted(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The tail counts what is stored and what was trimmed; the session counts what is
        stored."""
        key = subject.key()
        for _ in range(3):
            await store.append(key, conversation(2), retention=Retention(4))
        tail = await store.read_tail(key)
        assert (tail.count, tail.trimmed, tail.version) == (4, 8, 3)
        record = await store.read_session(key)
        assert (record.message_count, record.version, record.revision) == (4, 3, 0)

    @since("0.1")
    async def test_sequences_go_on_after_trimming(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """The sequence of a message that was trimmed is not given out again."""
        key = subject.key()
        places: list[int] = []
        for _ in range(4):
            receipt = await store.append(
                key, [draft(turn_start=True), draft(turn_start=True)], retention=Retention(1)
            )
            places += [place for place in receipt.sequences if place is not None]
        assert places == sorted(set(places))
        assert [row.sequence for row in await subject.messages(store, key)] == places[-1:]

    @since("0.1")
    async def test_repeat_of_a_trimmed_batch_stores_nothing(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A batch of which retention left the end is a repeat; what is gone has no sequence."""
        key = subject.key()
        batch = conversation(3)
        first = await store.append(key, batch, retention=Retention(2))
        again = await store.append(key, batch, retention=Retention(2))
        assert (again.stored, again.version, again.ids) == (0, first.version, first.ids)
        assert again.sequences == (None,) * 4 + first.sequences[4:]
        assert await subject.texts(store, key) == ["turn 2.0", "turn 2.1"]
