from __future__ import annotations

import asyncio
import itertools

import pytest
import pytest_asyncio

from historykit import ConflictError, DecodeError, InvalidRequestError, Message, MessageCodec
from historykit.history import History
from historykit.memory import MemoryStore
from historykit.records import PAGE_MESSAGES, MessagePatch
from historykit.session_records import SessionDraft
from tests.core.stored import draft

pytestmark = pytest.mark.asyncio


class CountingStore(MemoryStore):
    """Counts reads, and can do something before each of them."""

    def __init__(self):
        super().__init__()
        self.windows = []
        self.before_read = None

    async def _read(self, key, window, stream):
        self.windows.append(window)
        if self.before_read:
            await self.before_read(len(self.windows))
        return await super()._read(key, window, stream)


@pytest_asyncio.fixture
async def history():
    async with History(CountingStore()) as history:
        yield history


def texts(messages):
    return [message.text for message in messages]


async def fill(history, count, *, session_id="s", opening=()):
    batch = [*opening, *(Message("assistant" if n % 2 else "user", str(n)) for n in range(count))]
    await history.append(session_id, batch)


async def test_a_long_history_is_read_page_by_page(history):
    """A load takes one trip a page, from the newest to the oldest, and returns all in order."""
    count = 2 * PAGE_MESSAGES + 10
    await fill(history, count)
    assert texts(await history.load("s")) == [str(n) for n in range(count)]
    assert [window.before for window in history.store.windows] == [None, 511, 11]


async def test_others_get_the_event_loop_while_a_page_is_decoded(history):
    """A page is decoded in portions, between which whoever else is ready has a turn."""
    await fill(history, PAGE_MESSAGES)
    turns = itertools.count()

    async def take_turns():
        while True:
            next(turns)
            await asyncio.sleep(0)

    other = asyncio.create_task(take_turns())
    await history.load("s")
    other.cancel()
    assert next(turns) > 3


async def test_a_limit_is_read_in_as_few_pages(history):
    """A limit over a page asks for the rest only, and no limit of zero reads a message."""
    await fill(history, 2 * PAGE_MESSAGES)
    assert len(await history.load("s", limit=PAGE_MESSAGES + 3)) == PAGE_MESSAGES + 3
    assert [window.limit for window in history.store.windows] == [PAGE_MESSAGES + 3, 3]
    assert await history.load("s", limit=0) == []


@pytest.mark.parametrize("bound", ["limit", "turns"])
async def test_negative_bounds_are_refused(history, bound):
    """A bound below zero is a ValueError that names it, before anything is read."""
    with pytest.raises(InvalidRequestError, match=bound):
        await history.load("s", **{bound: -1})
    assert history.store.windows == []


async def test_what_is_appended_meanwhile_is_not_seen(history):
    """A load returns the history as it was when it began."""
    await fill(history, PAGE_MESSAGES + 5)

    async def append(reads):
        if reads == 2:
            await history.append("s", [Message("user", "late")])

    history.store.before_read = append
    assert texts(await history.load("s"))[-1] == str(PAGE_MESSAGES + 4)


async def test_a_load_begins_again_where_messages_change(history):
    """A change between two pages is seen in the whole of what is returned."""
    await fill(history, PAGE_MESSAGES + 5)
    key = history.key("s")
    first = (await history.store.read(key)).messages[0]
    history.store.windows.clear()

    async def edit(reads):
        if reads == 2:
            new = draft(first.id, "edited")
            await history.store.update_message(
                key, first.id, MessagePatch(body=new.body, digest=new.digest)
            )

    history.store.before_read = edit
    assert "edited" in texts(await history.load("s"))
    assert len(history.store.windows) == 4


async def test_a_load_gives_up_where_messages_change_all_the_time(history):
    """A history that is edited before every page is a conflict, not a mixture."""
    await fill(history, PAGE_MESSAGES + 5)
    key = history.key("s")
    first = (await history.store.read(key)).messages[0]

    async def edit(reads):
        await history.store.update_message(key, first.id, MessagePatch(reaction="LIKE"))

    history.store.before_read = edit
    with pytest.raises(ConflictError, match="edited faster"):
        await history.load("s")


