"""What somebody does with sessions, step by step, on a real backend."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from historykit import (
    Agent,
    AgentSession,
    APIError,
    Message,
    NotFoundError,
    SessionStatus,
)
from historykit.history import History
from historykit.testing.subject import ManualClock

helper = SimpleNamespace(id="agent_1", name="helper")


class Acceptance:
    """The life of a session."""

    @pytest.mark.parametrize("agent", [helper, "agent_1"], ids=["object", "id"])
    async def test_create(self, history: History, agent: object) -> None:
        """A session is created for an agent, given as an object or as an id."""
        session = await history.Session(agent=agent, name="First").save()
        assert session.id
        assert (session.agent_id, session.name, session.status) == ("agent_1", "First", "active")

    async def test_get(self, history: History) -> None:
        """A session that was created is found under its id, with the same fields."""
        made = await history.Session(agent=helper, name="First").save()
        found = await history.Session.get(str(made.id))
        assert (found.id, found.name, found.agent_id) == (made.id, "First", "agent_1")
        assert found.to_dict() == made.to_dict()

    async def test_get_of_an_unknown_id(self, history: History) -> None:
        """It is an `APIError` with the status 404."""
        with pytest.raises(APIError) as caught:
            await history.Session.get("nowhere")
        assert caught.value.status_code == 404

    async def test_search_by_agent(self, history: History) -> None:
        """A search for an agent finds its sessions and counts them."""
        made = await history.Session(agent=helper).save()
        await history.Session(agent="other").save()
        for agent in (helper, "agent_1"):
            page = await history.Session.search(agent=agent)
            assert [session.id for session in page] == [made.id]
            assert page.total == 1

    async def test_search_by_status(self, history: History) -> None:
        """A search for a status finds sessions of that status only."""
        await history.Session(name="over", status="completed").save()
        await history.Session(name="on").save()
        page = await history.Session.search(status=SessionStatus.ACTIVE)
        assert [session.name for session in page] == ["on"]

    async def test_rename(self, history: History) -> None:
        """A name that was changed and saved is the stored one."""
        session = await history.Session(name="First").save()
        session.name = "Second"
        await session.save()
        assert (await history.Session.get(str(session.id))).name == "Second"

    async def test_add_messages(self, history: History) -> None:
        """Messages that were added are listed in their order."""
        session = await history.Session(agent=helper).save()
        asked = await session.add_message("user", "What is 2+2?")
        await session.add_message("assistant", "4")
        assert asked.id
        assert (asked.role, asked.content, asked.sequence) == ("user", "What is 2+2?", 1)
        listed = await session.messages()
        assert [(each.role, each.content) for each in listed] == [
            ("user", "What is 2+2?"),
            ("assistant", "4"),
        ]
        assert listed[0] == asked

    async def test_get_message(self, history: History) -> None:
        """One message is found by its id; an unknown one is an `APIError`."""
        session = await history.Session(agent=helper).save()
        made = await session.add_message("user", "Hi", "req_1")
        assert await session.get_message(made.id) == made
        with pytest.raises(APIError, match="Message not found"):
            await session.get_message("unknown")

    async def test_delete_message(self, history: History) -> None:
        """A deleted message is gone from the list; deleting it again is an `APIError`."""
        session = await history.Session().save()
        made = await session.add_message("user", "Hi")
        await session.add_message("assistant", "Hello")
        await session.delete_message(made.id)
        assert [each.content for each in await session.messages()] == ["Hello"]
        with pytest.raises(APIError, match="Message not found"):
            await session.delete_message(made.id)

    async def test_delete(self, history: History) -> None:
        """A deleted session is gone, with its messages, and nothing of it is left in a search."""
        session = await history.Session(id="s1").save()
        await session.add_message("user", "Hi")
        result = await session.delete()
        assert (result.status, result.completed) == ("SUCCESS", True)
        assert (result.deleted_id, result.messages) == ("s1", 1)
        with pytest.raises(NotFoundError):
            await history.Session.get("s1")
        assert (await history.Session.search()).total == 0
        assert await history.load("s1") == []

    async def test_link_as_an_attachment(self, history: History) -> None:
        """A link comes back with its name and type, also when it is read again."""
        session = await history.Session().save()
        link = {"url": "https://example.org/a.png", "name": "a.png", "type": "image"}
        made = await session.add_message("user", "Look", attachments=[link])
        (listed,) = await session.messages()
        for message in (made, listed):
            assert message.attachments is not None
            (attachment,) = message.attachments
            assert attachment.to_dict() == {**link, "mimeType": "image/png"}

    async def test_reactions(self, history: History) -> None:
        """LIKE, DISLIKE and None take each other's place on an assistant's message."""
        session = await history.Session().save()
        await session.add_message("user", "Hi")
        answer = await session.add_message("assistant", "Hello")
        for reaction in ("LIKE", "DISLIKE", None):
            assert (await session.react(answer.id, reaction)).reaction == reaction
            assert (await session.get_message(answer.id)).reaction == reaction

    async def test_reaction_to_a_user(self, history: History) -> None:
        """It is an `APIError` that says so, and changes nothing."""
        session = await history.Session().save()
        asked = await session.add_message("user", "Hi")
        with pytest.raises(APIError, match="Only assistant messages can be liked") as caught:
            await session.react(asked.id, "LIKE")
        assert caught.value.status_code == 400
        assert (await session.get_message(asked.id)).reaction is None

    async def test_two_faces(self, history: History, clock: ManualClock) -> None:
        """What a provider saves and what a session adds is one conversation, for both."""
        provider = history.provider()
        session = await history.Session(id="s1", agent=helper).save()
        await session.add_message("user", "one", attachments=["https://example.org/a.png"])
        await provider.save_messages("s1", [Message("assistant", "two")])
        clock.advance(1)
        await session.add_message("user", "three")
        await provider.save_messages("s1", [Message("assistant", "four")])
        loaded = await provider.get_messages("s1")
        listed = await session.messages()
        spoken = [
            ("user", "one"),
            ("assistant", "two"),
            ("user", "three"),
            ("assistant", "four"),
        ]
        assert [(each.role, each.text) for each in loaded] == spoken
        assert [(each.role, each.content) for each in listed] == spoken
        assert [each.sequence for each in listed] == [1, 2, 3, 4]
        assert [each.to_dict() for each in loaded] == [
            each.to_message().to_dict() for each in listed
        ]
        await session.refresh()
        assert (session.message_count, session.last_message_preview) == (4, "four")
        assert session.last_message_at == listed[-1].created_at

    async def test_an_agent_in_between(self, history: History) -> None:
        """An agent's provider gives the model what was added, and what it stores is listed."""
        given: list[list[str]] = []

        async def client(messages: list[Message], options: object) -> str:
            given.append([message.text for message in messages])
            return f"answer {len(given)}"

        agent = Agent(client, name="agent_1", context_providers=[history.provider()])
        session = await history.Session(id="s1", agent=agent).save()
        await session.add_message("user", "added")
        await agent.run("asked", session=AgentSession(session_id="s1"))
        like = (await session.messages())[-1]
        await session.react(like.id, "LIKE")
        await session.add_message("assistant", "corrected")
        await agent.run("asked again", session=AgentSession(session_id="s1"))
        assert given[1] == ["added", "asked", "answer 1", "corrected", "asked again"]
        listed = await session.messages()
        assert [each.content for each in listed] == [*given[1], "answer 2"]
        assert [each.sequence for each in listed] == [1, 2, 3, 4, 5, 6]
        assert [each.reaction for each in listed] == [None, None, "LIKE", None, None, None]
        await session.delete_message(listed[3].id)
        loaded = await history.provider().get_messages("s1")
        assert [each.text for each in loaded] == [*given[1][:3], "asked again", "answer 2"]
