from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from historykit import (
    Agent,
    AgentSession,
    APIError,
    Budget,
    ConflictError,
    CorruptRecordError,
    DeleteResult,
    ForbiddenError,
    History,
    InvalidRequestError,
    Message,
    MessageCodec,
    NotFoundError,
    OpaqueValue,
    ResourceError,
    RunStatus,
    Session,
    SessionStatus,
    VersionConflictError,
    register_state_type,
)
from historykit.memory import MemoryStore
from historykit.pages import TextHit
from historykit.records import Window
from historykit.session_records import SessionDraft, SessionPatch
from historykit.session_writing import change_body, create_or_change

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def history():
    async with History(MemoryStore()) as history:
        yield history


async def corrupt(history: History, body: dict[str, Any] | bytes) -> None:
    """Create the session "s1" with a body that no session has."""
    data = body if isinstance(body, bytes) else history.codec.encode(body)
    await history.store.create_session(history.key("s1"), SessionDraft(body=data))


# -- the class


async def test_each_history_has_a_class_of_its_own(history: History) -> None:
    """It is a subclass of `Session`, whose context is the history, and always the same."""
    other = history.as_user("ada")
    assert issubclass(history.Session, Session)
    assert history.Session is history.Session
    assert history.Session is not other.Session
    assert (history.Session.context, other.Session.context) == (history, other)
    assert history.Session.__name__ == "Session"


async def test_the_words_are_on_the_history(history: History) -> None:
    """The enums are attributes of a history."""
    assert history.SessionStatus.ACTIVE == "active"
    assert history.RunStatus.IDLE == "idle"
    assert history.MessageRole.USER == "user"
    assert history.Reaction.LIKE == "LIKE"
    assert history.AttachmentType.AUDIO == "audio"


CONTEXT = "a context is required"


@pytest.mark.parametrize(
    "call",
    [
        lambda: Session.get("s1"),
        lambda: Session.search(),
        lambda: Session.get_or_create("s1"),
        lambda: Session(agent="a").save(),
        lambda: Session(id="s1").messages(),
        lambda: Session(id="s1").delete(),
        lambda: anext(Session.iterate()),
    ],
)
async def test_without_a_history(call: Any) -> None:
    """Every call of a session that is bound to no history is a `ResourceError`."""
    with pytest.raises(ResourceError, match=CONTEXT):
        await call()


async def test_an_object_can_be_bound(history: History) -> None:
    """A session that was made without a history works once it is given one; so does its clone."""
    session = Session(name="n")
    session.context = history
    await session.save()
    clone = await session.clone().save()
    assert clone.id != session.id
    fork = await session.fork()
    assert fork.parent_id == session.id


async def test_a_session_that_is_not_there_can_be_created(history: History) -> None:
    """The error says how, and where sessions of users are, whether there is one or not."""
    await history.as_user("ada").Session(id="hers").save()
    for id in ("hers", "nobodys"):
        for call in (
            lambda id=id: history.Session.get(id),
            lambda id=id: history.Session(id=id).add_message("user", "Hi"),
        ):
            says = rf"session '{id}' not found; Session.get_or_create, or save\(\) .*; .*as_user$"
            with pytest.raises(NotFoundError, match=says):
                await call()
    with pytest.raises(NotFoundError, match=r"'s1' not found; .* creates it$"):
        await history.as_user("ada").Session.get("s1")


async def test_an_unknown_field_names_the_class(history: History) -> None:
    """The error for an argument that there is not names `Session`."""
    with pytest.raises(TypeError, match=r"^Session.__init__\(\) got .*'nme'"):
        history.Session(nme="n")


async def test_only_the_session_of_an_agent_has_a_state_to_save(history: History) -> None:
    """A `Session`, and an id, are refused with the way to what is meant."""
    chat = await history.Session(id="s1").save()
    for given in (chat, "s1"):
        with pytest.raises(TypeError, match=r"takes an AgentSession, not .*; as_agent_session\(\)"):
            await history.save_state(given)


async def test_agents_have_no_sessions_of_their_own() -> None:
    """Sessions are found by a search, and not through an agent."""
    for name in ("create_session", "list_sessions", "generate_session_id"):
        assert not hasattr(Agent, name)


# -- saving


async def test_a_save_returns_the_object(history: History) -> None:
    """`save` sets what it is given and returns the session itself, with what the store added."""
    session = history.Session(agent="a")
    assert await session.save(name="n", status=SessionStatus.FAILED) is session
    assert (session.name, session.status, session.run_status) == ("n", "failed", "idle")
    assert session.created_at == session.updated_at != ""
    await session.save(agent=SimpleNamespace(id="b"))
    assert (await history.Session.get(session.id)).agent_id == "b"


