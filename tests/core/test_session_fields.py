from __future__ import annotations

import json
from enum import IntEnum, StrEnum
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from historykit import ExecutionConfig, History, Session
from historykit.errors import InvalidRequestError, ResourceError, SessionStateError, ValidationError
from historykit.memory import MemoryStore
from historykit.session_bodies import wanted_labels


class Level(IntEnum):
    ONE = 1


class Word(StrEnum):
    ONE = "one"


DATA = {
    "id": "sess_001",
    "name": "First",
    "description": None,
    "path": None,
    "userId": "user_1",
    "agentId": "agent_1",
    "status": "active",
    "runStatus": "idle",
    "messageCount": 3,
    "lastMessagePreview": "Hello there",
    "lastMessageAt": "2025-06-01T10:05:00Z",
    "createdAt": "2025-06-01T10:00:00Z",
    "updatedAt": "2025-06-01T10:05:00Z",
    "executionConfig": None,
}
NUMBERS = [str(number) for number in range(101)]
BESIDE = {"memoryEnabled": True, "metadata": {}, "tags": [], "parentId": None}


@pytest_asyncio.fixture
async def history():
    async with History(MemoryStore()) as history:
        yield history


def test_a_session_out_of_a_dict() -> None:
    """All fields are read from names in camelCase, or from those of Python."""
    session = Session.from_dict({**DATA, "unknown": 1})
    assert session.to_dict() == {**DATA, **BESIDE}
    assert (session.message_count, session.last_message_preview) == (3, "Hello there")
    snake = Session.from_dict({"agent_id": "a", "memory_enabled": False, "metadata": None})
    assert (snake.agent_id, snake.memory_enabled, snake.metadata) == ("a", False, {})


def test_a_dict_is_plain_json() -> None:
    """`to_dict` can be written as JSON, a config in the form of the service."""
    session = Session(execution_config={"criteria": "c", "budget": {"max_cost": 1}})
    data = json.loads(json.dumps(session.to_dict()))
    assert data["executionConfig"] == {
        "criteria": "c",
        "executionParams": {"budget": {"maxCost": 1}},
    }
    assert Session.from_dict(data).to_dict() == session.to_dict()


def test_a_legacy_limit_is_folded_without_a_warning() -> None:
    """`maxIterations` in the config of a dict is the budget's."""
    data = {"executionConfig": {"executionParams": {"maxIterations": 3}}}
    config = Session.from_dict(data).execution_config
    assert config is not None
    assert config.budget is not None
    assert config.budget.max_iterations == 3


def test_the_documented_order_of_arguments() -> None:
    """The fields may be given in the documented order."""
    session = Session("s1", "n", "d", "p", "agent_9", "u", "ignored", "failed")
    assert (session.id, session.name, session.agent_id) == ("s1", "n", "agent_9")
    assert (session.user_id, session.status, session.path) == ("u", "failed", "p")


def test_defaults() -> None:
    """A new session is active, bound to no agent, and has no config."""
    session = Session()
    assert (session.status, session.agent_id, session.execution_config) == ("active", "", None)
    assert (session.id, session.message_count, session.memory_enabled) == (None, 0, True)


@pytest.mark.parametrize(
    ("agent", "agent_id"),
    [("agent_9", "agent_9"), (SimpleNamespace(id="agent_9"), "agent_9"), ("", "kept")],
)
def test_an_agent_gives_its_id(agent: Any, agent_id: str) -> None:
    """`agent` is an id or an object with one, and goes before `agent_id` unless it is empty."""
    session = Session(agent=agent, agent_id="kept")
    assert session.agent_id == agent_id
    assert "agent" not in session.to_dict()


@pytest.mark.parametrize("agent", [SimpleNamespace(id=None), SimpleNamespace(id=""), 5])
def test_an_agent_without_an_id(agent: object) -> None:
    """It is a `ResourceError` that says what an agent is."""
    with pytest.raises(ResourceError, match="agent must be a saved Agent"):
        Session(agent=agent)


def test_what_is_no_argument() -> None:
    """There are no tools of a session, and a config is no text."""
    with pytest.raises(TypeError):
        Session(tools=[])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="execution_config must be"):
        Session(execution_config="fast")  # type: ignore[arg-type]


def test_a_config_stays_the_same_object() -> None:
    """An `ExecutionConfig` is kept, a dict becomes one, also where it is assigned later."""
    config = ExecutionConfig(criteria="c", run_response_generation=False)
    assert Session(execution_config=config).execution_config is config
    session = Session(execution_config={"criteria": "c"})  # type: ignore[arg-type]
    assert isinstance(session.execution_config, ExecutionConfig)
    session.execution_config = {"run_response_generation": False}  # type: ignore[assignment]
    assert isinstance(session.execution_config, ExecutionConfig)
    with pytest.raises(TypeError, match="execution_config must be"):
        session.execution_config = 5  # type: ignore[assignment]
    assert session.build_save_payload()["executionConfig"] == {"runResponseGeneration": False}


