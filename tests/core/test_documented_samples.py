"""The samples of agent_framework's page on sessions, each against historykit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from historykit import (
    Agent,
    AgentSession,
    BaseContextProvider,
    BaseHistoryProvider,
    Content,
    InMemoryHistoryProvider,
    Message,
    SessionContext,
    register_state_type,
)
from tests.core.scripted import ScriptedClient

pytestmark = pytest.mark.asyncio


class TestAgentSession:
    async def test_constructor(self) -> None:
        """A session is made with an id of its own and one of the service."""
        session = AgentSession(session_id="session-123", service_session_id="thread-abc")
        assert session.session_id == "session-123"
        assert session.service_session_id == "thread-abc"
        assert session.state == {}

    async def test_basic_usage(self) -> None:
        """A conversation is held, written as data, restored from it, and goes on."""
        client = ScriptedClient("Hi.", "Fine.", "Gladly.")
        session = AgentSession()
        agent = Agent(client=client, name="assistant")
        response1 = await agent.run("Hello", session=session)
        response2 = await agent.run("How are you?", session=session)
        assert [response1.text, response2.text] == ["Hi.", "Fine."]

        stored = json.dumps(session.to_dict())

        restored_session = AgentSession.from_dict(json.loads(stored))
        response3 = await agent.run("Continue conversation", session=restored_session)
        assert response3.text == "Gladly."
        assert restored_session.session_id == session.session_id
        assert client.asked[-1] == [
            "Hello",
            "Hi.",
            "How are you?",
            "Fine.",
            "Continue conversation",
        ]


class TestSessionContext:
    async def test_methods(self) -> None:
        """Messages, instructions and tools are added and read as the page shows."""

        def search_tool() -> None: ...

        def calculator_tool() -> None: ...

        provider = BaseContextProvider("rag")
        context = SessionContext(input_messages=[Message("user", "question")])
        context.extend_messages(
            source=provider, messages=[Message(role="system", text="Context info")]
        )
        context.extend_messages("temp", [Message("system", "left out")])
        context.extend_instructions(
            source_id="rag_provider", instructions="Use the following context: ..."
        )
        context.extend_tools(source_id="tool_provider", tools=[search_tool, calculator_tool])
        all_messages = context.get_messages(
            sources={"history", "rag"},
            exclude_sources={"temp"},
            include_input=True,
            include_response=True,
        )
        assert [message.text for message in all_messages] == ["Context info", "question"]
        assert context.instructions == ["Use the following context: ..."]
        assert context.tools == [search_tool, calculator_tool]
        assert list(context.context_messages) == ["rag", "temp"]


class TestContextProvider:
    async def test_my_context_provider(self) -> None:
        """A provider adds to the run before the model, and sees the response after it."""

        def tool() -> None: ...

        class MyContextProvider(BaseContextProvider):
            def __init__(self) -> None:
                super().__init__(source_id="my_provider")
                self.stored: list[str] = []

            async def before_run(
                self, *, agent: Any, session: Any, context: SessionContext, state: dict[str, Any]
            ) -> None:
                context.extend_messages(self, [Message("system", f"run {len(state)}")])
                context.extend_instructions(self.source_id, "Custom instructions")
                context.extend_tools(self.source_id, [tool])
                state[f"run {len(state)}"] = True

            async def after_run(
                self, *, agent: Any, session: Any, context: SessionContext, state: dict[str, Any]
            ) -> None:
                if context.response:
                    self.stored.append(context.response.text)

        provider = MyContextProvider()
        client, session = ScriptedClient("a", "b"), AgentSession()
        agent = Agent(client, context_providers=[provider])
        await agent.run("Hello", session=session)
        await agent.run("Hello", session=session)
        assert client.asked == [["run 0", "Hello"], ["run 1", "Hello"]]
        assert client.options[0].instructions == "Custom instructions"
        assert client.options[0].tools == (tool,)
        assert provider.stored == ["a", "b"]
        assert session.state["my_provider"] == {"run 0": True, "run 1": True}

    async def test_rag_provider(self) -> None:
        """A provider looks up documents for the question and puts them before it."""

        class RAGProvider(BaseContextProvider):
            def __init__(self, retriever: Any) -> None:
                super().__init__(source_id="rag")
                self.retriever = retriever

            async def before_run(
                self, *, agent: Any, session: Any, context: SessionContext, state: dict[str, Any]
            ) -> None:
                query = context.input_messages[-1].text if context.input_messages else ""
                docs = await self.retriever.retrieve(query)
                context_msgs = [Message(role="system", text=f"Context: {doc}") for doc in docs]
                context.extend_messages(self, context_msgs)

        class Retriever:
            documents = ("Oslo is in Norway", "Rome is in Italy")

            async def retrieve(self, query: str) -> list[str]:
                return [document for document in self.documents if document[:4] in query]

        client = ScriptedClient()
        agent = Agent(
            client=client, name="rag-assistant", context_providers=[RAGProvider(Retriever())]
        )
        await agent.run("Where is Oslo?")
        assert client.asked == [["Context: Oslo is in Norway", "Where is Oslo?"]]


class Database:
    """The connection of the page's sample: a query that gives rows, and an execute."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path)
        self.connection.execute(
            "CREATE TABLE IF NOT EXISTS messages"
            " (id INTEGER PRIMARY KEY, session_id TEXT, data TEXT)"
        )

    async def query(self, sql: str, *parameters: Any) -> list[tuple[str]]:
        return self.connection.execute(sql, parameters).fetchall()

    async def execute(self, sql: str, *parameters: Any) -> None:
        with self.connection:
            self.connection.execute(sql, parameters)


