from __future__ import annotations

from historykit.dict_forms import camel_case, known_fields


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
