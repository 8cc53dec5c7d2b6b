from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from historykit.chat_completions import NOTE, from_chat_completions, to_chat_completions
from historykit.codec import MessageCodec
from historykit.contents import Content
from historykit.errors import InvalidRequestError
from historykit.messages import Message

CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
DATA = "data:image/png;base64,iVBORw0KGgo="

USUAL: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "Grüße 👋\n"},
    {"role": "user", "content": ""},
    {"role": "user", "content": "Hi", "name": "ada"},
    {"role": "assistant", "content": "Hello"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "assistant", "content": "Let me see", "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "assistant", "content": None},
    {"role": "tool", "content": "a tree", "tool_call_id": "call_1"},
    {"role": "tool", "content": "a tree", "tool_call_id": "call_1", "name": "look"},
    {"role": "tool", "content": "", "tool_call_id": "call_1"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "user", "content": [{"type": "text", "text": "What is it?"}, PICTURE]},
    {"role": "user", "content": [PICTURE]},
    {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": DATA, "detail": "low"}}],
    },
]

UNUSUAL: list[dict[str, Any]] = [
    {"role": "tool", "tool_call_id": "call_1"},
    {"role": "assistant", "reasoning_content": "because", "annotations": [], "id": "m1"},
    {"role": "assistant"},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "assistant", "content": "a", "tool_calls": None, "refusal": None, "audio": None},
    {"role": "assistant", "content": "a", "tool_calls": []},
    {"role": "assistant", "content": "a", "id": "m1", "reasoning_content": "because"},
    {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "x"}}],
    },
    {"role": "assistant", "content": None, "tool_calls": [{**CALL, "index": 0}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"name": "look", "arguments": {"at": 1}}}],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": None, "type": "function", "function": {"name": "look"}}],
    },
    {"role": "function", "content": "a tree", "name": "look"},
    {"role": "tool", "content": "a tree", "tool_call_id": None, "name": None},
    {"role": "tool", "content": None, "tool_call_id": "call_1"},
    {"role": "tool", "content": [], "tool_call_id": "call_1"},
    {"role": "tool", "content": [{"type": "text", "text": "a tree"}], "tool_call_id": "call_1"},
    {"role": "user", "content": []},
    {"role": "user", "content": [{"type": "text", "text": "alone"}]},
    {
        "role": "user",
        "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
    },
    {"role": "user", "content": [{"type": "image_url", "image_url": "https://example.org/a.png"}]},
    {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": DATA, "size": 3}, "x": 1}],
    },
    {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}],
    },
    {"role": "user", "content": [{"type": "file", "file": {"file_id": "file_1"}}]},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    {"role": "user", "content": [{"type": "made_up", "additional_properties": {}}]},
    {"role": "user", "content": [{"type": "made_up", "additional_properties": {"a": 1}}]},
    {
        "role": "user",
        "content": "a",
        "type": "message",
        "additional_properties": {"b": [1.0, True]},
    },
]

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
parts = st.fixed_dictionaries(
    {"type": st.just("text"), "text": st.text()}, optional={"detail": values}
) | st.fixed_dictionaries(
    {"type": st.sampled_from(["image_url", "refusal", "uri", "data", "file"])},
    optional={"image_url": values, "text": values, "uri": st.text(), "media_type": st.text()},
)
calls = st.fixed_dictionaries(
    {}, optional={"id": values, "type": values, "function": values, "custom": values}
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
    optional={
        "content": st.none() | st.text() | st.lists(parts, max_size=3),
        "name": st.none() | st.text(),
        "tool_call_id": st.none() | st.text(),
        "tool_calls": st.none() | st.lists(calls, max_size=2),
        "refusal": values,
    },
)


def trip(message: dict[str, Any]) -> list[dict[str, Any]]:
    """What comes back after the way there, through the encoding of a store, and back."""
    codec = MessageCodec()
    stored = codec.encode(from_chat_completions(message).to_dict())
    return to_chat_completions(Message.from_dict(codec.decode(stored)))


@pytest.mark.parametrize("message", USUAL)
def test_a_usual_message_comes_back_without_a_note(message: dict[str, Any]) -> None:
    """What the API documents has a place of its own in a message, and comes back equal."""
    assert NOTE not in str(from_chat_completions(message).to_dict())
    assert trip(message) == [message]


@pytest.mark.parametrize("message", UNUSUAL)
def test_an_unusual_message_comes_back_all_the_same(message: dict[str, Any]) -> None:
    """Fields of a vendor, explicit nulls and odd shapes come back equal."""
    assert trip(message) == [message]


@given(messages)
def test_any_message_comes_back_equal(message: dict[str, Any]) -> None:
    """Whatever stands where the API leaves room comes back as it was."""
    (back,) = trip(message)
    assert json.dumps(back, sort_keys=True) == json.dumps(message, sort_keys=True)


