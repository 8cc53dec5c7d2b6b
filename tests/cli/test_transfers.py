from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from historykit.chat_completions import to_chat_completions
from historykit.history import open_history
from historykit.messages import Message
from historykit.records import MessageDraft
from tests.cli.conftest import Run

STORE = ("--set", "path=chat.db")
TO = ("--to", "sqlite", *STORE)
FROM = ("--from", "sqlite", *STORE)


async def load(session_id: str, path: str = "chat.db") -> list[Message]:
    async with open_history("sqlite", path=path) as history:
        return await history.load(session_id)


def test_every_message_that_was_imported_is_there_in_a_new_process(run: Run, sample: str) -> None:
    """Order and tool calls included, read back through another process."""
    result = run("import", sample, *TO)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "3 conversations with 16 messages: 16 added, 0 there already\n"
    code = (
        "import asyncio, json, sys\n"
        "from historykit import open_history\n"
        "from historykit.chat_completions import to_chat_completions\n"
        "async def load(id):\n"
        "    async with open_history('sqlite', path='chat.db') as history:\n"
        "        for message in await history.load(id):\n"
        "            print(*map(json.dumps, to_chat_completions(message)), sep='\\n')\n"
        "asyncio.run(load(sys.argv[1]))\n"
    )
    for line in Path(sample).read_text("utf-8").splitlines():
        wanted = json.loads(line)
        command = [sys.executable, "-c", code, wanted["id"]]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert list(map(json.loads, done.stdout.splitlines())) == wanted["messages"]


def test_importing_twice_adds_nothing(run: Run, sample: str) -> None:
    """The second summary says so."""
    run("import", sample, *TO)
    result = run("import", sample, *TO)
    assert result.stdout == "3 conversations with 16 messages: 0 added, 16 there already\n"


