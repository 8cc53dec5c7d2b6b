from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from historykit import (
    AgentResponse,
    AgentSession,
    BaseContextProvider,
    Message,
    SessionContext,
    register_state_type,
)


class TestAgentSession:
    @pytest.mark.parametrize("given", [None, ""])
    def test_a_session_without_an_id_gets_a_random_one(self, given: str | None) -> None:
        """An id that is None or empty becomes a new UUID."""
        first, second = AgentSession(session_id=given), AgentSession(session_id=given)
        assert UUID(first.session_id).version == 4
        assert first.session_id != second.session_id

    def test_a_session_keeps_its_ids(self) -> None:
        """The id is read-only, the service's id can be set."""
        session = AgentSession(session_id="s", service_session_id="t")
        assert (session.session_id, session.service_session_id) == ("s", "t")
        session.service_session_id = "u"
        assert session.service_session_id == "u"
        with pytest.raises(AttributeError):
            session.session_id = "x"  # type: ignore[misc]

    def test_ids_are_keywords(self) -> None:
        """An id is not taken by position."""
        with pytest.raises(TypeError):
            AgentSession("s")  # type: ignore[misc]

    def test_the_state_is_new_and_can_be_replaced(self) -> None:
        """Each session starts with an empty dict of its own."""
        session = AgentSession()
        assert session.state == {}
        assert session.state is not AgentSession().state
        session.state = {"a": 1}
        assert session.to_dict()["state"] == {"a": 1}

    def test_to_dict_has_four_keys_in_order(self) -> None:
        """The dict has the type, both ids and the state; an id of None stays."""
        assert json.dumps(AgentSession(session_id="s").to_dict()) == (
            '{"type": "session", "session_id": "s", "service_session_id": null, "state": {}}'
        )

    def test_a_session_comes_back_from_json(self) -> None:
        """Ids and plain state are the same after a way through JSON."""
        session = AgentSession(session_id="s", service_session_id="t")
        session.state = {"p": {"n": 1, "l": [1, "a", None, True], "d": {"x": 1.5}}}
        restored = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
        assert restored.to_dict() == session.to_dict()

    def test_from_dict_needs_an_id_key(self) -> None:
        """A dict without a session id is a KeyError; an empty id becomes a new one."""
        with pytest.raises(KeyError, match="session_id"):
            AgentSession.from_dict({"type": "session"})
        assert len(AgentSession.from_dict({"session_id": ""}).session_id) == 36

    def test_from_dict_takes_little_and_ignores_more(self) -> None:
        """State and service id may be missing; the type and further keys are not looked at."""
        session = AgentSession.from_dict({"session_id": "s", "type": "x", "more": 1})
        assert session.to_dict() == AgentSession(session_id="s").to_dict()

    def test_from_dict_refuses_a_state_of_none(self) -> None:
        """A state that is None is an error and not an empty state."""
        with pytest.raises(AttributeError):
            AgentSession.from_dict({"session_id": "s", "state": None})

    def test_from_dict_leaves_the_data_alone(self) -> None:
        """The containers of the state are new ones, and the data is not changed."""
        data = {"session_id": "s", "state": {"a": {"l": [1]}}}
        session = AgentSession.from_dict(data)
        session.state["a"]["l"].append(2)
        assert data == {"session_id": "s", "state": {"a": {"l": [1]}}}

    def test_from_dict_makes_the_class_it_is_called_on(self) -> None:
        """A subclass restores itself."""

        class MySession(AgentSession):
            pass

        assert type(MySession.from_dict({"session_id": "s"})) is MySession

    def test_messages_in_the_state_are_restored(self) -> None:
        """Messages are written as plain data and come back as messages."""
        session = AgentSession()
        session.state["h"] = {"messages": [Message("user", "hi", author_name="bob")]}
        data = json.loads(json.dumps(session.to_dict()))
        [message] = AgentSession.from_dict(data).state["h"]["messages"]
        assert isinstance(message, Message)
        assert message.to_dict() == session.state["h"]["messages"][0].to_dict()

    def test_a_response_comes_back_as_a_dict_of_messages(self) -> None:
        """A response is no state type: its dict comes back, the messages in it as messages."""
        session = AgentSession()
        session.state["r"] = AgentResponse(messages=Message("assistant", "a"))
        restored = AgentSession.from_dict(session.to_dict()).state["r"]
        assert restored["type"] == "agent_response"
        assert isinstance(restored["messages"][0], Message)

    def test_a_registered_model_is_restored(self) -> None:
        """A pydantic model in the state comes back as the model."""

        class SessionPoint(BaseModel):
            x: int

        register_state_type(SessionPoint)
        session = AgentSession()
        session.state["p"] = [SessionPoint(x=1)]
        data = json.loads(json.dumps(session.to_dict()))
        assert AgentSession.from_dict(data).state["p"] == [SessionPoint(x=1)]

    def test_a_dict_that_looks_like_a_message_stays_a_dict(self) -> None:
        """A user's dict of the type message that is none does not make the session unreadable."""
        data = {"session_id": "s", "state": {"m": {"type": "message", "a": 1}}}
        with pytest.warns(RuntimeWarning, match="state.m"):
            session = AgentSession.from_dict(data)
        assert session.state == {"m": {"type": "message", "a": 1}}

    def test_strict_refuses_what_json_does_not_have(self) -> None:
        """With strict a set in the state is a TypeError that names its path."""
        session = AgentSession()
        session.state["a"] = {"b": {1}}
        with pytest.raises(TypeError, match=r"state\.a\.b"):
            session.to_dict(strict=True)
        with pytest.warns(RuntimeWarning, match=r"state\.a\.b"):
            assert session.to_dict()["state"] == {"a": {"b": {1}}}

    def test_the_repr_shows_the_id(self) -> None:
        """The repr names the session and shows nothing of its state."""
        session = AgentSession(session_id="s")
        session.state["k"] = "secret"
        assert repr(session) == "AgentSession(session_id='s')"


