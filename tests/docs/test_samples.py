from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.samples import LANGUAGES, blocks, commands, run_page
from tests.packaging.workspace import DISTRIBUTIONS, ROOT

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *(distribution.folder / "README.md" for distribution in DISTRIBUTIONS),
]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_samples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a page shows, run from top to bottom in an empty folder, works."""
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path)


def test_the_first_sample_of_the_readme_is_a_program(tmp_path: Path) -> None:
    """Saved under the name that the page says, it prints what the page shows, twice over."""
    found = blocks(ROOT / "README.md")
    source = next(block for block in found if block.language == "python")
    runs = next(block for block in found if "hello.py" in block.text)
    tmp_path.joinpath("hello.py").write_text(source.text, "utf-8")
    shown = commands(runs.text)
    assert len(shown) == 2
    for command, expected in shown:
        program, *arguments = command.split()
        assert program == "python"
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected


def test_the_samples_of_the_readme_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder where they have run before, none of them fails."""
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / "README.md", tmp_path)
    run_page(ROOT / "README.md", tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_configuration_that_a_page_shows_is_toml(page: Path) -> None:
    """Each block of TOML on a page parses."""
    for block in blocks(page):
        if block.language == "toml":
            assert tomllib.loads(block.text), str(block)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_block_of_a_page_goes_unseen(page: Path) -> None:
    """Each block names a language that this knows, and one that is not run says why."""
    for block in blocks(page):
        assert block.language in LANGUAGES, str(block)
        assert block.exempt is None or len(block.exempt) > 10, f"{block}: no reason is given"


def run(text: str, folder: Path) -> None:
    page = folder / "page.md"
    page.write_text(text, "utf-8")
    run_page(page, folder)


def test_blocks_share_a_namespace_and_a_loop(tmp_path: Path) -> None:
    """A later block sees the names of an earlier one and goes on in its event loop."""
    text = """
```python
import asyncio
loop = asyncio.get_running_loop()
await asyncio.sleep(0)
```

```python
assert await asyncio.sleep(0, asyncio.get_running_loop()) is loop
```
"""
    run(text, tmp_path)


def test_a_broken_sample_fails_at_its_line(tmp_path: Path) -> None:
    """A sample that raises fails the page, and the traceback names the line of the page."""
    with pytest.raises(ZeroDivisionError) as caught:
        run("words\n\n```python\nokay = 1\n1 / 0\n```\n", tmp_path)
    last = caught.traceback[-1]
    assert (Path(last.path).name, last.lineno + 1) == ("page.md", 5)


def test_an_exempted_block_is_not_run(tmp_path: Path) -> None:
    """A block after the comment with a reason is read and not run."""
    text = "<!-- not run: needs a server -->\n```python\n1 / 0\n```\n"
    run(text, tmp_path)
    (block,) = blocks(tmp_path / "page.md")
    assert block.exempt == "needs a server"


def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    """A `historykit` command that exits with an error fails the page."""
    with pytest.raises(AssertionError, match="no-such-command"):
        run("```console\n$ historykit no-such-command\n```\n", tmp_path)


def test_output_that_differs_fails_the_page(tmp_path: Path) -> None:
    """What a command prints has to be what the page shows below it."""
    with pytest.raises(AssertionError, match="the page shows"):
        run("```console\n$ historykit --help\nNothing of the kind\n```\n", tmp_path)


def test_output_may_be_abridged(tmp_path: Path) -> None:
    """Three dots in what a page shows stand for anything."""
    run("```console\n$ historykit --help\nUsage: ...\n```\n", tmp_path)


def test_other_commands_are_shown_only(tmp_path: Path) -> None:
    """A console block may show commands of other programs, which are not run."""
    run("```console\n$ no-such-program\n```\n", tmp_path)


def test_a_command_may_span_lines() -> None:
    """A command goes on after a backslash, and its output ends where the next command begins."""
    text = "$ historykit \\\n  show\none\ntwo\n$ historykit list\n"
    assert commands(text) == [("historykit    show", "one\ntwo"), ("historykit list", "")]
