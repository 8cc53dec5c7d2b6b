"""Appends: one statement, its second way, and many at once on one session."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from historykit.errors import ConflictError, SessionDeletedError, VersionConflictError
from historykit.memory import MemoryStore
from historykit.records import Retention, StoredMessage
from historykit.session_records import SessionDraft, SessionKey
from historykit.store import HistoryStore
from historykit.testing.drafts import conversation, draft, drafts, texts
from historykit.testing.proxy import TcpProxy, Traffic
from historykit.testing.subject import read_all
from historykit_postgres import PostgresConfig, PostgresStore, statements
from historykit_postgres.statements import RECENT

pytestmark = pytest.mark.asyncio

Inside = Callable[..., list[Any]]
Make = Callable[..., PostgresStore]
Start = Callable[..., Any]

WRITE = """
async def main():
    async with make() as store:
        async def write(writer):
            for number in range(4):
                await store.append(key, drafts(f"{arguments[0]}-{writer} {number}", 2))
        print("ready", flush=True)
        sys.stdin.readline()
        await asyncio.gather(*(write(writer) for writer in range(int(arguments[1]))))

asyncio.run(main())
"""


def assert_whole(rows: list[StoredMessage], *, turns: int) -> None:
    """Check that there are turns of two messages each, side by side, none of them twice."""
    assert len({row.id for row in rows}) == len(rows) == 2 * turns
    found = [text.rpartition(" ") for text in texts(rows)]
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert (first[0], first[2], second[2]) == (second[0], "0", "1")


@pytest.mark.parametrize("processes", [1, 2])
async def test_fifty_writers_on_one_session(
    make: Make, key: SessionKey, start: Start, processes: int
) -> None:
    """Of 200 turns that are written at once all are there, whole, and nobody sees an error."""
    writers = 50 // processes
    async with make() as store:
        started = [start(WRITE, number, writers) for number in range(processes)]
        for process in started:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
        for process in started:
            process.stdin.write("\n")
            process.stdin.flush()
        for process in started:
            _, errors = await asyncio.to_thread(process.communicate)
            assert (process.returncode, errors) == (0, "")
        rows = await read_all(store, key)
    assert [row.sequence for row in rows] == list(range(1, 401))
    assert_whole(rows, turns=200)


async def test_repeats_among_many_writers(make: Make, key: SessionKey) -> None:
    """Batches that are sent several times at once, through two stores, are stored once each."""
    async with make() as one, make() as two:

        async def write(writer: int) -> None:
            for number in range(4):
                batch = drafts(f"{writer} {number}", 2)
                copies = [store.append(key, batch) for store in (one, two, one)[: writer % 3 + 1]]
                receipts = await asyncio.gather(*copies)
                assert max(receipt.stored for receipt in receipts) == 2
                assert len({receipt.sequences for receipt in receipts}) == 1

        await asyncio.gather(*(write(writer) for writer in range(30)))
        assert_whole(await read_all(one, key), turns=120)
        assert (await one.read_session(key)).version == 120


async def test_a_repeat_is_recognized_by_its_mark(make: Make, key: SessionKey) -> None:
    """A batch that comes again soon is recognized by the session's row, without an error of the
    server; one that comes late meets the unique key and is recognized all the same."""
    async with make() as store:
        batch = drafts("m", 3)
        await store.append(key, batch)
        for _ in range(RECENT // 4):
            await store.append(key, drafts("n", 2))
            assert (await store.append(key, batch)).stored == 0
        for _ in range(RECENT):
            await store.append(key, drafts("n", 2))
        assert (await store.append(key, batch)).stored == 0
        assert len((await store.read(key)).messages) == 3 + 2 * (RECENT + RECENT // 4)


async def test_a_mark_that_two_ids_share_loses_nothing(
    make: Make, key: SessionKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id whose mark is known although it is not is stored."""
    monkeypatch.setattr(statements, "crc32", lambda data: 7)
    async with make() as store:
        for number in range(3):
            receipt = await store.append(key, drafts(str(number), 2))
            assert (receipt.stored, receipt.version) == (2, number + 1)
        assert len((await store.read(key)).messages) == 6


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9, 40])
async def test_batches_of_every_size(make: Make, key: SessionKey, size: int) -> None:
    """A batch is stored as it is, for a new session and an old one, by itself and again."""
    async with make() as store:
        for number in range(2):
            batch = [
                draft(
                    f"{number} {i}", role=f"r{i}", extra=b"\0" if i % 2 else None, turn_start=i == 1
                )
                for i in range(size)
            ]
            receipt = await store.append(key, batch)
            first = number * size + 1
            assert receipt.sequences == tuple(range(first, first + size))
            assert (receipt.stored, receipt.created) == (size, number == 0)
            assert (await store.append(key, batch)).stored == 0
        rows = (await store.read(key)).messages[-size:]
        assert [(r.role, r.extra, r.turn_start, r.id) for r in rows] == [
            (d.role, d.extra, d.turn_start, d.id) for d in batch
        ]


async def test_a_session_that_an_append_creates_has_all_its_fields(
    make: Make, key: SessionKey
) -> None:
    """A new session has the fields that the append brings, large and small, an old one its own."""
    plain = SessionDraft(agent_id="a", status="new", created_at=5)
    full = SessionDraft(agent_id="b", body=b"body", labels=frozenset({"x", "y"}))
    silent = SessionDraft(memory_enabled=False)
    async with make() as store:
        for number, fields in enumerate([plain, full, silent]):
            place = SessionKey("app", "", f"s{number}")
            receipt = await store.append(place, drafts("m", 2), create=fields)
            assert receipt.created
            assert receipt.stored == (2 if fields.memory_enabled else 0)
            assert not (await store.append(place, drafts("n", 2), create=plain)).created
            record = await store.read_session(place)
            assert (record.agent_id, record.status) == (fields.agent_id, fields.status)
            assert (record.labels, record.body) == (fields.labels, fields.body)


