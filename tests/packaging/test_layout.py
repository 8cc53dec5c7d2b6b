from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.workspace import DISTRIBUTIONS, ROOT, Distribution

LOCKS = {"uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock"}
MADE = {"build", "dist", "htmlcov", "node_modules", "__pycache__"}


def files() -> Iterator[Path]:
    """The files of the checkout, without what tools make and keep there."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in MADE and not name.startswith(".")]
        yield from (Path(folder, name) for name in names)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_a_package_says_that_it_is_typed(distribution: Distribution) -> None:
    """Type checkers of users read the annotations of each package."""
    assert (distribution.package / "py.typed").is_file()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_a_distribution_carries_the_licence(distribution: Distribution) -> None:
    """Each distribution is shipped with the licence of the project, word for word."""
    assert distribution.project["license-files"] == ["LICENSE"]
    assert (distribution.folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_a_distribution_has_a_readme(distribution: Distribution) -> None:
    """The page of a distribution opens with its name."""
    readme = (distribution.folder / distribution.project["readme"]).read_text("utf-8")
    assert readme.startswith(f"# {distribution.name}\n")


def test_no_lock_file_is_kept() -> None:
    """No lock file, which would name the hosts of a registry, is part of the checkout."""
    assert [path for path in files() if path.name in LOCKS] == []
