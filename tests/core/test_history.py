from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

import historykit
from historykit import (
    ConfigError,
    ConflictError,
    EncodeError,
    HistoryConfig,
    InvalidRequestError,
    Message,
    SessionDeletedError,
    StoreClosedError,
    TranscriptDivergedError,
    VersionConflictError,
)
from historykit.history import ATTEMPTS, History
from historykit.memory import MemoryStore
from historykit.records import Retention
from historykit.session_records import SessionDraft, SessionKey

pytestmark = pytest.mark.asyncio


class RacingStore(MemoryStore):
    """Lets another writer come first between reading a tail and writing, as often as it is told."""

    races = 0

    async def _read_tail(self, key, stream):
        tail = await super()._read_tail(key, stream)
        if self.races:
            self.races -= 1
            await History(self, namespace=key.namespace).append(
                key.session_id, [Message("user", "other")], stream="elsewhere"
            )
        return tail


@pytest_asyncio.fixture
async def history():
    async with History(RacingStore(), namespace="n") as history:
        yield history


def user(*texts):
    return [Message("user", text) for text in texts]


def texts(messages):
    return [message.text for message in messages]


async def test_a_history_is_opened_by_the_name_of_its_backend():
    """`open_history` gives a history over the backend of that name, with namespace and user."""
    async with historykit.open_history("memory", namespace="support", user_id="ada") as history:
        assert history.key("s") == SessionKey("support", "ada", "s")
        assert repr(history) == "History('memory', namespace='support', user_id='ada')"


async def test_a_history_is_opened_from_a_configuration():
    """`open_history` takes a configuration, and arguments go before what it says."""
    config = HistoryConfig(backend="memory", namespace="a", user_id="ada")
    assert historykit.open_history(config).key("s").namespace == "a"
    history = historykit.open_history(config, namespace="b", user_id="")
    assert (history.namespace, history.user_id) == ("b", "")


async def test_settings_reach_the_backend():
    """A setting that the backend does not have is an error that names it."""
    with pytest.raises(ConfigError, match="path"):
        historykit.open_history("memory", path="chat.db")


async def test_what_is_not_given_is_read_from_the_environment(monkeypatch):
    """The backend, the namespace and the user come from the environment where no argument says."""
    monkeypatch.setenv("HISTORYKIT_BACKEND", "memory")
    monkeypatch.setenv("HISTORYKIT_NAMESPACE", "support")
    monkeypatch.setenv("HISTORYKIT_USER_ID", "ada")
    assert historykit.open_history().key("s") == SessionKey("support", "ada", "s")
    history = historykit.open_history("memory", namespace="sales", user_id="")
    assert history.key("s") == SessionKey("sales", "", "s")


async def test_a_history_without_a_backend_says_how_to_name_one(monkeypatch):
    """Without argument and environment the error names the ways to choose a backend."""
    monkeypatch.delenv("HISTORYKIT_BACKEND", raising=False)
    with pytest.raises(ConfigError, match="HISTORYKIT_BACKEND"):
        historykit.open_history()


async def test_a_history_needs_its_store_open():
    """A history that was not opened says so."""
    with pytest.raises(StoreClosedError):
        await History(MemoryStore()).load("s")


@pytest.mark.parametrize("fields", [{"namespace": ""}, {"user_id": "\0"}])
async def test_namespace_and_user_are_identifiers(fields):
    """A namespace or user that is no identifier is refused at once."""
    with pytest.raises(InvalidRequestError):
        History(MemoryStore(), **fields)


async def test_users_have_their_own_sessions(history):
    """A session id is another session for each user, and for nobody."""
    await history.append("s", user("nobody's"))
    await history.as_user("ada").append("s", user("ada's"))
    assert texts(await history.load("s")) == ["nobody's"]
    assert texts(await history.as_user("ada").load("s")) == ["ada's"]
    assert await history.as_user("bob").load("s") == []
    with pytest.raises(InvalidRequestError, match="user_id"):
        history.as_user("")


async def test_a_view_of_a_user_leaves_the_store_open(history):
    """Closing the history of one user closes nothing for the others."""
    async with history.as_user("ada") as view:
        await view.append("s", user("a"))
    await history.as_user("bob").aclose()
    assert texts(await history.as_user("ada").load("s")) == ["a"]


@pytest.mark.parametrize("key", ["", 5, "\0"])
async def test_an_idempotency_key_is_an_identifier(history, key):
    """A key that is empty, as where a header is missing, or no text is refused by its name."""
    with pytest.raises(InvalidRequestError, match="idempotency_key"):
        await history.append("s", user("a"), idempotency_key=key)


async def test_messages_come_back_as_new_objects(history):
    """What is loaded equals what was appended and shares nothing with it."""
    message = Message("user", "a", additional_properties={"x": [1]})
    await history.append("s", [message])
    (one,), (two,) = await history.load("s"), await history.load("s")
    one.additional_properties["x"].append(2)
    assert two.to_dict() == message.to_dict()


async def test_appending_nothing_is_nothing(history):
    """An append of no messages returns None and creates no session."""
    assert await history.append("s", []) is None
    assert await history.append_transcript("s", []) is None
    assert (await history.read("s")).incarnation is None


async def test_a_batch_with_a_bad_item_stores_nothing(history):
    """Where one item cannot be stored, the error names it and none of the batch is stored."""
    bad = Message("user", "b", additional_properties={"x": object()})
    with pytest.raises(EncodeError, match=r"messages\[1\]"):
        await history.append("s", [*user("a"), bad, *user("c")])
    assert await history.load("s") == []


