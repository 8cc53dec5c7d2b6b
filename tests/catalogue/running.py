"""Agents run in sessions, on a real backend."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import pytest_asyncio

from historykit import Agent, AgentSession, ChatOptions, Message, RunInProgressError
from historykit.history import History
from historykit.testing.subject import ManualClock


class Model:
    """Echoes the last text, and waits or fails where it is told to."""

    def __init__(self, **does: Any) -> None:
        self.does = does
        self.asked: list[list[str]] = []
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, messages: list[Message], options: ChatOptions) -> str:
        self.asked.append([message.text for message in messages])
        self.begun.set()
        if self.does.get("waits"):
            await self.go_on.wait()
        if "raises" in self.does:
            raise self.does["raises"]
        return f"echo {messages[-1].text}"


def helper(**does: Any) -> tuple[Agent, Model]:
    """Return an agent and its model."""
    model = Model(**does)
    return Agent(model, name="helper"), model


async def said(history: History) -> list[tuple[str, str]]:
    """Return who said what in the session."""
    session = await history.Session.get("s1")
    return [(message.role, message.content) for message in await session.messages()]


class Runs:
    """Runs of agents in the session s1."""

    @pytest_asyncio.fixture(autouse=True)
    async def session(self, history: History) -> Any:
        """The session that is run."""
        return await history.Session(id="s1").save()

    async def test_a_run_stores_both_sides(self, history: History) -> None:
        """Query and answer belong to one request, and the next run sees them."""
        agent, model = helper()
        result = await history.run(agent, "Hi", session="s1")
        session = await history.Session.get("s1")
        asked, answered = await session.messages()
        assert asked.request_id == answered.request_id == result.request_id
        assert (session.run_status, session.agent_id) == ("completed", "helper")
        await agent.run("And?", session=session)
        assert model.asked == [["Hi"], ["Hi", "echo Hi", "And?"]]
        assert len(await said(history)) == 4

    async def test_a_run_continues_what_a_provider_began(self, history: History) -> None:
        """Runs through the provider and runs of the session are one conversation."""
        model = Model()
        agent = Agent(model, name="helper", context_providers=[history.provider()])
        await agent.run("One", session=AgentSession(session_id="s1"))
        await history.run(agent, "Two", session="s1")
        await agent.run("Three", session=AgentSession(session_id="s1"))
        assert model.asked[-1] == ["One", "echo One", "Two", "echo Two", "Three"]
        assert len(await said(history)) == 6

    async def test_the_query_is_kept_when_the_model_fails(self, history: History) -> None:
        """The session is idle afterwards, and the next run goes through."""
        agent, _ = helper(raises=ValueError("no model"))
        with pytest.raises(ValueError, match="no model"):
            await history.run(agent, "Hi", session="s1")
        assert await said(history) == [("user", "Hi")]
        assert (await history.Session.get("s1")).run_status == "idle"
        agent, model = helper()
        await history.run(agent, "again", session="s1")
        assert model.asked == [["Hi", "again"]]

    async def test_a_cancelled_run_lets_its_session_go(self, history: History) -> None:
        """The query is kept, and another run can begin at once."""
        agent, model = helper(waits=True)
        task = asyncio.create_task(history.run(agent, "Hi", session="s1"))
        await model.begun.wait()
        assert (await history.Session.get("s1")).run_status == "running"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await history.run(helper()[0], "again", session="s1")
        assert len(await said(history)) == 3

    async def test_a_second_run_is_refused(self, history: History) -> None:
        """Nothing of it is stored."""
        agent, model = helper(waits=True)
        first = asyncio.create_task(history.run(agent, "One", session="s1"))
        await model.begun.wait()
        with pytest.raises(RunInProgressError):
            await history.run(helper()[0], "Two", session="s1")
        model.go_on.set()
        await first
        assert await said(history) == [("user", "One"), ("assistant", "echo One")]

    async def test_a_second_run_waits(self, history: History) -> None:
        """It sees the whole of the first one, and their messages do not mix."""
        agent, model = helper(waits=True)
        first = asyncio.create_task(history.run(agent, "One", session="s1"))
        await model.begun.wait()
        other, echo = helper()
        second = asyncio.create_task(history.run(other, "Two", session="s1", when_busy="wait"))
        await asyncio.sleep(0.1)
        assert echo.asked == []
        model.go_on.set()
        await asyncio.gather(first, second)
        assert echo.asked == [["One", "echo One", "Two"]]
        assert [text for _, text in await said(history)] == ["One", "echo One", "Two", "echo Two"]

    async def test_a_run_that_was_killed_lets_go_in_time(
        self, history: History, clock: ManualClock
    ) -> None:
        """Until its lease ends it holds the session, which reads as idle from then on."""
        await history.store.claim_run(history.key("s1"), "killed", ttl=30)
        clock.advance(29)
        with pytest.raises(RunInProgressError):
            await history.run(helper()[0], "Hi", session="s1")
        assert (await history.Session.get("s1")).run_status == "running"
        clock.advance(2)
        assert (await history.Session.get("s1")).run_status == "idle"
        await history.run(helper()[0], "Hi", session="s1")
        assert await said(history) == [("user", "Hi"), ("assistant", "echo Hi")]

    async def test_overrides_are_kept_with_the_session(self, history: History) -> None:
        """They are merged into its execution config."""
        agent, _ = helper()
        with pytest.warns(UserWarning, match="session 's1'"):
            await history.run(agent, "Hi", session="s1", execution_params={"max_tokens": 5})
        with pytest.warns(UserWarning, match="session 's1'"):
            await history.run(agent, "Hi", session="s1", criteria="brief")
        config = (await history.Session.get("s1")).execution_config
        assert config is not None
        assert config.to_api_dict() == {"executionParams": {"maxTokens": 5}, "criteria": "brief"}
