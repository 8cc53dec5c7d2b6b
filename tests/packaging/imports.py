"""What the files of a package import, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, and the name taken from it, if any."""

    path: Path
    line: int
    module: str
    name: str | None
    at_start: bool

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        what = self.module if self.name is None else f"{self.module}: {self.name}"
        return f"{self.path.name}:{self.line} imports {what}"


def imports(path: Path, source: str | None = None) -> Iterator[Import]:
    """Each import of a file; `at_start` where importing the file carries it out."""
    tree = ast.parse(path.read_text("utf-8") if source is None else source)
    later = {id(node) for part in ast.walk(tree) if is_later(part) for node in ast.walk(part)}
    for node in ast.walk(tree):
        at_start = id(node) not in later
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(path, node.lineno, alias.name, None, at_start)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield Import(path, node.lineno, node.module or "", alias.name, at_start)


def is_later(node: ast.AST) -> bool:
    """Whether what is inside does not run at import: a function, or a block for type checkers."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def private(imported: Import) -> bool:
    """Whether a part of the module's path, or the name, begins with an underscore."""
    parts = [*imported.module.split("."), imported.name or ""]
    return any(part.startswith("_") for part in parts)