async def test_a_field_can_be_taken_away(history: History) -> None:
    """What is set to None or emptied and saved is gone."""
    session = await history.Session(
        name="n", description="d", agent="a", execution_config={"criteria": "c"}
    ).save()
    await session.save(name=None, description=None, agent_id="", execution_config=None)
    found = await history.Session.get(session.id)
    assert (found.name, found.description, found.agent_id) == (None, None, "")
    assert found.execution_config is None


async def test_what_a_session_does_not_have(history: History) -> None:
    """A save leaves it out and warns of it, at the line that saves."""
    with pytest.warns(UserWarning, match="no nmae, .* did you mean 'name'") as caught:
        await history.Session().save(nmae="n", name="x")
    assert caught[0].filename == __file__
    assert (await history.Session.search()).results[0].name == "x"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"execution_config": {"budget": {"max_cost": "one"}}}, InvalidRequestError),
        ({"execution_config": {"budget": 5}}, TypeError),
        ({"execution_config": 5}, TypeError),
        ({"status": "open"}, InvalidRequestError),
        ({"user_id": "bob"}, ForbiddenError),
        ({"id": "other"}, InvalidRequestError),
        ({"agent": 5}, ResourceError),
        ({"metadata": {"a": []}}, InvalidRequestError),
        ({"execution_config": {"execution_params": {"x": ...}}}, InvalidRequestError),
    ],
    ids=str,
)
async def test_a_save_that_fails_leaves_the_object_as_it_was(
    history: History, changes: dict[str, Any], error: type[Exception]
) -> None:
    """Nothing is set, so that the object can be used, and saved otherwise, as before."""
    session = await history.as_user("ada").Session(id="s1", name="n", metadata={"a": 1}).save()
    session.description = "set before"
    before = session.to_dict()
    with pytest.raises(error):
        await session.save(path="p", **changes)
    assert session.to_dict() == before
    assert await session.messages() == []
    await session.save(name="new")
    assert (session.name, session.description) == ("new", "set before")


async def test_a_session_that_was_read_stays_that_one(history: History) -> None:
    """Another id or user is refused, however it was set, and says how to make another session."""
    session = await history.Session(id="s1").save()
    for name in ("id", "user_id"):
        with pytest.raises(InvalidRequestError, match=rf"the {name} of a session stays: .*clone"):
            await session.save(**{name: "other"})
    session.id = "other"
    with pytest.raises(InvalidRequestError, match="the id of a session stays: 's1'"):
        await session.save()
    new = await history.Session().save(id="s2", user_id="ada", path="p")
    assert (new.id, new.user_id, new.path) == ("s2", "ada", "p")


async def test_a_field_that_is_the_stores(history: History) -> None:
    """A save leaves it as it is and warns of it, at the line that saves."""
    session = await history.Session().save()
    with pytest.warns(UserWarning, match="the store sets created_at, message_count; ") as caught:
        await session.save(message_count=99, created_at="2020-01-01", name="n")
    assert caught[0].filename == __file__
    assert (session.message_count, session.name) == (0, "n")
    assert not session.is_modified


async def test_a_refresh_gives_up_a_config_that_cannot_be(history: History) -> None:
    """Also one that was changed in place to what no config is."""
    session = await history.Session(execution_config={"execution_params": {"a": 1}}).save()
    session.execution_config.execution_params["budget"] = {"max_cost": "one"}
    with pytest.raises(InvalidRequestError, match="max_cost"):
        await session.save()
    await session.refresh()
    assert session.execution_config.execution_params == {"a": 1}


async def test_a_deprecated_limit_is_warned_of_where_it_is_saved(history: History) -> None:
    """`max_iterations` in the config becomes the budget's, with a warning at the caller's line."""
    session = history.Session(execution_config={"execution_params": {"max_tokens": 1}})
    for limit in (5, 10):
        session.execution_config.execution_params = {"max_iterations": limit}
        assert session.is_modified  # without a warning
        with pytest.warns(DeprecationWarning, match="max_iterations") as caught:
            await session.save()
        assert {each.filename for each in caught} == {__file__}
    stored = (await history.Session.get(session.id)).to_dict()["executionConfig"]
    assert stored == {"executionParams": {"budget": {"maxIterations": 10}}}


async def test_an_empty_config_is_one(history: History) -> None:
    """A config in which nothing is set comes back as that, and not as None."""
    session = await history.Session(execution_config={}).save()
    config = (await history.Session.get(session.id)).execution_config
    assert config is not None
    assert config.to_api_dict() == {}


