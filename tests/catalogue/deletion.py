"""What a deletion leaves in the database itself, looked at past the store."""

from __future__ import annotations

from collections.abc import Callable

from historykit import Message
from historykit.history import History
from historykit.records import MessageSelector

__all__ = ["Contents", "Deletion"]

Contents = Callable[[], bytes]
"""Returns all that the database holds: names, indexes and values."""


class Deletion:
    """A subclass has the fixture `contents`."""

    async def test_a_deleted_session_leaves_no_byte(
        self, history: History, contents: Contents
    ) -> None:
        """Nothing of a session that was deleted is in the database: no message, long or short, no
        reaction, name, tag, value of metadata, id, and no entry of an index. Those beside it are
        untouched, and deleting it again finds nothing."""
        for word in ("secret", "other"):
            await fill(history.as_user(f"{word}-user"), word)
        assert contents().count(b"secret") > 10
        hers = history.as_user("secret-user")
        result = await (await hers.Session.get("secret-id")).delete()
        assert result.messages == 73
        assert b"secret" not in contents()
        again = await history.store.delete_session(hers.key("secret-id"))
        assert (again.sessions, again.messages) == (0, 0)
        session = await history.as_user("other-user").Session.get("other-id")
        assert len(await session.messages()) == 72

    async def test_a_deleted_message_leaves_no_byte(
        self, history: History, contents: Contents
    ) -> None:
        """Nothing of messages that were deleted is in the database, one by one or by place."""
        session = await history.Session(id="s1").save()
        for number in range(70):
            await session.add_message("user", f"other {number}")
        for text in ("secret", "secret " * 3000):
            (message,) = await session.add_messages([{"role": "assistant", "content": text}])
            await session.react(message.id, "LIKE")
            assert b"secret" in contents()
            await session.delete_message(message.id)
            assert b"secret" not in contents()
        await session.add_messages([{"role": "user", "content": f"secret {n}"} for n in range(100)])
        await session.add_message("user", "last")
        first = MessageSelector(first=71, last=(await session.messages())[-2].sequence)
        assert await history.store.delete_messages(history.key("s1"), first) == 100
        assert b"secret" not in contents()
        assert len(await session.messages()) == 71


async def fill(history: History, word: str) -> None:
    """Store a session that has a word in all its parts."""
    session = await history.Session(
        id=f"{word}-id",
        name=f"{word}-name",
        agent=f"{word}-agent",
        metadata={f"{word}-key": f"{word}-value"},
        tags=[f"{word}-tag"],
    ).save()
    for number in range(70):
        await session.add_message("user", f"{word} {number} " * (1, 100)[number % 2], f"{word}-run")
    answer = await session.add_message("assistant", f"{word} " * 3000, f"{word}-run")
    await session.react(answer.id, "LIKE")
    await session.add_message("user", f"{word}-question", attachments=[f"https://{word}.org/a.png"])
    await history.store.claim_run(history.key(f"{word}-id"), f"{word}-run", ttl=60)
    await history.append(f"{word}-id", [Message("user", f"{word}-audit")], stream="audit")
