from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from historykit import AgentResponse, AgentResponseUpdate, Content, Message


def text_of(response: AgentResponse) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in response.messages]


class TestResponse:
    def test_a_response_takes_one_message_or_several(self) -> None:
        """A message alone is the only one; dicts become messages; without any there are none."""
        message = Message("assistant", "a")
        assert AgentResponse(messages=message).messages == [message]
        assert text_of(AgentResponse(messages=[message, message.to_dict()])) == [
            ("assistant", "a"),
            ("assistant", "a"),
        ]
        assert AgentResponse().messages == []

    def test_the_text_joins_the_messages_without_a_separator(self) -> None:
        """The text of a response is the texts of its messages, one after the other."""
        response = AgentResponse(messages=[Message("assistant", "a"), Message("assistant", "b")])
        assert response.text == "ab"

    def test_the_requests_for_the_user_are_found(self) -> None:
        """Contents that wait for the user are listed from all messages."""
        request = Content("oauth_consent_request", user_input_request=True)
        messages = [Message("assistant", ["a", request]), Message("tool", [request])]
        assert AgentResponse(messages=messages).user_input_requests == [request, request]

    def test_a_response_comes_back_from_its_dict(self) -> None:
        """All fields that are not the run's own are written and read back, unknown ones too."""
        response = AgentResponse(
            messages=Message("assistant", "a"),
            response_id="r",
            agent_id="g",
            created_at="2026-01-01",
            conversation_id="c",
            usage_details={"total_token_count": 3},
            continuation_token={"t": 1},
            additional_properties={"k": [1]},
        )
        data = {**response.to_dict(), "later": [1]}
        assert AgentResponse.from_dict(data).to_dict() == data

    def test_what_belongs_to_the_run_is_not_written(self) -> None:
        """The value, the format and the raw representation stay with the object."""
        response = AgentResponse(value=1, response_format=int, raw_representation=object())
        assert (response.value, response.response_format) == (1, int)
        assert response.raw_representation is not None
        assert json.dumps(response.to_dict()) == json.dumps(
            {"type": "agent_response", "messages": [], "additional_properties": {}}
        )

    def test_keys_can_be_left_out_and_nones_written(self) -> None:
        """Excluded keys are left out at every level; exclude_none=False writes what is not set."""
        response = AgentResponse(messages=Message("assistant"))
        assert response.to_dict(exclude={"additional_properties", "role"}) == {
            "type": "agent_response",
            "messages": [{"type": "message", "contents": []}],
        }
        assert response.to_dict(exclude_none=False)["response_id"] is None

    def test_the_dict_shares_nothing_with_the_response(self) -> None:
        """Changing the dict leaves the response as it was, in what it does not know as well."""
        data = {"messages": [], "additional_properties": {"k": []}, "later": []}
        response = AgentResponse.from_dict(data)
        written = response.to_dict()
        written["later"].append(1)
        written["additional_properties"]["k"].append(1)
        data["later"].append(1)
        assert response.to_dict()["later"] == []
        assert response.additional_properties == {"k": []}

    def test_the_additional_properties_given_are_copied(self) -> None:
        """The dict that was passed is not the one that the response changes."""
        given = {"a": 1}
        AgentResponse(additional_properties=given).additional_properties["b"] = 2
        assert given == {"a": 1}

    def test_another_type_is_refused(self) -> None:
        """A dict of another type is an error that names both."""
        with pytest.raises(ValueError, match=r"'message'.*'agent_response'"):
            AgentResponse.from_dict({"type": "message"})

    def test_the_repr_does_not_show_the_text(self) -> None:
        """What the model said does not get into a log by way of a repr."""
        response = AgentResponse(messages=Message("assistant", "secret"))
        assert repr(response) == "AgentResponse([Message('assistant', [text])])"


def updates(*pieces: Any, **fields: Any) -> list[AgentResponseUpdate]:
    return [AgentResponseUpdate(contents=piece, **fields) for piece in pieces]


