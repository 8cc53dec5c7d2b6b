from __future__ import annotations

from historykit.dict_forms import camel_case, is_same, known_fields


def test_names_in_camel_case() -> None:
    """The first word stays, each other one begins with a capital."""
    assert [camel_case(name) for name in ("id", "user_id", "last_message_at")] == [
        "id",
        "userId",
        "lastMessageAt",
    ]


def test_both_spellings_are_read() -> None:
    """A field is known by either name, and what is no field is left out."""
    data = {"userId": "ada", "agent_id": "a", "unknown": 1}
    assert known_fields(data, ["user_id", "agent_id"]) == {"user_id": "ada", "agent_id": "a"}


def test_what_is_stored_as_the_same() -> None:
    """The types of numbers count, also deep within, and those of texts and lists do not."""
    nan = float("nan")
    assert is_same({"a": [nan, {"b": 1}], "c": "x"}, {"c": "x", "a": (nan, {"b": 1})})
    for one, other in [(1, True), (1, 1.0), (0.0, -0.0), (1, "1"), ([], {}), ([1], [1, 2])]:
        assert not is_same({"a": [one]}, {"a": [other]})
