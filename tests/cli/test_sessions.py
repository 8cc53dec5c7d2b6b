from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from historykit.contents import Content
from historykit.drafting import draft_messages
from historykit.history import History, open_history
from historykit.messages import Message
from historykit.records import MessageDraft
from historykit.session_records import SessionDraft, SessionKey, SessionPatch
from historykit_sqlite import SQLiteStore
from tests.cli.conftest import Run

TIME = 1_767_270_600_000_000
"""12:30 on 2026-01-01."""

STORE = ("--backend", "sqlite", "--set", "path=chat.db")


def fill(*contents: Content | str, session_id: str = "s1") -> None:
    """Store one message of the assistant."""

    async def append(history: History) -> None:
        await history.append(session_id, [Message("assistant", contents, author_name="helper")])

    asyncio.run(_with_history(append))


def written(time: int) -> None:
    """Store one message of a user at that time."""

    async def append(history: History) -> None:
        (draft,) = draft_messages(
            [Message("user", "Hi")], codec=history.codec, stream="main", now=time
        )
        await history.store.append(history.key("s1"), [replace(draft, id="m")])

    asyncio.run(_with_history(append))


def timeless(shown: str) -> list[str]:
    """The lines of a conversation without the times."""
    return re.sub(r"(?m)  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", "", shown).splitlines()


async def _with_history(work) -> None:  # type: ignore[no-untyped-def]  # an async function
    async with open_history("sqlite", path="chat.db") as history:
        await work(history)


def test_a_conversation_is_readable(run: Run, sample: str) -> None:
    """Who speaks, what is said, which tool was called and what it answered."""
    run("import", sample, "--to", "sqlite", "--set", "path=chat.db")
    result = run("show", "garden-1", *STORE)
    assert result.exit_code == 0
    assert timeless(result.stdout)[:10] == [
        "system",
        "  You help people who grow vegetables. Look things up before you answer.",
        "user",
        "  When do I sow carrots in Tromsø? 🥕",
        "assistant",
        '  -> climate({"place": "Troms\\u00f8"})  [call_1]',
        '  -> sowing_table({"plant": "carrot"})  [call_2]',
        "tool (climate)",
        '  <- {"last_frost": "06-05"}  [call_1]',
        "tool (sowing_table)",
    ]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("a\nb", ["a", "b"]),
        (Content.from_text_reasoning(text="hm"), ["(thinks) hm"]),
        (
            Content.from_function_call("c", "look", arguments={"at": "Tromsø"}),
            ['-> look({"at": "Tromsø"})  [c]'],
        ),
        (Content.from_function_result("c", result="a tree"), ["<- a tree  [c]"]),
        (Content.from_function_result("c", exception="boom"), ["<- boom  [c]"]),
        (Content.from_uri("https://example.org/a"), ["[link] https://example.org/a"]),
        (Content.from_data(b"12345678", "image/png"), ["[image/png] 34 characters"]),
        (Content("hosted_file", file_id="f1"), ['[hosted_file] {"file_id": "f1"}']),
        ("ring \a and \x1b[31mred\x1b[0m\u202e", ["ring \\x07 and \\x1b[31mred\\x1b[0m\\u202e"]),
        ("half \ud800 a pair", ["half \\ud800 a pair"]),
        ("[bold]no markup[/bold]", ["[bold]no markup[/bold]"]),
    ],
)
def test_each_content_is_readable(run: Run, content: Content | str, lines: list[str]) -> None:
    """A content is shown in a line or more, with nothing in it that a terminal obeys."""
    fill(content)
    result = run("show", "s1", *STORE)
    assert timeless(result.stdout) == ["assistant (helper)", *(f"  {line}" for line in lines)]


def test_each_message_has_its_time(run: Run) -> None:
    """Behind the speaker stands when the message was stored, in UTC."""
    written(TIME)
    assert run("show", "s1", *STORE).stdout == "user  2026-01-01 12:30:00\n  Hi\n"


def test_times_as_json(run: Run) -> None:
    """In JSON a time is a number of microseconds, and once more in ISO 8601."""
    written(TIME)
    found = json.loads(run("show", "s1", *STORE, "--json").stdout)
    (stored,) = found["stored"]
    assert (stored["sequence"], stored["id"]) == (1, "m")
    for fields, name in ((stored, "created_at"), (found, "last_message_at")):
        assert fields[name] == TIME
        assert fields[f"{name}_iso"] == "2026-01-01T12:30:00.000000+00:00"


