from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.packaging.imports import Import, imports, private
from tests.packaging.workspace import BACKENDS, CORE, DISTRIBUTIONS, Distribution

PACKAGES = {distribution.package.name for distribution in DISTRIBUTIONS}

# The modules of core that only work with an extra, and what that extra lets them import.
EXTRAS = {
    "historykit.cli": {"click", "rich"},
    "historykit.testing": {"hypothesis", "pytest", "pytest_asyncio"},
}


def exported(module: str) -> list[str] | None:
    """The names in the `__all__` of a module of core, None where it has none."""
    for node in ast.parse(CORE.modules()[module].read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return None


# pymongo installs these top-level packages as well.
MODULES_OF_PYMONGO = {"bson", "gridfs"}


def breaches(found: Import, backend: str) -> bool:
    """Whether a backend may not import this: a private name of core, or another backend."""
    if found.top not in PACKAGES - {backend}:
        return False
    if found.top != "historykit" or private(found) or found.module not in CORE.modules():
        return True
    if found.name is None or f"{found.module}.{found.name}" in CORE.modules():
        return False
    names = exported(found.module)
    return names is not None and found.name not in names


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_a_backend_imports_public_names_of_core_only(backend: Distribution) -> None:
    """A backend imports no private name of core, and nothing of another backend."""
    found = [each for path in backend.modules().values() for each in imports(path)]
    assert [str(each) for each in found if breaches(each, backend.package.name)] == []


@pytest.mark.parametrize(
    "line",
    [
        "import historykit_redis",
        "from historykit_redis.plugin import historykit_backend",
        "from historykit import _private",
        "from historykit.store import _private",
        "from historykit.store import time",
        "import historykit._store",
        "from historykit.nowhere import name",
        "def later():\n    from historykit.store import _private",
    ],
)
def test_a_breach_of_the_import_contract_is_seen(line: str) -> None:
    """The contract refuses private names, names not in `__all__`, and other backends."""
    (found,) = imports(Path("made_up.py"), line)
    assert breaches(found, "historykit_sqlite")


@pytest.mark.parametrize(
    "line",
    [
        "import aiosqlite",
        "import historykit",
        "from historykit import store",
        "from historykit.store import HistoryStore",
        "from historykit_sqlite.schema import _TABLE",
    ],
)
def test_what_the_import_contract_allows(line: str) -> None:
    """The contract lets through public names of core, drivers, and the backend's own parts."""
    (found,) = imports(Path("made_up.py"), line)
    assert not breaches(found, "historykit_sqlite")


def allowed_in_core(module: str) -> set[str]:
    """The top-level packages that a module of core may import when it is imported."""
    own = {Requirement(line).name for line in CORE.project["dependencies"]}
    allowed = {"historykit", *own, *sys.stdlib_module_names}
    for extra, packages in EXTRAS.items():
        if module == extra or module.startswith(f"{extra}."):
            allowed |= packages
    return allowed


@pytest.mark.parametrize("module", CORE.modules())
def test_core_imports_its_requirements_only(module: str) -> None:
    """A module of core needs the standard library, core's requirements, and its own extra."""
    found = [each for each in imports(CORE.modules()[module]) if each.at_start]
    assert [str(each) for each in found if each.top not in allowed_in_core(module)] == []


def loaded_by(statement: str) -> set[str]:
    """The packages, beside the standard library, that a fresh interpreter loads for a statement."""
    code = (
        "import sys; before = set(sys.modules); "
        f"{statement}; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split()) - sys.stdlib_module_names


def test_import_historykit_loads_nothing_heavy() -> None:
    """All names of historykit load its two requirements: no driver, test tool or framework."""
    assert loaded_by("from historykit import *") == {"historykit", "orjson", "pluggy"}


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_a_plugin_is_listed_without_its_driver(backend: Distribution) -> None:
    """Importing the plugin of a backend does not import the driver, which may be missing."""
    package = backend.package.name
    loaded = loaded_by(f"import {package}.plugin")
    assert loaded <= {"historykit", "orjson", "pluggy", package}


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_a_backend_imports_its_declared_requirements_only(backend: Distribution) -> None:
    """A backend imports no driver that another distribution of the workspace happens to bring."""
    extras = backend.project.get("optional-dependencies", {}).values()
    lines = [*backend.project["dependencies"], *(line for extra in extras for line in extra)]
    own = {Requirement(line).name for line in lines}
    allowed = {backend.package.name, *own, *sys.stdlib_module_names} | MODULES_OF_PYMONGO
    found = [each for path in backend.modules().values() for each in imports(path)]
    assert [str(each) for each in found if each.top not in allowed] == []
