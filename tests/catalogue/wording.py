"""What people type into a search: texts with marks that a database gives a meaning, and filters."""

from __future__ import annotations

from typing import Any

import pytest

from historykit import InvalidRequestError
from historykit.history import History

SAID = (
    "50% off",
    "a_b",
    "axb",
    "C++",
    "POL-358",
    "user@host.com",
    "don't",
    'x"y',
    "a/b.sh",
    "line\nbreak",
    "back\\slash",
    "a\0b",
    "(a+)+$",
    "ΣΊΣΥΦΟΣ",
)
"""A message in a session of its own each."""

NOWHERE = ("a%b", "*", "C+++", ".*", "' OR 1=1 --", '"', "\\s", "{}", "x\0")
"""What nobody said, or said in none of these, though it would match as a pattern."""


class Wording:
    """Texts and filters are compared, never interpreted."""

    async def test_a_text_is_literal(self, history: History) -> None:
        """Each text is found where it was said, and nowhere else: no character is a pattern, an
        operator or a quote."""
        for number, text in enumerate(SAID):
            session = await history.Session(id=f"s{number}").save()
            await session.add_message("user", f"so: {text}.")
        for number, text in enumerate(SAID):
            page = await history.Session.search(query=text)
            assert [session.id for session in page] == [f"s{number}"], text
        for text in NOWHERE:
            said = [f"s{n}" for n, each in enumerate(SAID) if text in each]
            page = await history.Session.search(query=text)
            assert [session.id for session in page] == said[::-1], text

    @pytest.mark.parametrize("query", ["", " ", "\t\n", 7])
    async def test_a_blank_text_is_refused(self, history: History, query: Any) -> None:
        """A search for no text is an error, not all sessions."""
        await history.Session().save()
        with pytest.raises(InvalidRequestError, match="query"):
            await history.Session.search(query=query)
        with pytest.raises(InvalidRequestError, match="query"):
            async for _ in history.Session.iterate(query=query):
                pass

    async def test_a_text_is_found_among_ones_own_sessions(self, history: History) -> None:
        """The hits of a user are the user's own, on pages of the size asked for, with their total;
        a history of no user finds those of all."""
        for user in ("ada", "bob", ""):
            owned = history.as_user(user) if user else history
            for number in range(60):
                session = await owned.Session(id=f"s{number:02}").save()
                await session.add_message("user", "the birch")
                await session.add_message("assistant", "a birch is a tree")
        hers = history.as_user("ada").Session.search
        pages = [await hers(query="BIRCH", page_size=25, page_number=n) for n in range(4)]
        assert [len(page.results) for page in pages] == [25, 25, 10, 0]
        assert {page.total for page in pages} == {60}
        found = [(session.user_id, session.id) for page in pages for session in page]
        assert found == [("ada", f"s{number:02}") for number in reversed(range(60))]
        page = await history.Session.search(query="BIRCH", page_size=60, user_id="ada")
        assert [(session.user_id, session.id) for session in page] == found
        assert (await history.Session.search(query="birch")).total == 180

    async def test_a_filter_is_honoured_or_refused(self, history: History) -> None:
        """A filter on metadata finds the sessions that have just that, whatever marks are in it;
        what is no value of metadata is refused. Never is a filter left out."""
        hostile: tuple[dict[str, Any], ...] = (
            {"tenant": "acme"},
            {"x') OR 1=1 --": 1},
            {"a.b": 1},
            {"$where": "1"},
            {"tenant": "' OR ''='"},
            {"%": "%"},
            {"": 0},
            {"nul\0": "a\0b"},
        )
        for number, metadata in enumerate(hostile):
            await history.Session(id=f"s{number}", metadata=metadata, tags=[f"%{number}"]).save()
        for number, metadata in enumerate(hostile):
            page = await history.Session.search(metadata=metadata)
            assert [session.id for session in page] == [f"s{number}"], metadata
            assert page.results[0].metadata == metadata
        for nothing in ({"tenant": "%"}, {"tenant": "acm"}, {"a": None}, {"TENANT": "acme"}):
            assert (await history.Session.search(metadata=nothing)).total == 0, nothing
        assert (await history.Session.search(tags=["%"])).total == 0
        for refused in ({"tenant": {"$ne": None}}, {"tenant": ["acme"]}, {1: "acme"}):
            with pytest.raises(InvalidRequestError):
                await history.Session.search(metadata=refused)  # type: ignore[arg-type]
        for refused in ({"status": "%"}, {"status": {"$ne": "active"}}, {"agent": "nul\0"}):
            with pytest.raises(InvalidRequestError):
                await history.Session.search(**refused)  # type: ignore[arg-type]

    async def test_the_catalogue_is_walked_whole(self, history: History) -> None:
        """Of 110 sessions, all of one moment, each is met once, whatever the size of the pages and
        with any filter; a page is bounded where nobody says how long it may be."""
        for number in range(110):
            owned = history.as_user("ada") if number % 2 else history
            tags = ["third"] if number % 3 == 0 else []
            await owned.Session(id=f"s{number:03}", name=f"n{number % 5}", tags=tags).save()
        ids = [f"s{number:03}" for number in reversed(range(110))]
        for size in (1, 7, 25, 100):
            walked = [each.id async for each in history.Session.iterate(page_size=size)]
            assert walked == ids
            thirds = history.Session.iterate(page_size=size, tags=["third"])
            assert [each.id async for each in thirds] == ids[1::3]
            hers = history.as_user("ada").Session.iterate(page_size=size)
            assert [each.id async for each in hers] == ids[::2]
        page = await history.Session.search()
        assert (len(page.results), page.total, page.page_total) == (20, 110, 6)
        for wrong in ({"page_number": -1}, {"page_number": "x"}, {"page_size": 0}):
            with pytest.raises(InvalidRequestError):
                await history.Session.search(**wrong)  # type: ignore[arg-type]

    async def test_a_conversation_is_scrolled_back(self, history: History) -> None:
        """Going back from the newest fifty of 1,000 messages meets each once, while others come."""
        session = await history.Session(id="s1").save()
        for first in range(0, 1000, 100):
            turn = [{"role": "user", "content": f"m{n}"} for n in range(first, first + 100)]
            await session.add_messages(turn)
        shown = await session.messages(limit=50, order="desc")
        while page := await session.messages(limit=50, order="desc", before=shown[-1]):
            assert len(page) == 50
            if len(shown) == 500:
                await session.add_message("user", "late")
            shown += page
        assert [each.content for each in reversed(shown)] == [f"m{n}" for n in range(1000)]

    async def test_messages_are_deleted_one_by_one(self, history: History) -> None:
        """A message that is deleted leaves the others in their order and at their places; deleting
        what is not there, or no more, is an error and changes nothing."""
        session = await history.Session(id="s1").save()
        texts = [f"m{number}" for number in range(6)]
        added = await session.add_messages([{"role": "user", "content": text} for text in texts])
        for number in (4, 0, 5):
            await session.delete_message(added[number].id)
            texts.remove(f"m{number}")
            listed = await session.messages()
            assert [each.content for each in listed] == texts
            assert {each.sequence for each in listed} <= {each.sequence for each in added}
            for id in (added[number].id, "unknown"):
                with pytest.raises(LookupError, match="Message not found"):
                    await session.delete_message(id)
            await session.refresh()
            assert session.message_count == len(texts)
        late = await session.add_message("user", "late")
        assert late.sequence > added[-1].sequence
