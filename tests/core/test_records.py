from __future__ import annotations

from functools import partial

import pytest

from historykit import InvalidRequestError
from historykit.records import PAGE_MESSAGES, MessagePatch, MessageSelector, Retention, Window
from historykit.session_records import (
    MAX_OFFSET,
    SessionDraft,
    SessionKey,
    SessionPatch,
    SessionQuery,
)


@pytest.mark.parametrize(
    "parts", [("", "", "s"), ("n", "", ""), ("n", "\0", "s"), ("n", None, "s")]
)
def test_a_key_is_made_of_identifiers(parts):
    """A session key with a part that is no identifier is refused."""
    with pytest.raises(InvalidRequestError):
        SessionKey(*parts)


def test_a_key_may_be_of_no_user():
    """The user of a session key may be the empty text."""
    assert SessionKey("n", "", "s").user_id == ""


@pytest.mark.parametrize("fields", [{"body": b"{}"}, {"digest": b"d"}])
def test_a_new_body_comes_with_its_digest(fields):
    """A patch that has only one of body and digest is refused."""
    with pytest.raises(InvalidRequestError, match="digest"):
        MessagePatch(**fields)


def test_a_selector_selects_something():
    """A selector without a condition is refused."""
    with pytest.raises(InvalidRequestError, match="delete_session"):
        MessageSelector()
    assert MessageSelector(ids=()).ids == ()


@pytest.mark.parametrize("number", [0, -1])
def test_a_retention_keeps_a_message(number):
    """A retention of less than one message is refused."""
    with pytest.raises(InvalidRequestError, match="1 or more"):
        Retention(number)


@pytest.mark.parametrize("fields", [{"limit": -1}, {"before": 1, "after": 1}])
def test_a_window_has_one_direction_and_no_negative_limit(fields):
    """A window with a negative limit or two ends is refused."""
    with pytest.raises(InvalidRequestError):
        Window(**fields)


@pytest.mark.parametrize(("limit", "page"), [(None, PAGE_MESSAGES), (3, 3), (10**6, PAGE_MESSAGES)])
def test_a_page_is_as_long_as_the_limit_at_most(limit, page):
    """The page of a window is its limit, and never more than a slice holds."""
    assert Window(limit=limit).page == page


@pytest.mark.parametrize(
    "fields",
    [{"offset": -1}, {"offset": MAX_OFFSET + 1}, {"limit": 0}, {"limit": PAGE_MESSAGES + 1}],
)
def test_a_query_is_bounded(fields):
    """A query with a limit or an offset out of bounds is refused."""
    with pytest.raises(InvalidRequestError):
        SessionQuery(namespace="n", **fields)


NO_WORDS = ["nul\0", "\ud800", "x" * 257, 7]


@pytest.mark.parametrize("value", NO_WORDS)
@pytest.mark.parametrize("name", ["agent_id", "status", "labels"])
@pytest.mark.parametrize(
    "record", [SessionDraft, SessionPatch, partial(SessionQuery, namespace="n")]
)
def test_fields_of_sessions_are_identifiers(record, name, value):
    """An agent, a status or a label that no database would find is refused, and named: on its way
    into a store, and in a search."""
    with pytest.raises(InvalidRequestError, match=name.rstrip("s")):
        record(**{name: frozenset([value]) if name == "labels" else value})


@pytest.mark.parametrize("value", NO_WORDS)
def test_a_search_is_for_a_user_that_can_be(value):
    """A search for a user that cannot be is refused; nobody in particular can be searched for."""
    with pytest.raises(InvalidRequestError, match="user_id"):
        SessionQuery(namespace="n", user_id=value)
    assert SessionQuery(namespace="n", user_id="").user_id == ""


@pytest.mark.parametrize("time", [1 << 63, -(1 << 63) - 1, 1.5, True])
def test_times_of_sessions_have_64_bits(time):
    """A time that is no integer of 64 bits is refused, and named."""
    for name in ("created_from", "created_before"):
        with pytest.raises(InvalidRequestError, match=name):
            SessionQuery(namespace="n", **{name: time})
    with pytest.raises(InvalidRequestError, match="created_at"):
        SessionDraft(created_at=time)
    assert SessionDraft(created_at=-(1 << 63), agent_id="").created_at == -(1 << 63)


def test_a_session_draft_turns_into_a_patch_of_all_its_fields():
    """The patch of a draft has each of its fields but the time of creation."""
    draft = SessionDraft(agent_id="a", status="failed", labels=frozenset("l"), body=b"b")
    assert draft.as_patch() == SessionPatch(
        agent_id="a", status="failed", memory_enabled=True, labels=frozenset("l"), body=b"b"
    )


@pytest.mark.parametrize(("created_at", "expected"), [(None, 5), (3, 3)])
def test_a_session_draft_turns_into_a_session_without_messages(created_at, expected):
    """The record of a draft has its fields, and is created now unless the draft says when."""
    draft = SessionDraft(agent_id="a", labels=frozenset("l"), body=b"b", created_at=created_at)
    record = draft.as_record(SessionKey("n", "", "s"), "life", 5)
    assert (record.agent_id, record.labels, record.body) == ("a", frozenset("l"), b"b")
    assert (record.incarnation, record.created_at, record.updated_at) == ("life", expected, 5)
    assert (record.message_count, record.version, record.revision) == (0, 0, 0)
    assert (record.last_message_at, record.run_id) == (None, None)