def test_a_long_conversation_is_shown_whole(run: Run) -> None:
    """It takes as many pages as it has."""

    async def append(history: History) -> None:
        for half in range(2):
            numbers = range(300 * half, 300 * half + 300)
            await history.append("s1", [Message("user", str(number)) for number in numbers])

    asyncio.run(_with_history(append))
    texts = timeless(run("show", "s1", *STORE).stdout)[1::2]
    assert texts == [f"  {number}" for number in range(600)]


def test_a_conversation_as_json(run: Run) -> None:
    """`--json` has the session's fields and the messages as dicts."""
    fill("Hi\x9b")
    result = run("show", "s1", *STORE, "--json")
    assert "\x9b" not in result.stdout
    found = json.loads(result.stdout)
    assert (found["id"], found["message_count"]) == ("s1", 1)
    assert found["messages"] == [
        Message("assistant", ["Hi\x9b"], author_name="helper").to_dict(),
    ]


def test_what_json_cannot_hold_has_a_tag(run: Run) -> None:
    """NaN and bytes are written as in an export."""
    fill(Content("hosted_file", additional_properties={"nan": float("nan"), "raw": b"\xff"}))
    found = json.loads(run("show", "s1", *STORE, "--json").stdout)
    properties = found["messages"][0]["contents"][0]["additional_properties"]
    assert properties == {"nan": ["!float", "nan"], "raw": ["!bytes", "/w=="]}


def test_a_message_that_cannot_be_read_does_not_hide_the_others(run: Run) -> None:
    """It is named on stderr, and the exit code is 1."""
    fill("Hi")

    async def damage(history: History) -> None:
        draft = MessageDraft(id="m", role="user", body=b"?", digest=bytes(16), created_at=0)
        await history.store.append(history.key("s1"), [draft])

    asyncio.run(_with_history(damage))
    result = run("show", "s1", *STORE)
    assert result.exit_code == 1
    assert timeless(result.stdout) == ["assistant (helper)", "  Hi"]
    assert "message 2" in result.stderr


def test_the_session_of_a_user(run: Run) -> None:
    """`--user` and `--namespace` say whose session it is."""

    async def append(history: History) -> None:
        await history.as_user("ada").append("s1", [Message("user", "Hi")])

    asyncio.run(_with_history(append))
    assert run("show", "s1", *STORE, "--user", "ada").exit_code == 0
    assert run("show", "s1", *STORE, "--user", "ada", "--namespace", "x").exit_code == 1


@pytest.mark.parametrize(
    ("owner", "options", "remedy"),
    [
        ("ada l", (), "user 'ada l' has one: add --user 'ada l'"),
        ("ada", ("--user", "bob"), "user 'ada' has one: add --user ada"),
        ("", ("--user", "bob"), "there is one of no user: leave out --user"),
        ("ada", ("--namespace", "x"), "`historykit sessions` lists those that are there"),
    ],
)
def test_whose_session_it_is(run: Run, owner: str, options: tuple[str, ...], remedy: str) -> None:
    """A session that only another user has is an error that says how to see it."""

    async def append(history: History) -> None:
        user = history.as_user(owner) if owner else history
        await user.append("s1", [Message("user", "Hi")])

    asyncio.run(_with_history(append))
    result = run("show", "s1", *STORE, *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: session 's1' not found; {remedy}")


def test_an_owner_is_not_looked_for_without_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a store of very many sessions, only the newest are looked at."""
    catalogue()
    monkeypatch.setattr("historykit.cli.absent.SEARCHED", 2)
    assert "leave out --user" in run("show", "s3", *STORE, "--user", "bob").stderr
    assert "leave out --user" not in run("show", "s2", *STORE, "--user", "bob").stderr


def test_an_owner_cannot_be_found_without_a_catalogue(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that cannot list its sessions is not asked to."""
    fill("Hi")
    monkeypatch.setattr(SQLiteStore, "capabilities", frozenset())
    assert "session 'nope' not found; `historykit" in run("show", "nope", *STORE).stderr


def catalogue() -> None:
    """Store five sessions, a day apart from 2026-01-01 on."""

    async def create(history: History) -> None:
        day = 86_400_000_000
        for number in range(5):
            draft = SessionDraft(
                agent_id="odd" if number % 2 else "even",
                status="archived" if number == 0 else "active",
                created_at=1_767_225_600_000_000 + number * day,
            )
            user = "ada" if number == 4 else ""
            await history.store.create_session(SessionKey("default", user, f"s{number}"), draft)

    asyncio.run(_with_history(create))


def listed(run: Run, *options: str) -> list[str]:
    result = run("sessions", *STORE, "--json", *options)
    assert result.exit_code == 0
    return [each["id"] for each in json.loads(result.stdout)]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((), ["s4", "s3", "s2", "s1", "s0"]),
        (("--agent", "odd"), ["s3", "s1"]),
        (("--status", "archived"), ["s0"]),
        (("--user", "ada"), ["s4"]),
        (("--created-from", "2026-01-03"), ["s4", "s3", "s2"]),
        (("--created-before", "2026-01-03"), ["s1", "s0"]),
        (("--limit", "2"), ["s4", "s3"]),
        (("--namespace", "elsewhere"), []),
    ],
)
def test_sessions_are_listed_and_filtered(
    run: Run, options: tuple[str, ...], found: list[str]
) -> None:
    """Newest first; each option narrows the list."""
    catalogue()
    assert listed(run, *options) == found


