"""The distributions of the checkout, as their pyproject files declare them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Distribution:
    folder: Path
    project: dict[str, Any]

    @property
    def name(self) -> str:
        return self.project["name"]

    @property
    def version(self) -> str:
        return self.project["version"]

    @property
    def package(self) -> Path:
        return self.folder / "src" / self.name.replace("-", "_")

    def modules(self) -> dict[str, Path]:
        """The files of the package by the name of their module."""
        found = {}
        for path in sorted(self.package.rglob("*.py")):
            parts = path.relative_to(self.package.parent).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
        return found

    def __str__(self) -> str:
        return self.name


def read(folder: Path) -> Distribution:
    text = (folder / "pyproject.toml").read_text("utf-8")
    return Distribution(folder=folder, project=tomllib.loads(text)["project"])


CORE = read(ROOT / "core")
BACKENDS = [read(path.parent) for path in sorted(ROOT.glob("backends/*/pyproject.toml"))]
DISTRIBUTIONS = [CORE, *BACKENDS]
