"""The reference store. What every store does is in the conformance suite; this is what holds it to
be the reference: each branch of it, on small cases that can be read."""

from __future__ import annotations

import pytest
import pytest_asyncio

from historykit import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    RunInProgressError,
    StorageError,
    VersionConflictError,
    load_backend,
)
from historykit.memory import MemoryConfig, MemoryStore
from historykit.records import MessagePatch, MessageSelector, Retention, Window
from historykit.session_records import SessionDraft, SessionKey, SessionPatch, SessionQuery
from tests.core.stored import KEY, draft

pytestmark = pytest.mark.asyncio


class Clock:
    """A clock that stands still until it is moved."""

    now = 1_000_000

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest_asyncio.fixture
async def store(clock):
    async with MemoryStore(clock=clock) as store:
        yield store


def ids(found):
    return [row.id for row in found.messages]


async def filled(store, *ids, **fields):
    return await store.append(KEY, [draft(id) for id in ids], **fields)


async def test_the_backend_describes_itself():
    """The backend `memory` is found by its name and makes this store."""
    spec = load_backend("memory")
    assert isinstance(spec.make_store(MemoryConfig()), MemoryStore)
    assert spec.capabilities == MemoryStore.capabilities


async def test_an_unexpected_error_is_a_storage_error(store):
    """An error within the store comes out as a `StorageError` that names the operation."""
    store._sessions = None
    with pytest.raises(StorageError, match="read failed in the memory store"):
        await store.read(KEY)


async def test_windows(store):
    """A window returns the newest messages, those before one, or those after one."""
    await filled(store, *"abcde")
    assert ids(await store.read(KEY)) == list("abcde")
    assert ids(await store.read(KEY, Window(limit=2))) == list("de")
    assert ids(await store.read(KEY, Window(limit=2, before=4))) == list("bc")
    assert ids(await store.read(KEY, Window(limit=2, after=1))) == list("bc")
    assert ids(await store.read(KEY, Window(limit=0))) == []
    assert (await store.read(KEY, Window(limit=2))).more
    assert not (await store.read(KEY, Window(after=1))).more


async def test_a_system_message_that_opens_the_stream_comes_with_a_limited_window(store):
    """The opening system message is beside a window that does not reach it, else not."""
    await store.append(KEY, [draft("s", role="system"), draft("a"), draft("b")])
    assert (await store.read(KEY, Window(limit=1))).opening.id == "s"
    assert (await store.read(KEY, Window(limit=3))).opening is None
    assert (await store.read(KEY, Window(limit=1, after=0))).opening is None
    assert (await store.read(KEY, Window(limit=0))).opening is None


async def test_only_a_system_message_opens_a_stream(store):
    """A stream that begins with a user's message has no opening."""
    await filled(store, *"abc")
    assert (await store.read(KEY, Window(limit=1))).opening is None


async def test_a_repeat_is_recognized(store):
    """The same ids again are not stored again."""
    first = await filled(store, "a", "b")
    again = await filled(store, "a", "b")
    assert again.ids == first.ids
    assert again.sequences == first.sequences
    assert again.stored == 0
    assert ids(await store.read(KEY)) == ["a", "b"]


async def test_retention_trims_whole_turns(store):
    """An append with retention leaves the newest messages from a turn start on, and counts."""
    for id in "abcd":
        await store.append(
            KEY,
            [draft(id), draft(id + "1", role="assistant")],
            retention=Retention(3),
        )
    assert ids(await store.read(KEY)) == ["c", "c1", "d", "d1"]
    tail = await store.read_tail(KEY)
    assert (tail.count, tail.trimmed) == (4, 4)
    assert (await store.read_session(KEY)).message_count == 4


async def test_retention_that_cuts_nothing_changes_nothing(store):
    """Where no turn starts below the messages wanted, all stay."""
    drafts = [draft(id, turn_start=False) for id in "abc"]
    await store.append(KEY, drafts, retention=Retention(1))
    assert ids(await store.read(KEY)) == list("abc")


async def test_the_tail_has_the_digests_of_the_newest_messages(store):
    """The tail of a stream holds at most eight digests, oldest first."""
    drafts = [draft(str(n)) for n in range(10)]
    await store.append(KEY, drafts)
    tail = await store.read_tail(KEY)
    assert tail.digests == tuple(d.digest for d in drafts[2:])
    assert tail.count == 10