def test_more_sessions_than_a_page_are_listed(run: Run) -> None:
    """`--limit` may be more than a store returns at once."""

    async def create(history: History) -> None:
        await asyncio.gather(
            *(
                history.store.create_session(history.key(f"s{number}"), SessionDraft())
                for number in range(502)
            )
        )

    asyncio.run(_with_history(create))
    assert len(listed(run, "--limit", "501")) == 501


def test_sessions_as_a_table(run: Run) -> None:
    """One line for each, whole also where it is long; a note says where the list was cut."""
    catalogue()
    result = run("sessions", *STORE, "--limit", "2")
    assert result.stdout.splitlines() == [
        "session  user  agent  status  messages  created (UTC)        last message  about",
        "s4       ada   even   active  0         2026-01-05 00:00:00",
        "s3             odd    active  0         2026-01-04 00:00:00",
    ]
    assert result.stderr == "The newest 2; --limit shows more.\n"
    fill("Hi", session_id="x" * 200)
    assert "x" * 200 in run("sessions", *STORE).stdout


def described() -> None:
    """Store two sessions that have more than a record, the older one first."""

    async def create(history: History) -> None:
        first = history.Session(
            id="s1", metadata={"plan": "pro", "seats": 3}, tags=["vip"], name="On\ncarrots"
        )
        await (await first.save()).add_message("user", "Hi")
        second = await history.Session(id="s2", execution_config={"criteria": "c"}).save()
        answer = await second.add_message("assistant", "When  the birch\nis green", "req_1")
        await second.react(answer.id, "LIKE")

    asyncio.run(_with_history(create))


def test_what_a_session_is_about(run: Run) -> None:
    """The last column has the name, else how the newest message begins, on one line."""
    described()
    lines = run("sessions", *STORE).stdout.splitlines()
    assert lines[1].endswith("  When the birch is green")
    assert lines[2].endswith("  On carrots")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--tag", "vip"), ["s1"]),
        (("--tag", "vip", "--tag", "x"), []),
        (("--metadata", "plan=pro", "--metadata", "seats=3"), ["s1"]),
        (("--metadata", 'seats="3"'), []),
        (("--query", "BIRCH"), ["s2"]),
        (("--query", "carrots", "--limit", "1"), ["s1"]),
    ],
)
def test_sessions_by_what_they_have(run: Run, options: tuple[str, ...], found: list[str]) -> None:
    """Tags, metadata and texts narrow the list; a value is JSON, or else a text."""
    described()
    assert listed(run, *options) == found


def test_metadata_without_a_value(run: Run) -> None:
    """It is an error of the arguments."""
    result = run("sessions", *STORE, "--metadata", "plan")
    assert result.exit_code == 2
    assert "'plan' is not KEY=VALUE" in result.stderr


