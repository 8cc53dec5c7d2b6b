from __future__ import annotations

import pytest

from historykit import (
    ConflictError,
    InvalidRequestError,
    RunInProgressError,
    SessionDeletedError,
    VersionConflictError,
)
from historykit.planning import (
    check_revision,
    cut_page,
    plan_append,
    plan_claim,
    plan_patch,
    plan_release,
    plan_renewal,
    plan_replace,
    plan_update,
    retention_cut,
)
from historykit.records import PAGE_BYTES, MessagePatch, ReplaceRequest, StoredMessage, Window
from historykit.session_records import RunLease, SessionDraft, SessionPatch
from tests.core.stored import KEY, draft, head, request


def known(*drafts, first=1):
    return {d.id: (sequence, d.digest) for sequence, d in enumerate(drafts, start=first)}


def test_the_first_append_creates_the_session():
    """Where there is no session, the plan begins at 1 and names the new incarnation."""
    plan = plan_append(request(draft("a"), draft("b")), None, {})
    assert plan.first_sequence == 1
    assert plan.receipt.incarnation == "new"
    assert (plan.receipt.version, plan.receipt.created, plan.receipt.stored) == (1, True, 2)
    assert plan.receipt.sequences == (1, 2)


def test_an_append_goes_on_where_the_session_ends():
    """The plan of a further append takes the next sequences and moves the version by one."""
    plan = plan_append(request(draft("c"), draft("d")), head(), {})
    assert plan.receipt.sequences == (3, 4)
    assert (plan.receipt.incarnation, plan.receipt.version) == ("old", 2)
    assert not plan.receipt.created


def test_a_repeat_stores_nothing_and_tells_the_first_places():
    """An append whose messages are all stored plans no drafts and answers as the first one."""
    drafts = draft("a"), draft("b")
    plan = plan_append(request(*drafts), head(), known(*drafts))
    assert plan.drafts == ()
    assert plan.receipt.sequences == (1, 2)
    assert (plan.receipt.version, plan.receipt.stored) == (1, 0)


def test_a_repeat_is_no_version_conflict():
    """A repeat succeeds although the version moved on by the append that it repeats."""
    drafts = draft("a"), draft("b")
    plan = plan_append(request(*drafts, expected_version=0), head(), known(*drafts))
    assert plan.drafts == ()


def test_a_repeat_is_recognized_by_its_last_message():
    """A batch whose older part was trimmed since is still a repeat."""
    drafts = draft("a"), draft("b")
    plan = plan_append(request(*drafts), head(), known(drafts[1], first=2))
    assert plan.drafts == ()
    assert plan.receipt.sequences == (None, 2)


def test_a_batch_that_is_stored_in_part_is_a_conflict():
    """A longer batch under the key of a shorter one is refused."""
    drafts = draft("a"), draft("b")
    with pytest.raises(ConflictError, match="another key"):
        plan_append(request(*drafts), head(), known(drafts[0]))


def test_an_id_with_other_content_is_a_conflict():
    """An id that is stored with another digest is refused."""
    with pytest.raises(ConflictError, match="other content"):
        plan_append(request(draft("a", "new")), head(), known(draft("a", "old")))


def test_external_ids_are_known_one_by_one():
    """Of messages with ids of their own only the new ones are stored, in order."""
    drafts = [draft(id, external=True) for id in "abc"]
    plan = plan_append(request(*drafts), head(), known(*drafts[:2]))
    assert [d.id for d in plan.drafts] == ["c"]
    assert plan.receipt.sequences == (1, 2, 3)


def test_external_ids_are_known_in_a_repeated_batch_too():
    """A new message with an id of its own is stored although the rest of the batch is a repeat."""
    minted, external = draft("m"), draft("x", external=True)
    plan = plan_append(request(minted, external), head(), known(minted))
    assert [d.id for d in plan.drafts] == ["x"]


