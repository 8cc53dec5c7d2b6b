from __future__ import annotations

import importlib.metadata
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from historykit.plugins import EXTRAS
from tests.packaging.workspace import BACKENDS, CORE, DISTRIBUTIONS, ROOT, Distribution

SIBLINGS = {distribution.name for distribution in DISTRIBUTIONS}


def sibling_requirements(distribution: Distribution) -> list[Requirement]:
    extras = distribution.project.get("optional-dependencies", {}).values()
    lines = [*distribution.project["dependencies"], *(line for extra in extras for line in extra)]
    requirements = [Requirement(line) for line in lines]
    return [
        requirement
        for requirement in requirements
        if canonicalize_name(requirement.name) in SIBLINGS - {distribution.name}
    ]


def test_the_distributions_have_one_version() -> None:
    """Core and the backends are released together, under one version."""
    assert {distribution.version for distribution in DISTRIBUTIONS} == {CORE.version}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_the_checkout_is_what_is_installed(distribution: Distribution) -> None:
    """The tests run against the version that the pyproject file declares."""
    assert importlib.metadata.version(distribution.name) == distribution.version


def test_the_changelog_opens_with_the_version() -> None:
    """The first heading of a release in the changelog names the current version."""
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    heading = next(line for line in lines if line.startswith("## "))
    assert heading.split()[1] == CORE.version


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_a_range_on_a_sibling_ends_at_the_next_minor(distribution: Distribution) -> None:
    """A range between siblings holds the current version and its patches, not the next minor."""
    version = Version(CORE.version)
    patch = f"{version.major}.{version.minor}.{version.micro + 1}"
    following = f"{version.major}.{version.minor + 1}.0"
    requirements = sibling_requirements(distribution)
    assert requirements
    for requirement in requirements:
        held = [
            requirement.specifier.contains(each) for each in (version, patch, following, "0.0.9")
        ]
        assert held == [True, True, False, False], str(requirement)


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_a_backend_requires_core(backend: Distribution) -> None:
    """A backend requires historykit and no other distribution of the checkout."""
    assert [requirement.name for requirement in sibling_requirements(backend)] == ["historykit"]


def test_core_has_an_extra_for_each_backend() -> None:
    """`historykit[NAME]` installs the backend of that name, for each backend."""
    extras = CORE.project["optional-dependencies"]
    found = {Requirement(extras[backend.folder.name][0]).name for backend in BACKENDS}
    assert found == {backend.name for backend in BACKENDS}


def test_the_error_for_a_missing_backend_knows_each_extra() -> None:
    """`pip install 'historykit[NAME]'` is suggested for exactly the backends of the checkout."""
    assert {backend.folder.name for backend in BACKENDS} == EXTRAS


def test_the_extra_all_names_each_backend() -> None:
    """`historykit[all]` installs every backend."""
    (line,) = CORE.project["optional-dependencies"]["all"]
    assert Requirement(line).extras == {backend.folder.name for backend in BACKENDS}


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_a_backend_declares_the_pythons_of_core(backend: Distribution) -> None:
    """A backend is declared for the same Pythons as core."""
    pythons = "Programming Language :: Python :: "
    declared = [line for line in backend.project["classifiers"] if line.startswith(pythons)]
    assert declared == [line for line in CORE.project["classifiers"] if line.startswith(pythons)]
    assert backend.project["requires-python"] == CORE.project["requires-python"]


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_a_backend_is_found_under_the_name_of_its_folder(backend: Distribution) -> None:
    """The entry point of a backend has the name of its folder and leads to its `plugin` module."""
    entry_points = backend.project["entry-points"]["historykit.backends"]
    assert entry_points == {backend.folder.name: f"{backend.package.name}.plugin"}


def test_the_workspace_is_no_distribution() -> None:
    """The root can't be built and says that it is not to be uploaded."""
    root = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "build-system" not in root
    assert root["project"]["classifiers"] == ["Private :: Do Not Upload"]