async def test_turns_are_counted_from_the_end(history):
    """A number of turns returns them whole, from the user's message on."""
    await fill(history, 10)
    assert texts(await history.load("s", turns=1)) == ["8", "9"]
    assert texts(await history.load("s", turns=2)) == ["6", "7", "8", "9"]
    assert len(await history.load("s", turns=99)) == 10
    assert await history.load("s", turns=0) == []


async def test_long_turns_take_another_page(history):
    """Turns that are longer than guessed are read to their beginning."""
    await history.append("s", [Message("user", "a"), *[Message("assistant", "x")] * 40])
    await history.append("s", [Message("user", "b")])
    assert texts(await history.load("s", turns=2))[0] == "a"
    assert len(history.store.windows) == 2


async def test_turns_within_a_limit(history):
    """Where both are given, neither is exceeded."""
    await fill(history, 10)
    assert texts(await history.load("s", turns=2, limit=3)) == ["7", "8", "9"]
    assert texts(await history.load("s", turns=1, limit=3)) == ["8", "9"]


async def test_a_system_message_that_opens_the_session_is_there_too(history):
    """The opening system message is returned beside the newest messages or turns, once."""
    await fill(history, 6, opening=[Message("system", "be nice")])
    assert texts(await history.load("s", limit=2)) == ["be nice", "4", "5"]
    assert texts(await history.load("s", turns=1)) == ["be nice", "4", "5"]
    assert texts(await history.load("s", limit=7))[:2] == ["be nice", "0"]
    assert texts(await history.load("s", limit=6))[:2] == ["be nice", "0"]


async def test_the_opening_is_beside_turns_that_took_pages(history):
    """The opening system message comes with turns that do not reach it in one page."""
    await fill(history, 100, opening=[Message("system", "be nice")])
    assert texts(await history.load("s", turns=1)) == ["be nice", "98", "99"]


async def damaged(history):
    """Store three messages of which the second cannot be read."""
    broken = draft("b")
    drafts = [draft("a"), type(broken)(**{**fields(broken), "body": b"\xff"}), draft("c")]
    await history.store.append(history.key("s"), drafts)


def fields(record):
    return {name: getattr(record, name) for name in record.__slots__}


async def test_a_damaged_record_is_named(history):
    """A strict load raises an error with session and sequence."""
    await damaged(history)
    with pytest.raises(
        DecodeError, match=r"message 2 .* of session 's'.*History\.read with"
    ) as raised:
        await history.load("s")
    assert (raised.value.session_id, raised.value.sequence) == ("s", 2)


async def test_a_lenient_read_leaves_damaged_records_out_and_reports_them(history):
    """A lenient read returns the others, and one error for each that it left out."""
    await damaged(history)
    loaded = await history.read("s", strict=False)
    assert texts(loaded.messages) == ["a", "c"]
    assert [error.sequence for error in loaded.skipped] == [2]


async def test_a_record_that_is_no_message_is_damaged(history):
    """A body that decodes to something else than a message is an error of the same kind."""
    body = MessageCodec().encode({"type": "message", "contents": []})
    await history.store.append(
        history.key("s"), [type(draft("a"))(**{**fields(draft("a")), "body": body})]
    )
    with pytest.raises(DecodeError, match="needs a 'role'"):
        await history.load("s")


async def test_a_load_tells_the_life_and_the_version_of_the_session(history):
    """What is read has incarnation and version, and neither where there is no session."""
    nothing = await history.read("s")
    assert (nothing.messages, nothing.incarnation, nothing.version) == ([], None, 0)
    record = await history.store.create_session(history.key("s"), SessionDraft())
    await fill(history, 2)
    loaded = await history.read("s")
    assert (loaded.incarnation, loaded.version) == (record.incarnation, 1)
