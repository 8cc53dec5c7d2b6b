"""How sessions are changed, on a real backend."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from historykit import (
    AgentSession,
    ConflictError,
    Message,
    NotFoundError,
    SessionDeletedError,
    VersionConflictError,
)
from historykit.history import History
from historykit.testing.subject import ManualClock

EXACT = {
    "bytes": b"\xff",
    "set": {1, 2},
    "time": datetime(2026, 1, 1, tzinfo=UTC),
    "wide": 2**70,
    "a.b": {"$c": None},
}


async def contents(session: Any, **options: Any) -> list[str]:
    return [each.content for each in await session.messages(**options)]


class Writing:
    """Saves that meet, states, forks, and messages in batches."""

    async def test_saves_that_meet(self, history: History) -> None:
        """Two objects of one session save different fields, and both changes stay."""
        first = await history.Session(id="s1", name="old", metadata={"a": 1}).save()
        second = await history.Session.get("s1")
        await first.save(name="new")
        await second.save(metadata={"a": 2}, status="completed")
        found = await history.Session.get("s1")
        assert (found.name, found.metadata, found.status) == ("new", {"a": 2}, "completed")
        assert second.to_dict() == found.to_dict()

    async def test_many_saves_at_once(self, history: History) -> None:
        """Saves at the same time wait for each other: none is lost."""
        await history.Session(id="s1").save()
        objects = [await history.Session.get("s1") for _ in range(8)]
        configs = [{"execution_params": {f"p{number}": number}} for number in range(8)]
        await asyncio.gather(
            *(
                each.save(execution_config=config)
                for each, config in zip(objects, configs, strict=True)
            )
        )
        found = await history.Session.get("s1")
        assert found.execution_config is not None
        assert found.execution_config.execution_params == {f"p{n}": n for n in range(8)}

    async def test_a_config_is_merged(self, history: History) -> None:
        """A save adds to the stored config, name by name and cap by cap; `replace` replaces."""
        session = history.Session(
            execution_config={
                "criteria": "short",
                "execution_params": {"max_tokens": 1},
                "budget": {"max_cost": 1.0},
            }
        )
        await session.save()
        other = await history.Session.get(str(session.id))
        await other.save(
            execution_config={"execution_params": {"a": 2}, "budget": {"max_iterations": 3}}
        )
        assert other.to_dict()["executionConfig"] == {
            "criteria": "short",
            "executionParams": {
                "maxTokens": 1,
                "a": 2,
                "budget": {"maxCost": 1.0, "maxIterations": 3},
            },
        }
        await other.save(execution_config={"criteria": "long"}, replace=True)
        found = await history.Session.get(str(session.id))
        assert found.to_dict()["executionConfig"] == {"criteria": "long"}

    async def test_an_id_that_was_never_read(self, history: History) -> None:
        """Saving under an id creates the session, or changes what was set where it exists."""
        await history.Session(id="s1", name="one", agent="a", tags=["x"]).save()
        again = await history.Session(id="s1", name="two").save()
        assert (again.name, again.agent_id, again.tags) == ("two", "a", ["x"])
        assert (await history.Session.search()).total == 1

    async def test_get_or_create(self, history: History) -> None:
        """The first call creates the session, the next ones return it as it is."""
        first = await history.Session.get_or_create("s1", name="one", agent="a")
        second = await history.Session.get_or_create("s1", name="two")
        assert first.to_dict() == second.to_dict()
        assert (second.name, second.agent_id) == ("one", "a")
        assert not second.is_modified

    async def test_a_session_that_is_gone(self, history: History) -> None:
        """Whatever is done with an object whose session somebody deleted is not found."""
        session = await history.Session(id="s1").save()
        message = await session.add_message("assistant", "Hi")
        await (await history.Session.get("s1")).delete()
        for call in (
            session.save(name="x"),
            session.refresh(),
            session.messages(),
            session.add_message("user", "Hi"),
            session.get_message(message.id),
            session.react(message.id, "LIKE"),
            session.delete_message(message.id),
            session.fork(),
            session.delete(),
        ):
            with pytest.raises(NotFoundError):
                await call
        assert (await history.Session.search()).total == 0

    async def test_a_session_that_was_made_anew(self, history: History) -> None:
        """An object of the former life of an id writes nothing into the new one."""
        session = await history.Session(id="s1", name="old").save()
        await (await history.Session.get("s1")).delete()
        await history.Session(id="s1", name="new").save()
        with pytest.raises(SessionDeletedError):
            await session.save(status="archived")
        with pytest.raises(SessionDeletedError):
            await session.delete()
        with pytest.raises(NotFoundError):
            await session.add_message("user", "Hi")
        found = await history.Session.get("s1")
        assert (found.status, found.message_count) == ("active", 0)
        await session.refresh()
        assert session.name == "new"

    async def test_messages_in_a_batch(self, history: History) -> None:
        """A batch is stored side by side, messages of any role and dicts, with one request id."""
        session = await history.Session(agent="a").save()
        call = Message.from_dict(
            {
                "role": "assistant",
                "contents": [
                    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
                ],
            }
        )
        tools = [{"id": "t", "parameters": [{"name": "top_k", "value": 9}]}]
        added = await session.add_messages(
            [
                {"role": "user", "content": "Hi", "tools": tools, "request_id": "own"},
                call,
                Message("tool", "4"),
            ],
            request_id="r",
        )
        assert [each.sequence for each in added] == [1, 2, 3]
        assert [each.request_id for each in added] == ["own", "r", "r"]
        assert [each.agent_id for each in added] == ["a"] * 3
        assert [each.tools for each in added] == [tools, None, None]
        listed = await session.messages()
        assert listed == added
        assert listed[1].to_message().to_dict() == call.to_dict()
        assert [each.content for each in await session.messages(request_id="r")] == ["", "4"]
        assert await contents(session, roles=["user", "tool"]) == ["Hi", "4"]

    async def test_writers_at_the_same_time(self, history: History) -> None:
        """Batches of several objects and of a provider stay side by side, in one order."""
        await history.Session(id="s1").save()
        provider = history.provider()

        async def write(number: int) -> None:
            session = await history.Session.get("s1")
            for part in range(3):
                batch = [Message("user", f"{number} {part} {place}") for place in range(2)]
                if number % 2:
                    await session.add_messages(batch)
                else:
                    await provider.save_messages("s1", batch)

        await asyncio.gather(*map(write, range(6)))
        session = await history.Session.get("s1")
        listed = await session.messages()
        assert [each.sequence for each in listed] == [*range(1, 37)]
        assert session.message_count == 36
        spoken = [each.content for each in listed]
        for first, second in zip(spoken[::2], spoken[1::2], strict=True):
            assert first.endswith(" 0")
            assert second == f"{first[:-1]}1"

    async def test_a_message_that_is_there_already(self, history: History) -> None:
        """A message with an id of its own is stored once, and the call returns what is stored."""
        session = await history.Session().save()
        message = Message("assistant", "Hi", message_id="m1")
        (first,) = await session.add_messages([message])
        (again,) = await session.add_messages([message])
        assert again == first
        assert await contents(session) == ["Hi"]

    async def test_parts_of_a_list(self, history: History) -> None:
        """Messages are listed from a place on, up to a place, in either order, up to a number."""
        session = await history.Session().save()
        added = await session.add_messages(
            [{"role": "user", "content": str(number)} for number in range(6)]
        )
        assert await contents(session, limit=2) == ["0", "1"]
        assert await contents(session, limit=0) == []
        assert await contents(session, limit=2, order="desc") == ["5", "4"]
        assert await contents(session, after=added[3]) == ["4", "5"]
        assert await contents(session, before=added[2].id) == ["0", "1"]
        assert await contents(session, after=1, before=4) == ["1", "2"]
        assert await contents(session, after=1, before=4, order="desc") == ["2", "1"]
        assert await contents(session, before=4, limit=1, order="desc") == ["2"]

    async def test_a_list_of_many_pages(self, history: History) -> None:
        """A list goes over the pages of the store in both orders."""
        session = await history.Session().save()
        for half in range(2):
            numbers = range(300 * half, 300 * half + 300)
            await session.add_messages([Message("user", str(number)) for number in numbers])
        texts = [str(number) for number in range(600)]
        assert await contents(session) == texts
        assert await contents(session, order="desc") == texts[::-1]

    async def test_scrolling_back(self, history: History) -> None:
        """From the newest messages back, page by page, each is seen once, whatever is added."""
        session = await history.Session().save()
        await session.add_messages([Message("user", str(number)) for number in range(100)])
        seen: list[str] = []
        before = None
        while page := await session.messages(limit=30, before=before, order="desc"):
            seen += [each.content for each in page]
            before = page[-1]
            await session.add_message("user", "new")
        assert seen == [str(number) for number in reversed(range(100))]

    async def test_a_turn_is_deleted_whole(self, history: History) -> None:
        """With `cascade="turn"` what belongs to a turn goes with any message of it."""
        provider = history.provider()
        for number in range(3):
            turn = [
                Message("user", f"ask {number}"),
                Message("assistant", f"call {number}"),
                Message("tool", f"result {number}"),
                Message("assistant", f"answer {number}"),
            ]
            await provider.save_messages("s1", turn)
        session = await history.Session.get("s1")
        listed = await session.messages()
        await session.delete_message(listed[6].id, cascade="turn")
        await session.delete_message(listed[8].id, cascade="turn")
        expected = ["ask 0", "call 0", "result 0", "answer 0"]
        assert await contents(session) == expected
        assert [each.text for each in await provider.get_messages("s1")] == expected

    async def test_without_memory(self, history: History) -> None:
        """A session without memory is in the catalogue and keeps no message, of either face."""
        await history.Session(id="s1", memory_enabled=False).save()
        session = await history.Session.get("s1")
        message = await session.add_message("user", "Hi")
        assert (message.content, message.sequence) == ("Hi", 0)
        await history.provider().save_messages("s1", [Message("user", "Hi")])
        assert await session.messages() == []
        await history.provider(memory_enabled=False).save_messages("s2", [Message("user", "Hi")])
        page = await history.Session.search(memory_enabled=False)
        assert {each.id: each.message_count for each in page} == {"s1": 0, "s2": 0}
        assert (await session.save(memory_enabled=True)).memory_enabled
        await session.add_message("user", "Again")
        assert await contents(session) == ["Again"]

    async def test_a_fork(self, history: History, clock: ManualClock) -> None:
        """A fork has the fields and the messages up to one, and goes its own way."""
        session = await history.Session(
            agent="a", name="one", metadata={"a": 1}, tags=["t"], status="archived"
        ).save()
        first = await session.add_message("user", "one", "r1")
        clock.advance(5)
        await session.add_messages(
            [Message("assistant", "two", message_id="m"), Message("user", "")]
        )
        fork = await session.fork(up_to=first, name="other")
        whole = await session.fork(id="s3")
        assert (fork.name, fork.agent_id, fork.status) == ("other", "a", "active")
        assert (fork.metadata, fork.tags, fork.parent_id) == ({"a": 1}, ["t"], session.id)
        (copied,) = await fork.messages()
        assert (copied.content, copied.request_id) == ("one", "r1")
        assert copied.created_at == first.created_at
        await fork.add_message("user", "three")
        assert await contents(session) == ["one", "two", ""]
        assert await contents(whole) == ["one", "two", ""]
        await history.provider().save_messages("s3", [Message("assistant", "two", message_id="m")])
        assert await contents(whole) == ["one", "two", ""]
        found = await history.Session.search(metadata={"a": 1})
        assert found.total == 3

    @pytest.mark.parametrize("filled", [True, False])
    async def test_a_fork_to_an_id_that_exists(
        self, history: History, clock: ManualClock, filled: bool
    ) -> None:
        """It is a `ConflictError`, and the other session stays as it was."""
        session = await history.Session().save()
        await session.add_message("user", "one")
        other = await history.Session(id="s2", name="other").save()
        if filled:
            await other.add_message("user", "two")
        clock.advance(1)
        before = (await other.refresh()).to_dict()
        with pytest.raises(ConflictError, match="exists already"):
            await session.fork(id="s2")
        assert await contents(other) == ["two"] * filled
        empty = await history.Session().save()
        with pytest.raises(ConflictError, match="exists already"):
            await empty.fork(id="s2")
        assert (await other.refresh()).to_dict() == before

    async def test_state(self, history: History) -> None:
        """The state of an agent's session comes back exactly, without the messages it may hold."""
        session = AgentSession(session_id="s1", service_session_id="x")
        messages = [Message("user", "Hi")]
        session.state = {
            "exact": EXACT,
            "in_memory": {"messages": messages, "rest": 1},
        }
        await history.save_state(session)
        assert session.state["in_memory"]["messages"] is messages
        found = (await history.Session.get("s1")).as_agent_session()
        assert found.session_id == "s1"
        assert found.service_session_id == "x"
        assert found.state == {"exact": EXACT, "in_memory": {"rest": 1}}

    async def test_states_that_meet(self, history: History) -> None:
        """A state that somebody else saved meanwhile is not overwritten, unless that is asked."""
        await history.Session(id="s1", name="one").save()
        session = await history.Session.get("s1")
        first, second = session.as_agent_session(), session.as_agent_session()
        first.state["by"] = 1
        await history.save_state(first)
        await session.save(name="two")
        first.state["by"] = 2
        await history.save_state(first)
        for stale in (second, AgentSession(session_id="s1")):
            with pytest.raises(VersionConflictError):
                await history.save_state(stale)
        found = await session.refresh()
        assert (found.name, found.as_agent_session().state) == ("two", {"by": 2})
        await history.save_state(second, overwrite=True)
        await history.save_state(second)
        assert (await session.refresh()).as_agent_session().state == {}

    async def test_a_state_does_not_revive_a_session(self, history: History) -> None:
        """Saving the state of a session that was deleted meanwhile is an error, also made anew."""
        session = await history.Session(id="s1").save()
        state = session.as_agent_session()
        await session.delete()
        for _ in range(2):
            with pytest.raises(SessionDeletedError):
                await history.save_state(state)
            await history.Session(id="s1").save()
        assert (await history.Session.get("s1")).as_agent_session().state == {}
