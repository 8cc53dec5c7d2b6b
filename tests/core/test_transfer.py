from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from historykit.chat_completions import to_chat_completions
from historykit.codec import MessageCodec
from historykit.errors import (
    ConflictError,
    DecodeError,
    InvalidRequestError,
    NotFoundError,
    StorageError,
)
from historykit.exporting import export_sessions, find_all
from historykit.history import History
from historykit.importing import ImportReport, import_conversations, turns
from historykit.memory import MemoryStore
from historykit.messages import Message
from historykit.portable import (
    ExportedMessage,
    ExportedSession,
    ExportEnd,
    ExportStart,
    read_line,
    write_line,
)
from historykit.records import (
    AppendReceipt,
    AppendRequest,
    MessageDraft,
    MessagePatch,
    Slice,
    StoredMessage,
    Window,
)
from historykit.session_records import SessionDraft, SessionKey, SessionPatch, SessionQuery

pytestmark = pytest.mark.asyncio

SAMPLE = Path(__file__).with_name("conversations.jsonl")


@pytest_asyncio.fixture
async def history() -> AsyncIterator[History]:
    async with History(MemoryStore()) as history:
        yield history


@pytest_asyncio.fixture
async def other() -> AsyncIterator[History]:
    async with History(MemoryStore(), namespace="elsewhere") as history:
        yield history


def file(*lines: Any) -> io.BytesIO:
    """A file of lines: bytes, objects to write as JSON, or parts of an export."""
    return io.BytesIO(b"".join(_line(line) for line in lines))


def _line(line: Any) -> bytes:
    if isinstance(line, bytes):
        return line
    if isinstance(line, dict):
        return json.dumps(line).encode() + b"\n"
    return write_line(line)


async def exported(history: History, session_id: str | None = None) -> bytes:
    lines = [write_line(line) async for line in export_sessions(history, session_id=session_id)]
    return b"".join(lines)


async def imported(history: History, data: bytes | Iterable[Any]) -> ImportReport:
    lines = io.BytesIO(data) if isinstance(data, bytes) else file(*data)
    return await import_conversations(history, lines)


async def refused(history: History, *lines: Any) -> str:
    """The error of an import, which must have written nothing."""
    with pytest.raises(InvalidRequestError) as caught:
        await import_conversations(history, file(*lines))
    assert await stored(history) == []
    return str(caught.value)


async def stored(history: History) -> list[Any]:
    """Everything that the main streams of a namespace hold, but for what a store itself counts."""
    found = []
    async for record in find_all(history.store, SessionQuery(namespace=history.namespace)):
        page = await history.store.read(record.key, Window(after=0))
        fields = (
            record.key.user_id,
            record.key.session_id,
            record.agent_id,
            record.status,
            record.memory_enabled,
            record.labels,
            record.body,
            record.created_at,
        )
        rows = [
            (row.id, row.role, row.body, row.created_at, row.turn_start, row.reaction, row.extra)
            for row in page.messages
        ]
        found.append((*fields, rows))
    return found


def conversation(*texts: str, id: str = "s1", **fields: Any) -> dict[str, Any]:
    roles = ("user", "assistant") * len(texts)
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    return {"id": id, "messages": messages, **fields}


def message(id: str, text: str = "Hi", **fields: Any) -> ExportedMessage:
    data = Message("user", text).to_dict()
    return ExportedMessage(id=id, created_at=5, message=data, **fields)


SESSION = ExportedSession(id="s1", created_at=1)


# conversations of chat completions


async def test_every_message_of_a_conversation_comes_back_equal(history: History) -> None:
    """What was imported is what the file had: order, calls of tools and odd fields included."""
    with SAMPLE.open("rb") as lines:
        report = await import_conversations(history, lines)
    assert (report.conversations, report.messages, report.added) == (3, 16, 16)
    for line in SAMPLE.read_text("utf-8").splitlines():
        wanted = json.loads(line)
        messages = await history.load(wanted["id"])
        assert [each for one in messages for each in to_chat_completions(one)] == wanted["messages"]
        record = await history.store.read_session(history.key(wanted["id"]))
        assert record.agent_id == wanted.get("agent", "")


