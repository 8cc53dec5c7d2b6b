"""Writes docs/reference out of signatures and docstrings: `python -m tests.docs.reference`.

It reads the source and imports nothing, so that the pages are the same on every Python and without
any driver.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.workspace import ROOT

REFERENCE = ROOT / "docs" / "reference"
CORE = ROOT / "core" / "src"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the reference: its title, what it is about, and the modules that it describes."""

    name: str
    title: str
    about: str
    modules: tuple[str, ...]


PAGES = (
    Page(
        "histories",
        "Histories",
        "Opening a history, reading and writing it, and what its store can do.",
        ("history", "loading", "config", "capabilities", "memory"),
    ),
    Page(
        "agents",
        "Agents, sessions and providers",
        "The pipeline of an agent, and the steps that load and save its history.",
        ("agent", "clients", "responses", "streaming", "sessions", "providers", "store_provider"),
    ),
    Page(
        "catalogue",
        "Conversations as resources",
        "Finding, reading and writing whole conversations.",
        (
            "catalogue",
            "session_fields",
            "session_saving",
            "session_calls",
            "session_messages",
            "pages",
            "statuses",
        ),
    ),
    Page(
        "messages",
        "Messages",
        "What is said, how it becomes bytes, and the form of the chat-completions API.",
        ("messages", "contents", "chat_completions", "serialization", "codec"),
    ),
    Page(
        "runs",
        "Runs",
        "How agents are run in sessions.",
        ("history_runs", "session_runs", "agent_calls", "execution"),
    ),
    Page(
        "attachments",
        "Attachments",
        "Files that belong to messages: what is attached, where it is kept, what is swept.",
        (
            "attachments",
            "attachment_calls",
            "attachment_store",
            "attachment_folders",
            "attachment_sweep",
        ),
    ),
    Page(
        "sync",
        "Without asyncio",
        "The classes whose calls block.",
        ("sync",),
    ),
    Page("errors", "Errors", "What is raised.", ("errors",)),
    Page(
        "transfer",
        "Export and import",
        "Conversations on their way from one store to another.",
        ("portable", "exporting", "importing"),
    ),
    Page(
        "stores",
        "Stores and backends",
        "For authors of a backend: the store, its records, the rules and the plugin.",
        (
            *("store", "records", "session_records", "planning", "plugins", "backends"),
            *("ids", "redaction", "settings", "tasks"),
        ),
    ),
    Page("testing", "The conformance suite", "What proves or refutes a backend.", ("testing",)),
)

INTERNAL = frozenset(
    {
        "attachment_entries",
        "attachment_reading",
        "attachment_writing",
        "bounds",
        "callers",
        "cancellation",
        "candidates",
        "dict_forms",
        "drafting",
        "exact",
        "leases",
        "lifecycle",
        "media_types",
        "memory_sessions",
        "moments",
        "offloading",
        "runs",
        "session_bodies",
        "session_copies",
        "session_rows",
        "session_search",
        "session_states",
        "session_writing",
        "suggestions",
        "tools",
        "transcripts",
        "turns",
        "windows",
    }
)
"""Modules that are nobody's business outside of core."""

BACKENDS = ("sqlite", "redis", "postgres", "mongo")

SIGNATURE = "<!-- not run: a signature and no program -->"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """A module's source: its name, its tree, and the names that it makes public."""

    name: str
    tree: ast.Module
    public: tuple[str, ...]

    @classmethod
    def read(cls, path: Path, name: str) -> Module:
        tree = ast.parse(path.read_text("utf-8"))
        listed = [
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and _target(node) == "__all__"
        ]
        return cls(name, tree, tuple(ast.literal_eval(listed[0])) if listed else ())

    def definitions(self) -> dict[str, tuple[ast.stmt, str]]:
        """What the module itself defines, each with its docstring."""
        found = {}
        for node, doc in _with_docs(self.tree.body):
            name = getattr(node, "name", None) or _target(node)
            if name:
                found[name] = node, doc
        return found