async def test_a_config_that_was_saved_is_the_same_object(history: History) -> None:
    """A save that stores what the config says keeps the object."""
    session = history.Session(execution_config={"budget": Budget(max_cost=1)})
    config = session.execution_config
    await session.save()
    assert session.execution_config is config


async def test_a_save_without_a_change(history: History) -> None:
    """It changes no field, and sees what others changed."""
    session = await history.Session(id="s1", name="n").save()
    await (await history.Session.get("s1")).save(name="other")
    await session.save()
    assert session.name == "other"


async def test_a_status_that_was_stored_otherwise(history: History) -> None:
    """A status that sessions do not have may stay, and cannot be set."""
    await history.store.create_session(history.key("s1"), SessionDraft(status="odd"))
    session = await history.Session.get("s1")
    await session.save(name="n")
    assert (session.name, session.status) == ("n", "odd")
    await session.save(status="active")
    with pytest.raises(InvalidRequestError, match="status must be one of"):
        await session.save(status="odd")


async def test_what_others_keep_with_a_session_stays(history: History) -> None:
    """Labels and parts of the body that a later version wrote are there after a save."""
    draft = SessionDraft(
        body=history.codec.encode({"name": "n", "later": {"x": 1}}), labels=frozenset({"other"})
    )
    await history.store.create_session(history.key("s1"), draft)
    session = await history.Session.get("s1")
    await session.save(tags=["t"], name="new")
    record = await history.store.read_session(history.key("s1"))
    body = history.codec.decode(record.body)
    assert body == {"name": "new", "later": {"x": 1}, "tags": ["t"]}
    assert "other" in record.labels
    assert len(record.labels) == 2


class Hooked(Session):
    """Notes what its hooks are called with."""

    def __post_init__(self, agent: Any) -> None:
        super().__post_init__(agent)
        self.seen: list[Any] = []
        self.early: Any = None
        self.late: Any = None

    async def before_save(self, **changes: Any) -> Any:
        self.seen.append(changes)
        return self.early

    def after_save(self, result: Any, **changes: Any) -> Any:
        self.seen.append(result)
        return self.late


async def test_hooks_around_a_save(history: History) -> None:
    """One is called before with the changes, one after with the session; both may be async."""
    session = Hooked()
    session.context = history
    assert await session.save(name="n", replace=True) is session
    assert session.seen == [{"name": "n", "replace": True}, session]
    session.late = "instead"
    assert await session.save() == "instead"
    session.early, session.seen = "early", []
    assert await session.save(name="other") == "early"
    assert session.seen == [{"name": "other"}]
    assert (await history.Session.get(session.id)).name == "n"


async def test_a_hook_sees_an_error(history: History) -> None:
    """The hook after a save is called with a `ResourceError`, and may give something instead."""
    session = Hooked(status="no")
    session.context = history
    with pytest.raises(InvalidRequestError):
        await session.save()
    assert isinstance(session.seen[-1], InvalidRequestError)
    session.late = "instead"
    assert await session.save() == "instead"


async def test_a_value_that_cannot_be_stored(history: History) -> None:
    """It is a `ResourceError` with the status 400 that names the path; nothing is stored."""
    session = history.Session(execution_config={"execution_params": {"x": object()}})
    with pytest.raises(InvalidRequestError, match=r"Failed to save resource.*x"):
        await session.save()
    assert (await history.Session.search()).total == 0