async def test_an_update_keeps_the_place(store, clock):
    """A message that is changed stays where it is, and its revision, version and epoch move."""
    await filled(store, *"abc")
    before = await store.read(KEY)
    new = draft("b", "changed")
    clock.now += 1
    row = await store.update_message(
        KEY, "b", MessagePatch(body=new.body, digest=new.digest, extra=b"x")
    )
    after = await store.read(KEY)
    assert ids(after) == list("abc")
    assert (row.body, row.extra, row.revision, row.sequence) == (new.body, b"x", 1, 2)
    assert after.messages[1] == row
    assert (after.version, after.epoch) == (before.version + 1, before.epoch + 1)
    assert (await store.read_tail(KEY)).digests[1] == new.digest
    assert (await store.read_session(KEY)).updated_at == clock.now


async def test_a_reaction_is_set_and_cleared_where_the_role_allows(store):
    """A patch that requires a role leaves messages of other roles alone."""
    await store.append(KEY, [draft("u"), draft("a", role="assistant")])
    like = MessagePatch(reaction="LIKE", required_role="assistant")
    assert (await store.update_message(KEY, "a", like)).reaction == "LIKE"
    clear = MessagePatch(reaction=None, required_role="assistant")
    assert (await store.update_message(KEY, "a", clear)).reaction is None
    with pytest.raises(InvalidRequestError, match="Only assistant messages"):
        await store.update_message(KEY, "u", like)
    assert (await store.read(KEY)).messages[0].reaction is None


async def test_what_is_not_there_is_not_updated(store):
    """Changing an unknown message or session is a `NotFoundError`."""
    with pytest.raises(NotFoundError, match="session 's1' not found"):
        await store.update_message(KEY, "a", MessagePatch(reaction="LIKE"))
    await filled(store, "a")
    with pytest.raises(NotFoundError, match="Message not found"):
        await store.update_message(KEY, "z", MessagePatch(reaction="LIKE"))


@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        ({"ids": ("a", "c", "z")}, "bd"),
        ({"first": 3}, "ab"),
        ({"last": 2}, "cd"),
        ({"first": 2, "last": 3}, "ad"),
        ({"created_before": 2}, "cd"),
        ({"ids": ("a", "d"), "last": 3}, "bcd"),
        ({"ids": ()}, "abcd"),
    ],
)
async def test_a_selector_deletes_what_meets_all_its_conditions(store, conditions, left):
    """Messages that meet every condition go, the others stay in order."""
    await store.append(KEY, [draft(id, created_at=n) for n, id in enumerate("abcd")])
    before = await store.read(KEY)
    count = await store.delete_messages(KEY, MessageSelector(**conditions))
    after = await store.read(KEY)
    assert ids(after) == list(left)
    assert count == 4 - len(left)
    assert (after.version - before.version) == (after.epoch - before.epoch) == bool(count)


async def test_deleting_in_a_session_that_is_not_there_is_nothing(store):
    """Deleting messages of no session counts 0."""
    assert await store.delete_messages(KEY, MessageSelector(ids=("a",))) == 0


async def test_sequences_are_not_used_again(store):
    """What comes after a deletion gets a higher place than what was deleted."""
    await filled(store, *"ab")
    await store.delete_messages(KEY, MessageSelector(ids=("b",)))
    assert (await filled(store, "c")).sequences == (3,)
    assert (await filled(store, "b")).sequences == (4,)


async def test_replace_puts_new_messages_in_the_place_of_all(store):
    """A replacement leaves only its own messages, at new places, and moves version and epoch."""
    await filled(store, *"abc")
    receipt = await store.replace(KEY, [draft("c"), draft("n")], expected_version=1)
    found = await store.read(KEY)
    assert ids(found) == ["c", "n"]
    assert receipt.sequences == (4, 5)
    assert (receipt.version, found.version, found.epoch) == (2, 2, 1)


async def test_replace_expects_a_session_at_a_version(store):
    """A replacement of nothing is not found, one at another version a conflict."""
    with pytest.raises(NotFoundError):
        await store.replace(KEY, [draft("a")], expected_version=0)
    await filled(store, *"ab")
    with pytest.raises(VersionConflictError):
        await store.replace(KEY, [draft("c")], expected_version=0)
    assert ids(await store.read(KEY)) == list("ab")


async def test_sessions_are_created_once(store, clock):
    """An existing session is an error, or returned, or changed, as asked."""
    first = await store.create_session(KEY, SessionDraft(agent_id="a", body=b"1"))
    assert (first.agent_id, first.created_at, first.revision) == ("a", clock.now, 0)
    with pytest.raises(ConflictError, match="exists already"):
        await store.create_session(KEY, SessionDraft())
    assert await store.create_session(KEY, SessionDraft(), if_exists="return") == first
    changed = await store.create_session(KEY, SessionDraft(agent_id="b"), if_exists="update")
    assert (changed.agent_id, changed.body, changed.revision) == ("b", b"", 1)
    assert changed.incarnation == first.incarnation


