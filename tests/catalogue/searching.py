"""What a search finds, on a real backend."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from historykit import InvalidRequestError, Message, Page, Session
from historykit.history import History
from historykit.testing.subject import ManualClock

DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def names(page: Page[Session]) -> list[str | None]:
    return [session.name for session in page]


async def fill(history: History, clock: ManualClock) -> None:
    """Create six sessions, a day apart from 2026-01-01 on; the last is the newest."""
    clock.now = int(DAY.timestamp()) * 1_000_000
    for number in range(6):
        session = history.Session(
            name=f"s{number}",
            agent="odd" if number % 2 else "even",
            status="archived" if number < 2 else "active",
            memory_enabled=number != 3,
            metadata={"number": number, "half": number / 2},
            tags=["all", "first" if number < 3 else "last"],
        )
        await session.save()
        clock.advance(86_400)


class Searching:
    """Filters, pages and texts."""

    @pytest.mark.parametrize(
        ("conditions", "found"),
        [
            ({}, "543210"),
            ({"agent": "odd"}, "531"),
            ({"agent": ""}, ""),
            ({"status": "archived"}, "10"),
            ({"memory_enabled": True}, "54210"),
            ({"memory_enabled": False}, "3"),
            ({"created_after": "2026-01-03T00:00:00Z"}, "5432"),
            ({"created_after": dt.datetime(2026, 1, 3)}, "5432"),
            ({"created_before": "2026-01-03"}, "10"),
            ({"created_before": DAY + dt.timedelta(days=2, microseconds=1)}, "210"),
            ({"created_after": "2026-01-02T02:00:00+02:00", "created_before": "2026-01-04"}, "21"),
            ({"metadata": {"number": 4}}, "4"),
            ({"metadata": {"number": 4.0, "half": 2}}, "4"),
            ({"metadata": {"number": "4"}}, ""),
            ({"metadata": {"number": True}}, ""),
            ({"tags": ["last"]}, "543"),
            ({"tags": ["all", "first"], "agent": "even"}, "20"),
            ({"agent": "odd", "status": "active", "memory_enabled": True, "tags": ["last"]}, "5"),
        ],
        ids=str,
    )
    async def test_conditions(
        self, history: History, clock: ManualClock, conditions: dict[str, Any], found: str
    ) -> None:
        """A search finds what meets all conditions, the newest first, and counts it."""
        await fill(history, clock)
        page = await history.Session.search(**conditions)
        assert names(page) == [f"s{digit}" for digit in found]
        assert (page.total, page.page_total, page.page_number) == (len(found), 1, 0)
        walked = [each.name async for each in history.Session.iterate(page_size=2, **conditions)]
        assert walked == names(page)

    async def test_sessions_of_no_agent(self, history: History) -> None:
        """`agent=""` finds the sessions that are bound to none."""
        await history.Session(name="free").save()
        await history.Session(name="bound", agent="a").save()
        assert names(await history.Session.search(agent="")) == ["free"]

    @pytest.mark.parametrize(
        ("number", "found"), [(0, "54"), (1, "32"), (2, "10"), (3, ""), (10**30, "")]
    )
    async def test_pages(
        self, history: History, clock: ManualClock, number: int, found: str
    ) -> None:
        """Each page has its part of the results and the true totals, also behind the last one."""
        await fill(history, clock)
        page = await history.Session.search(page_number=number, page_size=2)
        assert names(page) == [f"s{digit}" for digit in found]
        assert (page.page_number, page.page_total, page.total) == (number, 3, 6)

    async def test_nothing(self, history: History) -> None:
        """Where there is nothing, there is one empty page."""
        page = await history.Session.search()
        assert (page.results, page.page_total, page.total) == ([], 1, 0)

    async def test_without_counting(self, history: History) -> None:
        """With `with_total` False, the results are the same and the totals are None."""
        made = await history.Session().save()
        page = await history.Session.search(with_total=False)
        assert [each.id for each in page] == [made.id]
        assert (page.total, page.page_total) == (None, None)

    async def test_a_walk_while_sessions_are_added(
        self, history: History, clock: ManualClock
    ) -> None:
        """A walk sees each of the sessions that were there once, whatever is added meanwhile."""
        await fill(history, clock)
        seen = []
        async for session in history.Session.iterate(page_size=2):
            seen.append(session.name)
            await history.Session(name="new").save()
            clock.advance(1)
        assert seen == ["s5", "s4", "s3", "s2", "s1", "s0"]

    async def test_metadata_that_was_changed(self, history: History) -> None:
        """A session is found by what it has now, and no more by what it had."""
        session = await history.Session(metadata={"a": 1}, tags=["x"]).save()
        await session.save(metadata={"a": 2}, tags=[])
        assert (await history.Session.search(metadata={"a": 1})).total == 0
        assert (await history.Session.search(tags=["x"])).total == 0
        assert (await history.Session.search(metadata={"a": 2})).total == 1
        found = await history.Session.get(str(session.id))
        assert (found.metadata, found.tags) == ({"a": 2}, [])

    async def test_a_text(self, history: History, clock: ManualClock) -> None:
        """A text is found in messages and in the name, whatever the case, beside other filters."""
        await fill(history, clock)
        by_name = {each.name: each for each in await history.Session.search()}
        await by_name["s1"].add_message("user", "Grüße aus TROMSØ")
        await by_name["s2"].add_message("assistant", "the strasse in Tromsø")
        search = history.Session.search
        assert names(await search(query="tromsø")) == ["s2", "s1"]
        assert names(await search(query="GRU\u0308SSE")) == ["s1"]
        assert names(await search(query="tromsø", agent="odd")) == ["s1"]
        assert names(await search(query="S4")) == ["s4"]
        page = await search(query="tromsø", page_size=1, page_number=1)
        assert (names(page), page.total, page.page_total) == (["s1"], 2, 2)
        assert page.complete
        walked = [each.name async for each in history.Session.iterate(query="tromsø")]
        assert walked == ["s2", "s1"]

    async def test_previews(self, history: History) -> None:
        """Each session of a page has the preview of its own newest message."""
        for number in range(3):
            session = await history.Session(id=f"s{number}").save()
            for word in range(number):
                await session.add_message("user", f"message {word} of {number}")
        page = await history.Session.search()
        assert {each.id: each.last_message_preview for each in page} == {
            "s0": None,
            "s1": "message 0 of 1",
            "s2": "message 1 of 2",
        }

    async def test_a_text_is_literal(self, history: History) -> None:
        """Each text finds itself only, whatever its signs mean to a database."""
        stored = ["50% off", "a_b", "axb", "C++", "POL-358", "user@host.com", "don't", 'x"y', "a/b"]
        for text in stored:
            await history.Session(name=text).save()
        for text in stored:
            assert names(await history.Session.search(query=text)) == [text]
        for text in ("(a+)+$", "*", ".*", "\\", "%_%"):
            assert names(await history.Session.search(query=text)) == []
        with pytest.raises(InvalidRequestError, match="not blank"):
            await history.Session.search(query=" ")

    async def test_metadata_is_literal(self, history: History) -> None:
        """Keys and values that mean something to a database are found as they are, or not."""
        pairs = {"x') OR 1=1 --": 1, "a.b": 1, "$where": "1", "": "", "k": "{$ne: null}"}
        for key, value in pairs.items():
            await history.Session(name=key, metadata={key: value}).save()
        for key, value in pairs.items():
            assert names(await history.Session.search(metadata={key: value})) == [key]
        for metadata in ({"a": 1}, {"$where": 1}, {"k": "null"}, {"k": None}):
            assert (await history.Session.search(metadata=metadata)).total == 0

    async def test_a_text_is_searched_for_in_scope(self, history: History) -> None:
        """A user's search for a text finds and counts the user's own sessions, page by page."""
        for number in range(12):
            user = history.as_user("ada" if number % 2 else "bob")
            await user.append(f"s{number}", [Message("user", f"hit {number}")])
        await history.append("nobody's", [Message("user", "hit")])
        ada, seen = history.as_user("ada"), []
        for number, size in enumerate((4, 2, 0)):
            page = await ada.Session.search(query="hit", page_number=number, page_size=4)
            assert (len(page.results), page.total, page.page_total) == (size, 6, 2)
            seen += [hit.snippet for hit in page.hits]
        assert sorted(seen) == sorted(f"hit {number}" for number in (1, 3, 5, 7, 9, 11))

    async def test_walks_of_all_sizes(self, history: History, clock: ManualClock) -> None:
        """Walks in pages of any size see each session once, in one order, also of equal times."""
        for number in range(60):
            await history.append(f"s{number:02}", [Message("user", "Hi")])
            if number % 7 == 0:
                clock.advance(1)
        walks = [
            [each.id async for each in history.Session.iterate(page_size=size)]
            for size in (7, 25, 100)
        ]
        assert len(set(walks[0])) == 60
        assert walks[0] == walks[1] == walks[2]
        paged = []
        for number in range(9):
            paged += [
                each.id for each in await history.Session.search(page_size=7, page_number=number)
            ]
        assert paged == walks[0]