async def test_a_session_that_is_changed_without_end(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that never finds the session as it was read gives up with the conflict."""
    monkeypatch.setattr("historykit.session_writing.ATTEMPTS", 3)
    session = await history.Session(id="s1").save()
    store, attempts = history.store, []

    async def read_session(key: Any) -> Any:
        record = await MemoryStore.read_session(store, key)
        attempts.append(await store.patch_session(key, SessionPatch()))
        return record

    monkeypatch.setattr(store, "read_session", read_session)
    with pytest.raises(VersionConflictError):
        await session.save(name="n")
    assert len(attempts) == 3


async def test_a_session_that_comes_and_goes(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save under an id that others create and delete meanwhile ends with one of the two."""
    store, key = history.store, history.key("s1")
    created = []

    async def read_session(key: Any) -> Any:
        if not created:
            created.append(await MemoryStore.create_session(store, key, SessionDraft()))
            raise NotFoundError("not yet")
        return await MemoryStore.read_session(store, key)

    monkeypatch.setattr(store, "read_session", read_session)
    record = await create_or_change(
        history, key, SessionDraft(status="failed"), lambda record: SessionPatch(agent_id="a")
    )
    assert (record.agent_id, record.status) == ("a", "active")


async def test_a_run_is_seen(history: History) -> None:
    """While a run holds the session it is running, then what its end left; idle if it had none."""
    session = await history.Session(id="s1").save()
    await history.store.claim_run(history.key("s1"), "r", ttl=60)
    assert (await session.refresh()).run_status == RunStatus.RUNNING
    await history.store.release_run(history.key("s1"), "r")
    assert (await session.refresh()).run_status == "idle"
    await change_body(history, history.key("s1"), lambda body: {"run_status": "completed"})
    assert (await session.refresh()).run_status == "completed"
    await history.store.claim_run(history.key("s1"), "r", ttl=0.000_001)
    assert (await session.refresh()).run_status == "idle"


# -- reading


@pytest.mark.parametrize(
    "body",
    [
        b"?",
        {"metadata": 5},
        {"metadata": {"a": []}},
        {"tags": "t"},
        {"execution_config": 5},
        {"execution_config": {"budget": 5}},
    ],
    ids=str,
)
async def test_a_session_that_cannot_be_read(
    history: History, body: dict[str, Any] | bytes
) -> None:
    """It is a `ResourceError` that names the session, in a search too."""
    await corrupt(history, body)
    with pytest.raises(CorruptRecordError, match=r"Failed to deserialize Session \(id=s1\)"):
        await history.Session.get("s1")
    with pytest.raises(CorruptRecordError, match="Failed to parse session: ") as caught:
        await history.Session.search()
    assert caught.value.session_id == "s1"


async def test_a_damaged_message_does_not_hide_the_session(history: History) -> None:
    """The session is found without a preview, and its messages name the damaged one."""
    session = await history.Session(id="s1").save()
    await session.add_message("user", "Hi")
    row = (await history.store.read(history.key("s1"))).messages[0]
    stream = history.store._sessions[history.key("s1")].stream("main")
    stream.messages[0] = row._replace(body=b"?")
    assert (await history.Session.get("s1")).last_message_preview is None
    with pytest.raises(CorruptRecordError, match="Failed to parse session message 1"):
        await session.messages()
    with pytest.raises(CorruptRecordError, match="cannot be copied"):
        await session.fork()
    assert (await history.Session.search(query="Hi")).results == []


async def test_an_unknown_type_in_a_message(
    history: History, registry: dict[str, type[Any]]
) -> None:
    """A session with it is found without a warning; who reads the message gets one, and data."""
    register_state_type(Basket)
    session = await history.Session(id="s1").save()
    properties = {"basket": Basket(["carrots"])}
    await session.add_messages([Message("user", "Hi", additional_properties=properties)])
    registry.clear()
    assert (await history.Session.get("s1")).last_message_preview == "Hi"
    with pytest.warns(RuntimeWarning, match="basket"):
        (message,) = await session.messages()
    found = message.to_message().additional_properties["basket"]
    assert isinstance(found, OpaqueValue)


async def test_a_preview_follows_the_newest_message(history: History) -> None:
    """It is read again when messages came or went, and kept when only a field was changed."""
    session = await history.Session().save()
    await session.add_message("user", "one")
    two = await session.add_message("assistant", "", attachments=["https://x.org/a.wav"])
    assert (await session.refresh()).last_message_preview == "[audio] a.wav"
    await session.save(name="n")
    assert session.last_message_preview == "[audio] a.wav"
    await session.delete_message(two.id)
    assert (await session.save(name="m")).last_message_preview == "one"


# -- searching


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"status": "sleeping"}, "status must be one of"),
        ({"memory_enabled": "yes"}, "memory_enabled must be True, False or None"),
        ({"created_after": "soon"}, "created_after must be a time"),
        ({"created_before": 5}, "created_before must be a datetime"),
        ({"page_number": -1}, "page_number must be an integer of 0 or more"),
        ({"page_number": True}, "page_number"),
        ({"page_size": 0}, "page_size must be an integer of 1 to 1000"),
        ({"page_size": 1001}, "page_size"),
        ({"page_size": "20"}, "page_size"),
        ({"metadata": {"a": []}}, "metadata"),
        ({"metadata": []}, "metadata must be a dict"),
        ({"tags": "a"}, "tags must be a list"),
        ({"tags": ""}, "tags must be a list"),
        ({"user_id": "a\0"}, "user_id"),
        ({"query": " "}, "query must be a text that is not blank"),
        ({"query": 5}, "query must be a text"),
    ],
    ids=str,
)
async def test_a_condition_that_nothing_can_meet(
    history: History, conditions: dict[str, Any], message: str
) -> None:
    """The error names it and has the status 400."""
    with pytest.raises(InvalidRequestError, match=message) as caught:
        await history.Session.search(**conditions)
    assert caught.value.status_code == 400