class TestUpdates:
    def test_a_piece_cannot_be_changed(self) -> None:
        """A piece is a value: its fields cannot be set."""
        with pytest.raises(FrozenInstanceError):
            AgentResponseUpdate().role = "user"  # type: ignore[misc]

    def test_texts_that_follow_each_other_become_one(self) -> None:
        """The pieces of a text are one text content in the end."""
        response = AgentResponse.from_updates(updates("Hel", "lo", ["", " you"]))
        assert response.messages[0].contents == [Content.from_text("Hello you")]
        assert text_of(response) == [("assistant", "Hello you")]

    def test_other_contents_part_texts(self) -> None:
        """A content between texts keeps them apart, and stays in its place."""
        error = Content.from_error("no")
        response = AgentResponse.from_updates(updates("a", [error], "b"))
        assert response.messages[0].contents == [
            Content.from_text("a"),
            error,
            Content.from_text("b"),
        ]

    def test_joining_texts_keeps_what_they_carry(self) -> None:
        """Annotations are put together, and so are additional and unknown properties."""
        pieces = [
            {"type": "text", "text": "a", "annotations": [{"n": 1}], "x": 1},
            {"type": "text", "text": None, "additional_properties": {"k": 1}},
            {"type": "text", "text": "b", "annotations": [{"n": 2}]},
        ]
        response = AgentResponse.from_updates(updates(*pieces))
        assert response.messages[0].contents[0].to_dict() == {
            "type": "text",
            "text": "ab",
            "annotations": [{"n": 1}, {"n": 2}],
            "x": 1,
            "additional_properties": {"k": 1},
        }

    def test_the_pieces_are_left_as_they_were(self) -> None:
        """Joining changes no content that was handed out."""
        pieces = updates("a", "b")
        AgentResponse.from_updates(pieces)
        assert [piece.text for piece in pieces] == ["a", "b"]

    def test_reasoning_is_joined_by_its_id(self) -> None:
        """Pieces of one reasoning become one, those of another stay apart."""
        pieces = [
            Content.from_text_reasoning("a", id="1"),
            Content.from_text_reasoning("b", protected_data="enc"),
            Content.from_text_reasoning("c", id="2"),
        ]
        contents = AgentResponse.from_updates(updates(*pieces)).messages[0].contents
        assert [content.text for content in contents] == ["ab", "c"]
        assert contents[0].protected_data == "enc"

    def test_the_arguments_of_a_call_are_joined(self) -> None:
        """The pieces of a call's arguments become one text; another call stays apart."""
        pieces = [
            Content.from_function_call("c1", "f", arguments='{"a"'),
            Content.from_function_call("", "", arguments=": 1}"),
            Content.from_function_call("c2", "f", arguments="{}"),
            Content.from_function_call("c2", "f", arguments={"a": 1}),
        ]
        contents = AgentResponse.from_updates(updates(*pieces)).messages[0].contents
        assert [(c.call_id, c.name, c.arguments) for c in contents] == [
            ("c1", "f", '{"a": 1}'),
            ("c2", "f", "{}"),
            ("c2", "f", {"a": 1}),
        ]

    def test_another_role_or_id_begins_a_message(self) -> None:
        """A piece with a role or a message id of its own begins a message, others continue it."""
        pieces = [
            *updates("a", role="assistant", message_id="m1"),
            *updates("b"),
            *updates("c", message_id="m2", author_name="bob"),
            *updates("d", role="tool"),
        ]
        response = AgentResponse.from_updates(pieces)
        assert text_of(response) == [("assistant", "ab"), ("assistant", "c"), ("tool", "d")]
        assert [message.message_id for message in response.messages] == ["m1", "m2", None]
        assert response.messages[1].author_name == "bob"

    def test_a_role_that_says_the_default_continues(self) -> None:
        """A first piece without a role is the assistant's, and so is a second that says so."""
        response = AgentResponse.from_updates([*updates("a"), *updates("b", role="assistant")])
        assert text_of(response) == [("assistant", "ab")]

    def test_a_whole_message_stays_itself(self) -> None:
        """A piece that is a whole message is that object, and parts the pieces around it."""
        message = Message("assistant", "b", additional_properties={"k": 1})
        pieces = [*updates("a"), AgentResponseUpdate.from_message(message), *updates("c")]
        response = AgentResponse.from_updates(pieces)
        assert text_of(response) == [("assistant", "a"), ("assistant", "b"), ("assistant", "c")]
        assert response.messages[1] is message

    def test_usage_is_added_up_and_not_kept_as_a_content(self) -> None:
        """Counts of usage go into the response; a piece with nothing else makes no message."""
        pieces = updates(
            Content("usage", usage_details={"total": 1, "model": "a"}),
            Content("usage"),
            Content("usage", usage_details={"total": 2.5, "model": "b"}),
        )
        response = AgentResponse.from_updates(pieces)
        assert response.usage_details == {"total": 3.5, "model": "b"}
        assert response.messages == []

    def test_the_last_of_each_id_counts(self) -> None:
        """The ids of the response are the last ones that came, its properties all of them."""
        pieces = [
            *updates("a", response_id="r1", conversation_id="c1", additional_properties={"k": 1}),
            *updates("b", response_id="r2", agent_id="g", created_at="t"),
            *updates("c", additional_properties={"l": 2}),
        ]
        response = AgentResponse.from_updates(pieces)
        assert (response.response_id, response.conversation_id) == ("r2", "c1")
        assert (response.agent_id, response.created_at) == ("g", "t")
        assert response.additional_properties == {"k": 1, "l": 2}

    def test_no_pieces_make_an_empty_response(self) -> None:
        """A stream without anything in it is a response without messages."""
        response = AgentResponse.from_updates([])
        assert (response.messages, response.usage_details) == ([], None)