async def test_a_session_may_be_older_than_its_record(store):
    """A draft that names the time of creation keeps it."""
    record = await store.create_session(KEY, SessionDraft(created_at=5))
    assert record.created_at == 5


async def test_patches_change_the_fields_they_name(store):
    """A patch changes what it names, moves the revision and leaves the version."""
    await store.create_session(KEY, SessionDraft(agent_id="a"))
    patch = SessionPatch(
        status="archived", memory_enabled=False, labels=frozenset("l"), body=b"new"
    )
    record = await store.patch_session(KEY, patch, if_revision=0)
    assert (record.agent_id, record.status, record.memory_enabled) == ("a", "archived", False)
    assert (record.labels, record.body) == (frozenset("l"), b"new")
    assert (record.version, record.revision) == (0, 1)
    with pytest.raises(VersionConflictError):
        await store.patch_session(KEY, SessionPatch(agent_id="b"), if_revision=0)
    assert (await store.patch_session(KEY, SessionPatch(agent_id="b"))).agent_id == "b"


async def test_a_deleted_session_is_gone(store):
    """Deleting counts what went, and nothing is found after it."""
    await filled(store, *"ab")
    receipt = await store.delete_session(KEY)
    assert (receipt.sessions, receipt.messages) == (1, 2)
    receipt = await store.delete_session(KEY)
    assert (receipt.sessions, receipt.messages) == (0, 0)
    with pytest.raises(NotFoundError):
        await store.read_session(KEY)


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({}, "dcba"),
        ({"user_id": "u"}, "ca"),
        ({"agent_id": "x"}, "b"),
        ({"status": "failed"}, "c"),
        ({"memory_enabled": False}, "d"),
        ({"labels": frozenset({"l", "m"})}, "b"),
        ({"created_from": 2}, "dcb"),
        ({"created_before": 2}, "a"),
        ({"limit": 2}, "dc"),
        ({"limit": 2, "offset": 3}, "a"),
        ({"namespace": "elsewhere"}, ""),
    ],
)
async def test_sessions_are_found_by_their_fields(store, conditions, found):
    """A query finds what meets all its conditions, newest first."""
    sessions = {
        "a": ("u", SessionDraft(created_at=1)),
        "b": ("v", SessionDraft(created_at=2, agent_id="x", labels=frozenset("lmn"))),
        "c": ("u", SessionDraft(created_at=3, status="failed", labels=frozenset("l"))),
        "d": ("v", SessionDraft(created_at=3, memory_enabled=False)),
    }
    for id, (user, fields) in sessions.items():
        await store.create_session(SessionKey("n", user, id), fields)
    result = await store.find_sessions(SessionQuery(**{"namespace": "n"} | conditions))
    assert "".join(record.key.session_id for record in result.records) == found


async def test_a_walk_continues_behind_a_position(store):
    """Pages by position hold each session once, and tell whether there are more."""
    for n in range(5):
        await store.create_session(SessionKey("n", "", str(n)), SessionDraft(created_at=n // 2))
    seen, position, more = [], None, True
    while more:
        page = await store.find_sessions(SessionQuery(namespace="n", limit=2, position=position))
        seen += [record.key.session_id for record in page.records]
        position, more = page.records[-1].position, page.more
        assert page.total == 5
    assert seen == ["4", "3", "2", "1", "0"]
    untold = await store.find_sessions(SessionQuery(namespace="n", with_total=False))
    assert untold.total is None


async def test_a_run_holds_a_session(store, clock):
    """A session is held by one run until it is released or the lease ends."""
    await store.create_session(KEY, SessionDraft())
    lease = await store.claim_run(KEY, "one", ttl=10)
    assert lease.expires_at == clock.now + 10_000_000
    assert (await store.read_session(KEY)).run_id == "one"
    with pytest.raises(RunInProgressError):
        await store.claim_run(KEY, "two", ttl=10)
    clock.now += 5_000_000
    await store.renew_run(KEY, "one", ttl=10)
    clock.now += 9_000_000
    with pytest.raises(RunInProgressError):
        await store.claim_run(KEY, "two", ttl=10)
    clock.now += 1_000_000
    await store.claim_run(KEY, "two", ttl=10)
    with pytest.raises(RunInProgressError):
        await store.renew_run(KEY, "one", ttl=10)
    assert not await store.release_run(KEY, "one")
    assert await store.release_run(KEY, "two")
    record = await store.read_session(KEY)
    assert (record.run_id, record.run_expires_at, record.version, record.revision) == (
        None,
        None,
        0,
        0,
    )


async def test_no_session_is_held_by_nobody(store):
    """Claiming what is not there is not found, releasing it is nothing."""
    with pytest.raises(NotFoundError):
        await store.claim_run(KEY, "run", ttl=1)
    assert not await store.release_run(KEY, "run")
