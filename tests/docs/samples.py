"""Reads the samples of a Markdown page and runs them.

Every fenced block names its language. Blocks of `python` run in order, in one namespace and one
event loop for the page, and may await at their top level; blocks of `console` whose command is
`historykit` run too, and what they print has to match where the page shows it (`...` stands for
anything). A comment `<!-- not run: REASON -->` on the line before a block exempts it.
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import re
import shlex
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LANGUAGES = {"console", "json", "python", "sql", "text", "toml"}
EXEMPTION = re.compile(r"<!-- not run:(?P<reason>.*)-->")
SCRIPTS = Path(sysconfig.get_path("scripts"))
RULES = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its first line of text is at `line`; `exempt` is the reason not to run it."""

    page: Path
    line: int
    language: str
    text: str
    exempt: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found, lines = [], page.read_text("utf-8").splitlines()
    start = 0
    while start < len(lines):
        opening = re.fullmatch(r"(?P<indent> *)```(?P<language>\S*).*", lines[start])
        if opening is None:
            start += 1
            continue
        indent = len(opening["indent"])
        end = next(
            (at for at in range(start + 1, len(lines)) if lines[at].strip() == "```"), len(lines)
        )
        text = "\n".join(line[indent:] for line in lines[start + 1 : end])
        exempt = EXEMPTION.fullmatch(lines[start - 1].strip()) if start else None
        reason = exempt["reason"].strip() if exempt else None
        found.append(Block(page, start + 2, opening["language"], text, reason))
        start = end + 1
    return found


def run_page(page: Path, folder: Path) -> None:
    """Run the samples of a page in order; the current directory has to be `folder` already."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for block in blocks(page):
            if block.exempt is not None:
                continue
            if block.language == "python":
                run_python(block, namespace, runner)
            elif block.language == "console":
                run_console(block, folder)


def run_python(block: Block, namespace: dict[str, Any], runner: asyncio.Runner) -> None:
    """Run a block; a failure shows the line of the page."""
    source = "\n" * (block.line - 1) + block.text
    code = compile(
        source,
        str(block.page),
        "exec",
        flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        dont_inherit=True,
    )
    if code.co_flags & inspect.CO_COROUTINE:
        runner.run(eval(code, namespace))
    else:
        exec(code, namespace)


def run_console(block: Block, folder: Path) -> None:
    """Run the `historykit` commands of a block and compare what they print, where it is shown."""
    for command, shown in commands(block.text):
        program, *arguments = shlex.split(command)
        if program != "historykit":
            continue
        done = subprocess.run(
            [SCRIPTS / program, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
        printed = done.stdout + done.stderr
        assert done.returncode == 0, f"{block}: {command!r} failed:\n{printed}"
        if shown:
            matches = doctest.OutputChecker().check_output(shown, printed, RULES)
            assert matches, f"{block}: {command!r} printed\n{printed}\nand the page shows\n{shown}"


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown below it."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    split = [part.replace("\\\n", " ").partition("\n") for part in parts]
    return [(command, shown.strip("\n")) for command, _, shown in split]
