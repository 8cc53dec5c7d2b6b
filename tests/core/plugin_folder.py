"""Distributions with backends, written to a folder as an installer would leave them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from textwrap import dedent

from historykit.plugins import GROUP, BackendRegistry

GOOD = """
    from historykit.memory import MemoryConfig, MemoryStore
    from historykit.plugins import BackendSpec, hookimpl

    @hookimpl
    def historykit_backend():
        return BackendSpec(name="NAME", store=lambda: MemoryStore, config=lambda: MemoryConfig)
"""


@dataclass(frozen=True, slots=True)
class PluginFolder:
    """A folder on the import path, and a registry that looks nowhere else."""

    path: Path

    def install(
        self,
        name: str,
        source: str = GOOD,
        *,
        distribution: str | None = None,
        version: str = "9.9",
        value: str | None = None,
    ) -> str:
        """Write a distribution with one backend and return the name of its module."""
        distribution = distribution or f"{name}-history"
        module = f"{distribution.replace('-', '_')}_of_{self.path.name}"
        self.write(module, source, name)
        self.describe(name, value or module, distribution, version)
        return module

    def write(self, module: str, source: str, name: str) -> None:
        """Write a module; NAME in its source stands for the backend's name."""
        self.path.joinpath(f"{module}.py").write_text(dedent(source).replace("NAME", name))

    def describe(self, name: str, value: str, distribution: str, version: str = "9.9") -> None:
        """Write the metadata of a distribution whose entry point has that name and value."""
        info = self.path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        info.joinpath("METADATA").write_text(metadata)
        info.joinpath("entry_points.txt").write_text(f"[{GROUP}]\n{name} = {value}\n")

    def entry_points(self) -> Iterable[EntryPoint]:
        """Return the entry points of all distributions in the folder."""
        for distribution in distributions(path=[str(self.path)]):
            yield from distribution.entry_points.select(group=GROUP)

    def registry(self) -> BackendRegistry:
        """Return a registry that knows what is in the folder."""
        return BackendRegistry(entry_points=self.entry_points)
