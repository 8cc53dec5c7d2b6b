from __future__ import annotations

import pytest

import historykit
from tests.docs.reference import (
    BACKENDS,
    CORE,
    INTERNAL,
    PAGES,
    REFERENCE,
    backend_modules,
    core_modules,
    pages,
)

WRITTEN = pages()


def test_the_reference_is_current() -> None:
    """The pages are what the source says; `python -m tests.docs.reference` writes them anew."""
    found = {path.name: path.read_text("utf-8") for path in REFERENCE.iterdir()}
    outdated = {name for name in found | WRITTEN if found.get(name) != WRITTEN.get(name)}
    assert not outdated, "run: python -m tests.docs.reference"


def test_every_module_is_on_a_page_or_internal() -> None:
    """A module of core is described, or it is said to be nobody's business."""
    described = {name for page in PAGES for name in page.modules}
    modules = {path.stem for path in (CORE / "historykit").iterdir()}
    modules = {name for name in modules if name[0] not in "_." and name not in ("cli", "py")}
    assert modules == described | INTERNAL
    assert not described & INTERNAL


@pytest.mark.parametrize("name", historykit.__all__)
def test_every_name_of_the_package_has_an_entry(name: str) -> None:
    """What `import historykit` gives is described somewhere in the reference."""
    assert any(f"\n### {name}\n" in text for text in WRITTEN.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_of_a_module_has_an_entry_with_its_contract(page) -> None:  # type: ignore[no-untyped-def]
    """Each public name has an entry that says something, but for those that are elsewhere."""
    text = WRITTEN[f"{page.name}.md"]
    for module in core_modules(page.modules):
        for name in set(module.public) & set(module.definitions()):
            entry = text.partition(f"\n### {name}\n")[2].partition("\n#")[0]
            assert entry.partition("```\n\n")[2].strip(), f"{module.name}.{name} says nothing"


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_name_of_a_backend_has_an_entry(backend: str) -> None:
    """What a backend's package exports is described on its page."""
    text = WRITTEN[f"historykit_{backend}.md"]
    names = [name for module in backend_modules(backend) for name in module.public]
    assert len(names) >= 3
    for name in names:
        assert f"\n### {name}\n" in text
