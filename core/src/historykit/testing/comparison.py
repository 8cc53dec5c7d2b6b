"""A store and the memory store, side by side: the same is done to both, and compared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from historykit.capabilities import Guarantee
from historykit.errors import HistoryKitError, NotFoundError, VersionConflictError
from historykit.memory import MemoryStore
from historykit.records import AppendReceipt, Slice, StoredMessage, Tail
from historykit.session_records import SessionKey, SessionRecord, SessionSlice
from historykit.store import HistoryStore
from historykit.testing.subject import StoreSubject

__all__ = ["Comparison", "Side"]

T = TypeVar("T")


@dataclass(slots=True)
class Side:
    """One of the two stores, with the names that it gave to what both have.

    Lives are incarnations, places are sequences of a session; both are known by their index.
    """

    store: HistoryStore
    lives: list[str] = field(default_factory=list)
    places: dict[SessionKey, list[int]] = field(default_factory=dict)

    def life(self, index: int) -> str | None:
        """Return the incarnation that was met as the one of that index."""
        return self.lives[index % len(self.lives)] if self.lives else None

    def place(self, key: SessionKey, index: int) -> int:
        """Return the sequence that was met as the one of that index."""
        places = self.places.get(key)
        return places[index % len(places)] if places else 1

    def plain(self, key: SessionKey, answer: Any) -> Any:
        """Return an answer of the store with indices in the place of incarnations and
        sequences."""
        match answer:
            case StoredMessage():
                return answer._replace(sequence=self._place(key, answer.sequence))
            case Slice():
                rows = tuple(self.plain(key, row) for row in answer.messages)
                life = self._life(answer.incarnation)
                opening = self.plain(key, answer.opening)
                return answer._replace(messages=rows, incarnation=life, opening=opening)
            case AppendReceipt():
                places = tuple(self._place(key, place) for place in answer.sequences)
                life = self._life(answer.incarnation)
                return replace(answer, incarnation=str(life), sequences=places)
            case Tail():
                return replace(answer, incarnation=self._life(answer.incarnation))
            case SessionRecord():
                return replace(answer, incarnation=str(self._life(answer.incarnation)))
            case SessionSlice():
                records = tuple(self.plain(key, record) for record in answer.records)
                return replace(answer, records=records)
        return answer

    def _life(self, incarnation: str | None) -> str | None:
        if incarnation is None:
            return None
        if incarnation not in self.lives:
            self.lives.append(incarnation)
        return str(self.lives.index(incarnation))

    def _place(self, key: SessionKey, sequence: Any) -> Any:
        if sequence is None:
            return None
        places = self.places.setdefault(key, [])
        if sequence not in places:
            places.append(sequence)
        return places.index(sequence)


class Comparison:
    """Does one operation after another on a store and on a memory store, and compares.

    The memory store is another one for each example; the store stays, and each example has a
    namespace of its own in it. As a context manager it opens and closes the store.
    """

    def __init__(self, subject: StoreSubject) -> None:
        self.subject = subject
        self.clock = subject.clock
        self._runner = asyncio.Runner()
        self._examples = 0
        self.mine = Side(subject.store())
        self.reference = Side(MemoryStore(clock=self.clock))

    def __enter__(self) -> Comparison:
        self.run(self.mine.store.open())
        self.subject.claims = self.mine.store.capabilities | self.mine.store.guarantees
        return self

    def __exit__(self, *error: object) -> None:
        self.run(self.mine.store.aclose())
        self._runner.close()

    def begin(self) -> None:
        """Begin another example, in another namespace."""
        self._examples += 1
        self.mine = Side(self.mine.store)
        self.reference = Side(MemoryStore(clock=self.clock))
        self.run(self.reference.store.open())

    def end(self) -> None:
        """Close what `begin` opened."""
        self.run(self.reference.store.aclose())

    def key(self, session: tuple[str, str]) -> SessionKey:
        """Return the key of a session of this example, by session and user id."""
        return self.subject.key(session[0], user=session[1], namespace=f"-{self._examples}")

    def run(self, awaitable: Awaitable[T]) -> T:
        """Return what an awaitable gives, on the event loop of the comparison."""

        async def wait() -> T:
            return await awaitable

        return self._runner.run(wait())

    def compare(self, key: SessionKey, operation: Callable[[Side], Awaitable[object]]) -> None:
        """Do something on both sides, and check that they answer the same."""
        assert self._ended(self.mine, key, operation) == self._ended(self.reference, key, operation)

    def _ended(
        self, side: Side, key: SessionKey, operation: Callable[[Side], Awaitable[object]]
    ) -> object:
        try:
            return side.plain(key, self.run(operation(side)))
        except VersionConflictError as error:
            return type(error), error.expected, error.actual
        except HistoryKitError as error:
            return type(error)

    def version(self, key: SessionKey, expectation: str) -> int | None:
        """Return a version to expect: "right", "wrong" or "none"."""
        if expectation == "none":
            return None
        tail = self.run(self.reference.store.read_tail(key))
        return tail.version + (expectation == "wrong")

    def revision(self, key: SessionKey, expectation: str) -> int | None:
        """Return a revision to expect: "right", "wrong" or "none"."""
        if expectation == "none":
            return None
        try:
            record = self.run(self.reference.store.read_session(key))
        except NotFoundError:
            return 0
        return record.revision + (expectation == "wrong")

    def reopen(self) -> None:
        """Close the store and open it again: another one, where that has the same data."""
        self.run(self.mine.store.aclose())
        if Guarantee.SHARED in self.mine.store.guarantees:
            self.mine.store = self.subject.store()
        self.run(self.mine.store.open())