def context(**fields: Any) -> SessionContext:
    return SessionContext(input_messages=[Message("user", "question")], **fields)


class TestSessionContext:
    def test_everything_but_the_input_is_optional(self) -> None:
        """A context starts empty, and its input is required and passed by keyword."""
        empty = SessionContext(input_messages=[])
        assert (empty.session_id, empty.service_session_id) == (None, None)
        assert (empty.context_messages, empty.instructions, empty.tools) == ({}, [], [])
        assert (empty.options, empty.metadata, empty.response) == ({}, {}, None)
        with pytest.raises(TypeError):
            SessionContext()  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            SessionContext([])  # type: ignore[call-arg,misc]

    def test_filled_containers_are_kept(self) -> None:
        """A container that has something in it is the context's own from now on."""
        given: dict[str, Any] = {
            "context_messages": {"a": []},
            "instructions": ["i"],
            "tools": [len],
            "options": {"o": 1},
            "metadata": {"m": 1},
        }
        made = context(**given)
        for name, value in given.items():
            assert getattr(made, name) is value

    def test_empty_containers_are_replaced(self) -> None:
        """A container that is empty is not the one that the context fills."""
        metadata: dict[str, Any] = {}
        context(metadata=metadata).metadata["a"] = 1
        assert metadata == {}

    def test_the_response_is_read_only(self) -> None:
        """Providers read the response; the framework sets the private name."""
        made = context()
        response = AgentResponse()
        made._response = response
        assert made.response is response
        with pytest.raises(AttributeError):
            made.response = response  # type: ignore[misc]

    def test_messages_are_added_under_their_source(self) -> None:
        """Messages of a source are kept under its id, one call after the other."""
        made = context()
        made.extend_messages("rag", [Message("system", "a")])
        made.extend_messages("history", [])
        made.extend_messages("rag", [Message("system", "b")])
        assert list(made.context_messages) == ["rag", "history"]
        assert [message.text for message in made.context_messages["rag"]] == ["a", "b"]
        assert made.context_messages["history"] == []

    def test_messages_are_copied_and_attributed(self) -> None:
        """The copies name their source; the messages passed stay as they were."""
        made = context()
        message = Message("system", "a", additional_properties={"k": 1})
        made.extend_messages("rag", [message])
        [added] = made.context_messages["rag"]
        assert added is not message
        assert added.additional_properties == {"k": 1, "_attribution": {"source_id": "rag"}}
        added.additional_properties["l"] = 2
        assert message.additional_properties == {"k": 1}

    def test_the_contents_of_a_copy_are_shared(self) -> None:
        """The copies are shallow: contents are the very same objects."""
        made = context()
        message = Message("system", "a")
        made.extend_messages("rag", [message])
        assert made.context_messages["rag"][0].contents is message.contents

    def test_a_provider_as_source_names_its_type(self) -> None:
        """A source that is an object is attributed by its id and the name of its class."""
        made = context()
        made.extend_messages(source=BaseContextProvider("rag"), messages=[Message("system", "a")])
        [added] = made.context_messages["rag"]
        assert added.additional_properties["_attribution"] == {
            "source_id": "rag",
            "source_type": "BaseContextProvider",
        }

    def test_a_source_without_an_id_is_refused(self) -> None:
        """An object without a source id cannot be a source."""
        with pytest.raises(AttributeError, match="source_id"):
            context().extend_messages(object(), [])

    def test_an_attribution_that_is_there_stays(self) -> None:
        """A message that came from elsewhere keeps the source that it names."""
        made = context()
        first = {"_attribution": {"source_id": "first"}}
        made.extend_messages("second", [Message("user", "a", additional_properties=first)])
        [added] = made.context_messages["second"]
        assert added.additional_properties == first

    def test_messages_do_not_share_their_attribution(self) -> None:
        """Changing the attribution of one message leaves that of the next."""
        made = context()
        made.extend_messages("rag", [Message("system", "a"), Message("system", "b")])
        one, two = made.context_messages["rag"]
        one.additional_properties["_attribution"]["x"] = 1
        assert two.additional_properties["_attribution"] == {"source_id": "rag"}

    def test_instructions_are_one_flat_list(self) -> None:
        """One instruction or several are appended, an empty text as well."""
        made = context()
        made.extend_instructions("a", "one")
        made.extend_instructions("b", ["two", "three"])
        made.extend_instructions("c", [])
        made.extend_instructions("d", "")
        assert made.instructions == ["one", "two", "three", ""]

    def test_tools_are_marked_with_their_source(self) -> None:
        """A tool with additional properties gets the source there; others are added as they are."""

        class Tool:
            def __init__(self) -> None:
                self.additional_properties: dict[str, Any] = {"k": 1}

        made, tool = context(), Tool()
        made.extend_tools("search", [tool, len, tool])
        assert made.tools == [tool, len, tool]
        assert tool.additional_properties == {"k": 1, "context_source": "search"}

    def filled(self) -> SessionContext:
        made = context()
        for source in ("a", "b", "c"):
            made.extend_messages(source, [Message("system", source)])
        made._response = AgentResponse(messages=Message("assistant", "answer"))
        return made

    @pytest.mark.parametrize(
        ("arguments", "texts"),
        [
            ({}, ["a", "b", "c"]),
            ({"sources": {"a", "c"}}, ["a", "c"]),
            ({"sources": ["c", "a"]}, ["a", "c"]),
            ({"sources": set()}, []),
            ({"exclude_sources": {"b"}}, ["a", "c"]),
            ({"exclude_sources": ["b"]}, ["a", "c"]),
            ({"sources": {"a", "b"}, "exclude_sources": {"b"}}, ["a"]),
            ({"include_input": True}, ["a", "b", "c", "question"]),
            ({"include_response": True}, ["a", "b", "c", "answer"]),
            (
                {"sources": ["b"], "include_input": True, "include_response": True},
                ["b", "question", "answer"],
            ),
        ],
    )
    def test_messages_are_chosen(self, arguments: dict[str, Any], texts: list[str]) -> None:
        """Filters choose among context messages; input and response follow where asked for."""
        assert [m.text for m in self.filled().get_messages(**arguments)] == texts

    def test_chosen_messages_are_the_same_objects_in_a_new_list(self) -> None:
        """The list is the caller's, the messages are the context's."""
        made = self.filled()
        made.get_messages().clear()
        assert made.get_messages()[0] is made.context_messages["a"][0]

    def test_a_response_that_is_not_there_adds_nothing(self) -> None:
        """Asking for the response before there is one gives the rest."""
        assert context().get_messages(include_response=True) == []

    def test_a_run_carries_what_a_provider_puts_in(self) -> None:
        """There is a private place for what a provider needs again after the run."""
        made = context()
        made._carried["provider"] = 1
        assert context()._carried == {}