async def test_importing_twice_adds_nothing(history: History) -> None:
    """A repeat finds every message, and leaves the store as it was."""
    await imported(history, SAMPLE.read_bytes())
    before = await stored(history)
    report = await imported(history, SAMPLE.read_bytes())
    assert (report.messages, report.added, report.failures) == (16, 0, ())
    assert await stored(history) == before


async def test_turns_are_saved_one_by_one(history: History) -> None:
    """Each turn is an append of its own: the version of the session counts them."""
    await imported(history, SAMPLE.read_bytes())
    versions = {
        id: (await history.store.read_session(history.key(id))).version
        for id in ("garden-1", "riddle-1", "picture-1")
    }
    assert versions == {"garden-1": 2, "riddle-1": 2, "picture-1": 1}


async def test_a_conversation_that_went_on_adds_its_new_turns(history: History) -> None:
    """The id and the number of the turn identify a save, not the file and not the line."""
    await imported(history, [conversation("a", "b")])
    longer = [conversation(id="other"), b"\n", conversation("a", "b", "c", "d")]
    report = await imported(history, longer)
    assert (report.messages, report.added) == (4, 2)
    assert [message.text for message in await history.load("s1")] == ["a", "b", "c", "d"]


async def test_what_was_said_since_the_import_stays(history: History) -> None:
    """A repeat of the import changes nothing in a conversation that goes on in the store."""
    await imported(history, [conversation("a", "b")])
    await history.append("s1", [Message("user", "c")])
    assert (await imported(history, [conversation("a", "b")])).added == 0
    assert [message.text for message in await history.load("s1")] == ["a", "b", "c"]


async def test_a_conversation_with_other_contents_fails_alone(history: History) -> None:
    """It is named with its line, keeps what the store has, and the next one is stored."""
    await imported(history, [conversation("a", "b")])
    changed = [conversation("a", "B"), conversation("x", id="s2")]
    report = await imported(history, changed)
    (failure,) = report.failures
    assert (failure.line, failure.session_id) == (1, "s1")
    assert isinstance(failure.error, ConflictError)
    assert (report.messages, report.added, report.failed) == (3, 1, 2)
    assert [message.text for message in await history.load("s1")] == ["a", "b"]
    assert [message.text for message in await history.load("s2")] == ["x"]


async def test_what_was_stored_before_a_difference_is_counted(history: History) -> None:
    """Of a conversation that differs later, the turns before are there: added or there already."""
    await imported(history, [conversation("a", "b", "c", "d")])
    await history.delete("s1")
    second = [Message("user", "C")]
    await history.append("s1", second, idempotency_key="import/s1/1")
    report = await imported(history, [conversation("a", "b", "c", "d")])
    assert (report.messages, report.added, report.failed) == (4, 2, 2)


async def test_a_conversation_of_nobody_is_there(history: History) -> None:
    """A conversation without messages is a session without messages."""
    await imported(history, [conversation(agent="helper")])
    record = await history.store.read_session(history.key("s1"))
    assert (record.agent_id, record.message_count) == ("helper", 0)


async def test_a_history_of_one_user_takes_conversations_for_that_user(history: History) -> None:
    """A conversation has no user of its own: it gets the one of the history."""
    await imported(history.as_user("ada"), [conversation("a")])
    assert [each.text for each in await history.as_user("ada").load("s1")] == ["a"]
    assert await history.load("s1") == []


async def test_progress_counts_messages(history: History) -> None:
    """It is told how many messages are done, and of how many; the last call says all."""
    calls: list[tuple[int, int]] = []
    with SAMPLE.open("rb") as lines:
        await import_conversations(history, lines, progress=lambda *call: calls.append(call))
    assert calls[0] == (6, 16)
    assert calls[-1] == (16, 16)
    assert calls == sorted(calls)