def core_modules(names: Iterable[str]) -> list[Module]:
    """Modules of core; a package among them stands for what it exports."""
    modules = []
    for name in names:
        path = CORE / "historykit" / name
        if path.is_dir():
            modules += package_modules(path, f"historykit.{name}")
        else:
            modules.append(Module.read(path.with_suffix(".py"), f"historykit.{name}"))
    return modules


def package_modules(folder: Path, name: str) -> list[Module]:
    """A package, and those of its modules that define what it exports."""
    package = Module.read(folder / "__init__.py", name)
    modules = [Module(name, package.tree, ())]
    for path in sorted(folder.glob("*.py")):
        module = Module.read(path, f"{name}.{path.stem}")
        public = tuple(each for each in package.public if each in module.definitions())
        if public and path.stem != "__init__":
            modules.append(Module(module.name, module.tree, public))
    return modules


def backend_modules(backend: str) -> list[Module]:
    package = f"historykit_{backend}"
    return package_modules(ROOT / "backends" / backend / "src" / package, package)


def pages() -> dict[str, str]:
    """The text of each file of the reference."""
    written = {}
    for page in PAGES:
        modules = core_modules(page.modules)
        written[f"{page.name}.md"] = _page(page.title, page.about, modules)
    for backend in BACKENDS:
        title = f"historykit_{backend}"
        about = f"What the distribution historykit-{backend} exports."
        written[f"{title}.md"] = _page(title, about, backend_modules(backend))
    lines = "".join(f"- [{page.title}]({page.name}.md): {page.about}\n" for page in PAGES)
    lines += "".join(f"- [historykit_{name}](historykit_{name}.md)\n" for name in BACKENDS)
    written["README.md"] = (
        "# Reference\n\nEvery public name, with its signature and its contract. The pages are "
        "written by\n`python -m tests.docs.reference` and not by hand.\n\n" + lines
    )
    return written


def _page(title: str, about: str, modules: list[Module]) -> str:
    parts = [f"# {title}\n\n{about}\n"]
    for module in modules:
        parts.append(f"## {module.name}\n\n{_text(ast.get_docstring(module.tree))}")
        parts += _names(module)
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _names(module: Module) -> Iterator[str]:
    definitions = module.definitions()
    for name in module.public:
        node, doc = definitions.get(name, (None, ""))
        if isinstance(node, ast.ClassDef):
            yield from _class(node)
        elif isinstance(node, Function):
            yield _entry(3, name, _signature(node), doc)
        elif node is not None:
            method = _method_behind(node, module.tree)
            if method is not None:
                yield _entry(3, name, _signature(method, name), ast.get_docstring(method) or "")
            else:
                yield _entry(3, name, _assignment(node), doc)
    elsewhere = [name for name in module.public if name not in definitions]
    if elsewhere:
        yield f"It also has {', '.join(f'`{name}`' for name in elsewhere)}.\n"


def _class(node: ast.ClassDef) -> Iterator[str]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    bases = bases if len(bases) < 80 else "..."
    head = [f"@{ast.unparse(each)}" for each in node.decorator_list]
    head.append(f"class {node.name}({bases})" if bases else f"class {node.name}")
    members = [(each, doc) for each, doc in _with_docs(node.body) if _is_public(each)]
    head += [
        _signature(each, node.name)
        for each in node.body
        if isinstance(each, Function) and each.name == "__init__"
    ]
    fields = [item for item in members if isinstance(item[0], ast.Assign | ast.AnnAssign)]
    yield _entry(3, node.name, "\n".join(head), ast.get_docstring(node) or "") + _fields(fields)
    for each, doc in members:
        if not isinstance(each, Function):
            continue
        decorators = [ast.unparse(decorator) for decorator in each.decorator_list]
        if "overload" in decorators or any(name.endswith(".setter") for name in decorators):
            continue
        yield _entry(4, f"{node.name}.{each.name}", _signature(each), doc)


def _fields(fields: list[tuple[ast.stmt, str]]) -> str:
    if not fields:
        return ""
    lines = [
        f"- `{_assignment(node)}`" + (f": {_line(doc)}" if doc else "") for node, doc in fields
    ]
    return "\n" + "\n".join(lines) + "\n"


