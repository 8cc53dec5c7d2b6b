"""What is stored is what was handed in, to the last byte."""

from __future__ import annotations

import pytest

from historykit.errors import NotFoundError, TooLargeError
from historykit.records import PAGE_BYTES
from historykit.session_records import SessionDraft
from historykit.store import HistoryStore
from historykit.testing.drafts import draft
from historykit.testing.rules import since
from historykit.testing.subject import START, StoreSubject

__all__ = ["ValueTests"]

BODIES = (
    b"",
    b"\0",
    b"\0\0a\0",
    bytes(range(256)),
    b"\xff\xfe not UTF-8 \xc3(",
    b" spaces \r\n\t ",
    b"'; --\\'\"%s$1?:x",
    b'{"a":1,"a":2,"n":NaN,"big":123456789012345678901234567890,"\\ud800":null}',
    b'{ "b" : 1.0, "a" : 1e0 }',
    "\N{PILE OF POO} e\u0301 \u00e9 \u202e".encode(),
    b"\x1f\x8b\x08 like gzip",
    b"x" * 70_000,
)

FAR = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""


class ValueTests:
    """Bodies are opaque bytes; the columns beside them are exact."""

    @since("0.1")
    async def test_bodies_are_kept_byte_for_byte(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A body is bytes without a meaning: empty, binary or JSON, it comes back as it was."""
        key = subject.key()
        await store.append(key, [draft(body) for body in BODIES])
        assert [row.body for row in await subject.messages(store, key)] == list(BODIES)

    @since("0.1")
    async def test_bodies_come_back_as_bytes(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """What is handed out is immutable and of the types that the records name."""
        key = subject.key()
        await store.append(key, [draft("a", extra=b"e", turn_start=True)])
        page = await store.read(key)
        row = page.messages[0]
        assert type(page.messages) is tuple
        assert [type(value) for value in (row.body, row.extra, row.id, row.role)] == [
            bytes,
            bytes,
            str,
            str,
        ]
        assert [type(value) for value in (row.sequence, row.created_at, row.revision)] == [int] * 3
        assert row.turn_start is True
        record = await store.read_session(key)
        assert (type(record.body), type(record.labels)) == (bytes, frozenset)
        assert all(type(digest) is bytes for digest in (await store.read_tail(key)).digests)

    @since("0.1")
    async def test_large_bodies_are_kept_or_refused(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A body of 2 MB is kept if the store has no lower bound; over its bound nothing is
        written."""
        key = subject.key()
        limit = store.max_body_bytes
        largest = bytes(range(256)) * (2 * PAGE_BYTES // 256)
        if limit is not None and limit <= 32 * PAGE_BYTES:
            with pytest.raises(TooLargeError):
                await store.append(key, [draft(), draft(b"x" * (limit + 1))])
            with pytest.raises(NotFoundError):
                await store.read_session(key)
        await store.append(key, [draft("before"), draft(largest[:limit]), draft("after")])
        rows = await subject.messages(store, key)
        assert [row.body for row in rows] == [b"before", largest[:limit], b"after"]

    @since("0.1")
    async def test_batch_of_many_and_large_messages_is_kept(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A batch may be larger than a page, in messages and in bytes."""
        key = subject.key()
        batch = [draft(bytes([index % 251]) * 6_000) for index in range(700)]
        receipt = await store.append(key, batch)
        assert receipt.stored == 700
        rows = await subject.messages(store, key)
        assert [row.body for row in rows] == [each.body for each in batch]

    @since("0.1")
    async def test_fields_of_messages_are_kept(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """Role, time, start of a turn and extra come back as they were handed in."""
        key = subject.key()
        batch = [
            draft(role="system", created_at=0),
            draft(role="user", turn_start=True, created_at=-1),
            draft(role="assistant", created_at=1, extra=b""),
            draft(role="tool", created_at=FAR, extra=bytes(range(256))),
            draft(role="developer", created_at=START + 1),
            draft(role="R\u00f4le d'un autre", created_at=-62_135_596_800_000_000),
            draft(role="", turn_start=True),
        ]
        await store.append(key, batch)
        rows = await subject.messages(store, key)
        kept = [(row.role, row.created_at, row.turn_start, row.extra) for row in rows]
        assert kept == [(d.role, d.created_at, d.turn_start, d.extra) for d in batch]
        assert [(row.reaction, row.revision) for row in rows] == [(None, 0)] * len(batch)

    @since("0.1")
    async def test_digests_are_kept(self, subject: StoreSubject, store: HistoryStore) -> None:
        """The tail has the digests of the newest messages of a stream, at most eight, in order."""
        key = subject.key()
        digests = [bytes([index]) * 16 for index in range(0, 250, 25)]
        await store.append(key, [draft(digest=digest) for digest in digests[:3]])
        await store.append(key, [draft(digest=b"a" * 16)], stream="audit")
        async with subject.witness(store) as witness:
            tail = await witness.read_tail(key)
            assert (tail.digests, tail.count) == (tuple(digests[:3]), 3)
            await store.append(key, [draft(digest=digest) for digest in digests[3:]])
            tail = await witness.read_tail(key)
            assert (tail.digests, tail.count) == (tuple(digests[-8:]), 10)
            assert (await witness.read_tail(key, stream="audit")).digests == (b"a" * 16,)

    @since("0.1")
    async def test_fields_of_sessions_are_kept(
        self, subject: StoreSubject, store: HistoryStore
    ) -> None:
        """A session has the fields that it was created with, whatever is in them."""
        for index, fields in enumerate(
            [
                SessionDraft(),
                SessionDraft(body=bytes(range(256)), created_at=-1),
                SessionDraft(agent_id="a'gent\n\u00e9", status="x" * 200, memory_enabled=False),
                SessionDraft(labels=frozenset({"a", "A", "a ", "%", "\u00e9"}), created_at=FAR),
                SessionDraft(body=b"x" * 100_000),
            ]
        ):
            key = subject.key(f"s{index}")
            record = await store.create_session(key, fields)
            assert record.key == key
            assert (record.agent_id, record.status) == (fields.agent_id, fields.status)
            assert record.memory_enabled is fields.memory_enabled
            assert (record.labels, record.body) == (fields.labels, fields.body)
            expected = subject.clock.now if fields.created_at is None else fields.created_at
            assert record.created_at == expected
            async with subject.witness(store) as witness:
                assert await witness.read_session(key) == record
