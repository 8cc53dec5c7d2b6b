"""Every check of the project by name: `nox -l` lists them, `python3 dev.py nox` runs them.

Without arguments each Python of 3.11 to 3.14 that the machine has is tested and one that is not
there is reported as skipped. `nox -s tests-3.14 --error-on-missing-interpreters` insists on it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.11.12"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_venv = "yes"

WORKSPACE = nox.project.load_toml("pyproject.toml")
CORE = nox.project.load_toml("core/pyproject.toml")
PYTHONS = nox.project.python_versions(CORE)
SERVED = ["backends/mongo", "backends/postgres", "backends/redis"]
SERVERS = {
    "redis7": "backends/redis",
    "redis8": "backends/redis",
    "valkey": "backends/redis",
    "postgres15": "backends/postgres",
    "postgres18": "backends/postgres",
    "mongo-standalone": "backends/mongo",
    "pgbouncer": "backends/postgres/tests/test_pgbouncer.py",
}
FOLDERS = ["core", *sorted(str(path.parent) for path in Path("backends").glob("*/pyproject.toml"))]


@nox.session
def lint(session: nox.Session) -> None:
    """Style and formatting."""
    session.install(*group("lint"))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """mypy, strict, over core, the backends and the project's own scripts."""
    install_workspace(session, "test", "docker", "types", "nox")
    session.run("mypy")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The whole suite."""
    install_workspace(session, "test")
    session.run("pytest", "-n", "auto", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """What is about core, with SQLite and one network, which has to reach every line of core."""
    install_workspace(session, "test")
    session.run("coverage", "erase")
    suite = ["tests", "backends/sqlite", "backends/redis/tests/test_network.py"]
    session.run("coverage", "run", "-m", "pytest", "-n", "auto", *suite, *session.posargs)
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session(default=False)
@nox.parametrize("server", [*SERVERS], ids=[*SERVERS])
def servers(session: nox.Session, server: str) -> None:
    """The tests of a backend on another kind of server than the default one."""
    install_workspace(session, "test")
    kind = ("--processes", "--backend", server, SERVERS[server])
    session.run("pytest", "-n", "auto", *kind, *session.posargs)


@nox.session(default=False)
def containers(session: nox.Session) -> None:
    """The tests of the backends on servers in containers. Needs a Docker daemon."""
    install_workspace(session, "test", "docker")
    run = ("pytest", "-n", "auto", "--containers")
    session.run(*run, *SERVED, *session.posargs)
    standalone = ("--backend", "mongo-standalone", "backends/mongo/tests/test_conformance.py")
    session.run(*run, *standalone, *session.posargs)


@nox.session(default=False)
def chaos(session: nox.Session) -> None:
    """Servers and writers killed with -9 under load: what is missing, torn or doubled? Minutes."""
    install_workspace(session, "test")
    session.run("python", "-m", "tests.chaos", *session.posargs)


@nox.session
def core(session: nox.Session) -> None:
    """Core with its own requirements only: it imports, and it keeps a conversation in memory."""
    session.install("./core")
    check = Path("tests/packaging/core_alone.py").resolve()
    session.chdir(session.create_tmp())
    session.run("python", "-W", "error", str(check))


@nox.session
def build(session: nox.Session) -> None:
    """The five distributions, source and wheel, in dist/."""
    session.install(*group("build"))
    shutil.rmtree("dist", ignore_errors=True)
    for folder in FOLDERS:
        session.run("python", "-m", "build", "--outdir", "dist", folder, silent=True)


@nox.session(requires=["build"], reuse_venv=False)
def install(session: nox.Session) -> None:
    """The wheels, installed by name as a user would: the demo runs outside the checkout, twice."""
    version = CORE["project"]["version"]
    session.install("--find-links", "dist", f"historykit[cli,sqlite]=={version}")
    with tempfile.TemporaryDirectory() as elsewhere:
        session.chdir(elsewhere)
        session.run("historykit", "demo")
        session.run("historykit", "demo")


def install_workspace(session: nox.Session, *groups: str) -> None:
    """Installs the checkout's distributions, editable, with the dependency groups."""
    editable = ["-e", "./core[attachments,cli,conformance]"]
    for folder in FOLDERS[1:]:
        editable += ["-e", f"./{folder}"]
    session.install(*editable, *group(*groups))


def group(*names: str) -> list[str]:
    return list(nox.project.dependency_groups(WORKSPACE, *names))