@pytest.mark.parametrize("expected", [0, 2])
def test_another_version_is_a_conflict(expected):
    """An append that expects another version than the actual one is refused and says both."""
    with pytest.raises(VersionConflictError) as raised:
        plan_append(request(draft("c"), expected_version=expected), head(), {})
    assert (raised.value.expected, raised.value.actual) == (expected, 1)


def test_a_session_that_is_not_there_is_at_version_0():
    """An append that expects version 0 creates the session, one that expects 1 is refused."""
    assert plan_append(request(draft("a"), expected_version=0), None, {}).receipt.created
    with pytest.raises(VersionConflictError):
        plan_append(request(draft("a"), expected_version=1), None, {})


@pytest.mark.parametrize("found", [None, head(incarnation="other")])
def test_an_incarnation_that_is_gone_is_not_revived(found):
    """An append that names a life of the session that ended is refused."""
    with pytest.raises(SessionDeletedError):
        plan_append(request(draft("a"), incarnation="mine"), found, {})


def test_a_session_without_memory_stores_nothing():
    """Where a session keeps no memory, the plan has no drafts and no places."""
    for found, create in [
        (head(memory_enabled=False), SessionDraft()),
        (None, SessionDraft(memory_enabled=False)),
    ]:
        plan = plan_append(request(draft("a"), create=create), found, {})
        assert plan.drafts == ()
        assert plan.receipt.sequences == (None,)


@pytest.mark.parametrize(
    ("starts", "oldest_wanted", "opening", "cut"),
    [
        ([1, 3, 5], 3, (1, "user"), (1, 2)),
        ([1, 3, 5], 4, (1, "user"), (1, 2)),
        ([1, 3, 5], 5, (1, "user"), (1, 4)),
        ([2, 4], 4, (1, "system"), (2, 3)),
        ([2, 4], 4, (1, "developer"), (2, 3)),
        ([2], 2, (1, "system"), None),
        ([1], 3, (1, "user"), None),
        ([], 3, (1, "user"), None),
        ([], 3, None, None),
    ],
)
def test_retention_cuts_before_the_turn_of_the_oldest_wanted(starts, oldest_wanted, opening, cut):
    """What is removed ends before a turn start, and spares a system message that opens all."""
    assert retention_cut(starts, oldest_wanted=oldest_wanted, opening=opening) == cut


def rows(*lengths):
    return [
        StoredMessage(n, str(n), "user", b"x" * length, 0, False)
        for n, length in enumerate(lengths, start=1)
    ]


def test_a_page_holds_as_many_messages_as_the_window():
    """A page takes no more rows than the window has, and notes that there are more."""
    page, more = cut_page(reversed(rows(1, 1, 1)), Window(limit=2))
    assert ([row.sequence for row in page], more) == ([2, 3], True)


def test_a_page_after_a_message_goes_forward():
    """A page in the other direction keeps the order of the rows."""
    page, more = cut_page(rows(1, 1), Window(limit=2, after=0))
    assert ([row.sequence for row in page], more) == ([1, 2], False)


def test_a_page_ends_where_its_bytes_do():
    """A page ends before the message that would exceed its bytes, but holds one at least."""
    huge = PAGE_BYTES + 1
    assert [
        len(cut_page(rows(*lengths), Window(after=0))[0])
        for lengths in [(huge, 1), (1, huge), (PAGE_BYTES - 1, 1), (PAGE_BYTES, 1), (1, 1)]
    ] == [1, 1, 2, 1, 2]


def test_an_empty_page_knows_that_there_is_more():
    """A page of a window of none is empty."""
    assert cut_page(rows(1), Window(limit=0)) == ((), True)
    assert cut_page(rows(), Window()) == ((), False)


def test_a_revision_is_checked_where_it_is_named():
    """Another revision than the one named is a conflict."""
    check_revision(KEY, None, 3)
    check_revision(KEY, 3, 3)
    with pytest.raises(VersionConflictError, match="revision 3, not 2"):
        check_revision(KEY, 2, 3)


