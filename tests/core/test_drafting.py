from __future__ import annotations

import uuid

import pytest

from historykit import Content, EncodeError, InvalidRequestError, Message, MessageCodec
from historykit.chat_completions import from_chat_completions
from historykit.drafting import draft_messages


def drafts(*messages, **options):
    return draft_messages(messages, codec=MessageCodec(), stream="main", now=7, **options)


def user(text, **fields):
    return Message("user", text, **fields)


def test_a_draft_holds_the_message_as_it_is_now():
    """The body of a draft decodes to the message, and a later change does not reach it."""
    message = user("hello", additional_properties={"a": 1})
    (draft,) = drafts(message)
    data = message.to_dict()
    message.additional_properties["a"] = 2
    assert MessageCodec().decode(draft.body) == data
    assert (draft.role, draft.created_at, draft.external) == ("user", 7, False)


def test_messages_without_ids_get_new_ones():
    """Equal messages without ids are drafted under different ids each time."""
    first, second = user("yes"), user("yes")
    found = [*drafts(first, second), *drafts(first, second)]
    assert len({draft.id for draft in found}) == 4


def test_an_idempotency_key_fixes_the_ids():
    """The same key gives the same ids, another key or stream others."""
    batch = user("yes"), user("yes")
    assert [d.id for d in drafts(*batch, idempotency_key="k")] == [
        d.id for d in drafts(*batch, idempotency_key="k")
    ]
    one = {d.id for d in drafts(*batch, idempotency_key="k")}
    other = {d.id for d in drafts(*batch, idempotency_key="l")}
    elsewhere = draft_messages(
        batch, codec=MessageCodec(), stream="audit", now=0, idempotency_key="k"
    )
    assert len(one | other | {d.id for d in elsewhere}) == 6


def test_a_message_with_an_id_is_recognized_by_it_and_by_what_it_says():
    """A message's own id gives the same id for the same content, and another for other content."""
    (first,) = drafts(user("yes", message_id="m1"))
    (again,) = drafts(user("yes", message_id="m1", author_name="ada"), idempotency_key="k")
    (changed,) = drafts(user("no", message_id="m1"))
    (other,) = drafts(user("yes", message_id="m2"))
    assert first.external
    assert first.id == again.id
    assert len({first.id, changed.id, other.id}) == 3
    assert uuid.UUID(first.id)


def test_the_same_message_twice_is_drafted_once():
    """A message that comes twice in a batch with one id and one content is one draft."""
    first, second = drafts(user("a", message_id="1"), user("b"), user("a", message_id="1"))
    assert first.external
    assert not second.external


@pytest.mark.parametrize("message_id", ["", None])
def test_an_empty_id_is_no_id(message_id):
    """A message whose id is empty is one without id."""
    assert not drafts(user("a", message_id=message_id))[0].external


def test_external_ids_can_be_left_aside():
    """With `external_ids` False a message's own id has no meaning."""
    message = user("a", message_id="1")
    assert drafts(message, external_ids=False)[0].id != drafts(message)[0].id


def test_a_turn_starts_with_the_first_message_of_the_user():
    """Of a batch, the first user message in a row starts a turn, answers and tools do not."""
    answer = Message("user", [Content("function_approval_response", id="a", approved=True)])
    batch = [
        Message("system", "be nice"),
        user("a"),
        user("b"),
        Message("assistant", "c"),
        Message("tool", [Content.from_function_result("1", result="r")]),
        answer,
        Message("assistant", "d"),
        user("e"),
    ]
    starts = [draft.turn_start for draft in drafts(*batch)]
    assert starts == [False, True, False, False, False, False, False, True]


def test_a_value_that_cannot_be_stored_is_named():
    """An item that has no encoding is refused with the path that leads to it."""
    bad = user("b", additional_properties={"x": object()})
    with pytest.raises(EncodeError, match=r"messages\[1\]\.additional_properties\.x") as raised:
        drafts(user("a"), bad)
    assert raised.value.path == "messages[1].additional_properties.x"