async def test_a_repeat_under_the_same_key_stores_nothing(history):
    """An append that is repeated with its idempotency key answers as the first one."""
    first = await history.append("s", user("yes", "yes"), idempotency_key="k")
    again = await history.append("s", user("yes", "yes"), idempotency_key="k")
    assert (again.ids, again.sequences, again.stored) == (first.ids, first.sequences, 0)
    assert texts(await history.load("s")) == ["yes", "yes"]


async def test_a_key_belongs_to_one_batch(history):
    """Another batch under a key that was used is refused."""
    await history.append("s", user("yes"), idempotency_key="k")
    with pytest.raises(ConflictError, match="another key"):
        await history.append("s", user("no"), idempotency_key="k")
    with pytest.raises(ConflictError, match="another key"):
        await history.append("s", user("yes", "no"), idempotency_key="k")


async def test_cumulative_batches_with_ids_are_stored_once(history):
    """Batches that repeat messages with ids add what is new in them."""
    batch = [Message("user", text, message_id=text) for text in "abc"]
    for end in (1, 2, 3, 3):
        await history.append("s", batch[:end])
    assert texts(await history.load("s")) == ["a", "b", "c"]


async def test_an_append_names_version_incarnation_retention_and_the_new_session(history):
    """The conditions and options of an append reach the store."""
    create = SessionDraft(agent_id="assistant")
    receipt = await history.append("s", user("a"), expected_version=0, create=create)
    assert (await history.store.read_session(history.key("s"))).agent_id == "assistant"
    with pytest.raises(VersionConflictError):
        await history.append("s", user("b"), expected_version=0)
    await history.append("s", [*user("b"), Message("assistant", "c")], retention=Retention(1))
    assert texts(await history.load("s")) == ["b", "c"]
    await history.delete("s")
    with pytest.raises(SessionDeletedError):
        await history.append("s", user("d"), incarnation=receipt.incarnation)


async def test_a_transcript_adds_what_is_new(history):
    """A transcript that is sent again and longer adds its new messages, ids or not."""
    for sent in ("a", "ab", "ab", "abc", "ab"):
        await history.append_transcript("s", user(*sent))
    assert texts(await history.load("s")) == ["a", "b", "c"]
    assert await history.append_transcript("s", user("a", "b", "c")) is None


async def test_a_transcript_may_repeat_itself(history):
    """Equal messages at different places of a transcript are all kept."""
    turn = [Message("user", "yes", message_id="1"), Message("assistant", "ok")]
    await history.append_transcript("s", turn)
    await history.append_transcript("s", turn * 2)
    assert texts(await history.load("s")) == ["yes", "ok", "yes", "ok"]


async def test_a_transcript_that_diverges_is_an_error_or_replaces(history):
    """A transcript that does not continue the history is refused, unless replacing is asked for."""
    await history.append_transcript("s", user("a", "b"))
    with pytest.raises(TranscriptDivergedError):
        await history.append_transcript("s", user("a", "x"))
    assert texts(await history.load("s")) == ["a", "b"]
    await history.append_transcript("s", user("a", "x"), diverged="replace")
    assert texts(await history.load("s")) == ["a", "x"]
    with pytest.raises(InvalidRequestError, match="'error' or 'replace'"):
        await history.append_transcript("s", user("a"), diverged="ignore")


async def test_a_transcript_is_compared_anew_where_another_writer_came_first(history):
    """A transcript whose session moved between reading and writing is compared again."""
    history.store.races = 3
    await history.append_transcript("s", user("a", "b"))
    assert texts(await history.load("s")) == ["a", "b"]


async def test_a_transcript_gives_up_where_others_always_come_first(history):
    """After many attempts the conflict comes out."""
    history.store.races = ATTEMPTS
    with pytest.raises(VersionConflictError):
        await history.append_transcript("s", user("a"))


async def test_parallel_transcripts_of_one_conversation_are_stored_once(history):
    """The same transcript sent many times at once is stored once."""
    await asyncio.gather(*(history.append_transcript("s", user("a", "b")) for _ in range(10)))
    assert texts(await history.load("s")) == ["a", "b"]


async def test_a_transcript_does_not_revive_a_deleted_session(history):
    """A transcript that names a life of the session that ended is refused."""
    receipt = await history.append_transcript("s", user("a"))
    await history.delete("s")
    with pytest.raises(SessionDeletedError):
        await history.append_transcript("s", user("a"), incarnation=receipt.incarnation)


async def test_retention_and_transcripts_go_together(history):
    """A transcript goes on although older messages of it were trimmed."""
    for end in (1, 2, 3, 4):
        await history.append_transcript("s", user(*"abcd"[:end]), retention=Retention(2))
    assert texts(await history.load("s")) == ["c", "d"]


async def test_deleting_tells_what_went(history):
    """`delete` removes a session and counts its messages."""
    await history.append("s", user("a", "b"))
    receipt = await history.delete("s")
    assert (receipt.sessions, receipt.messages) == (1, 2)
    assert await history.load("s") == []


@pytest.mark.parametrize("bound", ["2", -1, True, 1.0])
@pytest.mark.parametrize("name", ["limit", "turns"])
async def test_a_bound_that_is_none_is_named(history, name, bound):
    """What is loaded is bounded by a number of 0 or more: the error names argument and value."""
    wanted = f"{name} must be None or an integer of 0 or more, not {bound!r}"
    for call in (history.load, history.read, history.provider().get_messages):
        with pytest.raises(InvalidRequestError, match=wanted):
            await call("s1", **{name: bound})
