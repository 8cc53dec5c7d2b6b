from __future__ import annotations

import contextlib
import copy
import enum
import json
import math
import zlib
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from historykit.codec import RESERVED_TAGS, Codec, MessageCodec, OpaqueValue, content_digest
from historykit.errors import CodecError, DecodeError, EncodeError
from historykit.exact import _READERS
from historykit.serialization import register_state_type
from tests.core.values import messages, nested, same

pytestmark = pytest.mark.usefixtures("registry")


class Zlib:
    """A compression."""

    tag = 0x02

    def encode(self, data: bytes) -> bytes:
        return zlib.compress(data)

    def decode(self, data: bytes) -> bytes:
        return zlib.decompress(data)


class Mask:
    """What stands for an encryption."""

    tag = 0x80

    def encode(self, data: bytes) -> bytes:
        return bytes(byte ^ 0x55 for byte in data)

    decode = encode


class Role(enum.StrEnum):
    USER = "user"


class Ticket:
    """A state type."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return type(other) is Ticket and other.number == self.number

    def to_dict(self) -> dict[str, Any]:
        return {"number": self.number}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Ticket:
        return cls(**data)


MESSAGE: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "contents": [
        {"type": "text", "text": "Grüße \U0001f600 \x00", "additional_properties": {}},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "f",
            "arguments": {"a.b": 1, "$set": [None, True, 0.5]},
            "additional_properties": {},
        },
    ],
    "message_id": "m1",
    "additional_properties": {},
}


def with_text(text: Any) -> dict[str, Any]:
    return {"role": "user", "contents": [{"type": "text", "text": text}]}


def test_ordinary_message_is_plain_json() -> None:
    """A message that JSON holds exactly is stored as that JSON, readable in the database."""
    body = MessageCodec().encode(MESSAGE)
    assert body == orjson.dumps(MESSAGE)
    assert body.startswith(b"{")
    assert MessageCodec().decode(body) == MESSAGE


def test_subclasses_alone_need_no_exact_form() -> None:
    """A role that is a StrEnum is stored as plain JSON."""
    assert (
        MessageCodec().encode({"role": Role.USER, "contents": []})
        == b'{"role":"user","contents":[]}'
    )


@given(messages)
def test_any_message_comes_back(data: dict[str, Any]) -> None:
    """Any message comes back with equal values of the same types, in the same order."""
    assert same(MessageCodec().decode(MessageCodec().encode(data)), data)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda values: (
        st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=4), values, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=4), json_values))
def test_any_json_is_stored_as_plain_json(data: dict[str, Any]) -> None:
    """What JSON holds exactly is stored in the fast form and comes back with its types."""
    body = MessageCodec().encode(data)
    assert body.startswith(b"{")
    assert same(MessageCodec().decode(body), data)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        2**64,
        -(2**63) - 1,
        10**5000,
        "\ud83d",
        "\ud83d\ude00",
        b"\xff\xfe",
        Decimal("0.10"),
        datetime(2024, 5, 1, 1, 2, 3, 243461, UTC),
        UUID(int=5),
        (1, 2),
        {1: "a", "1": "b"},
        {"\udc00": 1},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_would_change_takes_the_exact_form(value: Any) -> None:
    """A value that JSON changes or cannot hold is stored behind 0x01 and comes back."""
    body = MessageCodec().encode(with_text(value))
    assert body.startswith(b"\x01{")
    assert same(MessageCodec().decode(body), with_text(value))


def test_what_looks_like_a_tag_comes_back_as_data() -> None:
    """A user's value in the shape of a stored tag is the user's value."""
    data = with_text([["!bytes", "/w=="], {"type": "ticket"}, ["!", b"needs the exact form"]])
    assert same(MessageCodec().decode(MessageCodec().encode(data)), data)


def test_mapping_is_encoded_as_a_dict() -> None:
    """Any mapping will do, and comes back as a dict."""
    body = MessageCodec().encode(MappingProxyType(MESSAGE))
    assert body == MessageCodec().encode(MESSAGE)


def test_other_data_is_refused() -> None:
    """What is no mapping is an EncodeError."""
    with pytest.raises(EncodeError, match="from a mapping, not a list"):
        MessageCodec().encode([MESSAGE])  # type: ignore[arg-type] # the mistake under test


def test_unknown_object_is_refused_with_its_path() -> None:
    """A value that cannot be stored is a TypeError that leads to it."""
    data = {"contents": [{"arguments": {"when": object()}}]}
    with pytest.raises(TypeError) as caught:
        MessageCodec().encode(data)
    assert isinstance(caught.value, EncodeError)
    assert caught.value.path == "contents[0].arguments.when"


def test_200_levels_are_stored() -> None:
    """A message may be 200 levels deep, the message itself counted, in either form."""
    for leaf in (1, b""):
        data = {"a": [*nested(198), leaf]}
        assert same(MessageCodec().decode(MessageCodec().encode(data)), data)
        data = {"a": nested(199)}
        assert same(MessageCodec().decode(MessageCodec().encode(data)), data)


def test_201_levels_are_refused() -> None:
    """Deeper nesting is an EncodeError in the fast form too, which orjson itself would write."""
    data = {"a": nested(200)}
    orjson.dumps(data)
    with pytest.raises(EncodeError, match=r"^a\[0\]\[0\] is nested over 200 levels"):
        MessageCodec().encode(data)


def test_circle_is_refused() -> None:
    """A message that holds itself is an EncodeError."""
    data: dict[str, Any] = with_text("a")
    data["contents"] += [data, data]
    with pytest.raises(EncodeError, match="or holds itself"):
        MessageCodec().encode(data)


def test_wide_messages_are_not_deep() -> None:
    """Only nesting counts, not how many lists there are."""
    data = {"rows": [[{"a": 1.5}]] * 300}
    assert MessageCodec().encode(data) == orjson.dumps(data)
    with pytest.raises(EncodeError, match="nested over 200 levels"):
        MessageCodec().encode({"rows": [data, nested(199)]})


def test_registered_object_comes_back() -> None:
    """An object of a state type is stored with its type id and restored."""
    register_state_type(Ticket)
    data = {"additional_properties": {"ticket": Ticket(7)}}
    assert MessageCodec().decode(MessageCodec().encode(data)) == data


def test_unknown_type_survives_a_process_without_it(registry: dict[str, type[Any]]) -> None:
    """Read leniently, saved back and read where the type is known, the object is the original."""
    register_state_type(Ticket)
    codec, data = MessageCodec(), {"additional_properties": {"ticket": Ticket(7)}}
    body = codec.encode(data)
    del registry["ticket"]
    with pytest.raises(DecodeError, match="state type 'ticket' is not registered"):
        codec.decode(body)
    with pytest.warns(RuntimeWarning, match="'ticket'"):
        lenient = codec.decode(body, strict=False)
    assert lenient == {"additional_properties": {"ticket": OpaqueValue("ticket", {"number": 7})}}
    saved = codec.encode(lenient)
    registry["ticket"] = Ticket
    assert saved == body
    assert codec.decode(saved) == data


def test_warning_that_is_an_error_is_not_damage(registry: dict[str, type[Any]]) -> None:
    """Where warnings are errors, the warning about an unknown type is raised as it is."""
    register_state_type(Ticket)
    body = MessageCodec().encode({"ticket": Ticket(7)})
    del registry["ticket"]
    with pytest.raises(RuntimeWarning, match="'ticket'"):
        MessageCodec().decode(body, strict=False)


def test_transforms_are_applied_in_order() -> None:
    """Each transform puts its byte in front; the reader undoes them from the first byte on."""
    codec = MessageCodec([Zlib(), Mask()])
    body = codec.encode(MESSAGE)
    assert body[0] == 0x80
    assert Mask().decode(body[1:])[0] == 0x02
    assert codec.decode(body) == MESSAGE


@given(messages)
def test_transformed_message_comes_back(data: dict[str, Any]) -> None:
    """Transforms carry either form."""
    codec = MessageCodec([Zlib()])
    assert same(codec.decode(codec.encode(data)), data)


def test_rows_of_other_settings_stay_readable() -> None:
    """Rows from before and after a change of codecs are read by whoever knows the codecs."""
    plain, packed = MessageCodec(), MessageCodec([Zlib()])
    masked = MessageCodec([Mask()], readable=[Zlib()])
    for body in (plain.encode(MESSAGE), packed.encode(MESSAGE), masked.encode(MESSAGE)):
        assert masked.decode(body) == MESSAGE


def test_missing_codec_is_named() -> None:
    """A body that needs a codec which is not there names the byte and the codec."""
    with pytest.raises(DecodeError, match=r"unknown byte 0x02.*needs the zlib codec"):
        MessageCodec().decode(MessageCodec([Zlib()]).encode(MESSAGE))
    with pytest.raises(DecodeError, match=r"unknown byte 0x80.*the codec with that tag"):
        MessageCodec().decode(MessageCodec([Mask()]).encode(MESSAGE))


@pytest.mark.parametrize("tag", [-1, 0x00, 0x01, 0x05, 0x7B, 0x7F, 0x100])
def test_tag_that_is_not_free_is_refused(tag: int) -> None:
    """A codec may have a reserved tag of its kind or one from 0x80, and no other."""
    codec = Mask()
    codec.tag = tag
    with pytest.raises(ValueError, match=r"codec Mask cannot have the tag .*from 0x80 to 0xff"):
        MessageCodec([codec])


def test_two_codecs_cannot_share_a_tag() -> None:
    """Which of them wrote a body could not be told."""
    with pytest.raises(ValueError, match="two codecs have the tag 0x80"):
        MessageCodec([Mask()], readable=[Mask()])


def test_reserved_tags_are_listed() -> None:
    """The table names the forms and the codecs to come, and cannot be changed."""
    assert RESERVED_TAGS[0x01] == "exact JSON"
    assert RESERVED_TAGS[ord("{")] == "JSON"
    assert {"zstd", "aes-gcm"} <= set(RESERVED_TAGS.values())
    with pytest.raises(TypeError):
        RESERVED_TAGS[0x05] = "mine"  # type: ignore[index] # the mistake under test


def test_failing_transform_is_an_encode_error() -> None:
    """An error of a transform names it, and is the cause."""

    class Broken(Mask):
        def encode(self, data: bytes) -> bytes:
            raise OSError("no key")

    codec: Codec = Broken()
    with pytest.raises(EncodeError, match="codec Broken could not encode") as caught:
        MessageCodec([codec]).encode(MESSAGE)
    assert isinstance(caught.value.__cause__, OSError)


def test_endless_layers_are_damage() -> None:
    """A body that unfolds without end is a DecodeError."""

    class Endless(Mask):
        def decode(self, data: bytes) -> bytes:
            return b"\x80"

    with pytest.raises(DecodeError, match="more than 16 layers"):
        MessageCodec([Endless()]).decode(b"\x80")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"a":"\xff"}',
        b"\x01",
        b"\x01[1]",
        b'\x01["!tuple"]',
        b'\x01{"a":["!dict",1]}',
        b'\x01{"a":["!set",[]]}',
        b'\x01{"a":["!decimal","x"]}',
        b'\x01{"a":["!bytes","/w==~"]}',
        b'\x01{"a":["!datetime","2024-05-01T00:00:00",0,"No/Where"]}',
        b'\x01{"a":["!datetime","2024-05-01T00:00:00",0,99999999999999999]}',
        b"\x02not zlib",
        b"[]",
        "{}",
        None,
        5,
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_damaged_body_is_a_decode_error(body: Any, strict: bool) -> None:
    """Whatever is wrong with a body, the error is a DecodeError without session and sequence."""
    with pytest.raises(DecodeError) as caught:
        MessageCodec([Zlib()]).decode(body, strict=strict)
    assert isinstance(caught.value, CodecError)
    assert (caught.value.session_id, caught.value.sequence) == (None, None)


@pytest.mark.parametrize("opening", [b"[", b'["!tuple",', b'["!list",', b'{"a":', b'["!dict",1,'])
@pytest.mark.parametrize("form", [b"", b"\x01"])
def test_depth_of_a_damaged_body_does_no_harm(form: bytes, opening: bytes) -> None:
    """A body that is deeper than any that is written is read or is a DecodeError."""
    closing = {b"[": b"]", b"{": b"}"}[opening[:1]]
    for levels in (240, 500, 900, 5000):
        body = form + b'{"a":' + opening * levels + b"1" + closing * levels + b"}"
        with contextlib.suppress(DecodeError):
            assert type(MessageCodec().decode(body)) is dict


def test_error_does_not_quote_the_message() -> None:
    """The text of a message is in no error."""
    body = MessageCodec().encode(with_text("secret"))[:-1]
    with pytest.raises(DecodeError) as caught:
        MessageCodec().decode(body)
    assert "secret" not in str(caught.value) + repr(caught.value)


trees = st.recursive(
    json_values | st.sampled_from(sorted(_READERS)),
    lambda items: st.builds(
        lambda tag, rest: [tag, *rest],
        st.sampled_from(sorted(_READERS)),
        st.lists(items, max_size=3),
    ),
    max_leaves=6,
)
bodies = st.one_of(
    st.binary(max_size=30),
    st.binary(max_size=30).map(b"\x01{".__add__),
    trees.map(lambda tree: b"\x01" + orjson.dumps({"a": tree})),
    st.builds(
        lambda data, codec, at, byte: _damage(codec.encode(data), at, byte),
        messages,
        st.sampled_from([MessageCodec(), MessageCodec([Zlib()])]),
        st.integers(0, 400),
        st.integers(0, 255) | st.none(),
    ),
)


def _damage(body: bytes, at: int, byte: int | None) -> bytes:
    at %= len(body)
    return body[:at] if byte is None else body[:at] + bytes([byte]) + body[at + 1 :]


@pytest.mark.filterwarnings("ignore:objects of the state type")
@given(bodies, st.booleans())
def test_damage_of_any_kind_is_a_decode_error(body: bytes, strict: bool) -> None:
    """A damaged body gives a dict or a DecodeError, never anything else."""
    register_state_type(Ticket)
    with contextlib.suppress(DecodeError):
        assert type(MessageCodec([Zlib()]).decode(body, strict=strict)) is dict


def test_digest_is_of_role_and_contents() -> None:
    """The other fields do not change the digest, role and contents do."""
    digest = content_digest(MESSAGE)
    assert len(digest) == 16
    assert (
        content_digest({**MESSAGE, "message_id": "m2", "additional_properties": {"a": 1}}) == digest
    )
    assert content_digest({**MESSAGE, "role": "user"}) != digest
    assert content_digest({**MESSAGE, "contents": MESSAGE["contents"][:1]}) != digest
    assert content_digest({**MESSAGE, "contents": MESSAGE["contents"][::-1]}) != digest


def test_digest_never_changes() -> None:
    """Digests are stored: every version computes the same."""
    assert content_digest(MESSAGE).hex() == "5dc89201b4d0151c7fc19453ac01640a"
    assert (
        content_digest(with_text((b"\xff", {2: math.nan, 1: "\ud800"}))).hex()
        == "bba1dfd306e8c36da53365ab3009ce06"
    )


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


def test_digest_of_a_copy_through_json() -> None:
    """A message that went through JSON with other spacing and order has the same digest."""
    copied = json.loads(json.dumps(reversed_keys(MESSAGE), indent=2))
    assert content_digest(copied) == content_digest(MESSAGE)


@pytest.mark.parametrize(
    "properties", [{}, {"additional_properties": {}}, {"additional_properties": None}]
)
@pytest.mark.parametrize("text", ["a", "\ud800"])
def test_digest_ignores_empty_properties_of_contents(properties: Any, text: str) -> None:
    """Contents with empty additional properties, and nested ones, are like those without."""
    item = {"type": "text", "text": text}
    call = {"type": "function_result", "items": [item], "zone": 1}
    empty: dict[str, Any] = {key: {} for key in properties}
    full = {"role": "tool", "contents": [{**call, **properties, "items": [{**item, **empty}]}]}
    assert content_digest(full) == content_digest({"role": "tool", "contents": [call]})


@pytest.mark.parametrize("item", [{}, {"A": 1}, {"A": 1, "z": 2}, {"z": 2}])
def test_digest_ignores_empty_properties_wherever_they_stand(item: dict[str, Any]) -> None:
    """Whichever keys stand beside them, empty properties of nested contents do not count."""
    bare, full = [{"outputs": [item]}], [{"outputs": [{**item, "additional_properties": {}}]}]
    digest = content_digest({"role": "tool", "contents": bare})
    assert content_digest({"role": "tool", "contents": full}) == digest


def test_digest_tells_other_properties_apart() -> None:
    """Additional properties that hold something are part of the content."""
    message = with_text("a")
    other = copy.deepcopy(message)
    other["contents"][0]["additional_properties"] = {"a": {}}
    assert content_digest(other) != content_digest(message)


def test_digest_sees_texts_that_look_like_properties() -> None:
    """Only keys count as additional properties, not what a text says."""
    for text in (
        '"additional_properties":{},',
        ',"additional_properties":{}',
        '"additional_properties":{}',
    ):
        assert content_digest(with_text(text)) != content_digest(with_text(""))


def test_digest_of_tuples_and_missing_contents() -> None:
    """A tuple counts as the list that JSON makes of it, and no contents as empty ones."""
    left = {"role": Role.USER, "contents": ({"type": "x", "a": (1, 2)},)}
    right = {"role": "user", "contents": [{"type": "x", "a": [1, 2]}]}
    assert content_digest(left) == content_digest(right)
    assert content_digest({"role": "a"}) == content_digest({"role": "a", "contents": None})


def test_digest_tells_exact_values_from_their_tags() -> None:
    """A value that needs a tag differs from the data that the tag looks like."""
    assert content_digest(with_text(b"\xff")) != content_digest(with_text(["!bytes", "/w=="]))


@given(messages)
def test_digest_is_the_same_after_storing(data: dict[str, Any]) -> None:
    """A message that was stored and read has the digest that it had."""
    stored = MessageCodec().decode(MessageCodec().encode(data))
    assert content_digest(stored) == content_digest(data)


def test_digest_refuses_what_cannot_be_stored() -> None:
    """A digest of a value that has no stored form is an EncodeError with its path."""
    with pytest.raises(EncodeError) as caught:
        content_digest(with_text(object()))
    assert caught.value.path == "contents[0].text"