@pytest.mark.parametrize(
    ("roles", "lengths"),
    [
        ("", []),
        ("s", [1]),
        ("ua", [2]),
        ("suaua", [3, 2]),
        ("sduatau", [6, 1]),
        ("uua", [3]),
        ("auau", [1, 2, 1]),
        ("usua", [2, 2]),
    ],
)
async def test_a_conversation_is_cut_into_turns(roles: str, lengths: list[int]) -> None:
    """A turn begins where the user speaks, and what opens the conversation is in the first."""
    names = {"s": "system", "d": "developer", "u": "user", "a": "assistant", "t": "tool"}
    messages = [Message(names[role], role) for role in roles]
    parts = turns(messages)
    assert [len(part) for part in parts] == lengths
    assert [message for part in parts for message in part] == messages


# exports


async def everything(history: History) -> None:
    """Fill a history with sessions of all kinds."""
    store = history.store
    await history.append("plain", [Message("user", "Hi"), Message("assistant", "Hello")])
    ada = SessionKey(history.namespace, "ada", "plain")
    odd = SessionKey(history.namespace, "", "a/b:c\t👋")
    body = history.codec.encode({"name": "Garden"})
    session = SessionDraft(
        agent_id="helper",
        status="archived",
        labels=frozenset({"x", "y"}),
        body=body,
        created_at=1_700_000_000_000_000,
    )
    await store.create_session(ada, session)
    drafts = [
        MessageDraft(
            id=f"id {number} 👋",
            role="assistant",
            body=history.codec.encode(
                {"role": "assistant", "contents": [], "wide": 2**70, "at": (number, b"\xff")}
            ),
            digest=bytes(16),
            created_at=number,
            turn_start=number % 3 == 0,
            extra=history.codec.encode({"attachments": [number]}) if number % 2 else b"\x00raw",
        )
        for number in range(5)
    ]
    await store.append(ada, drafts)
    await store.update_message(ada, drafts[1].id, MessagePatch(reaction="LIKE"))
    await store.create_session(odd, SessionDraft(memory_enabled=True))
    await store.append(odd, drafts[:1])
    await store.patch_session(odd, SessionPatch(memory_enabled=False))
    await store.create_session(SessionKey(history.namespace, "", "empty"), SessionDraft())


async def test_an_export_is_the_same_in_another_store(history: History, other: History) -> None:
    """Sessions, order, ids, times, reactions and all that is kept beside come back equal."""
    await everything(history)
    report = await imported(other, await exported(history))
    assert (report.conversations, report.messages, report.added) == (4, 8, 8)
    assert await stored(other) == await stored(history)


async def test_importing_an_export_twice_adds_nothing(history: History, other: History) -> None:
    """A repeat leaves the store as it was, down to the versions of its sessions."""
    await everything(history)
    data = await exported(history)
    await imported(other, data)
    before = [record async for record in find_all(other.store, SessionQuery(namespace="elsewhere"))]
    assert (await imported(other, data)).added == 0
    after = [record async for record in find_all(other.store, SessionQuery(namespace="elsewhere"))]
    assert after == before


async def test_an_export_of_an_import_is_the_same_export(history: History, other: History) -> None:
    """Exported again from the other store, the lines are the same."""
    await everything(history)
    data = await exported(history)
    await imported(other, data)
    assert await exported(other) == data


async def test_an_export_begins_and_ends_with_what_it_is(history: History) -> None:
    """The first line has the version, the last one the numbers of sessions and messages."""
    await everything(history)
    lines = [read_line(line) for line in (await exported(history)).splitlines()]
    assert lines[0] == ExportStart(1)
    assert lines[-1] == ExportEnd(4, 8)


