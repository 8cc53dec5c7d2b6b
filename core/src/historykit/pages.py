"""One page of a search."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

__all__ = ["Page", "TextHit"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TextHit:
    """Where a text search found its text in a session: the oldest message that has it.

    `snippet` is what stands around it. Without a `message_id` it is in the name of the session.
    """

    message_id: str | None
    snippet: str = field(repr=False)


class Page(Generic[T]):
    """Some of the results of a search, in order, and how many there are in all.

    `page_number` counts from 0. `total` is the number of all matches and `page_total` that of all
    pages, at least 1; both are None where the search was asked not to count.

    Of a text search, `hits` says for each result where the text is, and `complete` is False where
    the search ended at its bound, so that there may be more than it has found.

    A page iterates over its results, and ``page["total"]`` is the attribute of that name (aiXplain
    session module).
    """

    __slots__ = ("complete", "hits", "page_number", "page_total", "results", "total")

    def __init__(
        self,
        results: Sequence[T],
        page_number: int,
        page_total: int | None,
        total: int | None,
        *,
        complete: bool = True,
        hits: Sequence[TextHit] = (),
    ) -> None:
        self.results = list(results)
        self.page_number = page_number
        self.page_total = page_total
        self.total = total
        self.complete = complete
        self.hits = list(hits)

    def __iter__(self) -> Iterator[T]:
        return iter(self.results)

    def __getitem__(self, name: str) -> Any:
        if name not in Page.__slots__:
            raise KeyError(name)
        return getattr(self, name)

    def __repr__(self) -> str:
        return json.dumps(
            {
                "results": [repr(result) for result in self.results],
                "page_number": self.page_number,
                "page_total": self.page_total,
                "total": self.total,
            }
        )