def test_the_payload_of_a_new_session() -> None:
    """It has the agent, the name and the status."""
    session = Session(agent_id="agent_1", name="First")
    assert session.build_save_payload() == {
        "agentId": "agent_1",
        "name": "First",
        "status": "active",
    }
    assert Session(status="").build_save_payload() == {}


def test_the_payload_has_nothing_that_is_the_stores() -> None:
    """Of a session that was read, only what can be set is sent, changed or not."""
    session = Session.from_dict({**DATA, "executionConfig": {}})
    session.name, session.status = "Second", "archived"
    assert session.build_save_payload() == {
        "agentId": "agent_1",
        "name": "Second",
        "status": "archived",
        "executionConfig": {},
    }


def test_it_shows_id_and_name() -> None:
    """`repr` and `str` have the class, the id and the name."""
    assert repr(Session(id="s1", name="n")) == str(Session(id="s1", name="n"))
    assert repr(Session(id="s1", name="n")) == "Session(id='s1', name='n')"


@pytest.mark.asyncio
async def test_modified(history: History) -> None:
    """A session is modified until it is saved, and when it differs from what was saved."""
    session = history.Session(name="n", execution_config={"budget": {"max_cost": 1}})
    assert session.is_modified
    await session.save()
    assert not session.is_modified
    assert not (await history.Session.get(session.id)).is_modified
    session.name = "other"
    assert session.is_modified
    session.name = "n"
    assert not session.is_modified
    session.execution_config.budget.max_cost = 2
    assert session.is_modified
    await session.save()
    session.metadata["a"] = 1
    assert session.is_modified


@pytest.mark.asyncio
async def test_a_clone(history: History) -> None:
    """A clone has the fields and no id; what it has is its own, and it can be saved."""
    session = await history.Session(id="s1", name="n", metadata={"a": 1}).save()
    await session.add_message("user", "Hi")
    await session.refresh()
    clone = session.clone(name="other")
    assert (clone.id, clone.name, clone.message_count) == (None, "other", 1)
    assert clone.is_modified
    clone.metadata["a"] = 2
    assert session.metadata == {"a": 1}
    await clone.save()
    assert clone.id not in (None, "s1")
    assert (clone.message_count, clone.metadata) == (0, {"a": 2})
    with pytest.raises(TypeError):
        session.clone(nothing=1)


CALLS = {
    "messages": lambda session: session.messages(),
    "add_message": lambda session: session.add_message("user", "Hi"),
    "get_message": lambda session: session.get_message("m"),
    "delete_message": lambda session: session.delete_message("m"),
    "react": lambda session: session.react("m", "LIKE"),
    "refresh": lambda session: session.refresh(),
    "delete": lambda session: session.delete(),
    "fork": lambda session: session.fork(),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("call", CALLS)
async def test_a_session_that_was_not_saved(history: History, call: str) -> None:
    """Every call on it is a `ValidationError` and a `ResourceError` that says what to do."""
    with pytest.raises(
        SessionStateError, match=r"has not been saved yet. Call .save\(\)"
    ) as caught:
        await CALLS[call](history.Session(agent="a"))
    assert isinstance(caught.value, ValidationError)
    assert isinstance(caught.value, ResourceError)


@pytest.mark.asyncio
@pytest.mark.parametrize("call", [*CALLS, "save"])
async def test_a_session_that_was_deleted(history: History, call: str) -> None:
    """Every call on the object is a `ValidationError`, saving it again too."""
    session = await history.Session().save()
    await session.delete()
    assert session.is_deleted
    assert session.id is None
    with pytest.raises(ValidationError, match="Session has been deleted and cannot be used"):
        await CALLS.get(call, lambda session: session.save())(session)
    with pytest.raises(ValidationError, match="has been deleted"):
        session.as_agent_session()


@pytest.mark.asyncio
async def test_a_session_whose_id_was_taken_away(history: History) -> None:
    """Its calls are refused; saved, it is a new session."""
    session = await history.Session(name="n").save()
    session.id = None
    with pytest.raises(ValidationError, match="has been deleted or is invalid"):
        await session.messages()
    await session.save()
    assert (await history.Session.search()).total == 2


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"status": "sleeping"}, "status must be one of active, completed, failed, archived"),
        ({"name": 5}, "name must be a text"),
        ({"description": b""}, "description must be a text"),
        ({"memory_enabled": None}, "memory_enabled must be True or False"),
        ({"agent_id": 5}, "agent_id must be a text"),
        ({"id": "a\0"}, "NUL"),
        ({"metadata": dict.fromkeys(NUMBERS[:60]), "tags": NUMBERS[60:]}, "at most 100"),
    ],
)
async def test_a_field_that_cannot_be_saved(
    history: History, fields: dict[str, Any], message: str
) -> None:
    """The error names the field, has the status 400, and nothing is stored."""
    with pytest.raises(InvalidRequestError, match=message) as caught:
        await history.Session(**fields).save()
    assert caught.value.status_code == 400
    assert (await history.Session.search()).total == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"metadata": {"a": []}}, r"metadata\['a'\] must be a text, a number"),
        ({"metadata": {5: "a"}}, "a key of metadata must be a text"),
        ({"metadata": ["a"]}, "metadata must be a dict"),
        ({"tags": "a"}, "tags must be a list"),
        ({"tags": [5]}, "a tag must be a string"),
        ({"tags": [""]}, "a tag must have"),
    ],
)
def test_metadata_and_tags_that_nothing_can_have(fields: dict[str, Any], message: str) -> None:
    """The error names what is wrong, also where it is assigned later."""
    with pytest.raises(InvalidRequestError, match=message):
        Session(**fields)
    session = Session()
    for name, value in fields.items():
        setattr(session, name, value)
    with pytest.raises(InvalidRequestError, match=message):
        session.to_dict()


