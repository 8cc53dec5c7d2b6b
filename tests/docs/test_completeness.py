"""Looks whether the documentation has everything that there is."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click
import pytest

from historykit import errors, records
from historykit.backends import Hooks
from historykit.capabilities import Capability, Guarantee
from historykit.cli.commands import historykit
from historykit.history import History
from historykit.importing import import_conversations
from historykit.memory import MemoryStore
from historykit.plugins import list_backends
from tests.docs.samples import blocks
from tests.packaging.workspace import ROOT

DOCS = ROOT / "docs"
BACKENDS = {state.name: state.spec for state in list_backends() if state.spec is not None}
COMMANDS: dict[str, click.Command] = historykit.commands


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def section(text: str, title: str) -> str:
    """What stands under a heading, up to the next one of the same level."""
    (found,) = re.findall(rf"(?ms)^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text)
    return str(found)


def rows(text: str) -> dict[str, str]:
    """The rows of the tables of a text, by each name in the first cell."""
    found = {}
    for first, rest in re.findall(r"(?m)^\| ([^|]*) \|(.*)$", text):
        for name in re.findall(r"`([^` ]+)", first):
            found[name] = rest
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_field_of_a_backend_is_documented(backend: str) -> None:
    """Each field has a row in the backend's section, with its default, and no other has one."""
    documented = rows(section(page("configuration.md"), backend))
    known = {each.name: each for each in fields(BACKENDS[backend].config())}
    assert documented.keys() == known.keys()
    for name, each in known.items():
        if each.default not in (MISSING, None):
            assert f"`{toml(each.default)}`" in documented[name], name


def toml(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else repr(value)


def test_the_backends_that_are_installed_are_those_of_the_project() -> None:
    """The test above looks at all of them."""
    assert {"memory", "sqlite", "redis", "postgres", "mongo"} <= BACKENDS.keys()


@pytest.mark.parametrize("name", [each.name for each in (*Capability, *Guarantee)])
def test_every_capability_and_guarantee_is_documented(name: str) -> None:
    """Each has a row on the page of guarantees."""
    documented = page("guarantees.md")
    assert re.search(rf"(?m)^\| `{name}`", documented)


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_documented(name: str) -> None:
    """Each has a row, which names what else it is: a status or a builtin error."""
    row = rows(page("errors.md"))[name]
    cls = getattr(errors, name)
    bases = [base.__name__ for base in cls.__bases__ if base is not errors.HistoryKitError]
    for base in bases:
        assert f"`{base}`" in row, f"{name} is a {base}"
    if "status_code" in vars(cls) and name != "APIError":
        assert str(cls.status_code) in row


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    """Each has a row in the table of commands, and each option one in another table."""
    text = page("commands.md")
    assert re.search(rf"(?m)^\| `historykit {name}\b", text)
    for option in options(COMMANDS[name]):
        assert re.search(rf"(?m)^\|[^|]*`{option}[ `]", text), f"{option} of {name}"


def test_every_option_of_the_program_is_documented() -> None:
    """Those that stand before the command, too."""
    for option in options(historykit):
        assert f"`{option}`" in page("commands.md")


def options(command: click.Command) -> list[str]:
    return [name for each in command.params for name in each.opts if name.startswith("-")]


@pytest.mark.parametrize("name", [name for name in vars(Hooks) if not name.startswith("_")])
def test_every_hook_is_documented(name: str) -> None:
    """A hook stands in the guide for backend authors."""
    assert f"`{name}`" in page("writing-a-backend.md")


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path) -> None:
    """A link to a file of the checkout finds it, and its heading if it names one."""
    for target, heading in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", path.read_text()):
        found = path.parent / target if target else path
        assert found.exists(), target
        if heading:
            assert heading in map(anchor, re.findall(r"(?m)^#+ (.*)$", found.read_text())), heading


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def test_every_page_can_be_reached() -> None:
    """Each page is linked from another one."""
    texts = {path: path.read_text("utf-8") for path in (ROOT / "README.md", *DOCS.glob("*.md"))}
    for path in DOCS.glob("*.md"):
        others = [text for other, text in texts.items() if other != path]
        assert any(re.search(rf"\((docs/)?{path.name}[)#]", text) for text in others), path.name


@pytest.mark.asyncio
@pytest.mark.parametrize("number", [0, 1])
async def test_the_forms_of_a_file_can_be_imported(number: int, tmp_path: Path) -> None:
    """What the page of commands shows as a conversation and as an export is one."""
    forms = [block.text for block in blocks(DOCS / "commands.md") if block.language == "json"]
    path = tmp_path / "file.jsonl"
    path.write_text(forms[number] + "\n", "utf-8")
    async with History(MemoryStore()) as history:
        with path.open("rb") as file:
            report = await import_conversations(history, file)
        key = history.as_user("ada").key("s1") if number else history.key("s1")
        assert (await history.store.read_session(key)).message_count == report.added > 0


def test_the_modules_of_the_model_are_those_of_the_guide() -> None:
    """The guide for backend authors says what each module of the SQLite backend is for."""
    package = ROOT / "backends" / "sqlite" / "src" / "historykit_sqlite"
    modules = {path.name for path in package.glob("*.py")} - {"__init__.py"}
    text = section(page("writing-a-backend.md"), "The shortest way: copy one")
    table = text.partition("| module |")[2]
    assert set(re.findall(r"`(\w+\.py)`", table.partition("\n\n")[0])) == modules


def test_a_copy_that_was_renamed_as_the_guide_says_names_sqlite_no_more() -> None:
    """Names of the backend stand where the guide says, and nowhere else."""
    copied = ROOT / "backends" / "sqlite"
    files = [copied / "pyproject.toml", *copied.rglob("*.py")]
    named = {
        path.name
        for path in files
        if re.search(
            r"\"sqlite\"|the sqlite backend|^sqlite =", path.read_text("utf-8"), re.MULTILINE
        )
    }
    text = section(page("writing-a-backend.md"), "The shortest way: copy one")
    renames = text.partition("| what |")[2].partition("\n\n")[0]
    assert named == {Path(name).name for name in re.findall(r"`([\w/]+\.(?:py|toml))`", renames)}


def test_the_fields_of_a_record_are_described() -> None:
    """The guide leads to the reference, which has a class for each record."""
    text = page("reference/stores.md")
    for name in records.__all__:
        assert f"\n### {name}\n" in text