async def test_a_session_is_the_same_one_after_an_export(history: History, other: History) -> None:
    """Name, metadata, tags, config, state and what is beside messages move, and can be searched."""
    session = await history.Session(
        id="s1",
        name="n",
        metadata={"a": 1},
        tags=["t"],
        execution_config={"budget": {"max_cost": 1}},  # type: ignore[arg-type]
    ).save()
    agents = session.as_agent_session()
    agents.state["exact"] = {1, 2}
    await history.save_state(agents)
    await session.add_message("user", "Hi", "req_1")
    answer = await session.add_message("assistant", "Hello", "req_1")
    await session.react(answer.id, "LIKE")
    await imported(other, await exported(history))
    (found,) = await other.Session.search(metadata={"a": 1}, tags=["t"])
    assert {**found.to_dict(), "updatedAt": ""} == {
        **(await session.refresh()).to_dict(),
        "updatedAt": "",
    }
    assert await found.messages() == await session.messages()
    assert found.as_agent_session().state == {"exact": {1, 2}}


async def test_one_session_is_exported(history: History) -> None:
    """With its id, one session and its messages are exported, and no other."""
    await everything(history)
    lines = [read_line(line) for line in (await exported(history, "plain")).splitlines()]
    assert [type(line) for line in lines] == [
        ExportStart,
        ExportedSession,
        ExportedMessage,
        ExportedMessage,
        ExportEnd,
    ]


async def test_a_session_that_is_not_there_is_not_exported(history: History) -> None:
    """Its id is an error."""
    with pytest.raises(NotFoundError):
        await exported(history, "nowhere")


async def test_a_history_of_one_user_exports_that_users_sessions(history: History) -> None:
    """The sessions of others are not in it."""
    await everything(history)
    lines = [read_line(line) for line in (await exported(history.as_user("ada"))).splitlines()]
    assert [line.user_id for line in lines if isinstance(line, ExportedSession)] == ["ada"]


async def test_all_streams_are_exported(history: History, other: History) -> None:
    """Each stream of a session comes to the other store as what it is, in its order."""
    for text in "ab":
        await history.append("s", [Message("user", text)])
        await history.append("s", [Message("user", f"{text} seen")], stream="audit")
    report = await imported(other, await exported(history))
    assert (report.messages, report.added) == (4, 4)
    for stream, texts in (("main", ["a", "b"]), ("audit", ["a seen", "b seen"])):
        assert [message.text for message in await other.load("s", stream=stream)] == texts
    assert await exported(other) == await exported(history)


