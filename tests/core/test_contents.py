from __future__ import annotations

import json
import pickle
from collections import ChainMap, OrderedDict
from copy import copy, deepcopy
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest

from historykit import Content, Message

RAW = object()


def test_a_content_writes_its_fields_in_the_fixed_order() -> None:
    """The fields are written in agent_framework's order, whatever the order they were given in."""
    content = Content(
        "function_call", annotations=[], status="done", arguments="{}", name="f", call_id="c"
    )
    assert list(content.to_dict()) == [
        "type",
        "call_id",
        "name",
        "arguments",
        "status",
        "additional_properties",
        "annotations",
    ]


def test_a_content_always_writes_additional_properties() -> None:
    """A content without additional properties writes an empty dict of them."""
    assert Content("text", text="a").to_dict() == {
        "type": "text",
        "text": "a",
        "additional_properties": {},
    }


def test_a_field_of_none_is_not_written() -> None:
    """A field that is None at construction is absent from the dict and reads None."""
    content = Content("text", text=None, id=None)
    assert content.to_dict() == {"type": "text", "additional_properties": {}}
    assert content.text is None


def test_an_empty_text_is_kept() -> None:
    """An empty text is a text, and not None."""
    assert Content.from_text("").to_dict()["text"] == ""


@pytest.mark.parametrize("kind", ["", None, 3])
def test_a_content_needs_a_type(kind: Any) -> None:
    """A content without the name of a type is refused, constructed or from a dict."""
    with pytest.raises(ValueError, match="type"):
        Content(kind)
    with pytest.raises(ValueError, match="type"):
        Content.from_dict({"type": kind})


def test_a_content_from_a_dict_needs_a_dict() -> None:
    """What is no mapping makes no content."""
    with pytest.raises(TypeError, match="list"):
        Content.from_dict(["text"])  # type: ignore[arg-type]


def test_a_misspelt_field_of_a_known_type_is_refused() -> None:
    """A field that no content has is an error that names the one that was meant."""
    with pytest.raises(TypeError, match=r"no field txt; did you mean 'text'\?"):
        Content("text", txt="a")


def test_a_field_that_is_like_no_other_can_be_kept() -> None:
    """It may be one of a later version, and the call that the error names keeps it."""
    with pytest.raises(TypeError, match=r"no field zzz; Content\.from_dict keeps"):
        Content("text", text="a", zzz=1)
    kept = Content.from_dict({"type": "text", "text": "a", "zzz": 1})
    assert kept.to_dict()["zzz"] == 1


def test_an_unknown_type_takes_any_field() -> None:
    """The fields of a type that is not known are not known either, and are kept before the rest."""
    content = Content("hologram", beams=[1], id="h", annotations=[{}])
    assert content.to_dict() == {
        "type": "hologram",
        "id": "h",
        "beams": [1],
        "additional_properties": {},
        "annotations": [{}],
    }
    assert list(content.to_dict())[-3:] == ["beams", "additional_properties", "annotations"]


def test_an_unknown_type_comes_back_verbatim() -> None:
    """A dict of an unknown type comes back with nothing added to it."""
    shape = {"type": "hologram", "beams": [{"type": "beam", "angle": None}]}
    assert Content.from_dict(shape).to_dict() == shape


@pytest.mark.parametrize("given", [{}, {"additional_properties": None}])
def test_a_known_type_accepts_missing_additional_properties(given: dict[str, Any]) -> None:
    """A dict without additional properties, or with None, reads as an empty dict of them."""
    content = Content.from_dict({"type": "text", "text": "a", **given})
    assert content.additional_properties == {}
    assert content.to_dict() == Content.from_text("a").to_dict()


def test_additional_properties_can_be_written_to_and_replaced() -> None:
    """The additional properties are a dict of the content, also where none were there."""
    content = Content.from_dict({"type": "hologram"})
    content.additional_properties["a"] = 1
    assert content.to_dict() == {"type": "hologram", "additional_properties": {"a": 1}}
    content.additional_properties = None
    assert content.additional_properties == {}


def test_the_additional_properties_given_are_copied() -> None:
    """The dict that was passed is not the one that the content changes."""
    given = {"a": 1}
    Content("text", additional_properties=given).additional_properties["b"] = 2
    assert given == {"a": 1}


def test_from_dict_copies_the_dict() -> None:
    """Changing a content leaves the dict that it was made from as it was, however deep."""
    shape: dict[str, Any] = {"type": "text", "text": "a", "additional_properties": {"k": [1]}}
    content = Content.from_dict(shape)
    content.text = "b"
    content.additional_properties["k"].append(2)
    assert shape == {"type": "text", "text": "a", "additional_properties": {"k": [1]}}


def test_a_field_can_be_set_and_removed() -> None:
    """Assigning a field writes it, and assigning None removes it."""
    content = Content.from_text("a")
    content.text = "b"
    content.id = "i"
    assert content.to_dict()["id"] == "i"
    assert content.text == "b"
    content.id = None
    content.status = None
    assert "id" not in content.to_dict()


