from __future__ import annotations

import pytest
import pytest_asyncio

from historykit import (
    CapabilityNotSupportedError,
    InvalidRequestError,
    StorageError,
    TooLargeError,
)
from historykit.memory import MemoryStore
from historykit.records import MessagePatch, MessageSelector, Slice, Window
from historykit.session_records import SessionDraft, SessionQuery
from historykit.store import HistoryStore, system_clock
from tests.core.stored import KEY, draft

pytestmark = pytest.mark.asyncio


class SmallStore(MemoryStore):
    max_body_bytes = 200


class PlainStore(MemoryStore):
    capabilities = frozenset()


@pytest_asyncio.fixture
async def store():
    async with SmallStore(clock=lambda: 1_000_000) as store:
        yield store


async def test_the_clock_of_a_store_is_the_one_it_was_given(store):
    """`now` is the time of the clock that was given, by default the system's in microseconds."""
    assert store.now() == 1_000_000
    assert abs(MemoryStore().now() - system_clock()) < 10_000_000


async def test_an_empty_append_is_refused(store):
    """An append of nothing is an error, and creates no session."""
    with pytest.raises(InvalidRequestError, match="at least one"):
        await store.append(KEY, [])
    assert (await store.read(KEY)).incarnation is None


async def test_an_id_comes_once_in_a_batch(store):
    """A batch in which an id occurs twice is refused, naming the second place."""
    with pytest.raises(InvalidRequestError, match="message 1 occurs twice"):
        await store.append(KEY, [draft("a"), draft("a")])


async def test_a_message_that_is_too_large_is_refused_before_anything_is_written(store):
    """A body over the store's bound names the message, both sizes, and nothing is stored."""
    with pytest.raises(TooLargeError, match=r"message 1 takes .* at most 200") as raised:
        await store.append(KEY, [draft("a"), draft("b", "x" * 200)])
    assert raised.value.status_code == 413
    assert (await store.read(KEY)).messages == ()


async def test_an_update_that_is_too_large_is_refused(store):
    """The bound holds for changes too."""
    await store.append(KEY, [draft("a")])
    large = draft("a", "x" * 200)
    with pytest.raises(TooLargeError):
        await store.update_message(KEY, "a", MessagePatch(body=large.body, digest=large.digest))


@pytest.mark.parametrize("version", [-1, True, "1", 1.0])
async def test_versions_are_numbers(store, version):
    """An expected version or revision that is no number of 0 or more is refused."""
    with pytest.raises(InvalidRequestError, match="expected_version"):
        await store.append(KEY, [draft("a")], expected_version=version)
    with pytest.raises(InvalidRequestError, match="expected_version"):
        await store.replace(KEY, [draft("a")], expected_version=version)
    with pytest.raises(InvalidRequestError, match="if_revision"):
        await store.patch_session(KEY, SessionDraft().as_patch(), if_revision=version)


async def test_a_stream_has_an_identifier(store):
    """A stream whose name is no identifier is refused by every call."""
    for call in (
        store.append(KEY, [draft("a")], stream=""),
        store.read(KEY, stream=""),
        store.read_tail(KEY, stream=""),
        store.read_newest([KEY], stream=""),
        store.replace(KEY, [draft("a")], stream="", expected_version=0),
    ):
        with pytest.raises(InvalidRequestError, match="stream"):
            await call


@pytest.mark.parametrize("id", ["", "nul\0", "\ud800", "i" * 257, None])
async def test_a_message_has_an_identifier(store, id):
    """A message that is named by what is no identifier is refused by every call, and the bad id is
    named."""
    with pytest.raises(InvalidRequestError, match="message_id"):
        await store.read_message(KEY, id)
    with pytest.raises(InvalidRequestError, match="message_id"):
        await store.update_message(KEY, id, MessagePatch(reaction="LIKE"))
    with pytest.raises(InvalidRequestError, match=r"ids\[1\]"):
        MessageSelector(ids=("a", id))


async def test_what_to_do_with_an_existing_session_is_one_of_three(store):
    """Another word for `if_exists` is refused."""
    with pytest.raises(InvalidRequestError, match="'error', 'return' or 'update'"):
        await store.create_session(KEY, SessionDraft(), if_exists="ignore")


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e30, "1", True, None])
async def test_a_lease_lasts(store, ttl):
    """A lease of no time, and one without an end, is refused."""
    await store.create_session(KEY, SessionDraft())
    with pytest.raises(InvalidRequestError, match=r"ttl|64 bits"):
        await store.claim_run(KEY, "run", ttl=ttl)


@pytest.mark.parametrize(
    ("capability", "call"),
    [
        ("EDIT", lambda store: store.update_message(KEY, "a", MessagePatch(reaction="LIKE"))),
        ("EDIT", lambda store: store.delete_messages(KEY, MessageSelector(ids=("a",)))),
        ("EDIT", lambda store: store.replace(KEY, [draft("a")], expected_version=0)),
        ("CATALOGUE", lambda store: store.find_sessions(SessionQuery(namespace="n"))),
        ("RUNS", lambda store: store.claim_run(KEY, "r", ttl=1)),
        ("RUNS", lambda store: store.renew_run(KEY, "r", ttl=1)),
        ("RUNS", lambda store: store.release_run(KEY, "r")),
    ],
)
async def test_a_call_without_its_capability_is_refused(capability, call):
    """A call of a capability that the store does not have names it and the store."""
    async with PlainStore() as store:
        with pytest.raises(CapabilityNotSupportedError, match=capability) as raised:
            await call(store)
    assert (raised.value.capability, raised.value.backend) == (capability, "memory")


async def test_a_declared_capability_without_its_methods_is_an_error_of_the_store():
    """A store that declares a capability and does not have its methods says so."""

    class Boasting(MemoryStore):
        _update_message = HistoryStore._update_message
        _delete_messages = HistoryStore._delete_messages
        _replace = HistoryStore._replace
        _find_sessions = HistoryStore._find_sessions
        _claim_run = HistoryStore._claim_run
        _renew_run = HistoryStore._renew_run
        _release_run = HistoryStore._release_run

    async with Boasting() as store:
        for call in (
            store.update_message(KEY, "a", MessagePatch()),
            store.delete_messages(KEY, MessageSelector(ids=())),
            store.replace(KEY, [], expected_version=0),
            store.find_sessions(SessionQuery(namespace="n")),
            store.claim_run(KEY, "r", ttl=1),
            store.renew_run(KEY, "r", ttl=1),
            store.release_run(KEY, "r"),
        ):
            with pytest.raises(StorageError) as raised:
                await call
            assert isinstance(raised.value.__cause__, NotImplementedError)


async def test_a_session_that_is_not_there_is_empty(store):
    """Reading a session that does not exist is no error."""
    assert await store.read(KEY, Window(limit=5)) == Slice((), None, 0, 0, False)
    tail = await store.read_tail(KEY)
    assert (tail.incarnation, tail.version, tail.count, tail.digests) == (None, 0, 0, ())


async def test_ping_tells_what_answers(store):
    """`ping` names the product behind the store."""
    assert (await store.ping()).product == "memory"
