from __future__ import annotations

import json

import pytest

from historykit.pages import Page


def test_a_page_iterates_over_its_results() -> None:
    """Iterating gives the results in their order."""
    assert list(Page(["a", "b"], 0, 1, 2)) == ["a", "b"]


def test_attributes_can_be_read_by_name() -> None:
    """`page["total"]` is `page.total`, and another name is a `KeyError`."""
    page = Page(["a"], 3, 4, 17)
    names = ("results", "page_number", "page_total", "total", "complete", "hits")
    assert [page[name] for name in names] == [["a"], 3, 4, 17, True, []]
    with pytest.raises(KeyError, match="size"):
        page["size"]


def test_a_page_prints_as_json() -> None:
    """The repr is JSON with the four documented attributes."""
    shown = json.loads(repr(Page(["a"], 0, 1, 1)))
    assert shown == {"results": ["'a'"], "page_number": 0, "page_total": 1, "total": 1}
