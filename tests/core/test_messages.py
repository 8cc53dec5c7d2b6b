from __future__ import annotations

import json
import pickle
import weakref
from copy import copy, deepcopy
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from historykit import Content, Message

HI = {"type": "text", "text": "hi", "additional_properties": {}}


def test_a_message_writes_its_fields_in_the_fixed_order() -> None:
    """All fields are written in agent_framework's order, the additional properties always."""
    message = Message(
        "user", ["hi"], author_name="bob", message_id="m1", additional_properties={"a": {"b": 1}}
    )
    assert json.dumps(message.to_dict()) == json.dumps(
        {
            "type": "message",
            "role": "user",
            "contents": [HI],
            "author_name": "bob",
            "message_id": "m1",
            "additional_properties": {"a": {"b": 1}},
        }
    )


def test_a_message_without_anything_writes_the_smallest_dict() -> None:
    """Fields that were never set are not written."""
    assert Message("user").to_dict() == {
        "type": "message",
        "role": "user",
        "contents": [],
        "additional_properties": {},
    }


@pytest.mark.parametrize(
    "contents",
    ["hi", ["hi"], HI, [HI], MappingProxyType(HI), Content.from_text("hi"), ("hi", None)],
)
def test_a_message_takes_contents_in_many_forms(contents: Any) -> None:
    """A text, a content, a dict, or several of them, make contents; None makes none."""
    assert Message("user", contents).to_dict()["contents"] == [HI]


def test_a_bare_text_is_one_content() -> None:
    """A text as contents is one text item and not an item for each letter."""
    assert Message("user", "hello").contents == [Content.from_text("hello")]


def test_text_is_appended_after_the_contents() -> None:
    """The keyword text is one more text content, at the end."""
    message = Message("user", ["a"], text="b")
    assert [content.text for content in message.contents] == ["a", "b"]
    assert Message(role="system", text="c").text == "c"


def test_contents_of_another_type_are_refused() -> None:
    """What is neither text nor content nor dict is an error that names its type."""
    with pytest.raises(TypeError, match="int"):
        Message("user", [3])  # type: ignore[list-item]


@pytest.mark.parametrize("contents", [42, 0, True])
def test_contents_that_are_none_are_named(contents: Any) -> None:
    """What is neither a content nor a list of them is refused, with what would be accepted."""
    with pytest.raises(TypeError, match=r"the contents of a message are a text, .* not (int|bool)"):
        Message("user", contents)


def test_a_wrong_content_dict_is_refused() -> None:
    """The error of a content without a type is not swallowed."""
    with pytest.raises(ValueError, match="type"):
        Message("user", [{"text": "a"}])


def test_a_content_object_is_kept_as_it_is() -> None:
    """The message holds the very content that was passed, in a list of its own."""
    given = [Content.from_text("a")]
    message = Message("user", given)
    assert message.contents[0] is given[0]
    assert message.contents is not given


def test_a_role_is_not_checked() -> None:
    """Any role is stored as given, and can be changed."""

    class Role(StrEnum):
        JUDGE = "judge"

    message = Message(Role.JUDGE)
    assert message.role is Role.JUDGE
    message.role = "user"
    assert message.to_dict()["role"] == "user"


def test_the_text_of_a_message_joins_its_text_contents() -> None:
    """The text is that of all text contents with a space between; others do not count."""
    message = Message("user", ["a", Content.from_error("no"), "", "b"])
    assert message.text == "a  b"


def test_a_text_content_without_text_does_no_harm() -> None:
    """A text content whose text is None adds nothing to the text of the message."""
    message = Message("user", [Content("text"), "a", {"type": "text", "text": None}])
    assert message.text == "a"


def test_messages_are_compared_by_identity() -> None:
    """Two messages of the same content are two messages, and can be in a set."""
    assert Message("user", "a") != Message("user", "a")
    assert len({Message("user", "a"), Message("user", "a")}) == 2


def test_a_message_can_be_referred_to_weakly() -> None:
    """A message works as the key of a weak dictionary."""
    message = Message("user", "a")
    assert weakref.ref(message)() is message


def test_extra_attributes_are_refused() -> None:
    """A misspelt attribute is an error instead of a field that is lost."""
    with pytest.raises(AttributeError):
        Message("user").auther_name = "bob"  # type: ignore[attr-defined]


def test_optional_fields_can_be_set_and_removed() -> None:
    """Setting the author or the id writes it in its place, and None removes it."""
    message = Message.from_dict({"role": "user", "later": 1})
    assert (message.author_name, message.message_id) == (None, None)
    message.message_id = "m"
    message.author_name = "bob"
    assert list(message.to_dict()) == [
        "type",
        "role",
        "contents",
        "author_name",
        "message_id",
        "additional_properties",
        "later",
    ]
    message.author_name = None
    message.message_id = None
    assert not {"author_name", "message_id"} & message.to_dict().keys()