def _entry(level: int, name: str, code: str, doc: str) -> str:
    return f"{'#' * level} {name}\n\n{SIGNATURE}\n```python\n{code}\n```\n\n{_text(doc)}"


def _text(doc: str | None) -> str:
    """A docstring as Markdown: what follows two colons is indented, and so is code there too."""
    return re.sub(r"::$", ":", inspect.cleandoc(doc or ""), flags=re.MULTILINE) + "\n"


def _line(doc: str) -> str:
    return re.sub(r"\s*\n\s*", " ", _text(doc).strip())


def _signature(node: Function, name: str | None = None) -> str:
    """A function's signature, on several lines where it does not fit into one."""
    is_class = name is not None and node.name == "__init__"
    lines = [f"@{ast.unparse(each)}" for each in node.decorator_list if _is_telling(each)]
    start = "" if is_class else "async def " if isinstance(node, ast.AsyncFunctionDef) else "def "
    arguments = _arguments(node.args)
    if arguments and arguments[0] in ("self", "cls"):
        arguments = arguments[1:]
        if arguments and arguments[0] == "/":
            arguments = arguments[1:]
    end = "" if is_class or node.returns is None else f" -> {ast.unparse(node.returns)}"
    line = f"{start}{name or node.name}({', '.join(arguments)}){end}"
    if len(line) > 100:
        inside = "".join(f"    {argument},\n" for argument in arguments)
        line = f"{start}{name or node.name}(\n{inside}){end}"
    return "\n".join([*lines, line])


def _arguments(given: ast.arguments) -> list[str]:
    """Each argument as it is written, with the marks between the kinds."""
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    written = [_argument(*each) for each in zip(plain, defaults, strict=True)]
    if given.posonlyargs:
        written.insert(len(given.posonlyargs), "/")
    if given.vararg is not None:
        written.append("*" + _argument(given.vararg, None))
    elif given.kwonlyargs:
        written.append("*")
    written += [_argument(*each) for each in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg is not None:
        written.append("**" + _argument(given.kwarg, None))
    return written


def _argument(node: ast.arg, default: ast.expr | None) -> str:
    text = node.arg if node.annotation is None else f"{node.arg}: {ast.unparse(node.annotation)}"
    if default is None:
        return text
    return f"{text}{' = ' if node.annotation else '='}{ast.unparse(default)}"


def _assignment(node: ast.stmt) -> str:
    """A name that is assigned to, with its type, and its value where that is short."""
    assert isinstance(node, ast.Assign | ast.AnnAssign)
    text = _target(node)
    if isinstance(node, ast.AnnAssign):
        text += f": {ast.unparse(node.annotation)}"
    value = "" if node.value is None else f" = {ast.unparse(node.value)}"
    return text + (value if len(value) < 90 else " = ...")


def _method_behind(node: ast.stmt, tree: ast.Module) -> Function | None:
    """The method, where a name of the module is one of an object of one of its classes."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Attribute):
        return None
    for cls in tree.body:
        for method in getattr(cls, "body", ()):
            if isinstance(method, Function) and method.name == node.value.attr:
                return method
    return None


def _with_docs(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    for node, follower in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | Function):
            yield node, ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield node, _literal(follower)


def _literal(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return str(node.value.value)
    return ""


def _target(node: ast.stmt) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return targets[0].id if isinstance(targets[0], ast.Name) else ""


def _is_public(node: ast.stmt) -> bool:
    name = node.name if isinstance(node, Function | ast.ClassDef) else _target(node)
    return not name.startswith("_") and name != ""


def _is_telling(decorator: ast.expr) -> bool:
    return ast.unparse(decorator) in (
        "property",
        "classmethod",
        "staticmethod",
        "asynccontextmanager",
    )


def write() -> None:
    """Write the files, and remove those that are none of the reference any more."""
    REFERENCE.mkdir(exist_ok=True)
    written = pages()
    for path in REFERENCE.glob("*.md"):
        if path.name not in written:
            path.unlink()
    for name, text in written.items():
        REFERENCE.joinpath(name).write_text(text, "utf-8")


if __name__ == "__main__":
    write()