@pytest.mark.parametrize(
    ("stored", "found", "others"),
    [
        (1, [1, 1.0, Level.ONE], [True, "1", 1.5]),
        (Level.ONE, [1, 1.0], [True]),
        (True, [True], [1, "True"]),
        (None, [None], ["None", 0, False]),
        (float("nan"), [float("nan")], ["nan"]),
        (2**70, [2**70, float(2**70)], [2**70 + 1]),
        (int(1e308), [1e308], [int(1e308) + 1]),
        (Word.ONE, ["one", Word.ONE], [1]),
        ("", [""], [None]),
    ],
    ids=str,
)
def test_equal_values_have_one_label(stored: Any, found: list[Any], others: list[Any]) -> None:
    """A value of metadata is found by what equals it; a bool, a text and a number never do."""
    labels = wanted_labels({"k": stored}, [])
    assert all(wanted_labels({"k": value}, []) == labels for value in found)
    assert not any(wanted_labels({"k": value}, []) == labels for value in others)
    assert wanted_labels({"other": stored}, []) != labels
    assert wanted_labels({}, ["k"]) != labels


def test_an_integer_of_any_length_has_a_label() -> None:
    """Also one that is too long for Python to write it in decimal."""
    labels = wanted_labels({"k": 10**5000}, [])
    assert labels == wanted_labels({"k": 10**5000}, [])
    assert labels != wanted_labels({"k": 10**5000 + 1}, [])


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("old", "new"), [(1, True), (True, 1.0), (1, 1.0), (0.0, -0.0), (0, False)], ids=repr
)
async def test_a_value_of_another_type_is_a_change(history: History, old: Any, new: Any) -> None:
    """For Python both are equal; what is stored is not."""
    config = {"execution_params": {"flags": [old]}}
    session = await history.Session(metadata={"k": old}, execution_config=config).save()
    other = await history.Session.get(session.id)
    other.metadata["k"] = new
    assert other.is_modified
    await other.save(execution_config={"execution_params": {"flags": [new]}})
    for shown in (other, await history.Session.get(session.id), await session.refresh()):
        assert repr(shown.metadata) == repr({"k": new})
        assert repr(shown.execution_config.execution_params["flags"]) == repr([new])


@pytest.mark.asyncio
async def test_a_value_that_is_no_number_is_no_change(history: History) -> None:
    """NaN is not equal to itself, and yet the same."""
    session = await history.Session(metadata={"k": float("nan")}).save()
    session.metadata = {"k": float("nan")}
    assert not session.is_modified


@pytest.mark.asyncio
async def test_a_config_of_another_type(history: History) -> None:
    """The error is that of the constructor."""
    with pytest.raises(TypeError, match="execution_config must be ExecutionConfig, dict, or None"):
        await history.Session().save(execution_config=5)


def test_a_tag_occurs_once() -> None:
    """Tags keep their order; a set of them is sorted."""
    assert Session(tags=["b", "a", "b"]).tags == ["b", "a"]
    assert Session(tags={"b", "a"}).tags == ["a", "b"]  # type: ignore[arg-type]
