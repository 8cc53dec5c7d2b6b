"""Writes historykit.sync out of the asynchronous classes: `python -m tests.sync.blocking`.

It reads their source, that of their bases too, so that a call that is added, changed or documented
anew there is so here as well; a test fails while the module is not current.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

import historykit
from tests.packaging.workspace import ROOT

SOURCE = ROOT / "core" / "src" / "historykit"
TARGET = SOURCE / "sync" / "calls.py"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Blocking:
    """A blocking class, and the class that it stands for."""

    name: str
    base: str
    original: type
    doc: str
    attributes: tuple[tuple[str, str], ...] = ()
    without: frozenset[str] = field(default=frozenset())

    @property
    def parts(self) -> Iterator[tuple[str, str]]:
        """The classes that it stands for, each with its module, the bases first."""
        for each in reversed(self.original.__mro__):
            package, _, module = each.__module__.partition(".")
            if package == "historykit":
                yield module, each.__name__


CLASSES = (
    Blocking(
        "History",
        "HistoryFace",
        historykit.History,
        "A history whose calls block: `historykit.History`, on a loop in a thread of its own.",
        (("namespace", "str"), ("user_id", "str"), ("codec", "MessageCodec")),
        frozenset({"open", "aclose", "Session"}),
    ),
    Blocking(
        "Session",
        "SessionFace",
        historykit.Session,
        "A session whose calls block: `historykit.Session`, used through `History.Session`.",
        (),
        frozenset({"before_save", "after_save", "context"}),
    ),
    Blocking(
        "BoundAgent",
        "AgentFace",
        historykit.BoundAgent,
        "An agent whose runs in sessions block, as `History.bind` returns it.",
        (("agent", "Any"),),
    ),
)

HEAD = '''"""The calls of the blocking classes, written by `python -m tests.sync.blocking`."""

from __future__ import annotations

{imports}

__all__ = ["BoundAgent", "History", "Session", "open_history"]


'''


def written() -> str:
    """The module that belongs to the source, not yet laid out."""
    modules = {
        name: ast.parse((SOURCE / f"{name}.py").read_text("utf-8"))
        for name in dict.fromkeys(module for each in CLASSES for module, _ in each.parts)
    }
    body = "\n\n".join([_opening(modules["history"]), *(_class(each, modules) for each in CLASSES)])
    imports = "\n".join(_imports(body, modules))
    return HEAD.format(imports=imports) + body


def _class(blocking: Blocking, modules: dict[str, ast.Module]) -> str:
    attributes = dict(blocking.attributes)
    methods: dict[str, str] = {}
    for module, name in blocking.parts:
        found = next(
            node
            for node in modules[module].body
            if isinstance(node, ast.ClassDef) and node.name == name
        )
        attributes |= dict(_attributes(found, blocking))
        methods |= dict(_methods(found, blocking))
    names = ", ".join(f'"{name}"' for name in attributes)
    lines = [
        f"class {blocking.name}({blocking.base}):",
        f'    """{blocking.doc}"""',
        "",
        *([f"    _ATTRIBUTES = frozenset({{{names}}})", ""] if attributes else []),
        *(f"    {name}: {annotation}" for name, annotation in attributes.items()),
        "",
        *methods.values(),
    ]
    return "\n".join(lines) + "\n"


def _attributes(node: ast.ClassDef, blocking: Blocking) -> Iterator[tuple[str, str]]:
    """The fields of a dataclass and the properties, with their types."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name in blocking.without:
            continue
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            annotation = ast.unparse(each.annotation)
            name = each.target.id
            plain = not re.match(r"ClassVar|InitVar|KW_ONLY", annotation)
            if plain and not name.startswith("_") and name not in blocking.without:
                yield name, annotation
        elif isinstance(each, ast.FunctionDef) and "property" in _decorators(each):
            assert each.returns is not None
            yield each.name, ast.unparse(each.returns)


def _methods(node: ast.ClassDef, blocking: Blocking) -> Iterator[tuple[str, str]]:
    for each in node.body:
        if not isinstance(each, Function) or each.name.startswith("_"):
            continue
        if each.name in blocking.without or "property" in _decorators(each):
            continue
        yield each.name, textwrap.indent(_method(each, blocking.name), "    ")