def test_a_field_of_the_class_is_no_value() -> None:
    """The fields can be looked up on the class, as documentation tools do."""
    assert Content.text is not None
    assert Content.items is not None


def test_from_data_holds_bytes_as_a_data_uri() -> None:
    """Bytes become a data URI of their media type and are no key of their own."""
    assert Content.from_data(b"\x89PNG\r\n\x1a\n", "image/png").to_dict() == {
        "type": "data",
        "uri": "data:image/png;base64,iVBORw0KGgo=",
        "media_type": "image/png",
        "additional_properties": {},
    }


def test_from_dict_turns_bytes_of_data_into_a_uri() -> None:
    """A dict of a data content may have its bytes under ``data``."""
    shape = {"type": "data", "data": b"\x89PNG\r\n\x1a\n", "media_type": "image/png"}
    assert Content.from_dict(shape) == Content.from_data(b"\x89PNG\r\n\x1a\n", "image/png")


def test_from_uri_makes_a_link() -> None:
    """A link keeps its media type, where it is given."""
    assert Content.from_uri("https://x/a.png", media_type="image/png").to_dict() == {
        "type": "uri",
        "uri": "https://x/a.png",
        "media_type": "image/png",
        "additional_properties": {},
    }
    assert "media_type" not in Content.from_uri("https://x/a.png").to_dict()


@pytest.mark.parametrize(
    ("uri", "media_type"),
    [
        ("data:image/png;base64,iVBORw0KGgo=", "image/png"),
        ("data:text/plain,hello", "text/plain"),
        ("data:,hello", None),
    ],
)
def test_from_uri_reads_the_media_type_of_a_data_uri(uri: str, media_type: str | None) -> None:
    """A data URI is data, of the media type that it names."""
    content = Content.from_uri(uri)
    assert (content.type, content.media_type) == ("data", media_type)


def test_the_other_constructors_make_their_shapes() -> None:
    """Reasoning, errors and calls have the fields that agent_framework gives them."""
    assert Content.from_text_reasoning("think", id="rs_1", protected_data="enc==").to_dict() == {
        "type": "text_reasoning",
        "text": "think",
        "protected_data": "enc==",
        "id": "rs_1",
        "additional_properties": {},
    }
    assert Content.from_error("boom", error_code="E1").to_dict() == {
        "type": "error",
        "message": "boom",
        "error_code": "E1",
        "additional_properties": {},
    }
    assert Content.from_function_call("call_1", "f", arguments={"a": 1}).to_dict() == {
        "type": "function_call",
        "call_id": "call_1",
        "name": "f",
        "arguments": {"a": 1},
        "additional_properties": {},
    }


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("sunny", "sunny"),
        ({"t": 1}, '{"t": 1}'),
        (["ö"], '["ö"]'),
        ([], "[]"),
        (None, ""),
        (3, "3"),
        (Decimal("1.5"), '"1.5"'),
    ],
)
def test_a_function_result_is_its_text_and_one_item(result: Any, text: str) -> None:
    """A result is kept as a text, its JSON where it is none, beside one text item."""
    assert Content.from_function_result("c", result=result).to_dict() == {
        "type": "function_result",
        "call_id": "c",
        "result": text,
        "items": [{"type": "text", "text": text, "additional_properties": {}}],
        "additional_properties": {},
    }


def test_a_function_result_of_contents_keeps_them_as_items() -> None:
    """Contents are the items of a result, and its text is theirs, a line each."""
    picture = Content.from_data(b"x", "image/png")
    result = Content.from_function_result(
        "c", result=[Content.from_text("a"), picture, Content.from_text("b")]
    )
    assert result.result == "a\nb"
    assert result.items == [Content.from_text("a"), picture, Content.from_text("b")]
    assert Content.from_function_result("c", result=picture).items == [picture]


def test_the_exception_of_a_result_comes_before_it() -> None:
    """A failed call's result has the exception in front of it, as agent_framework writes it."""
    result = Content.from_function_result("c", result="Error", exception="ValueError: x")
    assert list(result.to_dict())[:4] == ["type", "call_id", "exception", "result"]


def test_nested_contents_are_views() -> None:
    """Changing a content within a content changes the outer one."""
    request = Content(
        "function_approval_request",
        id="ap_1",
        user_input_request=True,
        function_call=Content.from_function_call("c", "rm"),
    )
    assert request.function_call is not None
    request.function_call.name = "ls"
    assert request.to_dict()["function_call"]["name"] == "ls"


def test_lists_of_contents_read_as_contents() -> None:
    """A list of content dicts reads as contents, and assigning a list writes their dicts."""
    item = Content.from_text("a").to_dict()
    content = Content.from_dict({"type": "shell_tool_result", "outputs": [item]})
    assert content.outputs == [Content.from_text("a")]
    content.outputs = (Content.from_text("a"), Content.from_text("b"))
    assert [item["text"] for item in content.to_dict()["outputs"]] == ["a", "b"]


@pytest.mark.parametrize("output", [{"k": [1]}, [1, {"type": "text"}], "text", 3])
def test_an_output_that_is_no_content_reads_as_it_is(output: Any) -> None:
    """Plain data where contents may be is plain data."""
    content = Content("mcp_server_tool_result", call_id="m", output=output)
    assert content.output == output


