"""Whose sessions a history sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from historykit import ForbiddenError, Message, NotFoundError, Session
from historykit.history import History

Call = Callable[[Session], Awaitable[Any]]

CALLS: dict[str, Call] = {
    "save": lambda session: session.save(name="mine"),
    "refresh": lambda session: session.refresh(),
    "archive": lambda session: session.archive(),
    "messages": lambda session: session.messages(),
    "add_message": lambda session: session.add_message("user", "Hi"),
    "add_messages": lambda session: session.add_messages([Message("user", "Hi")]),
    "get_message": lambda session: session.get_message(session.of_ada),  # type: ignore[attr-defined]
    "delete_message": lambda session: session.delete_message(session.of_ada),  # type: ignore[attr-defined]
    "delete_turn": lambda session: session.delete_message(
        session.of_ada,  # type: ignore[attr-defined]
        cascade="turn",
    ),
    "react": lambda session: session.react(session.of_ada, "LIKE"),  # type: ignore[attr-defined]
    "fork": lambda session: session.fork(),
    "delete": lambda session: session.delete(),
}
"""Every call on a session; `of_ada` is the id of a message of hers."""


async def ada_has(history: History) -> str:
    """Give ada the session "s1" with a message, and return the message's id."""
    session = await history.as_user("ada").Session(id="s1", name="hers").save()
    return (await session.add_message("assistant", "For Ada")).id


async def still_hers(history: History) -> None:
    """See that nothing of ada's session was changed."""
    session = await history.as_user("ada").Session.get("s1")
    assert (session.name, session.status, session.message_count) == ("hers", "active", 1)
    (message,) = await session.messages()
    assert (message.content, message.reaction) == ("For Ada", None)


class Scope:
    """A history of one user has the sessions of that user only."""

    @pytest.mark.parametrize("user", ["bob", ""])
    async def test_get(self, history: History, user: str) -> None:
        """Somebody else's session is not found, under its own id."""
        await ada_has(history)
        other = history.as_user(user) if user else history
        with pytest.raises(NotFoundError):
            await other.Session.get("s1")

    @pytest.mark.parametrize("call", [name for name in CALLS if name not in ("save", "archive")])
    async def test_a_call_on_an_id(self, history: History, call: str) -> None:
        """A call on an object with the id of somebody else's session is a `NotFoundError`."""
        of_ada = await ada_has(history)
        session = history.as_user("bob").Session(id="s1")
        session.of_ada = of_ada  # type: ignore[attr-defined]
        with pytest.raises(NotFoundError):
            await CALLS[call](session)
        await still_hers(history)

    @pytest.mark.parametrize("call", CALLS)
    async def test_a_call_on_an_object_of_somebody_else(self, history: History, call: str) -> None:
        """An object that says whose it is cannot be used by another user, even to save it."""
        of_ada = await ada_has(history)
        hers = await history.as_user("ada").Session.get("s1")
        session = history.as_user("bob").Session.from_dict(hers.to_dict())
        session.of_ada = of_ada  # type: ignore[attr-defined]
        error = ForbiddenError if call in ("save", "archive") else NotFoundError
        with pytest.raises(error):
            await CALLS[call](session)
        await still_hers(history)

    @pytest.mark.parametrize("call", CALLS)
    async def test_an_object_of_somebody_else_with_ones_own_id(
        self, history: History, call: str
    ) -> None:
        """It is not taken for one's own session of that id."""
        bob = history.as_user("bob")
        his = await bob.Session(id="s1", name="his").save()
        message = await his.add_message("assistant", "For Bob")
        session = bob.Session(id="s1", user_id="ada")
        session.of_ada = message.id  # type: ignore[attr-defined]
        error = ForbiddenError if call in ("save", "archive") else NotFoundError
        with pytest.raises(error):
            await CALLS[call](session)
        await his.refresh()
        assert (his.name, his.status, his.message_count) == ("his", "active", 1)
        assert await his.messages() == [message]

    async def test_the_same_id_twice(self, history: History) -> None:
        """Two users may have sessions of one id, which know nothing of each other."""
        await ada_has(history)
        his = await history.as_user("bob").Session(id="s1", name="his").save()
        await his.add_message("user", "For Bob")
        assert [each.content for each in await his.messages()] == ["For Bob"]
        await his.delete()
        await still_hers(history)

    async def test_a_search_in_scope(self, history: History) -> None:
        """The search of a user finds the user's own sessions, with or without naming the user."""
        await ada_has(history)
        await history.Session(name="nobody's").save()
        bob = history.as_user("bob")
        await bob.Session(name="his").save()
        for user_id in (None, "bob"):
            page = await bob.Session.search(user_id=user_id)
            assert [(each.name, each.user_id) for each in page] == [("his", "bob")]
            assert page.total == 1

    @pytest.mark.parametrize("user_id", ["ada", ""])
    async def test_a_search_out_of_scope(self, history: History, user_id: str) -> None:
        """The search of a user for sessions of another one is a `ForbiddenError` with 403."""
        with pytest.raises(ForbiddenError) as caught:
            await history.as_user("bob").Session.search(user_id=user_id)
        assert caught.value.status_code == 403

    async def test_a_search_of_all(self, history: History) -> None:
        """A history of no user finds the sessions of all, or of one."""
        await ada_has(history)
        await history.Session(name="nobody's").save()
        found = {each.name for each in await history.Session.search()}
        assert found == {"hers", "nobody's"}
        for user_id, name in (("ada", "hers"), ("", "nobody's")):
            page = await history.Session.search(user_id=user_id)
            assert [each.name for each in page] == [name]

    async def test_what_a_search_of_all_finds_can_be_used(self, history: History) -> None:
        """A session that a history of no user found is its owner's, whatever is done with it."""
        of_ada = await ada_has(history)
        (session,) = await history.Session.search(user_id="ada")
        session.of_ada = of_ada  # type: ignore[attr-defined]
        for name in ("messages", "get_message", "react", "add_message", "save", "refresh"):
            await CALLS[name](session)
        fork = await session.fork()
        assert (fork.user_id, fork.message_count) == ("ada", 2)
        hers = await history.as_user("ada").Session.get("s1")
        assert (hers.name, hers.message_count) == ("mine", 2)

    async def test_agents_state(self, history: History) -> None:
        """The state of an agent's session belongs to the user as well."""
        session = (await history.as_user("ada").Session.get_or_create("s1")).as_agent_session()
        session.state["secret"] = 1
        await history.as_user("ada").save_state(session)
        his = await history.as_user("bob").Session.get_or_create("s1")
        assert his.as_agent_session().state == {}
        (hers,) = await history.Session.search(user_id="ada")
        again = hers.as_agent_session()
        again.state["secret"] = 2
        await history.save_state(again)
        found = await history.as_user("ada").Session.get("s1")
        assert found.as_agent_session().state == {"secret": 2}