def _method(node: Function, owner: str) -> str:
    of_class = "classmethod" in _decorators(node)
    returns = ast.unparse(node.returns) if node.returns else "Any"
    generates = re.fullmatch(r"AsyncGenerator\[(.*), None\]", returns)
    if generates:
        how, returns = "iterate", f"Iterator[{generates[1]}]"
    else:
        how = "call" if isinstance(node, ast.AsyncFunctionDef) else "direct"
    subject = "cls" if of_class else "self"
    call = f"{subject}._{how}{'_class' if of_class else ''}({_passed(node)})"
    lines = ["@classmethod"] if of_class else []
    lines += [f"def {node.name}({ast.unparse(node.args)}) -> {returns}:", _doc(node, owner)]
    if returns == "None":
        lines.append(f"    {call}")
    else:
        lines += [f"    result: {returns} = {call}", "    return result"]
    return "\n".join(lines) + "\n"


def _passed(node: Function) -> str:
    """The arguments of the call that hands on those of a function."""
    arguments = node.args
    own = [each.arg for each in arguments.args][1:]
    named = [each.arg for each in arguments.kwonlyargs]
    keywords = [f"{name}={name}" for name in (*own, *named)]
    rest = [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return ", ".join([f'"{node.name}"', *keywords, *rest])


def _doc(node: Function, owner: str) -> str:
    """The first sentence of a docstring, and where the rest is."""
    doc = ast.get_docstring(node) or ""
    first = re.split(r"(?<=[.:])\s", doc.replace("\n", " "), maxsplit=1)[0].rstrip(":.")
    first = first.replace("`async with`", "`with`")
    text = f'"""{first}: see `historykit.{owner}.{node.name}`."""'
    if len(text) > 92:
        text = f'"""{first}.\n\nSee `historykit.{owner}.{node.name}`.\n"""'
    wrapped = [textwrap.fill(line, 95) for line in text.split("\n")]
    return textwrap.indent("\n".join(wrapped), "    ")


def _opening(module: ast.Module) -> str:
    node = next(
        each
        for each in module.body
        if isinstance(each, ast.FunctionDef) and each.name == "open_history"
    )
    arguments = node.args
    given = [
        *(each.arg for each in (*arguments.posonlyargs, *arguments.args)),
        *(f"{each.arg}={each.arg}" for each in arguments.kwonlyargs),
        *([f"**{arguments.kwarg.arg}"] if arguments.kwarg else []),
    ]
    return (
        f"def open_history({ast.unparse(arguments)}) -> History:\n"
        f"{_doc(node, '').replace('historykit..', 'historykit.')}\n"
        f"    return History(histories.open_history({', '.join(given)}))\n"
    )


def _imports(body: str, modules: dict[str, ast.Module]) -> list[str]:
    """The imports of the names in a text, as their modules have them, or from these modules."""
    nodes = list(ast.walk(ast.parse(body)))
    words = {node.id for node in nodes if isinstance(node, ast.Name)}
    words -= {node.arg for node in nodes if isinstance(node, ast.arg)}
    words -= {each.name for each in CLASSES}
    found = {
        "from historykit import history as histories",
        "from historykit.sync.face import AgentFace, HistoryFace, SessionFace",
        "from collections.abc import Iterator",
    }
    for name, module in modules.items():
        for node in ast.walk(module):
            if isinstance(node, ast.Import | ast.ImportFrom):
                prefix = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
                found |= {
                    f"{prefix}import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
                    for alias in node.names
                    if (alias.asname or alias.name) in words
                }
        found |= {
            f"from historykit.{name} import {target}"
            for target in map(_defined, module.body)
            if target in words
        }
    return sorted(found)


def _defined(node: ast.stmt) -> str:
    """The name of a type that a statement of a module defines, "" where it is none."""
    target: ast.expr | None = None
    if isinstance(node, ast.AnnAssign):
        target = node.target
    elif isinstance(node, ast.Assign):
        target = node.targets[0]
    if isinstance(target, ast.Name):
        return target.id
    return node.name if isinstance(node, ast.ClassDef) else ""


def _decorators(node: Function) -> set[str]:
    names = {ast.unparse(each) for each in node.decorator_list}
    return names | ({"property"} if "cached_property" in names else set())


def outline(text: str) -> tuple[set[str], str]:
    """What a module says, however it is laid out: its imports, and all that follows them."""
    module = ast.parse(text)
    imports = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        f"{getattr(node, 'module', '')} {alias.name} {alias.asname}"
        for node in imports
        for alias in node.names
    }
    module.body = [node for node in module.body if node not in imports]
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = " ".join(node.value.split())
    return names, ast.dump(module)


def _formatted(text: str) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    options = ["--stdin-filename", str(TARGET), "-"]
    for command in (["check", "--fix", "--quiet", "--select", "I"], ["format"]):
        done = subprocess.run(
            [*ruff, *command, *options], input=text, capture_output=True, text=True, check=True
        )
        text = done.stdout
    return text


if __name__ == "__main__":
    TARGET.write_text(_formatted(written()), "utf-8")