def test_export_and_import_into_another_file_give_the_same(run: Run, sample: str) -> None:
    """The export of the second file is the export of the first, byte for byte."""
    run("import", sample, *TO)
    result = run("export", *FROM, "-o", "export.jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Exported 3 sessions, 16 messages\n"
    other = ("--backend", "sqlite", "--set", "path=other.db")
    assert "16 added" in run("import", "export.jsonl", *other).stdout
    assert "0 added" in run("import", "export.jsonl", *other).stdout
    again = run("export", *other)
    assert again.stdout_bytes == Path("export.jsonl").read_bytes()
    one, two = (asyncio.run(load("garden-1", path)) for path in ("chat.db", "other.db"))
    assert [message.to_dict() for message in one] == [message.to_dict() for message in two]


def test_one_session_is_exported(run: Run, sample: str) -> None:
    """`--session` leaves out the others."""
    run("import", sample, *TO)
    result = run("export", *FROM, "--session", "riddle-1")
    assert [json.loads(line).get("id") for line in result.stdout.splitlines()[:2]] == [
        None,
        "riddle-1",
    ]
    assert result.stderr == "Exported 1 session, 4 messages\n"


@pytest.mark.parametrize("way", ["file", "pipe"])
def test_the_standard_input_is_imported(run: Run, sample: str, way: str) -> None:
    """With "-" the lines come from the standard input, which may be a pipe."""
    command = [str(Path(sys.executable).with_name("historykit")), "import", "-", *TO]
    if way == "pipe":
        done = subprocess.run(command, input=Path(sample).read_bytes(), capture_output=True)
    else:
        with open(sample, "rb") as file:
            done = subprocess.run(command, stdin=file, capture_output=True)
    assert done.stdout.decode() == "3 conversations with 16 messages: 16 added, 0 there already\n"
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_bad_line_is_named_and_nothing_is_written(run: Run) -> None:
    """The error names the line and the place in it, and no conversation is stored in part."""
    good = {"id": "a", "messages": [{"role": "user", "content": "Hi"}]}
    bad = {"id": "b", "messages": [*good["messages"], {"content": "no role"}]}
    Path("bad.jsonl").write_text(f"{json.dumps(good)}\n{json.dumps(bad)}\n")
    result = run("import", "bad.jsonl", *TO)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: line 2: messages[1]: role must be text; it is missing\n"
    assert not Path("chat.db").exists()


def test_a_conversation_with_other_contents_is_named(run: Run) -> None:
    """The others are stored, the summary says what was not, and the exit code is 1."""
    line = '{"id": "%s", "messages": [{"role": "user", "content": "%s"}]}\n'
    Path("one.jsonl").write_text(line % ("a", "Hi"))
    there = (
        '{"id": "c", "messages": [{"role": "user", "content": "Hi"}, '
        '{"role": "assistant", "content": "Hello"}]}\n'
    )
    Path("one.jsonl").write_text(line % ("a", "Hi") + there)
    Path("two.jsonl").write_text(line % ("a", "Bye") + there + line % ("b", "Hi"))
    run("import", "one.jsonl", *TO)
    result = run("import", "two.jsonl", *TO)
    assert result.exit_code == 1
    assert result.stdout == (
        "3 conversations with 4 messages: 1 added, 2 there already, 1 not stored\n"
    )
    assert result.stderr == (
        "line 1: the store has 'a' with other contents; delete it there, or give it another id\n"
    )


def test_a_file_that_is_not_there_is_a_usage_error(run: Run) -> None:
    """It exits with 2, before a store is touched."""
    result = run("import", "nowhere.jsonl", *TO)
    assert result.exit_code == 2
    assert not Path("chat.db").exists()


def test_an_export_that_fails_leaves_no_file(run: Run) -> None:
    """FILE.jsonl has the whole export or is not there; an older one stays as it is."""

    async def damage() -> None:
        async with open_history("sqlite", path="chat.db") as history:
            draft = MessageDraft(id="m", role="user", body=b"?", digest=bytes(16), created_at=0)
            await history.store.append(history.key("s1"), [draft])

    asyncio.run(damage())
    Path("export.jsonl").write_text("an older one")
    result = run("export", *FROM, "-o", "export.jsonl")
    assert result.exit_code == 1
    assert "message 1 of session 's1' cannot be read" in result.stderr
    assert Path("export.jsonl").read_text() == "an older one"
    assert not Path("export.jsonl.part").exists()


def test_a_session_that_is_not_there_is_no_export(run: Run) -> None:
    """Nothing is written, not even the beginning of an export."""
    asyncio.run(load("s1"))
    result = run("export", *FROM, "--session", "nope")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "'nope'" in result.stderr
    assert run("export", *FROM, "--session", "nope", "-o", "out.jsonl").exit_code == 1
    assert not Path("out.jsonl").exists()


def test_a_directory_that_is_not_there_is_a_usage_error(run: Run) -> None:
    """It is named with the remedy, before a store is opened."""
    result = run("export", *FROM, "-o", "nodir/out.jsonl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the directory 'nodir' does not exist; create it" in result.stderr


def test_a_line_of_no_form_points_to_the_description(run: Run) -> None:
    """What is neither of the two forms is named, with the page that describes them."""
    Path("in.jsonl").write_text('{"role": "user", "content": "Hi"}\n')
    assert "docs/commands.md describes the two forms" in run("import", "in.jsonl", *TO).stderr


def test_the_users_of_an_export(run: Run) -> None:
    """Sessions keep their users; `--user` narrows an export and an import."""
    line = '{"id": "s", "messages": [{"role": "user", "content": "%s"}]}\n'
    for user in ("ada", "bob"):
        Path("in.jsonl").write_text(line % user)
        run("import", "in.jsonl", *TO, "--user", user)
    exported = run("export", *FROM, "-o", "all.jsonl")
    assert exported.stderr == "Exported 2 sessions, 2 messages\n"
    assert run("export", *FROM, "--user", "ada").stderr == "Exported 1 session, 1 message\n"
    other = ("--to", "sqlite", "--set", "path=other.db")
    refused = run("import", "all.jsonl", *other, "--user", "ada")
    assert (refused.exit_code, "another user" in refused.stderr) == (1, True)
    assert "2 added" in run("import", "all.jsonl", *other).stdout


def test_long_work_shows_a_bar_on_a_terminal(run: Run, sample: str) -> None:
    """On a terminal, stderr has the bar; stdout has the summary alone."""
    result = run("import", sample, *TO, FORCE_COLOR="1")
    assert "Checking" in result.stderr
    assert result.stdout.startswith("3 conversations")
    assert "Exporting" in run("export", *FROM, FORCE_COLOR="1").stderr


def test_the_sample_comes_back_as_it_was(run: Run, sample: str) -> None:
    """Every message of the sample is equal after import, export and import."""
    run("import", sample, *TO)
    for line in Path(sample).read_text("utf-8").splitlines():
        wanted = json.loads(line)
        messages = asyncio.run(load(wanted["id"]))
        assert [each for one in messages for each in to_chat_completions(one)] == wanted["messages"]


@pytest.mark.parametrize("options", [("--user", "Ada"), ("--namespace", "nope")])
def test_an_export_of_nothing_that_was_named_fails(run: Run, options: tuple[str, str]) -> None:
    """It takes no file's place, which may be the copy of another day."""
    asyncio.run(load("s1"))
    Path("copy.jsonl").write_text("yesterday")
    result = run("export", *FROM, *options, "-o", "copy.jsonl")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: no sessions in namespace ")
    assert repr(options[1]) in result.stderr
    assert Path("copy.jsonl").read_text() == "yesterday"


def test_an_export_of_a_new_store_says_that_it_is_empty(run: Run) -> None:
    """Nothing was named, so that nothing is missing."""
    asyncio.run(load("s1"))
    result = run("export", *FROM)
    assert result.exit_code == 0
    assert result.stderr == (
        "Exported 0 sessions, 0 messages: no sessions in namespace 'default'; "
        "--namespace names another one\n"
    )


def test_an_export_of_a_session_says_whose_it_is(run: Run) -> None:
    """Another user may have it, as `show` says too."""

    async def append() -> None:
        async with open_history("sqlite", path="chat.db", user_id="ada") as history:
            await history.append("s1", [Message("user", "Hi")])

    asyncio.run(append())
    result = run("export", *FROM, "--session", "s1")
    assert result.exit_code == 1
    assert "session 's1' not found; user 'ada' has one: add --user ada" in result.stderr


def test_a_file_without_a_conversation_is_named(run: Run) -> None:
    """Nothing failed, and nothing was there."""
    Path("empty.jsonl").touch()
    result = run("import", "empty.jsonl", *TO)
    assert (result.exit_code, result.stderr) == (0, "empty.jsonl has no conversation\n")


def test_an_import_that_nobody_will_see_says_so(run: Run, sample: str) -> None:
    """A store in memory ends with the command."""
    result = run("import", sample, "--to", "memory")
    assert (result.exit_code, result.stderr) == (0, "The memory store is gone with this command\n")