async def test_more_sessions_than_a_page_are_exported(history: History) -> None:
    """No session is missing or there twice, however many there are."""
    for number in range(1203):
        key = history.key(f"s{number}")
        await history.store.create_session(key, SessionDraft(created_at=number // 3))
    lines = [read_line(line) for line in (await exported(history)).splitlines()]
    ids = [line.id for line in lines if isinstance(line, ExportedSession)]
    assert sorted(ids) == sorted(f"s{number}" for number in range(1203))


async def test_an_encrypted_history_is_exported_readable(history: History) -> None:
    """The lines have the messages themselves, whatever codec either store writes with."""

    class Mirror:
        tag = 0x80

        def encode(self, data: bytes, /) -> bytes:
            return data[::-1]

        decode = encode

    secret = History(MemoryStore(), codec=MessageCodec([Mirror()]))
    async with secret:
        await secret.append("s1", [Message("user", "Hi")])
        await imported(history, await exported(secret))
    assert [each.text for each in await history.load("s1")] == ["Hi"]


async def test_a_message_that_cannot_be_read_ends_the_export(history: History) -> None:
    """The error names the session and the place of the message."""
    draft = MessageDraft(id="m", role="user", body=b"?", digest=bytes(16), created_at=0)
    await history.store.append(history.key("s1"), [draft])
    with pytest.raises(DecodeError, match="message 1 of session 's1'") as caught:
        await exported(history)
    assert (caught.value.session_id, caught.value.sequence) == ("s1", 1)


async def test_a_session_that_goes_before_it_is_read_is_left_out(history: History) -> None:
    """A session deleted after it was found is not in the export."""
    await history.append("s1", [Message("user", "Hi")])
    lines = export_sessions(history)
    assert await anext(lines) == ExportStart(1)
    find = history.store.find_sessions

    async def find_and_lose(query: SessionQuery) -> Any:
        found = await find(query)
        await history.delete("s1")
        return found

    history.store.find_sessions = find_and_lose  # type: ignore[method-assign]  # between two steps
    assert [line async for line in lines] == [ExportEnd(0, 0)]


async def test_a_session_that_goes_while_it_is_read_ends_the_export(history: History) -> None:
    """A session that is deleted between two of its pages is an error, and no half session."""
    await history.append("s1", [Message("user", str(number)) for number in range(501)])
    lines = export_sessions(history)
    for _ in range(3):
        await anext(lines)
    await history.delete("s1")
    with pytest.raises(ConflictError, match="'s1' was deleted while it was exported"):
        [line async for line in lines]


async def test_an_export_of_one_user_is_not_taken_for_another(history: History) -> None:
    """A history of one user takes that user's sessions and those of nobody, no other's."""
    ada = ExportedSession(id="s1", user_id="ada", created_at=1)
    lines = (ExportStart(1), ada, message("m"), ExportEnd(1, 1))
    assert "line 2: session 's1' belongs to another user than 'bob'" in await refused(
        history.as_user("bob"), *lines
    )
    await imported(history.as_user("ada"), lines)
    assert [each.text for each in await history.as_user("ada").load("s1")] == ["Hi"]


async def test_a_session_that_went_on_is_exported_again(history: History, other: History) -> None:
    """A later export adds what was said since the one before."""
    await history.append("s1", [Message("user", "a"), Message("assistant", "b")])
    await imported(other, await exported(history))
    await history.append("s1", [Message("user", "c"), Message("assistant", "d")])
    report = await imported(other, await exported(history))
    assert (report.added, report.failures) == (2, ())
    assert [each.text for each in await other.load("s1")] == ["a", "b", "c", "d"]


async def test_an_exported_message_that_was_changed_since(history: History) -> None:
    """The session is reported and keeps what the store has, the next one is stored."""
    lines = [ExportStart(1), SESSION, message("m"), ExportEnd(1, 1)]
    await imported(history, lines)
    lines[2:] = [
        message("m", "changed"),
        message("n"),
        ExportedSession(id="s2", created_at=1),
        message("o"),
        ExportEnd(2, 3),
    ]
    report = await imported(history, lines)
    (failure,) = report.failures
    assert (failure.line, failure.session_id) == (2, "s1")
    assert (report.messages, report.added, report.failed) == (3, 1, 2)
    assert [each.text for each in await history.load("s1")] == ["Hi"]
    assert [each.text for each in await history.load("s2")] == ["Hi"]


async def test_a_reaction_that_was_given_since_stays(history: History) -> None:
    """A repeat gives no reaction to a message that was changed in this store."""
    lines = [ExportStart(1), SESSION, message("m", reaction="LIKE"), ExportEnd(1, 1)]
    await imported(history, lines)
    await history.store.update_message(history.key("s1"), "m", MessagePatch(reaction=None))
    await imported(history, lines)
    page = await history.store.read(history.key("s1"))
    assert page.messages[0].reaction is None


async def test_a_reaction_that_is_missing_is_given(history: History) -> None:
    """An import that ended between a message and its reaction is made whole by the next one."""
    lines = [ExportStart(1), SESSION, message("m"), ExportEnd(1, 1)]
    await imported(history, lines)
    lines[2] = message("m", reaction="LIKE")
    assert (await imported(history, lines)).added == 0
    page = await history.store.read(history.key("s1"))
    assert page.messages[0].reaction == "LIKE"


async def test_reactions_on_large_messages(history: History) -> None:
    """They are given also where the messages of one append are more than one page of a read."""
    rows = [message(f"m{number}", "x" * 700_000, reaction="LIKE") for number in range(4)]
    await imported(history, [ExportStart(1), SESSION, *rows, ExportEnd(1, 4)])
    page = await history.store.read(history.key("s1"), Window(after=0))
    assert page.more
    last = await history.store.read(history.key("s1"), Window(after=3))
    assert [row.reaction for row in page.messages + last.messages][-1] == "LIKE"
    assert {row.reaction for row in page.messages} == {"LIKE"}


async def test_the_messages_of_a_session_without_memory_are_restored(
    history: History, other: History
) -> None:
    """A session that keeps no new messages has its old ones, and keeps none afterwards either."""
    await history.append("s1", [Message("user", "Hi")])
    await history.store.patch_session(history.key("s1"), SessionPatch(memory_enabled=False))
    await imported(other, await exported(history))
    await other.append("s1", [Message("user", "more")])
    assert [each.text for each in await other.load("s1")] == ["Hi"]


async def test_a_reaction_needs_no_place(history: History) -> None:
    """In a session without memory nothing is stored, and no reaction is given."""
    key = history.key("s1")
    await history.store.create_session(key, SessionDraft(memory_enabled=False))
    lines = [ExportStart(1), SESSION, message("m", reaction="LIKE"), ExportEnd(1, 1)]
    assert (await imported(history, lines)).added == 0


async def test_turns_of_an_export_are_kept_whole(history: History) -> None:
    """Messages are appended in whole turns, several at a time; a huge turn in pages."""
    requests: list[int] = []

    class Counting(MemoryStore):
        async def _append(self, request: AppendRequest) -> AppendReceipt:
            requests.append(len(request.drafts))
            return await super()._append(request)

    rows = [message(f"m{n}", turn_start=n % 30 == 0 and n < 300) for n in range(1000)]
    async with History(Counting()) as counting:
        await imported(counting, [ExportStart(1), SESSION, *rows, ExportEnd(1, 1000)])
    assert requests == [120, 120, 500, 260]


async def test_an_export_takes_memory_for_pages_only() -> None:
    """An export of 5,000 messages takes no more memory than one of 1,000."""
    await _peak(500)  # what is imported at first use
    assert await _peak(5000) < 1.2 * await _peak(1000)


async def _peak(count: int) -> int:
    """The most memory that an export takes, in bytes."""
    async with History(Endless(count)) as history:
        tracemalloc.start()
        async for line in export_sessions(history):
            write_line(line)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


class Endless(MemoryStore):
    """A store whose one session has as many messages as one likes, made when they are read."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    async def _open(self) -> None:
        key = SessionKey("default", "", "endless")
        await self._create_session(key, SessionDraft(), "return", "one", 0)

    async def _read(self, key: SessionKey, window: Window, stream: str) -> Slice:
        begin = window.after or 0
        end = min(begin + window.page, self.count)
        rows = tuple(self._row(sequence) for sequence in range(begin + 1, end + 1))
        return Slice(rows, "one", 0, 0, end < self.count)

    def _row(self, sequence: int) -> StoredMessage:
        body = MessageCodec().encode(Message("user", "x" * 1000).to_dict())
        return StoredMessage(sequence, f"m{sequence}", "user", body, 0, False)


# files that are wrong


async def test_nothing_is_written_if_a_line_is_wrong(history: History) -> None:
    """The error names the line, also where it comes after good ones."""
    lines = (conversation("a"), b"\n", conversation("b", id="s2"), b'{"id": \n')
    assert (await refused(history, *lines)).startswith("line 4: it is not JSON")


async def test_a_message_that_cannot_be_encoded(history: History) -> None:
    """The error names the line and the path to the value."""
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    line = conversation("a")
    line["messages"][0]["vendor"] = deep
    assert (await refused(history, line)).startswith("line 1: messages[0].additional_properties")


@pytest.mark.parametrize("id", ["", "a\0b", "x" * 257])
async def test_an_id_that_a_store_does_not_take(history: History, id: str) -> None:
    """The error names the line and what is wrong with the id."""
    assert (await refused(history, conversation("a", id=id))).startswith("line 1: session_id must")


async def test_a_message_that_is_too_large_for_the_store(history: History) -> None:
    """The error says how large it is, and what the store takes."""
    history.store.max_body_bytes = 200  # type: ignore[misc]  # of this one store
    long = conversation("a", "b" * 300)
    assert "the memory store takes at most 200" in await refused(history, long)
    lines = (ExportStart(1), SESSION, message("m", "b" * 300), ExportEnd(1, 1))
    assert "line 3: a message takes" in await refused(history, *lines)


CUT_OFF = "the export is cut off: its last line is missing; export again"
APART = "a part of an export without what comes before it; import the whole file"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([ExportStart(1)], f"line 1: {CUT_OFF}"),
        ([ExportStart(1), SESSION, message("m"), b"\n"], f"line 3: {CUT_OFF}"),
        ([ExportStart(1), SESSION, ExportStart(1)], f"line 3: {CUT_OFF}"),
        ([ExportStart(1), conversation("a"), ExportEnd(0, 0)], f"line 2: {CUT_OFF}"),
        ([SESSION], f"line 1: {APART}"),
        ([message("m")], f"line 1: {APART}"),
        ([ExportStart(1), message("m")], f"line 2: {APART}"),
        ([ExportEnd(0, 0)], "line 1: the export is not whole"),
        ([ExportStart(1), SESSION, ExportEnd(1, 1)], "line 3: the export is not whole"),
        ([ExportStart(2)], "line 1: the export has version 2 and this historykit reads up to 1"),
        (
            [ExportStart(1), SESSION, ExportedMessage(id="m", created_at=0, message={})],
            "line 3: a message needs a 'role'",
        ),
        (
            [ExportStart(1), SESSION, ExportedMessage(id="m", created_at=0, message={"role": 5})],
            "line 3: the role of message 'm' must be text",
        ),
        ([ExportStart(1), SESSION, message("")], "line 3: id must have 1 to 256 characters"),
        ([ExportStart(1), ExportedSession(id="", created_at=0)], "line 2: session_id must have"),
    ],
)
async def test_an_export_that_is_not_whole(history: History, lines: list[Any], reason: str) -> None:
    """A file that was cut off, or of which parts are missing, is refused before it is written."""
    assert (await refused(history, *lines)).startswith(reason)


async def test_exports_one_after_the_other_are_one_file(history: History) -> None:
    """Files put together are imported together."""
    second = ExportedSession(id="s2", created_at=1)
    lines = (
        *(ExportStart(1), SESSION, message("m"), ExportEnd(1, 1)),
        *(ExportStart(1), second, message("m"), ExportEnd(1, 1)),
        conversation("a", id="s3"),
    )
    report = await imported(history, lines)
    assert (report.conversations, report.added) == (3, 3)


async def test_a_store_that_fails_ends_the_import(history: History) -> None:
    """An outage is raised; a repeat after it stores what is missing."""

    class Failing(MemoryStore):
        failing = True

        async def _append(self, request: AppendRequest) -> AppendReceipt:
            if self.failing and request.drafts[0].role == "user":
                raise OSError("gone")
            return await super()._append(request)

    store = Failing()
    async with History(store) as broken:
        lines = [conversation("a", "b")]
        with pytest.raises(StorageError):
            await imported(broken, lines)
        store.failing = False
        assert (await imported(broken, lines)).added == 2