MINE = RunLease(run_id="mine", expires_at=20)


@pytest.mark.parametrize(
    "held", [None, RunLease(run_id="mine", expires_at=15), RunLease(run_id="other", expires_at=10)]
)
def test_a_run_claims_what_is_free(held):
    """A claim succeeds where nobody, the same run or an expired one holds the session."""
    assert plan_claim(KEY, held, MINE, now=10) == MINE


def test_a_run_does_not_claim_what_another_holds():
    """A claim is refused while another run's lease lasts."""
    with pytest.raises(RunInProgressError, match="other"):
        plan_claim(KEY, RunLease(run_id="other", expires_at=11), MINE, now=10)


def test_a_run_renews_what_it_holds():
    """A renewal succeeds even after expiry, as long as nobody else came."""
    assert plan_renewal(KEY, RunLease(run_id="mine", expires_at=1), MINE) == MINE


@pytest.mark.parametrize("held", [None, RunLease(run_id="other", expires_at=99)])
def test_a_run_does_not_renew_what_it_lost(held):
    """A renewal is refused where the run does not hold the session any more."""
    with pytest.raises(RunInProgressError, match="stop it"):
        plan_renewal(KEY, held, MINE)


def test_only_the_holder_releases():
    """A lease is removed by the run that holds it and by no other."""
    assert plan_release(MINE, "mine")
    assert not plan_release(MINE, "other")
    assert not plan_release(None, "mine")


def replacement(*drafts, expected_version=1):
    return ReplaceRequest(
        key=KEY, stream="main", drafts=drafts, expected_version=expected_version, now=0
    )


def test_a_replacement_goes_on_with_the_sequence():
    """The receipt of a replacement has the next sequences and the next version."""
    receipt = plan_replace(replacement(draft("a"), draft("b")), head(), set())
    assert (receipt.sequences, receipt.version, receipt.stored) == ((3, 4), 2, 2)
    assert (receipt.ids, receipt.incarnation) == (("a", "b"), "old")


def test_a_replacement_is_of_one_version_and_one_stream():
    """A replacement at another version, or with an id of another stream, is a conflict."""
    with pytest.raises(VersionConflictError):
        plan_replace(replacement(draft("a"), expected_version=0), head(), set())
    with pytest.raises(ConflictError, match="another stream"):
        plan_replace(replacement(draft("a")), head(), {"a"})


def test_an_update_changes_what_the_patch_names():
    """A patch changes the fields it names, and the revision."""
    (row,) = rows(1)
    assert plan_update(row, MessagePatch()) == row._replace(revision=1)
    patch = MessagePatch(body=b"n", digest=b"d", reaction="LIKE", extra=b"e", required_role="user")
    assert plan_update(row, patch) == row._replace(
        body=b"n", reaction="LIKE", extra=b"e", revision=1
    )
    with pytest.raises(InvalidRequestError, match="Only assistant messages"):
        plan_update(row, MessagePatch(required_role="assistant"))


def test_a_patch_changes_the_fields_it_names():
    """A session keeps what the patch does not name, and its revision moves by one."""
    record = SessionDraft(agent_id="a", body=b"b").as_record(KEY, "i", 5)
    changed = plan_patch(record, SessionPatch(status="failed", memory_enabled=False), 0, now=7)
    assert (changed.status, changed.memory_enabled) == ("failed", False)
    assert (changed.agent_id, changed.body, changed.created_at) == ("a", b"b", 5)
    assert (changed.updated_at, changed.revision, changed.version) == (7, 1, 0)


def test_a_patch_is_of_one_revision():
    """A patch of another revision than the session's is a conflict."""
    record = SessionDraft().as_record(KEY, "i", 5)
    with pytest.raises(VersionConflictError, match="revision 0, not 1"):
        plan_patch(record, SessionPatch(status="failed"), 1, now=7)