async def test_a_search_for_an_agent_without_an_id(history: History) -> None:
    """It is a `ResourceError`."""
    with pytest.raises(ResourceError, match=r"agent must be a saved Agent .*; give it a name="):
        await history.Session.search(agent=SimpleNamespace(id=None))


async def test_unknown_keywords_of_a_search(history: History) -> None:
    """They have no effect, and a warning names them at the line that searches."""
    await history.Session().save()
    with pytest.warns(UserWarning, match="does not know sort_by, sort_order") as caught:
        page = await history.Session.search(sort_by="name", sort_order="asc")
    assert caught[0].filename == __file__
    assert page.total == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [("name", "query"), ("limit", "page_size"), ("statu", "status"), ("tag", "tags")],
)
async def test_an_unknown_keyword_has_a_meaning(history: History, name: str, hint: str) -> None:
    """The warning says what was probably meant; a walk, which may end in a deletion, is refused."""
    says = f"for {name}, did you mean {hint}"
    with pytest.warns(UserWarning, match=rf"search does not know {name}, .* effect; {says}"):
        await history.Session.search(**{name: "x"})
    with pytest.raises(TypeError, match=rf"^iterate\(\) got .* argument '{name}'; {says}"):
        [session async for session in history.Session.iterate(**{name: "x"})]


async def test_a_page_of_a_thousand(history: History) -> None:
    """A page may have more sessions than a store returns at once."""
    for number in range(1002):
        await history.store.create_session(
            history.key(f"s{number}"), SessionDraft(created_at=number)
        )
    page = await history.Session.search(page_size=1000)
    assert [each.id for each in page] == [f"s{number}" for number in range(1001, 1, -1)]
    assert (page.total, page.page_total) == (1002, 2)
    rest = await history.Session.search(page_size=1000, page_number=1)
    assert [each.id for each in rest] == ["s1", "s0"]
    assert len([each async for each in history.Session.iterate(page_size=1000)]) == 1002


@pytest.mark.parametrize("bound", ["SEARCHED_SESSIONS", "SEARCHED_MESSAGES"])
async def test_a_text_search_has_a_bound(
    history: History, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """It looks through so many of the newest sessions, and says that there may be more."""
    monkeypatch.setattr(f"historykit.session_search.{bound}", 2)
    for number in range(3):
        session = await history.Session(id=f"s{number}").save()
        await session.add_message("user", "Hi")
    page = await history.Session.search(query="hi")
    assert [each.id for each in page] == ["s2", "s1"]
    assert (page.total, page.complete) == (2, False)
    assert len([each async for each in history.Session.iterate(query="hi")]) == 3


async def test_a_text_far_back_in_a_session(history: History) -> None:
    """All pages of a session are looked through."""
    session = await history.Session(id="s1").save()
    await session.add_messages([Message("user", str(number)) for number in range(501)])
    await session.add_message("user", "needle")
    assert (await history.Session.search(query="Needle")).total == 1
    assert (await history.Session.search(query="pin")).total == 0


async def test_where_a_text_is(history: History) -> None:
    """Each result has the first message with the text, and what stands around it there."""
    session = await history.Session(name="Berry cake").save()
    other = await history.Session(name="Cake").save()
    await other.add_message("user", "none here")
    found = await other.add_message("user", f"{'x' * 99}\nELDERBERRIES, {'y ' * 99}")
    page = await history.Session.search(query="berr")
    hits = {each.id: hit for each, hit in zip(page, page.hits, strict=True)}
    assert hits[session.id] == TextHit(None, "Berry cake")
    assert hits[other.id].message_id == found.id
    assert hits[other.id].snippet.startswith("x" * 54 + " ELDERBERRIES, y y")
    assert len(hits[other.id].snippet) < 130
    assert (await history.Session.search()).hits == []


async def test_a_walk_can_be_narrowed(history: History) -> None:
    """A walk takes the conditions of a search, and refuses others."""
    await history.Session(agent="a").save()
    assert [each async for each in history.Session.iterate(agent="b")] == []
    with pytest.raises(TypeError):
        await anext(history.Session.iterate(agnet="b"))
    with pytest.raises(InvalidRequestError, match="page_size"):
        await anext(history.Session.iterate(page_size=0))
    with pytest.raises(InvalidRequestError, match="not blank"):
        await anext(history.Session.iterate(query=""))


# -- messages


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"role": "system"}, "role must be 'user' or 'assistant', not 'system'"),
        ({"role": None}, "role must be"),
        ({"content": None}, "content must be a text, not NoneType"),
        ({"content": ""}, "a message needs content or attachments"),
        ({"request_id": 5}, "request_id must be a text"),
        ({"tools": {"id": "t"}}, "tools must be a list"),
        ({"tools": "t"}, "tools must be a list"),
        ({"tools": ["t"]}, r"tools\[0\] must be a dict with an id"),
        ({"tools": [{"id": 5}]}, r"tools\[0\]"),
        ({"tools": [{"id": "t", "parameters": 5}]}, r"parameters of tools\[0\]"),
        ({"tools": [{"id": "t", "parameters": [{"name": "n"}]}]}, r"parameters of tools\[0\]"),
        (
            {"tools": [{"id": "t", "parameters": [{"name": "n", "value": ...}]}]},
            r"beside a message: tools\[0\].parameters\[0\].value",
        ),
    ],
    ids=str,
)
async def test_a_message_that_cannot_be_added(
    history: History, arguments: dict[str, Any], message: str
) -> None:
    """The error names what is wrong, with the status 400, and nothing is stored."""
    session = await history.Session().save()
    with pytest.raises(InvalidRequestError, match=message) as caught:
        await session.add_message(**{"role": "user", "content": "Hi", **arguments})
    assert caught.value.status_code == 400
    assert await session.messages() == []