def test_the_path_is_said_once():
    """The error names the place of the value once, and its type with the right article."""
    bad = user("b", additional_properties={"o": object(), "a b": [1, 1j]})
    with pytest.raises(EncodeError) as raised:
        drafts(bad)
    assert str(raised.value).startswith(
        "messages[0].additional_properties.o is an object, which cannot be stored; "
    )
    del bad.additional_properties["o"]
    with pytest.raises(EncodeError) as raised:
        drafts(bad)
    assert raised.value.path == "messages[0].additional_properties['a b'][1]"
    assert str(raised.value).startswith(f"{raised.value.path} is a complex, ")


def test_a_failing_codec_is_named_with_the_message():
    """An error without a path has the place of the message in front."""

    class Broken:
        tag = 0x80

        def encode(self, data):
            raise RuntimeError

        decode = encode

    with pytest.raises(EncodeError, match=r"^messages\[0\]: codec Broken could not") as raised:
        draft_messages([user("a")], codec=MessageCodec([Broken()]), stream="main", now=7)
    assert raised.value.path == "messages[0]"


def test_a_text_is_no_message():
    """The error says how to make a message of a text."""
    with pytest.raises(InvalidRequestError, match=r'make one with Message\("user", text\)'):
        drafts("Hi")


@pytest.mark.parametrize("messages", ["Hi", user("a"), iter([user("a")]), 42])
def test_messages_come_in_a_list(messages):
    """One message, a text, and what can be read only once are refused: nothing gets lost."""
    with pytest.raises(InvalidRequestError, match=r"a list of messages, not \w+; put them in a"):
        draft_messages(messages, codec=MessageCodec(), stream="main", now=0)


def test_only_messages_are_drafted():
    """Something else than a message is refused by its place."""
    with pytest.raises(InvalidRequestError, match=r"messages\[1\] must be a historykit.Message"):
        drafts(user("a"), {"role": "user"})
    with pytest.raises(InvalidRequestError, match=r"role of messages\[0\]"):
        drafts(Message(None, "a"))


class Elsewhere:
    """A message of another framework."""

    def to_dict(self):
        return {"type": "message", "role": "user", "contents": [{"type": "text", "text": "hi"}]}


@pytest.mark.parametrize(
    ("value", "call"),
    [
        ({"role": "user", "content": "hi"}, from_chat_completions),
        ({"role": "user", "contents": ["hi"]}, Message.from_dict),
        ({"role": "user", "text": "hi"}, Message.from_dict),
        (Elsewhere(), lambda message: Message.from_dict(message.to_dict())),
        ("hi", lambda text: Message("user", text)),
    ],
)
def test_the_call_that_is_recommended_makes_the_whole_message(value, call):
    """What the error says to call gives a message with the text that was handed in."""
    calls = {
        "historykit.chat_completions.from_chat_completions": from_chat_completions,
        "Message.from_dict": Message.from_dict,
        "Message.from_dict(message.to_dict())": lambda message: Message.from_dict(
            message.to_dict()
        ),
        'Message("user", text)': lambda text: Message("user", text),
    }
    with pytest.raises(InvalidRequestError) as caught:
        drafts(value)
    recommended = calls[str(caught.value).partition("make one with ")[2]]
    assert recommended(value).to_dict() == call(value).to_dict()
    assert recommended(value).text == "hi"


@pytest.mark.parametrize("said", [{"content": "hi"}, {"content": None, "tool_calls": []}])
def test_a_dict_of_the_chat_completions_api_is_no_message_that_says_nothing(said):
    """`Message.from_dict` refuses what it would lose, and names what takes it."""
    with pytest.raises(ValueError, match=r"chat_completions\.from_chat_completions makes"):
        Message.from_dict({"role": "assistant", **said})
