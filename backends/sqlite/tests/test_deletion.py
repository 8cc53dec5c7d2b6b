"""What a deletion leaves in the file and beside it: nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from historykit.records import MessagePatch, MessageSelector, Retention
from historykit.session_records import SessionDraft, SessionKey, SessionPatch
from historykit.testing.drafts import draft
from historykit_sqlite import SQLiteStore

pytestmark = pytest.mark.asyncio

Make = Callable[..., SQLiteStore]


def bytes_of(path: Path) -> bytes:
    """Return all that is on the disk of a file and of what SQLite keeps beside it."""
    return b"".join(each.read_bytes() for each in sorted(path.parent.iterdir()))


async def fill(store: SQLiteStore, key: SessionKey, word: str, *, count: int) -> None:
    """Store a session that has the word in each of its parts, long messages among them."""
    await store.create_session(
        key,
        SessionDraft(
            agent_id=f"{word}-agent",
            status=f"{word}-status",
            labels=frozenset({f"{word}-label"}),
            body=word.encode() * 3000,
        ),
        if_exists="return",
    )
    for number in range(count):
        text = f"{word} " * (1, 100, 3000)[number % 3]
        message = draft(text, turn_start=True, extra=word.encode())
        await store.append(key, [message], stream=("main", f"{word}-stream")[number % 2])
    await store.claim_run(key, f"{word}-run", ttl=60)


async def test_a_deleted_session_leaves_no_byte(make: Make, path: Path) -> None:
    """After `delete_session` no file holds a word of the session, though the store is open and
    other sessions lie between."""
    sessions = {f"secret{n:02}": SessionKey("app", f"secret{n:02}-user", "s") for n in range(8)}
    async with make(synchronous="normal") as store:
        for _ in range(3):
            for word, key in sessions.items():
                await fill(store, key, word, count=6)
        for word, key in list(sessions.items())[::2]:
            assert word.encode() in bytes_of(path)
            assert (await store.delete_session(key)).messages == 18
            assert word.encode() not in bytes_of(path)
        assert all(word.encode() in bytes_of(path) for word in list(sessions)[1::2])


async def test_deleted_messages_leave_no_byte(make: Make, key: SessionKey, path: Path) -> None:
    """After `delete_messages` no file holds a word of them."""
    async with make() as store:
        await store.append(key, [draft("secret " * 3000, id="a"), draft("other", id="b")])
        assert await store.delete_messages(key, MessageSelector(ids=("a",))) == 1
        assert b"secret" not in bytes_of(path)
        assert b"other" in bytes_of(path)


async def test_what_was_replaced_leaves_the_file(make: Make, key: SessionKey, path: Path) -> None:
    """What a change, a replacement or retention removes is overwritten when the log is emptied,
    as closing does."""
    async with make() as store:
        await store.create_session(key, SessionDraft(body=b"secret " * 3000))
        await store.patch_session(key, SessionPatch(body=b"open"))
        await store.append(key, [draft("secret " * 3000, id="a", turn_start=True)])
        await store.update_message(key, "a", MessagePatch(body=b"open", digest=b"-" * 16))
        await store.append(key, [draft("secret " * 3000, id="b", turn_start=True)])
        retention = Retention(1)
        await store.append(key, [draft("last", id="c", turn_start=True)], retention=retention)
        await store.append(key, [draft("secret" * 3000, id="d")], stream="audit")
        version = (await store.read_session(key)).version
        await store.replace(key, [draft("open")], stream="audit", expected_version=version)
    assert b"secret" not in bytes_of(path)


async def test_deleting_nothing_costs_no_error(make: Make, key: SessionKey) -> None:
    """A second deletion finds nothing, also where nothing was ever written."""
    async with make() as store:
        assert (await store.delete_session(key)).sessions == 0
        await store.append(key, [draft("m")])
        assert [(await store.delete_session(key)).sessions for _ in range(2)] == [1, 0]


async def test_a_deleted_session_leaves_no_row(
    make: Make, key: SessionKey, inside: Callable[..., list[tuple[int]]]
) -> None:
    """No table has a row of a session that is gone, and its row's number is never used again."""
    async with make() as store:
        await fill(store, key, "m", count=3)
        await store.delete_session(key)
        tables = ("sessions", "session_bodies", "session_labels", "messages")
        for table in tables:
            assert inside(f"SELECT count(*) FROM {table}") == [(0,)]
        await fill(store, key, "m", count=3)
        assert inside("SELECT row FROM sessions") == [(2,)]
