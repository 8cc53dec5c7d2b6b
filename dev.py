#!/usr/bin/env python3
"""Sets up `.venv` beside this file and runs the project in it.

    python3 dev.py demo [ARGS]    a conversation on SQLite, there again on the next run
    python3 dev.py test [ARGS]    the whole test suite, on all cores; ARGS go to pytest
    python3 dev.py check [PATHS]  lint, formatting and types
    python3 dev.py nox [ARGS]     the checks of noxfile.py; ARGS go to nox

Needs Python 3.11 or newer with pip, and nothing else: neither ensurepip nor the right to install
into the system's Python. Once set up, a command installs again only when a pyproject.toml changed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

OLDEST_PYTHON = (3, 11)
OLDEST_PIP = (22, 3)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")

BACKENDS = sorted(f"backends/{path.parent.name}" for path in ROOT.glob("backends/*/pyproject.toml"))

# The distributions of the checkout and the dependency groups that a command needs.
WORKSPACE = ["core[attachments,cli,conformance]", *BACKENDS]
NEEDS = {
    "demo": (["core[cli]", "backends/sqlite"], []),
    "test": (WORKSPACE, ["test"]),
    "check": (WORKSPACE, ["test", "docker", "lint", "types", "nox"]),
    "nox": ([], ["nox"]),
}
RUNS = {
    "demo": [["historykit", "demo"]],
    "test": [["pytest", "-n", "auto"]],
    "check": [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]],
    "nox": [["nox"]],
}


def main() -> int:
    command, *arguments = sys.argv[1:] or ["--help"]
    if command not in NEEDS:
        print(__doc__)
        return 0 if command in ("-h", "--help") else 2
    refuse_unfit_python()
    make_environment()
    install(command)
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    codes = [
        subprocess.call([str(BIN / program[0]), *program[1:], *arguments], env=environment)
        for program in RUNS[command]
    ]
    return max(codes, key=abs)


def refuse_unfit_python() -> None:
    if sys.version_info < OLDEST_PYTHON:
        stop(f"it is Python {sys.version.split()[0]}", "Run dev.py with Python 3.11 or newer.")
    if importlib.util.find_spec("pip") is None:
        stop("it has no pip", "On Debian and Ubuntu: apt-get install python3-pip")
    from importlib.metadata import version

    pip = version("pip")
    if tuple(int(part) for part in pip.split(".")[:2]) < OLDEST_PIP:
        stop(f"its pip is {pip}", f"Get 22.3 or newer: {sys.executable} -m pip install -U pip")


def stop(reason: str, remedy: str) -> None:
    sys.exit(f"dev.py: {sys.executable} can't set up the project: {reason}.\n{remedy}")


def make_environment() -> None:
    """Makes `.venv` for the Python that runs this, anew if it was made for another."""
    release = "version = {}.{}.{}".format(*sys.version_info)
    configuration = VENV / "pyvenv.cfg"
    if configuration.exists() and release in configuration.read_text().splitlines():
        return
    # Without pip: Debian's Python comes without the ensurepip that would put it there.
    subprocess.check_call([sys.executable, "-m", "venv", "--without-pip", "--clear", str(VENV)])


def install(command: str) -> None:
    """Installs what the command needs, unless it was installed for the same pyproject files."""
    distributions, groups = NEEDS[command]
    requirements = ["pip"]
    # In one pip command: a backend's requirement on historykit is to be met by this checkout.
    for distribution in distributions:
        requirements += ["-e", str(ROOT / distribution)]
    for group in groups:
        requirements += dependency_group(group)
    stamp, wanted = VENV / f"{command}.stamp", digest(requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"dev.py: installing what {command!r} needs into {VENV} ...", file=sys.stderr, flush=True)
    options = ["--quiet", "--disable-pip-version-check", "--no-input"]
    pip = [sys.executable, "-m", "pip", "--python", str(BIN / "python"), "install", *options]
    code = subprocess.call([*pip, *requirements])
    if code:
        sys.exit(f"dev.py: pip could not install what {command!r} needs; its message is above.")
    stamp.write_text(wanted)


def dependency_group(name: str) -> list[str]:
    import tomllib

    entries = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"][name]
    return list(entries)


def digest(requirements: list[str]) -> str:
    found = hashlib.sha256("\n".join(requirements).encode())
    for folder in ["core", *BACKENDS]:
        found.update((ROOT / folder / "pyproject.toml").read_bytes())
    return found.hexdigest()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
