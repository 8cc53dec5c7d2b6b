"""What operations send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from backends.mongo.tests.conftest import Commands
from historykit.ids import new_id
from historykit.records import Retention, Window
from historykit.session_records import SessionKey
from historykit.testing.drafts import conversation, draft, drafts
from historykit.testing.subject import read_all
from historykit_mongo import MongoStore

pytestmark = pytest.mark.asyncio


async def test_an_append_is_one_command(
    observed: MongoStore, commands: Commands, key: SessionKey
) -> None:
    """The first append to a session is one command, and so is each after it."""
    for _ in range(5):
        await observed.append(key, drafts("m", 2))
    assert commands.names == ["findAndModify"] * 5


async def test_moving_messages_costs_little(
    observed: MongoStore, commands: Commands, key: SessionKey
) -> None:
    """A thousand messages that came two at a time take one command each time, and three more for
    every 64 messages to move them."""
    for _ in range(500):
        await observed.append(key, drafts("m", 2))
    await observed.aclose()
    count = Counter(commands.names)
    assert 10 <= count["insert"] <= 1000 // 64
    assert count["findAndModify"] <= 500 + 3 * count["insert"]
    # The answer of an append that comes after that of a move makes it look once whether to move.
    assert count["find"] <= count["insert"] // 2
    assert count.keys() <= {"findAndModify", "insert", "find"}


async def test_an_append_by_another_store_is_one_command(
    store: MongoStore, observed: MongoStore, commands: Commands, key: SessionKey
) -> None:
    """A store appends in one command to a session that it never saw and that others write to."""
    for _ in range(3):
        await store.append(key, drafts("a", 100))
        await store._db.aclose()
        await observed.append(key, drafts("b", 2))
    assert commands.names == ["findAndModify"] * 3


async def test_ids_of_the_callers_own_cost_no_more(
    observed: MongoStore, commands: Commands, key: SessionKey
) -> None:
    """Messages with ids that do not grow with time are appended in one command, to a session with
    buckets too."""
    await observed.append(key, drafts("m", 300))
    await observed._db.aclose()
    commands.names.clear()
    for number in range(5):
        batch = [draft("m", id=f"msg_{number}_{i}", external=True) for i in range(2)]
        assert (await observed.append(key, batch)).stored == 2
    assert commands.names == ["findAndModify"] * 5


async def test_retention_costs_no_more(
    observed: MongoStore, commands: Commands, key: SessionKey
) -> None:
    """A store that goes on trimming a stream appends and trims in one command."""
    for _ in range(3):
        await observed.append(key, conversation(1), retention=Retention(4))
    commands.names.clear()
    for _ in range(10):
        await observed.append(key, conversation(1), retention=Retention(4))
    assert commands.names == ["findAndModify"] * 10
    assert (await observed.read_tail(key)).count == 4


async def test_a_page_is_one_command(
    store: MongoStore, observed: MongoStore, commands: Commands, key: SessionKey
) -> None:
    """Every page is one command, whatever the window."""
    for _ in range(600):
        await store.append(key, drafts("m", 2))
    await store._db.aclose()
    assert len(await read_all(observed, key)) == 1200
    assert len(commands.names) == 3
    for window in (
        Window(limit=20),
        Window(limit=100),
        Window(limit=20, before=700),
        Window(before=700),
        Window(after=700),
        Window(after=0, limit=10),
    ):
        commands.names.clear()
        await observed.read(key, window)
        assert len(commands.names) == 1, window


async def test_a_page_with_its_opening_is_one_command(
    store: MongoStore, observed: MongoStore, commands: Commands, key: SessionKey
) -> None:
    """The system message that opens a stream comes with the page, once a store knows of it."""
    await store.append(key, [draft("rules", role="system"), *drafts("m", 300)])
    await observed.read(key, Window(limit=5))
    commands.names.clear()
    page = await observed.read(key, Window(limit=5))
    assert page.opening is not None
    assert page.opening.body == b"rules"
    assert len(commands.names) == 1


async def test_a_tail_is_one_command(
    store: MongoStore, observed: MongoStore, commands: Commands, key: SessionKey
) -> None:
    """The end of a long stream is read in one command."""
    await store.append(key, drafts("m", 1000))
    assert len((await observed.read_tail(key)).digests) == 8
    assert len(commands.names) == 1


@pytest.mark.parametrize("kind", ["timed", "derived"])
async def test_a_late_repeat_is_recognized(
    open_store: Callable[..., Any], store: MongoStore, key: SessionKey, kind: str
) -> None:
    """A batch that is sent again after a thousand messages is stored once, by any store."""
    ids = [new_id() if kind == "timed" else f"derived {n}" for n in range(3)]
    batch = [draft(f"m {n}", id=id) for n, id in enumerate(ids)]
    first = await store.append(key, batch)
    for number in range(10):
        await store.append(key, drafts(f"later {number}", 100))
    again = await (await open_store()).append(key, batch)
    assert (again.stored, again.sequences) == (0, first.sequences)
    assert (await store.read_tail(key)).count == 1003
