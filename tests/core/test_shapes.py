from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from historykit import AgentResponse, Content, Message

SHAPES = Path(__file__).parent / "shapes"
VERSIONS = ["1.0.0rc6", "1.23.0"]


def shapes() -> Iterator[Any]:
    """Every content and every message in the recorded dicts of both versions."""
    for version in VERSIONS:
        recorded = json.loads((SHAPES / f"shapes_{version}.json").read_text())
        for name, shape in recorded.items():
            if name.startswith("_message"):
                yield pytest.param(shape, id=f"{version}-{name}")
            elif isinstance(shape, dict) and "content" in shape:
                message = {
                    "type": "message",
                    "role": "assistant",
                    "contents": [shape["content"]],
                    "additional_properties": {},
                }
                yield pytest.param(message, id=f"{version}-{name}")


ALL_SHAPES = list(shapes())


def written(value: Any) -> str:
    """A text that is equal only if keys and their order are."""
    return json.dumps(value, sort_keys=False)


def test_the_recorded_shapes_are_all_there() -> None:
    """Both versions have a recording, and it has the contents and messages that it had."""
    assert len(ALL_SHAPES) == 39 + 3 + 42 + 3


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_a_recorded_message_comes_back_equal(shape: dict[str, Any]) -> None:
    """A message that agent_framework wrote is written back equal, in the order of its keys."""
    assert written(Message.from_dict(shape).to_dict()) == written(shape)


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_a_recorded_content_comes_back_equal(shape: dict[str, Any]) -> None:
    """A content that agent_framework wrote is written back equal, in the order of its keys."""
    for content in shape["contents"]:
        assert written(Content.from_dict(content).to_dict()) == written(content)


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_a_recorded_message_comes_back_equal_through_a_response(shape: dict[str, Any]) -> None:
    """A message within a response is written back equal, in the order of its keys."""
    response = {"type": "agent_response", "messages": [shape], "additional_properties": {}}
    assert written(AgentResponse.from_dict(response).to_dict()) == written(response)


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_a_decoded_message_encodes_equal(shape: dict[str, Any]) -> None:
    """The way without copies, that the codec takes, gives the same dict."""
    assert written(Message._from_decoded(deepcopy(shape))._to_encode()) == written(shape)


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_a_recorded_message_survives_copies_and_pickling(shape: dict[str, Any]) -> None:
    """A deep copy and a pickle of a message are written equal to it."""
    message = Message.from_dict(shape)
    assert written(deepcopy(message).to_dict()) == written(shape)
    assert written(pickle.loads(pickle.dumps(message)).to_dict()) == written(shape)


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_unknown_fields_come_back_at_every_level(shape: dict[str, Any]) -> None:
    """A field of a later version is written back as it came, in the message and in a content."""
    later = {**deepcopy(shape), "later": {"a": [1, None, {"b": ()}]}}
    for content in later["contents"]:
        content["x.later"] = [{"type": "later", "y": None}]
    assert Message.from_dict(later).to_dict() == later


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_a_written_message_shares_nothing_with_the_message(shape: dict[str, Any]) -> None:
    """Changing the dict of a message at any depth leaves the message as it was."""
    message = Message.from_dict(deepcopy(shape))
    scramble(message.to_dict())
    assert message.to_dict() == shape


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_a_message_shares_nothing_with_the_dict_it_came_from(shape: dict[str, Any]) -> None:
    """Changing the dict that a message was made from at any depth leaves the message."""
    given = deepcopy(shape)
    message = Message.from_dict(given)
    scramble(given)
    assert message.to_dict() == shape


def scramble(value: Any) -> None:
    """Change every container within a value."""
    children = list(value.values() if isinstance(value, dict) else value)
    for child in children:
        if isinstance(child, dict | list):
            scramble(child)
    value.clear()