def test_the_dict_is_copied_and_left_alone() -> None:
    """Neither way shares anything with what it was given, or changes it."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": [{"type": "made_up", "x": []}],
        "extra": {"a": []},
    }
    before = deepcopy(message)
    converted = from_chat_completions(message)
    kept = deepcopy(converted.to_dict())
    (back,) = to_chat_completions(converted)
    back["extra"]["a"].append(1)
    back["content"][0]["x"].append(1)
    assert message == before
    message["extra"]["a"].append(1)
    message["content"][0]["x"].append(1)
    assert converted.to_dict() == kept


def test_a_call_and_its_result_are_the_contents_of_an_agent() -> None:
    """A call of a function and the answer to it are linked as an agent's own are."""
    call = from_chat_completions({"role": "assistant", "content": None, "tool_calls": [CALL]})
    answer = from_chat_completions({"role": "tool", "content": "a tree", "tool_call_id": "call_1"})
    assert call.contents == [Content.from_function_call("call_1", "look", arguments='{"at": 1}')]
    assert answer.contents == [Content.from_function_result("call_1", result="a tree")]


def test_a_picture_is_a_content_with_its_media_type() -> None:
    """A data URI says what it is; of a link only that it is an image is known."""
    parts = [{"type": "image_url", "image_url": {"url": DATA, "detail": "low"}}, PICTURE]
    inline, link = from_chat_completions({"role": "user", "content": parts}).contents
    assert (inline.type, inline.media_type, inline.uri) == ("data", "image/png", DATA)
    assert inline.additional_properties == {"detail": "low"}
    assert (link.type, link.media_type) == ("uri", "image/*")


def test_the_name_is_the_authors() -> None:
    """`name` becomes the author's name."""
    message = {"role": "user", "content": "Hi", "name": "ada"}
    assert from_chat_completions(message).author_name == "ada"


def test_a_text_in_a_list_is_kept_once() -> None:
    """The note says that there was a list, and does not repeat what is in it."""
    message = {"role": "user", "content": [{"type": "text", "text": "alone"}]}
    assert from_chat_completions(message).additional_properties == {NOTE: {"parts": True}}


def test_several_results_are_several_messages() -> None:
    """A message of an agent with the results of two calls is two messages of the API."""
    results = [Content.from_function_result(f"call_{number}", result=number) for number in (1, 2)]
    assert to_chat_completions(Message("tool", results)) == [
        {"role": "tool", "content": "1", "tool_call_id": "call_1"},
        {"role": "tool", "content": "2", "tool_call_id": "call_2"},
    ]


def test_a_content_without_a_form_there_is_a_part() -> None:
    """A content that only an agent knows becomes a part that is its own dict."""
    message = Message("assistant", [Content.from_text_reasoning(text="hm"), "yes"])
    assert to_chat_completions(message) == [
        {
            "role": "assistant",
            "content": [{"type": "text_reasoning", "text": "hm"}, {"type": "text", "text": "yes"}],
        }
    ]


def test_a_result_without_items_is_its_text() -> None:
    """A function result as older versions wrote it, without items, gives its result."""
    old = {"type": "function_result", "call_id": "c", "result": 5}
    message = Message.from_dict({"role": "tool", "contents": [old]})
    assert to_chat_completions(message) == [{"role": "tool", "content": "5", "tool_call_id": "c"}]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("hello", "a message must be an object; it is text"),
        (None, "a message must be an object; it is missing"),
        ({"content": "a"}, "role must be text; it is missing"),
        ({"role": "", "content": "a"}, "role must be text; it is missing"),
        ({"role": 5}, "role must be text; it is int"),
        ({"role": "user", "content": 5}, "content must be text; it is int"),
        ({"role": "user", "content": {}}, "content must be text; it is an object"),
        ({"role": "user", "content": ["a"]}, "content[0] must be an object; it is text"),
        ({"role": "user", "content": [{}]}, "content[0].type must be text; it is missing"),
        (
            {"role": "user", "content": [{"type": "text"}]},
            "content[0].text must be text; it is missing",
        ),
        (
            {"role": "user", "content": [{"type": "function_call"}]},
            "content[0] is a function_call; it belongs in tool_calls or tool_call_id",
        ),
        (
            {"role": "user", "contnet": "hi"},
            "a message needs content or tool_calls, and this one has none, but 'contnet'; "
            "did you mean 'content'?",
        ),
        (
            {"role": "user", "text": "hi"},
            "a message needs content or tool_calls, and this one has none; "
            "Message.from_dict takes one with contents or text",
        ),
        ({"role": "user", "name": []}, "name must be text; it is a list"),
        ({"role": "tool", "tool_call_id": 5}, "tool_call_id must be text; it is int"),
        (
            {"role": "assistant", "tool_calls": {"a": 1}},
            "tool_calls must be a list; it is an object",
        ),
        ({"role": "assistant", "tool_calls": [5]}, "tool_calls[0] must be an object; it is int"),
    ],
)
def test_what_is_no_message_is_refused(message: Any, reason: str) -> None:
    """The error names the place and what should be there."""
    with pytest.raises(InvalidRequestError) as caught:
        from_chat_completions(message)
    assert str(caught.value) == reason
