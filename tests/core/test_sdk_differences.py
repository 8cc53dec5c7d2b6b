"""Faults of the SDK that sessions are made after, which no other test says are not here."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from historykit import APIError, Budget, ExecutionConfig, ResourceError, SessionMessage
from historykit.history import History
from historykit.memory import MemoryStore
from historykit.testing.subject import ManualClock

pytestmark = pytest.mark.asyncio


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest_asyncio.fixture
async def history(clock: ManualClock) -> AsyncIterator[History]:
    async with History(MemoryStore(clock=clock)) as history:
        yield history


async def test_a_save_brings_the_object_up_to_date(history: History, clock: ManualClock) -> None:
    """Created or changed, it has what is stored then: its config, times, and others' changes."""
    config = ExecutionConfig(budget=Budget(max_cost=1))
    session = await history.Session(id="s1", execution_config=config).save()
    assert session.execution_config is config
    other = await history.Session.get("s1")
    await other.save(name="Carrots")
    clock.advance(60)
    await session.save(status="completed")
    assert session.name == "Carrots"
    assert session.updated_at > other.updated_at


async def test_an_error_of_a_save_has_its_status_code(history: History) -> None:
    """It is a `ResourceError` and an `APIError` at once, and so is that of a delete."""
    with pytest.raises(ResourceError) as caught:
        await history.Session(status="unheard of").save()
    assert isinstance(caught.value, APIError)
    assert caught.value.status_code == 400
    session, same = await history.Session(id="s1").save(), await history.Session.get("s1")
    await session.delete()
    for call in (same.delete, same.save):
        with pytest.raises(ResourceError) as caught:
            await call()
        assert isinstance(caught.value, APIError)
        assert caught.value.status_code == 404


@pytest.mark.parametrize("id", ["a/b", "../s", "a?b#c", "a%2Fb", "ä b"])
async def test_no_character_of_an_id_has_a_meaning(history: History, id: str) -> None:
    """An id that would be a path or a query in a URL is one id."""
    session = await history.Session(id=id).save()
    added = await session.add_message("user", "Hi")
    assert (await (await history.Session.get(id)).get_message(added.id)).content == "Hi"
    with pytest.raises(APIError):
        await session.get_message(id)


async def test_content_that_is_null_is_empty() -> None:
    """A message without content has an empty text."""
    assert SessionMessage.from_dict({"id": "m1", "content": None}).content == ""
