from __future__ import annotations

import uuid

import pytest

from historykit import InvalidRequestError
from historykit.ids import MAX_ID_LENGTH, check_id, derive_id, new_id


def test_new_ids_are_distinct_uuids_of_version_7():
    """A new id is a UUID of version 7 and no two are the same."""
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert {uuid.UUID(id).version for id in ids} == {7}
    assert {uuid.UUID(id).variant for id in ids} == {uuid.RFC_4122}


def test_new_ids_begin_with_the_time():
    """The first 48 bits of a new id are the time in milliseconds."""
    import time

    before = time.time_ns() // 1_000_000
    stamp = uuid.UUID(new_id()).int >> 80
    assert before <= stamp <= time.time_ns() // 1_000_000


def test_derived_ids_are_repeatable_uuids_of_version_8():
    """The same parts give the same id, as text or as bytes, and it is a UUID of version 8."""
    assert derive_id("a", "b") == derive_id("a", b"b")
    assert uuid.UUID(derive_id("a", "b")).version == 8


def test_derived_ids_keep_parts_apart():
    """Parts that only join to the same text give different ids."""
    assert len({derive_id("ab", "c"), derive_id("a", "bc"), derive_id("abc")}) == 3


def test_lone_surrogates_can_be_part_of_a_derived_id():
    """A part that UTF-8 does not have gives an id of its own."""
    assert derive_id("\ud800") != derive_id("\ud801")


@pytest.mark.parametrize(
    "id", ["x", "x" * MAX_ID_LENGTH, "../../x", "{t}", "*", "a:b", " ", "é", "😀" * 256, "\n"]
)
def test_any_text_of_1_to_256_characters_is_an_id(id):
    """An id is returned as it is, whatever characters it has."""
    assert check_id(id, "session_id") is id


@pytest.mark.parametrize(
    ("id", "reason"),
    [
        ("", "1 to 256 characters"),
        ("x" * 257, "this one has 257"),
        ("a\0b", "NUL"),
        ("a\ud800", "surrogates"),
        (None, "must be a string, not NoneType"),
        (7, "must be a string, not int"),
    ],
)
def test_anything_else_is_refused_by_name(id, reason):
    """What is no id is refused with an error that names it and says why."""
    with pytest.raises(InvalidRequestError, match=f"^session_id .*{reason}"):
        check_id(id, "session_id")
