"""Executables of servers: those that packages of the test group carry, and those of the system."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

__all__ = ["Program", "installed", "packaged", "version_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An executable, the version it says it has, and who brought it."""

    path: Path
    version: str
    origin: str
    environment: Mapping[str, str] = field(default_factory=dict)


def packaged(name: str, end: str) -> Iterator[tuple[Path, str]]:
    """Yield the file of an installed distribution whose path ends so, and the distribution."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    for each in found.files or ():
        if f"/{each}".endswith(f"/{end}"):
            yield _executable(Path(str(each.locate())).resolve()), f"{name} {found.version}"


def installed(name: str, *folders: str) -> Iterator[tuple[Path, str]]:
    """Yield the system's executable of that name, which may be in a folder off the path."""
    found = shutil.which(name, path=os.pathsep.join([*folders, os.environ.get("PATH", "")]))
    if found is not None:
        yield Path(found), found


def version_of(path: Path, environment: Mapping[str, str] | None = None) -> str | None:
    """Return the first version that the executable names, None where it does not run."""
    try:
        said = subprocess.run(
            [path, "--version"],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\d+(\.\d+)+", said.stdout)
    return found[0] if found else None


def _executable(path: Path) -> Path:
    """Return the path, after mending a wheel that was packed without the right to execute."""
    if not os.access(path, os.X_OK):
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path
