"""A read is one page of a stream, oldest first."""

from __future__ import annotations

from historykit.capabilities import Capability
from historykit.records import (
    PAGE_BYTES,
    PAGE_MESSAGES,
    MessagePatch,
    MessageSelector,
    Slice,
    StoredMessage,
    Window,
)
from historykit.session_records import SessionKey
from historykit.store import HistoryStore
from historykit.testing.drafts import draft, drafts, numbered, texts
from historykit.testing.rules import requires, since
from historykit.testing.subject import StoreSubject, read_all

__all__ = ["PagingTests"]


class PagingTests:
    """Limits, both directions, and what a page says beside its messages."""

    @since("0.1")
    async def test_limit_means_the_newest_oldest_first(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Of 121 messages a limit gives the newest, in their order; without one all are read."""
        key = subject.key()
        await store.append(key, drafts("m", 121))
        for limit, expected in [(3, 3), (100, 100), (121, 121), (122, 121), (None, 121)]:
            page = await store.read(key, Window(limit=limit))
            assert texts(page.messages) == numbered("m", 121)[-expected:]
            assert page.more is (expected < 121)

    @since("0.1")
    async def test_limit_of_zero_reads_no_messages(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A limit of 0 gives no messages, and still says which session it is and at which
        version."""
        key = subject.key()
        receipt = await store.append(key, drafts("m", 3))
        page = await store.read(key, Window(limit=0))
        assert (page.messages, page.opening) == ((), None)
        assert (page.incarnation, page.version) == (receipt.incarnation, receipt.version)
        assert page.more is True

    @since("0.1")
    async def test_bounds_of_a_window_are_excluded(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Before a sequence are the messages below it, after a sequence those above it."""
        key = subject.key()
        places = await _filled(store, key, 10)
        for limit in (None, 1, 3, 10):
            before = await store.read(key, Window(limit=limit, before=places[6]))
            assert texts(before.messages) == numbered("m", 6)[-(limit or 6) :]
            assert before.more is (limit in (1, 3))
            after = await store.read(key, Window(limit=limit, after=places[3]))
            assert texts(after.messages) == numbered("m", 10)[4:][: limit or 6]
            assert after.more is (limit in (1, 3))

    @since("0.1")
    async def test_window_beyond_the_end_is_empty(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """There is nothing before the first message, nor after the last."""
        key = subject.key()
        places = await _filled(store, key, 3)
        for window in (
            Window(before=places[0]),
            Window(before=0),
            Window(after=places[-1]),
            Window(after=places[-1] + 1_000_000, limit=5),
        ):
            page = await store.read(key, window)
            assert (page.messages, page.more) == ((), False)
            assert page.incarnation is not None
        page = await store.read(key, Window(before=places[-1] + 1_000_000))
        assert texts(page.messages) == numbered("m", 3)
        page = await store.read(key, Window(after=0))
        assert texts(page.messages) == numbered("m", 3)

    @since("0.1")
    async def test_page_holds_so_many_messages(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A page has at most 500 messages, whatever the limit, in both directions."""
        key = subject.key()
        total = PAGE_MESSAGES + 1
        await store.append(key, drafts("m", total))
        for limit in (None, total, 10 * total):
            page = await store.read(key, Window(limit=limit))
            assert texts(page.messages) == numbered("m", total)[1:]
            assert page.more is True
            page = await store.read(key, Window(limit=limit, after=0))
            assert texts(page.messages) == numbered("m", total)[:-1]
            assert page.more is True

    @since("0.1")
    async def test_page_holds_so_many_bytes(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A page ends before its bodies would exceed 1 MB together."""
        key = subject.key()
        size = PAGE_BYTES // 4 - 1
        await store.append(key, [draft(bytes([65 + n]) * size) for n in range(6)])
        for window, expected in [(Window(), b"CDEF"), (Window(after=0), b"ABCD")]:
            page = await store.read(key, window)
            assert [row.body[:1] for row in page.messages] == [b"%c" % each for each in expected]
            assert page.more is True

    @since("0.1")
    async def test_page_holds_at_least_one_message(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A message of more than 1 MB makes a page of its own, and nothing is skipped for it."""
        key = subject.key()
        size = min(PAGE_BYTES + 1, store.max_body_bytes or PAGE_BYTES + 1)
        bodies = [b"small", b"L" * size, b"M" * size, b"end"]
        await store.append(key, [draft(body) for body in bodies])
        assert [row.body for row in await read_all(store, key)] == bodies
        forward: list[StoredMessage] = []
        after = 0
        for _ in bodies:
            page = await store.read(key, Window(after=after))
            forward += page.messages
            if not page.more:
                break
            after = page.messages[-1].sequence
        assert [row.body for row in forward] == bodies

    @since("0.1")
    async def test_walk_back_meets_each_message_once(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Walking back page by page meets each message once, while others are appended."""
        key = subject.key()
        await store.append(key, drafts("m", 107))
        for limit in (1, 10, 50, 107):
            found: list[str] = []
            before: int | None = None
            for _ in range(107):
                page = await store.read(key, Window(limit=limit, before=before))
                found = texts(page.messages) + found
                if not page.more:
                    break
                before = page.messages[0].sequence
                if limit > 1:
                    await store.append(key, [draft("late")])
            assert [text for text in found if text != "late"] == numbered("m", 107)

    @since("0.1")
    async def test_walk_forward_meets_each_message_once(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Walking forward meets each message once, and in the end what was appended meanwhile."""
        key = subject.key()
        await store.append(key, drafts("m", 20))
        found: list[str] = []
        after, late = 0, 0
        for _ in range(25):
            page = await store.read(key, Window(limit=7, after=after))
            found += texts(page.messages)
            if not page.more:
                break
            after = page.messages[-1].sequence
            if late < 5:
                await store.append(key, [draft(f"late {late}")])
                late += 1
        assert found == numbered("m", 20) + numbered("late", late)

    @since("0.1")
    async def test_opening_system_message_comes_beside_the_window(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Where a limit cuts off the system message that opens the stream, it is the opening."""
        for role in ("system", "developer"):
            key = subject.key(role)
            receipt = await store.append(key, [draft("rules", role=role), *drafts("m", 5)])
            last = receipt.sequences[-1]
            for window in (Window(limit=2), Window(limit=5), Window(limit=2, before=last)):
                opening = (await store.read(key, window)).opening
                assert opening is not None
                assert (opening.body, opening.role) == (b"rules", role)
            for window in (Window(), Window(limit=6), Window(limit=0), Window(limit=2, after=0)):
                assert (await store.read(key, window)).opening is None

    @since("0.1")
    async def test_other_first_message_is_no_opening(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Neither the first message of another role nor a later system message is an opening."""
        key = subject.key()
        roles = ["user", "system", "assistant", "user"]
        await store.append(key, [draft(role, role=role) for role in roles])
        await store.append(key, [draft("rules", role="system")], stream="audit")
        page = await store.read(key, Window(limit=1))
        assert (texts(page.messages), page.opening, page.more) == (["user"], None, True)

    @since("0.1")
    async def test_read_says_where_the_session_stands(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A read and a tail name the incarnation and the version that the last append gave."""
        key = subject.key()
        for count in range(1, 4):
            receipt = await store.append(key, drafts("m", 2))
            page, tail = await store.read(key), await store.read_tail(key)
            assert receipt.version == count
            for seen in (page, tail):
                assert (seen.incarnation, seen.version) == (receipt.incarnation, count)
            assert (tail.count, page.epoch) == (2 * count, 0)

    @since("0.1")
    async def test_stream_without_messages_belongs_to_its_session(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """An empty stream of a session that exists is read as empty, with its incarnation."""
        key = subject.key()
        receipt = await store.append(key, [draft()])
        page = await store.read(key, stream="audit")
        assert page == Slice((), receipt.incarnation, 1, 0, False)
        assert (await store.read_tail(key, stream="audit")).incarnation == receipt.incarnation

    @since("0.1")
    @requires(Capability.EDIT)
    async def test_epoch_counts_edits(self, subject: StoreSubject, store: HistoryStore) -> None:
        """A change, a deletion and a replacement each move the epoch; an append does not."""
        key = subject.key()
        batch = drafts("m", 4)
        await store.append(key, batch)
        assert (await store.read(key)).epoch == 0
        await store.update_message(key, batch[0].id, MessagePatch(body=b"x", digest=b"x" * 16))
        assert (await store.read(key)).epoch == 1
        await store.delete_messages(key, MessageSelector(ids=(batch[1].id,)))
        await store.append(key, [draft()])
        page = await store.read(key)
        assert (page.epoch, page.version) == (2, 4)
        await store.replace(key, [draft("new")], expected_version=page.version)
        assert (await store.read(key)).epoch == 3


async def _filled(store: HistoryStore, key: SessionKey, count: int) -> list[int]:
    """Fill a session and return the sequences of its messages."""
    receipt = await store.append(key, drafts("m", count))
    return [place for place in receipt.sequences if place is not None]