def test_the_additional_properties_given_are_copied_one_level() -> None:
    """The message has a dict of its own, with the values that were passed."""
    given: dict[str, Any] = {"k": [1]}
    message = Message("user", additional_properties=given)
    message.additional_properties["a"] = 1
    assert given == {"k": [1]}
    assert message.additional_properties["k"] is given["k"]


def test_additional_properties_can_be_replaced() -> None:
    """Assigning a dict uses it, and None empties it."""
    message = Message("user")
    message.additional_properties = {"a": 1}
    assert message.to_dict()["additional_properties"] == {"a": 1}
    message.additional_properties = None
    assert message.additional_properties == {}


def test_contents_can_be_changed_in_every_way() -> None:
    """Contents that are added later are written, texts and dicts among them."""
    message = Message("user", "a")
    message.contents.append("b")  # type: ignore[arg-type]
    message.contents.append(HI)  # type: ignore[arg-type]
    assert message.text == "a b hi"
    assert [content["text"] for content in message.to_dict()["contents"]] == ["a", "b", "hi"]
    message.contents = None  # type: ignore[assignment]
    assert message._to_encode()["contents"] == []


class TestFromDict:
    @pytest.mark.parametrize(
        "shape",
        [
            {"role": "user", "contents": ["hi"]},
            {"type": "message", "role": "user", "contents": [HI], "additional_properties": None},
            {"role": "user", "contents": [{"type": "text", "text": "hi"}]},
            {"role": "user", "contents": [None, HI]},
            {"role": "user", "text": "hi"},
            {"role": "user", "contents": None, "text": "hi"},
            {"role": "user", "contents": [Content.from_text("hi")]},
        ],
    )
    def test_older_and_looser_shapes_are_accepted(self, shape: dict[str, Any]) -> None:
        """Whatever way older versions and other hands wrote a message, it reads the same."""
        assert Message.from_dict(shape).to_dict() == Message("user", "hi").to_dict()
        assert Message._from_decoded(deepcopy(shape)).to_dict() == Message("user", "hi").to_dict()

    def test_a_legacy_text_comes_after_the_contents(self) -> None:
        """The key text of older dicts is one more content, and no key of what is written."""
        message = Message.from_dict({"role": "user", "contents": ["a"], "text": "b"})
        assert message.text == "a b"
        assert "text" not in message.to_dict()

    def test_contents_of_none_are_empty(self) -> None:
        """A message whose contents are None has none."""
        assert Message.from_dict({"role": "user", "contents": None}).contents == []

    def test_another_type_is_refused(self) -> None:
        """A dict of another type is an error that names both."""
        with pytest.raises(ValueError, match=r"'session'.*'message'"):
            Message.from_dict({"type": "session", "role": "user"})

    def test_a_missing_role_is_refused(self) -> None:
        """A message without a role is a TypeError, as it is for the constructor."""
        with pytest.raises(TypeError, match="role"):
            Message.from_dict({"type": "message", "a": 1})

    def test_only_a_mapping_is_a_message(self) -> None:
        """A list is no message."""
        with pytest.raises(TypeError, match="list"):
            Message.from_dict([])  # type: ignore[arg-type]

    def test_the_type_is_written_first(self) -> None:
        """The type is put in front, wherever it was."""
        message = Message.from_dict({"role": "user", "contents": [], "type": "message"})
        assert next(iter(message.to_dict())) == "type"

    def test_the_dict_is_copied(self) -> None:
        """Changing the message leaves the dict that it was made from as it was."""
        content = Content.from_text("hi")
        shape: dict[str, Any] = {
            "role": "user",
            "contents": [deepcopy(HI), content],
            "additional_properties": {"k": [1]},
        }
        message = Message.from_dict(shape)
        for item in message.contents:
            item.text = "changed"
        message.additional_properties["k"].append(2)
        assert shape["contents"][0] == HI
        assert content.text == "hi"
        assert shape["additional_properties"] == {"k": [1]}

    @pytest.mark.parametrize(
        ("shape", "error"),
        [
            ({"type": "other", "role": "user", "contents": [], "additional_properties": {}}, "o"),
            ({"type": "message", "contents": [], "additional_properties": {}}, "role"),
            ({"type": "message", "role": "user", "contents": [3]}, "int"),
            (
                {
                    "type": "message",
                    "role": "user",
                    "contents": [{"type": 3}],
                    "additional_properties": {},
                },
                "type",
            ),
        ],
    )
    def test_a_decoded_dict_is_checked_too(self, shape: dict[str, Any], error: str) -> None:
        """The way without copies refuses what is no message, as the other one does."""
        with pytest.raises((TypeError, ValueError), match=error):
            Message._from_decoded(shape)

    def test_a_decoded_dict_is_adopted(self) -> None:
        """The way without copies takes the dict itself, and makes its contents at once."""
        shape = Message("user", "hi").to_dict()
        (item,) = shape["contents"]
        message = Message._from_decoded(shape)
        assert message._data is shape
        assert message.contents[0]._data is item
        assert message.raw_representation is None