def test_a_single_content_reads_as_a_content() -> None:
    """The output of an image tool may be one content instead of a list."""
    content = Content("image_generation_tool_result", outputs=Content.from_text("a"))
    assert content.outputs == Content.from_text("a")


def test_contents_are_equal_when_their_dicts_are() -> None:
    """Contents compare by what they hold, and never with anything else."""
    assert Content.from_text("a") == Content.from_text("a")
    assert Content.from_text("a") != Content.from_text("b")
    assert Content.from_text("a") != "a"
    with pytest.raises(TypeError):
        hash(Content.from_text("a"))


def test_to_dict_leaves_out_what_is_excluded() -> None:
    """Excluded keys, and with exclude_none keys of None, are not written."""
    content = Content.from_dict({"type": "text", "text": "a", "id": None})
    assert content.to_dict(exclude={"text"}) == {
        "type": "text",
        "id": None,
        "additional_properties": {},
    }
    assert content.to_dict(exclude_none=True) == Content.from_text("a").to_dict()


def test_a_content_keeps_values_that_json_does_not_have() -> None:
    """Bytes, decimals, dates, tuples and sets are written as they are, and containers copied."""
    now = datetime.now(UTC)
    values = {"b": b"\x00", "d": Decimal("1.0"), "t": now, "p": ([1],), "s": {1}, "n": None}
    content = Content("function_call", arguments=values, call_id="c", name="f")
    copied = content.to_dict()["arguments"]
    assert copied == values
    assert copied["p"][0] is not values["p"][0]  # type: ignore[index]
    assert copied["s"] is not values["s"]


def test_a_content_writes_mappings_as_dicts() -> None:
    """A mapping that is no dict is written as one, and so is a content among the values."""
    properties = {"o": OrderedDict(a=[1]), "c": Content.from_text("a")}
    content = Content(
        "function_call",
        arguments=MappingProxyType({"a": 1}),
        additional_properties=properties,
    )
    data = content.to_dict()
    assert type(data["arguments"]) is dict
    assert type(data["additional_properties"]["o"]) is dict
    assert data["additional_properties"]["c"] == Content.from_text("a").to_dict()


def test_what_the_encoder_gets_is_plain() -> None:
    """Contents, tuples and mappings in a field are dicts and lists already in the content."""
    texts = (Content.from_text("a"), Content.from_text("b"))
    message = Message(
        "tool",
        [
            Content("shell_tool_result", outputs=texts, inputs=[texts[0]]),
            Content("image_generation_tool_result", outputs=texts[0]),
            Content("function_call", arguments=MappingProxyType({"a": 1})),
        ],
    )
    assert json.dumps(message._to_encode()) == json.dumps(message.to_dict())


def test_containers_of_every_kind_are_copied() -> None:
    """A mapping, a content and a list among the values are not shared with the dict."""
    given: dict[str, Any] = {"m": OrderedDict(a=[1]), "c": Content.from_text("a"), "l": [[1]]}
    content = Content.from_text("x", additional_properties=given)
    written = content.to_dict()["additional_properties"]
    written["m"]["a"].append(2)
    written["c"]["text"] = "b"
    written["l"][0].append(2)
    assert given == {"m": OrderedDict(a=[1]), "c": Content.from_text("a"), "l": [[1]]}


def test_from_dict_takes_any_mapping() -> None:
    """A mapping that is no dict makes a content that is written as a dict."""
    content = Content.from_dict(ChainMap({"text": "a"}, {"type": "text"}))
    assert type(content.to_dict()) is dict
    assert content == Content.from_text("a")


def test_a_value_that_cannot_be_copied_is_shared() -> None:
    """An object that is no container is in the dict itself."""
    thing = object()
    content = Content.from_text("a", additional_properties={"thing": thing})
    assert content.to_dict()["additional_properties"]["thing"] is thing


def test_a_copy_has_fields_of_its_own() -> None:
    """Setting a field of a copy leaves the content as it was; a deep copy shares no container."""
    content = Content.from_text("a", additional_properties={"k": []}, raw_representation=RAW)
    shallow, deep = copy(content), deepcopy(content)
    shallow.text = deep.text = "b"
    deep.additional_properties["k"].append(1)
    assert content.to_dict()["text"] == "a"
    assert content.additional_properties == {"k": []}
    assert shallow.additional_properties is content.additional_properties
    assert shallow.raw_representation is deep.raw_representation is RAW


def test_the_raw_representation_is_neither_written_nor_pickled() -> None:
    """The client's own object is for the process alone."""
    content = Content.from_text("a")
    assert content.raw_representation is None
    content.raw_representation = lambda: None
    assert content.raw_representation is not None
    assert "raw_representation" not in content.to_dict()
    restored = pickle.loads(pickle.dumps(content))
    assert restored == content
    assert restored.raw_representation is None


def test_the_repr_shows_the_type_and_not_the_text() -> None:
    """What people said does not get into a log by way of a repr."""
    assert repr(Content.from_text("secret")) == "Content('text')"