async def test_conditions_are_met_or_refused(make: Make, key: SessionKey) -> None:
    """Incarnation and version are those that the row has when the append gets its lock."""
    async with make() as store:
        with pytest.raises(SessionDeletedError):
            await store.append(key, drafts("m", 1), incarnation="gone")
        first = await store.append(key, drafts("m", 1), expected_version=0)
        life = first.incarnation
        await store.append(key, drafts("m", 1), incarnation=life, expected_version=1)
        with pytest.raises(VersionConflictError):
            await store.append(key, drafts("m", 1), incarnation=life, expected_version=1)
        with pytest.raises(VersionConflictError):
            await store.append(key, drafts("m", 1), expected_version=0)
        await store.delete_session(key)
        with pytest.raises(SessionDeletedError):
            await store.append(key, drafts("m", 1), incarnation=life)
        assert (await store.read(key)).incarnation is None


async def test_an_append_rewrites_no_index(
    make: Make, key: SessionKey, inside: Inside, postgres_schema: str
) -> None:
    """Each append updates the session's row within its page: no index of it is touched."""
    async with make() as store:
        for _ in range(200):
            await store.append(key, drafts("m", 2))
    inside("SELECT pg_stat_force_next_flush()")
    statistics = (
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables "
        "WHERE relname = %s AND schemaname = %s"
    )
    async with asyncio.timeout(20):
        while True:  # the backends of the store report when they end
            ((updated, within_page),) = inside(statistics, "historykit_sessions", postgres_schema)
            if updated >= 199:
                break
            await asyncio.sleep(0.05)
    assert within_page >= 0.95 * updated


async def test_retention_is_one_round_trip(url: str, postgres_schema: str, key: SessionKey) -> None:
    """An append that removes what is too old takes one round trip as well."""
    async with TcpProxy.to(url) as proxy:
        config = PostgresConfig(url=proxy.route(url), schema=postgres_schema)
        async with PostgresStore(config) as store:
            for _ in range(20):
                await store.append(key, conversation(1), retention=Retention(10))
            proxy.traffic = Traffic()
            await store.append(key, conversation(1), retention=Retention(10))
            assert proxy.traffic.trips == 1
            tail = await store.read_tail(key)
    assert (tail.count, tail.trimmed) == (10, 32)


async def test_retention_does_as_the_reference_does(make: Make, key: SessionKey) -> None:
    """Whatever the bound, the turns and the batches are, the same messages stay as in the memory
    store, and the same counts."""
    chance = random.Random(4)
    async with make() as store, MemoryStore() as reference:
        for number in range(120):
            bound = chance.choice([None, 1, 2, 3, 5, 8, 8, 30])
            retention = None if bound is None else Retention(bound)
            batch = [
                draft(
                    f"{number} {index}",
                    role=chance.choice(["user", "assistant", "system"]),
                    turn_start=chance.random() < 0.4,
                )
                for index in range(chance.choice([1, 2, 2, 3, 9]))
            ]
            stream = chance.choice(["main", "main", "audit"])
            answers = [
                await each.append(key, batch, stream=stream, retention=retention)
                for each in (store, reference)
            ]
            assert answers[0].sequences == answers[1].sequences
            assert await summary(store, key, stream) == await summary(reference, key, stream)


async def test_retention_among_many_writers(make: Make, key: SessionKey) -> None:
    """Writers that trim what others write leave whole turns and right counts."""
    async with make() as one, make() as two:

        async def write(writer: int) -> None:
            for number in range(5):
                batch = [
                    draft(f"{writer} {number} {i}", turn_start=i == 0, role="user")
                    for i in range(2)
                ]
                await (one, two)[writer % 2].append(key, batch, retention=Retention(20))

        await asyncio.gather(*(write(writer) for writer in range(30)))
        assert_whole(await read_all(one, key), turns=10)
        tail = await two.read_tail(key)
        assert (tail.count, tail.trimmed, tail.version) == (20, 280, 150)


async def test_a_bound_that_is_new_trims_all_at_once(make: Make, key: SessionKey) -> None:
    """The first append with retention removes however much is too old."""
    async with make() as store:
        await store.append(key, conversation(300))
        await store.append(key, conversation(1), retention=Retention(10))
        tail = await store.read_tail(key)
    assert (tail.count, tail.trimmed) == (10, 592)


async def test_a_serializable_default_does_no_harm(make: Make, url: str, key: SessionKey) -> None:
    """Where the role's transactions are serializable by default, writers at once are all served."""
    strict = f"{url}?options=-c%20default_transaction_isolation%3Dserializable"
    async with make(url=strict) as one, make(url=strict) as two:
        stores = (one, two)
        await asyncio.gather(*(stores[i % 2].append(key, drafts(f"{i} 0", 2)) for i in range(30)))
        assert_whole(await read_all(one, key), turns=30)


async def test_other_content_under_a_known_id_is_refused_whole(make: Make, key: SessionKey) -> None:
    """Of a batch with an id that is stored with other content nothing is stored, soon and late."""
    async with make() as store:
        await store.append(key, [draft("one", id="m")])
        for _ in range(2):
            with pytest.raises(ConflictError):
                await store.append(key, [draft("new"), draft("two", id="m")])
            for number in range(RECENT):
                await store.append(key, [draft(str(number))])
        assert len((await store.read(key)).messages) == 1 + 2 * RECENT


async def summary(store: HistoryStore, key: SessionKey, stream: str) -> object:
    tail = await store.read_tail(key, stream=stream)
    rows = await read_all(store, key, stream=stream)
    return tail.count, tail.trimmed, tail.version, tail.digests, rows