class TestToDict:
    def test_excluded_keys_are_left_out_at_both_levels(self) -> None:
        """Excluded keys are left out of the message and of its contents."""
        data = Message("user", "hi").to_dict(exclude={"additional_properties"})
        assert data == {
            "type": "message",
            "role": "user",
            "contents": [{"type": "text", "text": "hi"}],
        }

    def test_an_explicit_none_stays_unless_it_is_excluded(self) -> None:
        """A None that came with a dict is written back, but not with exclude_none."""
        shape = {
            "type": "message",
            "role": "user",
            "contents": [{**HI, "hosted": None}],
            "author_name": None,
            "additional_properties": {},
            "later": None,
        }
        message = Message.from_dict(shape)
        assert message.to_dict() == shape
        assert message.to_dict(exclude_none=True) == Message("user", "hi").to_dict()

    def test_exclude_none_false_writes_the_fields_that_are_not_set(self) -> None:
        """With exclude_none=False the author and the id are written as None, in their place."""
        assert json.dumps(Message("user", "hi").to_dict(exclude_none=False)) == json.dumps(
            {
                "type": "message",
                "role": "user",
                "contents": [HI],
                "author_name": None,
                "message_id": None,
                "additional_properties": {},
            }
        )

    def test_private_and_raw_values_are_not_written(self) -> None:
        """The client's own object is not part of the dict, private properties are."""
        message = Message(
            "user", additional_properties={"_excluded": True}, raw_representation=object()
        )
        assert message.raw_representation is not None
        assert message.to_dict() == {
            "type": "message",
            "role": "user",
            "contents": [],
            "additional_properties": {"_excluded": True},
        }

    def test_values_that_json_does_not_have_are_kept(self) -> None:
        """Dates, decimals, tuples and objects are not dropped or turned into texts."""
        values = {"t": datetime.now(UTC), "d": Decimal(1), "p": (1, 2), "o": object()}
        assert Message("user", additional_properties=values).to_dict()["additional_properties"] == (
            values
        )

    def test_the_way_without_copies_shares_its_values(self) -> None:
        """What the encoder gets is the message's own values in a dict of its own."""
        message = Message("user", "hi")
        data = message._to_encode()
        assert data == message.to_dict()
        assert data["contents"][0] is message.contents[0]._data
        data["role"] = "tool"
        assert message.role == "user"


def test_a_message_crosses_json() -> None:
    """A message written as JSON reads back equal, with the options of the json module."""
    message = Message("user", ["hï"], message_id="m")
    text = message.to_json(ensure_ascii=False)
    assert "hï" in text
    assert Message.from_json(text).to_dict() == message.to_dict()


class TestCopies:
    def test_a_copy_shares_its_contents(self) -> None:
        """A shallow copy has fields of its own and the contents of the original."""
        raw = object()
        message = Message("user", "hi", raw_representation=raw)
        clone = copy(message)
        clone.author_name = "bob"
        assert message.author_name is None
        assert clone.contents is message.contents
        assert clone.additional_properties is message.additional_properties
        assert clone.raw_representation is raw

    def test_a_deep_copy_shares_the_raw_representation_alone(self) -> None:
        """A deep copy has contents of its own and the same raw representation."""
        raw = object()
        message = Message("user", "hi", additional_properties={"k": []}, raw_representation=raw)
        clone = deepcopy(message)
        clone.contents[0].text = "changed"
        clone.additional_properties["k"].append(1)
        assert message.to_dict() == Message("user", "hi", additional_properties={"k": []}).to_dict()
        assert clone.raw_representation is raw

    def test_a_pickle_leaves_the_raw_representation_out(self) -> None:
        """A message can be pickled whatever its raw representation is."""
        message = Message("user", "hi", raw_representation=lambda: None)
        restored = pickle.loads(pickle.dumps(message))
        assert restored.to_dict() == message.to_dict()
        assert restored.raw_representation is None
        restored.raw_representation = 1
        assert restored.raw_representation == 1


def test_the_repr_shows_the_kinds_and_not_the_text() -> None:
    """What people said does not get into a log by way of a repr."""
    message = Message("user", ["secret", Content.from_error("secret")])
    assert repr(message) == "Message('user', [text, error])"