class DatabaseHistoryProvider(BaseHistoryProvider):
    """The page's sample, with the dicts as JSON, which a database can hold."""

    def __init__(self, db_connection: Database) -> None:
        super().__init__(source_id="db_history")
        self.db = db_connection

    async def get_messages(self, session_id: str | None, **kwargs: Any) -> list[Message]:
        if not session_id:
            return []
        rows = await self.db.query(
            "SELECT data FROM messages WHERE session_id = ? ORDER BY id", session_id
        )
        return [Message.from_dict(json.loads(data)) for (data,) in rows]

    async def save_messages(self, session_id: str | None, messages: Any, **kwargs: Any) -> None:
        if not session_id:
            return
        for msg in messages:
            await self.db.execute(
                "INSERT INTO messages (session_id, data) VALUES (?, ?)",
                session_id,
                json.dumps(msg.to_dict()),
            )


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "chat.db")
    yield database
    database.connection.close()


class TestHistoryProvider:
    async def test_my_history_provider(self) -> None:
        """A provider with just the two methods loads and saves."""

        class MyHistoryProvider(BaseHistoryProvider):
            async def get_messages(self, session_id: str | None, **kwargs: Any) -> list[Message]:
                return messages[:]

            async def save_messages(self, session_id: str | None, new: Any, **kwargs: Any) -> None:
                messages.extend(new)

        messages: list[Message] = []
        provider = MyHistoryProvider(
            source_id="my_history", load_messages=True, store_inputs=True, store_outputs=True
        )
        client = ScriptedClient("1", "2")
        agent = Agent(client, context_providers=[provider])
        await agent.run("a", session=AgentSession())
        await agent.run("b", session=AgentSession())
        assert client.asked == [["a"], ["a", "1", "b"]]

    async def test_database_history_provider(self, database: Database) -> None:
        """The page's provider remembers over a new agent and a new session object."""
        for text, asked in [("a", ["a"]), ("b", ["a", "echo a", "b"])]:
            client = ScriptedClient()
            agent = Agent(
                client=client,
                name="persistent-agent",
                context_providers=[DatabaseHistoryProvider(database)],
            )
            await agent.run(text, session=AgentSession(session_id="s1"))
            assert client.asked == [asked]
        rows = await database.query("SELECT DISTINCT session_id FROM messages")
        assert rows == [("s1",)]

    async def test_database_history_provider_without_a_session(self, database: Database) -> None:
        """Without a session id the page's provider loads nothing and saves nothing."""
        provider = DatabaseHistoryProvider(database)
        for session_id in (None, ""):
            await provider.save_messages(session_id, [Message("user", "a")])
            assert await provider.get_messages(session_id) == []
        assert await database.query("SELECT data FROM messages") == []

    async def test_database_history_provider_keeps_tool_calls(self, database: Database) -> None:
        """A turn with a call of a tool comes back from the database message for message."""

        def get_weather(city: str) -> str:
            return f"sunny in {city}"

        call = Content.from_function_call("c1", "get_weather", arguments='{"city": "Oslo"}')
        provider = DatabaseHistoryProvider(database)
        agent = Agent(
            ScriptedClient(call, "Sunny."), tools=[get_weather], context_providers=[provider]
        )
        response = await agent.run("Weather?", session=AgentSession(session_id="s1"))
        loaded = await provider.get_messages("s1")
        assert [message.to_dict() for message in loaded[1:]] == [
            message.to_dict() for message in response.messages
        ]

    async def test_database_history_provider_over_a_restart(self, tmp_path: Path) -> None:
        """What one connection saved, the next one loads."""
        for asked in (["a"], ["a", "echo a", "a"]):
            database, client = Database(tmp_path / "chat.db"), ScriptedClient()
            agent = Agent(client, context_providers=[DatabaseHistoryProvider(database)])
            await agent.run("a", session=AgentSession(session_id="s1"))
            database.connection.close()
            assert client.asked == [asked]


