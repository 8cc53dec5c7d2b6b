"""Transactions, and how writes that come together share one."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

from historykit_sqlite.errors import is_busy
from historykit_sqlite.worker import Worker

__all__ = ["Writer", "look", "transact"]

T = TypeVar("T")

GROUP: Final = 64
"""The most writes in one transaction, so that other processes get their turn."""


def transact(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Do `work` fully or not at all and return what it returns.

    The lock is taken before anything is read. A transaction that reads first and writes later fails
    where another connection wrote in between.
    """
    return _transact(db, "BEGIN IMMEDIATE", work)


def look(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Return what `work` returns, which only reads and sees one state of the database."""
    return _transact(db, "BEGIN", work)


def _transact(db: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    db.execute(begin)
    try:
        result = work(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite itself ends it after some errors, such as a full disk
            db.execute("ROLLBACK")
        raise
    return result


class _Write(Generic[T]):
    """One piece of work and what became of it."""

    __slots__ = ("error", "result", "work")

    def __init__(self, work: Callable[[sqlite3.Connection], T]) -> None:
        self.work = work
        self.result: T | None = None
        self.error: Exception | None = None


class Writer(Worker):
    """A connection that writes, in the order asked for; what waits is committed together.

    Most of a commit is waiting for the disk. What is asked for meanwhile queues up; the first hop
    that reaches the thread does all of it in one transaction, the later ones find theirs done.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], *, patience: float) -> None:
        super().__init__(connect, patience=patience)
        self._queue: deque[_Write[Any]] = deque()

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` returns in a transaction, once that is committed.

        `work` may be called more than once, so it changes nothing outside of the database.
        """
        write = _Write(work)
        self._queue.append(write)
        await self.hop(self._commit_waiting)
        if write.error is not None:
            raise write.error
        return cast(T, write.result)

    def _commit_waiting(self) -> None:
        writes = [self._queue.popleft() for _ in range(min(len(self._queue), GROUP))]
        error = self._commit(writes) if writes else None
        if error is None:
            return
        for write in writes:
            # One that cannot be done does not take the others along. A lock that nobody gets is
            # not waited for once more.
            alone = len(writes) == 1 or is_busy(error)
            write.error = error if alone else self._commit([write])

    def _commit(self, writes: list[_Write[Any]]) -> Exception | None:
        """Return None once all is committed, or why nothing is."""

        def work(db: sqlite3.Connection) -> None:
            for write in writes:
                write.result = write.work(db)

        try:
            self.patiently(lambda db: transact(db, work))
        except Exception as error:
            return error
        return None