async def test_a_batch_that_cannot_be_added(history: History) -> None:
    """A batch with one wrong message stores nothing."""
    session = await history.Session().save()
    good = {"role": "user", "content": "Hi"}
    twice = Message("user", "Hi", message_id="m")
    for batch, message in (
        ([good, "Hi"], "a message to add is a Message or a dict, not str"),
        ([good, {**good, "text": "x"}], "no key 'text'; known are .*'content'"),
        ([good, {"role": "user", "contents": "x"}], "no key 'contents'; did you mean 'content'"),
        ([good, {"rol": "user", "content": "x"}], "no key 'rol'; did you mean 'role'"),
        ([good, Message("Hello")], r"needs contents, and this .*Message\('user', 'Hello'\)"),
        ([twice, twice], "comes twice"),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            await session.add_messages(batch)
    assert await session.messages() == []
    assert await session.add_messages([]) == []


async def test_a_message_of_attachments_alone(history: History) -> None:
    """The content may be empty where there are attachments."""
    session = await history.Session().save()
    message = await session.add_message("user", "", attachments=["https://x.org/a.wav"])
    assert message.content == ""
    assert [each.name for each in message.attachments or ()] == ["a.wav"]


async def test_no_tools_are_none(history: History) -> None:
    """An empty list of tools is not kept, and a request id may be empty."""
    session = await history.Session().save()
    message = await session.add_message("user", "Hi", "", tools=[])
    assert (message.request_id, message.tools) == ("", None)
    assert "tools" not in message.to_dict()


@pytest.mark.parametrize("reaction", ["like", "LOVE", "", 1])
async def test_a_reaction_that_there_is_not(history: History, reaction: Any) -> None:
    """It is an `InvalidRequestError` that names those that there are."""
    session = await history.Session().save()
    answer = await session.add_message("assistant", "Hi")
    with pytest.raises(InvalidRequestError, match="reaction must be 'LIKE', 'DISLIKE' or None"):
        await session.react(answer.id, reaction)


async def test_a_reaction_to_nothing(history: History) -> None:
    """It is an `APIError` with the status 404."""
    session = await history.Session().save()
    with pytest.raises(APIError, match="Message not found") as caught:
        await session.react("m", "LIKE")
    assert caught.value.status_code == 404


async def test_lists_that_cannot_be(history: History) -> None:
    """An argument that no list has is named."""
    session = await history.Session().save()
    for arguments, message in (
        ({"order": "up"}, "order must be 'asc' or 'desc'"),
        ({"roles": "user"}, "roles must be a list of texts"),
        ({"limit": -1}, "limit must be None or an integer"),
        ({"after": 1.5}, "a sequence must be"),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            await session.messages(**arguments)
    with pytest.raises(NotFoundError, match="Message not found"):
        await session.messages(before="unknown")
    with pytest.raises(InvalidRequestError, match="cascade must be None or 'turn'"):
        await session.delete_message("m", cascade="all")


async def test_a_list_of_one_time(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where messages are deleted between two pages, the list begins again."""
    session = await history.Session(id="s1").save()
    added = await session.add_messages([Message("user", str(number)) for number in range(600)])
    store, pages = history.store, []

    async def read(key: Any, window: Window) -> Any:
        page = await MemoryStore.read(store, key, window)
        if len(pages) < edits:
            await session.delete_message(added[len(pages)].id)
        pages.append(page)
        return page

    monkeypatch.setattr(store, "read", read)
    edits = 1
    assert len(await session.messages()) == 599
    assert len(pages) == 4
    edits = 100
    with pytest.raises(ConflictError, match="is being edited faster than it can be read"):
        await session.messages()


async def test_a_short_list_reads_no_more_than_it_gives(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest messages of a long session are read in one page of so many."""
    session = await history.Session(id="s1").save()
    await session.add_messages([Message("user", str(number)) for number in range(600)])
    store, windows = history.store, []

    async def read(key: Any, window: Window) -> Any:
        windows.append(window)
        return await MemoryStore.read(store, key, window)

    monkeypatch.setattr(store, "read", read)
    newest = await session.messages(limit=20, order="desc")
    assert [each.content for each in newest] == [str(number) for number in range(599, 579, -1)]
    assert windows == [Window(limit=20)]
    assert await session.messages(limit=0) == []


async def test_the_first_turn_may_have_no_beginning(history: History) -> None:
    """A turn that retention cut is deleted as far as it is there."""
    session = await history.Session().save()
    await session.add_messages(
        [Message("assistant", "one"), Message("tool", "two"), Message("user", "three")]
    )
    listed = await session.messages()
    await session.delete_message(listed[1].id, cascade="turn")
    assert [each.content for each in await session.messages()] == ["three"]


async def test_the_id_of_a_fork_is_taken_meanwhile(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where somebody creates a session of that id at the same moment, it stays as it is."""
    session = await history.Session(id="s1").save()
    await session.add_message("user", "Hi")
    store = history.store

    async def append(key: Any, *arguments: Any, **options: Any) -> Any:
        await store.create_session(key, SessionDraft(status="failed"), if_exists="return")
        return await MemoryStore.append(store, key, *arguments, **options)

    monkeypatch.setattr(store, "append", append)
    with pytest.raises(ConflictError, match="exists already"):
        await session.fork(id="s2")
    other = await history.Session.get("s2")
    assert (other.status, other.message_count) == ("failed", 0)


async def test_a_fork_needs_a_text_as_name(history: History) -> None:
    """Nothing is stored for another one."""
    session = await history.Session(id="s1").save()
    with pytest.raises(InvalidRequestError, match="name must be a text, not int"):
        await session.fork(name=5)  # type: ignore[arg-type]
    assert (await history.Session.search()).total == 1


async def test_a_fork_of_a_session_that_keeps_no_memory_any_more(history: History) -> None:
    """What it kept before is copied, and the fork keeps none either."""
    session = await history.Session(id="s1").save()
    await session.add_message("user", "kept")
    await session.save(memory_enabled=False)
    fork = await session.fork()
    assert [message.content for message in await fork.messages()] == ["kept"]
    assert not fork.memory_enabled
    assert (await fork.add_message("user", "not kept")).sequence == 0


async def test_a_turn_is_one_of_the_conversation(history: History) -> None:
    """A message of another stream is in none, and nothing is deleted."""
    session = await history.Session(id="s1").save()
    await session.add_message("user", "one")
    await history.append("s1", [Message("user", ["note"])], stream="audit")
    await session.add_message("assistant", "two")
    (note,) = (await history.store.read(history.key("s1"), stream="audit")).messages
    with pytest.raises(NotFoundError, match=note.id):
        await session.delete_message(note.id, cascade="turn")
    assert [message.content for message in await session.messages()] == ["one", "two"]


async def test_a_message_of_another_session_is_no_place_in_this_one(history: History) -> None:
    """Its sequence says nothing here."""
    session, other = await history.Session().save(), await history.Session().save()
    message = await other.add_message("user", "one")
    with pytest.raises(InvalidRequestError, match=f"is one of session '{other.id}'"):
        await session.fork(up_to=message)
    with pytest.raises(InvalidRequestError, match=f"not of '{session.id}'"):
        await session.messages(after=message)


async def test_what_delete_returns(history: History) -> None:
    """It says what was deleted."""
    session = await history.Session(id="s1").save()
    await session.add_message("user", "Hi")
    assert await session.delete() == DeleteResult("SUCCESS", True, "s1", 1)


TRIPS = {
    "get": (lambda session: session.get("s1"), ["read_session", "read_newest"]),
    "search": (lambda session: session.search(agent="a"), ["find_sessions", "read_newest"]),
    "refresh": (lambda session: session.refresh(), ["read_session"]),
    "save": (lambda session: session.save(name="n"), ["read_session", "patch_session"]),
    "add_message": (lambda session: session.add_message("user", "Hi"), ["append"]),
    "messages": (lambda session: session.messages(), ["read"]),
    "get_message": (lambda session: session.get_message(session.answer), ["read_message"]),
    "react": (lambda session: session.react(session.answer, "LIKE"), ["update_message"]),
    "delete_message": (lambda session: session.delete_message(session.answer), ["delete_messages"]),
    "delete": (lambda session: session.delete(), ["read_session", "delete_session"]),
}


@pytest.mark.parametrize("call", TRIPS)
async def test_the_round_trips_of_a_call(
    history: History, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Of a session that was read, each call asks the store once or twice."""
    session = await history.Session(id="s1", agent="a").save()
    session.answer = (await session.add_message("assistant", "Hi")).id
    await session.refresh()
    store, asked = history.store, []

    def noted(name: str) -> Any:
        method = getattr(store, name)

        async def note(*arguments: Any, **options: Any) -> Any:
            asked.append(name)
            return await method(*arguments, **options)

        return note

    operations = {name for _, trips in TRIPS.values() for name in trips} | {"create_session"}
    for name in operations:
        monkeypatch.setattr(store, name, noted(name))
    ask, trips = TRIPS[call]
    await ask(session)
    assert asked == trips


# -- the state of an agent's session


@dataclass
class Basket:
    items: list[str]

    def to_dict(self) -> dict[str, Any]:
        return {"items": self.items}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Basket:
        return cls(data["items"])


async def test_objects_in_a_state(history: History, registry: dict[str, type[Any]]) -> None:
    """An object of a state type comes back; where the type is unknown, its data does, exactly."""
    register_state_type(Basket)
    session = AgentSession(session_id="s1")
    session.state["basket"] = Basket(["carrots"])
    await history.save_state(session)
    found = await history.Session.get("s1")
    assert found.as_agent_session().state == {"basket": Basket(["carrots"])}
    registry.clear()
    await found.save(name="n")
    with pytest.warns(RuntimeWarning, match="basket"):
        opaque = found.as_agent_session()
    assert isinstance(opaque.state["basket"], OpaqueValue)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        await history.save_state(opaque)
    register_state_type(Basket)
    assert (await found.refresh()).as_agent_session().state == {"basket": Basket(["carrots"])}


async def test_a_state_that_cannot_be_stored(history: History) -> None:
    """It is an `InvalidRequestError` that names the path, and nothing is stored."""
    session = AgentSession(session_id="s1")
    session.state["x"] = object()
    with pytest.raises(InvalidRequestError, match=r"state.x"):
        await history.save_state(session)
    with pytest.raises(NotFoundError):
        await history.Session.get("s1")


async def test_a_state_is_a_copy(history: History) -> None:
    """What is done to the state of one object is not in another one of the same session."""
    session = AgentSession(session_id="s1")
    session.state["a"] = {"b": 1}
    await history.save_state(session)
    found = await history.Session.get("s1")
    found.as_agent_session().state["a"]["b"] = 2
    session.state["a"]["b"] = 3
    assert found.as_agent_session().state == {"a": {"b": 1}}


async def test_an_object_that_was_never_read_has_no_state(history: History) -> None:
    """Its agent's session begins with an empty state."""
    session = history.Session(id="s1").as_agent_session()
    assert (session.session_id, session.state) == ("s1", {})


async def test_a_state_in_the_memory_of_another_provider_stays(history: History) -> None:
    """Only the messages under the source id of the in-memory provider are left out."""
    session = AgentSession(session_id="s1")
    session.state = {"in_memory": ["x"], "mine": {"messages": ["y"]}}
    await history.save_state(session)
    found = await history.Session.get("s1")
    assert found.as_agent_session().state == session.state


async def test_an_encryption_covers_names_and_previews() -> None:
    """Nothing of a session's fields or messages stands in the store as it is."""

    class Flip:
        tag = 0x80

        def encode(self, data: bytes) -> bytes:
            return bytes(byte ^ 0xFF for byte in data)

        decode = encode

    store = MemoryStore()
    async with History(store, codec=MessageCodec([Flip()])) as history:
        session = await history.Session(name="secret", metadata={"k": "secret"}).save()
        await session.add_message("user", "secret", "secret")
        await history.Session.search(query="SECRET", metadata={"k": "secret"})
        (record,) = [each.record for each in store._sessions.values()]
        (row,) = (await store.read(record.key)).messages
        assert "secret" not in repr(replace(record)) + repr(row)
        page = await history.Session.search(query="SECRET", metadata={"k": "secret"})
        assert [each.last_message_preview for each in page] == ["secret"]


async def test_a_session_can_be_copied(history: History) -> None:
    """A deep copy of a session is one of its own, over the same history."""
    session = await history.Session(metadata={"a": 1}).save()
    other = copy.deepcopy(session)
    other.metadata["a"] = 2
    await other.save()
    assert session.metadata == {"a": 1}
    assert (await session.refresh()).metadata == {"a": 2}