class TestInMemoryHistoryProvider:
    async def test_constructor(self) -> None:
        """The arguments that the page names are all optional."""
        provider = InMemoryHistoryProvider(
            source_id="in_memory", load_messages=True, store_inputs=True, store_outputs=True
        )
        assert provider.source_id == InMemoryHistoryProvider().source_id == "in_memory"

    async def test_explicitly_added(self) -> None:
        """A provider that was passed is the one that keeps the history."""
        session = AgentSession()
        agent = Agent(
            client=ScriptedClient(),
            name="assistant",
            context_providers=[InMemoryHistoryProvider()],
        )
        await agent.run("Hello", session=session)
        assert len(agent.context_providers) == 1
        assert len(session.state["in_memory"]["messages"]) == 2

    async def test_automatically_added(self) -> None:
        """Without any provider the history is in the session's data, under the source id."""
        session = AgentSession()
        agent = Agent(client=ScriptedClient("Hi."), name="assistant")
        response = await agent.run("Hello", session=session)
        assert response.text == "Hi."

        data = session.to_dict()
        assert "messages" not in data["state"]
        messages = data["state"]["in_memory"]["messages"]
        assert [message["contents"][0]["text"] for message in messages] == ["Hello", "Hi."]
        json.dumps(data)


async def test_register_state_type() -> None:
    """A model that was registered is restored from the data of a session."""

    class MyModel(BaseModel):
        value: str

        @classmethod
        def _get_type_identifier(cls) -> str:
            return "sample_model"

    register_state_type(MyModel)
    session = AgentSession()
    session.state["my_data"] = MyModel(value="test")
    data = session.to_dict()
    assert data["state"]["my_data"] == {"value": "test", "type": "sample_model"}
    restored = AgentSession.from_dict(data)
    assert isinstance(restored.state["my_data"], MyModel)
    assert restored.state["my_data"].value == "test"


async def test_a_model_registers_itself_when_it_is_written() -> None:
    """A model that was never registered is restored in the process that wrote it, by its name."""

    class SampleOfItsOwn(BaseModel):
        value: str

    session = AgentSession()
    session.state["my_data"] = SampleOfItsOwn(value="test")
    data = json.loads(json.dumps(session.to_dict()))
    assert data["state"]["my_data"]["type"] == "sampleofitsown"
    assert AgentSession.from_dict(data).state["my_data"] == SampleOfItsOwn(value="test")