def test_all_that_a_session_has_as_json(run: Run) -> None:
    """`--json` has the further fields of a session, and what is kept beside a message."""
    described()
    first = json.loads(run("sessions", *STORE, "--json", "--tag", "vip").stdout)[0]
    assert (first["name"], first["tags"]) == ("On\ncarrots", ["vip"])
    assert first["metadata"] == {"plan": "pro", "seats": 3}
    shown = json.loads(run("show", "s2", *STORE, "--json").stdout)
    assert shown["execution_config"] == {"criteria": "c"}
    assert shown["last_message_preview"] == "When the birch is green"
    (stored,) = shown["stored"]
    assert (stored["request_id"], stored["reaction"]) == ("req_1", "LIKE")


def test_a_reaction_is_shown(run: Run) -> None:
    """It stands behind the time of the message."""
    described()
    assert run("show", "s2", *STORE).stdout.splitlines()[0].endswith("  LIKE")


def test_a_session_that_cannot_be_read_is_listed(run: Run) -> None:
    """What the store knows of it is shown, it is named on stderr, and the exit code is 1."""
    fill("Hi")

    async def damage(history: History) -> None:
        await history.store.patch_session(history.key("s1"), SessionPatch(body=b"?"))

    asyncio.run(_with_history(damage))
    for result in (run("sessions", *STORE), run("show", "s1", *STORE)):
        assert result.exit_code == 1
        assert "Failed to deserialize Session (id=s1)" in result.stderr
        assert "Hi" in result.stdout or "s1" in result.stdout


def test_what_is_beside_a_message_may_be_damaged(run: Run) -> None:
    """The message is shown, and named on stderr."""

    async def damage(history: History) -> None:
        (draft,) = draft_messages(
            [Message("user", "Hi")], codec=history.codec, stream="main", now=TIME
        )
        await history.store.append(history.key("s1"), [replace(draft, extra=b"?")])

    asyncio.run(_with_history(damage))
    result = run("show", "s1", *STORE)
    assert (result.exit_code, timeless(result.stdout)) == (1, ["user", "  Hi"])
    assert "Failed to parse session message 1" in result.stderr


def test_a_table_fits_a_terminal(run: Run) -> None:
    """On a terminal, what is too wide for a column goes on in the next line."""
    fill("Hi", session_id="x" * 60)
    result = run("sessions", *STORE, FORCE_COLOR="1", COLUMNS="80")
    plain = re.sub(r"\x1b\[\d*m", "", result.stdout)
    assert max(map(len, plain.splitlines())) == 80
    assert "x" * 60 not in result.stdout


def test_a_time_out_of_range_is_a_number(run: Run) -> None:
    """A time that no calendar has does not end the listing."""

    async def create(history: History) -> None:
        await history.store.create_session(history.key("s1"), SessionDraft(created_at=2**62))

    asyncio.run(_with_history(create))
    assert str(2**62) in run("sessions", *STORE).stdout


def test_a_zone_counts(run: Run) -> None:
    """A time with a zone means that moment."""
    catalogue()
    assert Path("chat.db").exists()
    assert listed(run, "--created-from", "2026-01-05T00:00:00") == ["s4"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "No sessions in namespace 'default'; --namespace names another one\n"),
        (("--tag", "x"), "No such sessions in namespace 'default'; --namespace names an"),
        (("--namespace", "x"), "No sessions in namespace 'x'; --namespace names another one\n"),
        (("--user", "Ada"), "No sessions in namespace 'default' of user 'Ada'; --namespace"),
    ],
)
def test_an_empty_list_says_where_it_looked(run: Run, options: tuple[str, ...], said: str) -> None:
    """Namespace and user are named, and the list itself stays empty for programs."""
    asyncio.run(_with_history(History.aclose))
    result = run("sessions", *STORE, *options)
    assert result.exit_code == 0
    assert result.stderr.startswith(said)
    assert run("sessions", *STORE, *options, "--json").stdout == "[]\n"


def test_an_empty_list_of_a_user_says_that_others_have_sessions(run: Run) -> None:
    """A name that is written otherwise is the likely reason."""

    async def append(history: History) -> None:
        await history.as_user("ada").append("s", [Message("user", "Hi")])

    asyncio.run(_with_history(append))
    result = run("sessions", *STORE, "--user", "Ada")
    assert result.stderr == (
        "No sessions in namespace 'default' of user 'Ada'; other users have 1 there\n"
    )
