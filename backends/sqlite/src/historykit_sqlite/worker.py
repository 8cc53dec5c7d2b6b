"""A connection to SQLite and the thread that works on it."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar, cast
from weakref import WeakSet

import aiosqlite

from historykit_sqlite.errors import is_busy

__all__ = ["Worker"]

T = TypeVar("T")

PAUSE: Final = (0.0005, 0.005)
"""The shortest and the longest time, in seconds, between two attempts to get a lock."""


class Worker(aiosqlite.Connection):
    """One connection, on which whole pieces of work are done in its thread.

    `connect` makes the connection, in the thread; it needs ``check_same_thread=False`` and no
    timeout of SQLite's own. `patience` is how many seconds a piece of work waits for other
    connections. The thread never keeps the process alive.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], *, patience: float) -> None:
        super().__init__(self._connected, iter_chunk_size=1)
        self._thread = threading.Thread(target=self._serve, args=[self._thread.run], daemon=True)
        self._connect_now = connect
        self._patience = patience
        self._database: sqlite3.Connection | None = None
        self._working = threading.Lock()
        _workers.add(self)

    def __del__(self) -> None:
        pass  # aiosqlite would warn that it was not closed, which the store does

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` returns for the connection, called in the thread."""
        return await self.hop(lambda: self.patiently(work))

    async def hop(self, function: Callable[[], T]) -> T:
        """Return what `function` returns, called in the thread.

        aiosqlite offers a hop to the thread for each statement; this is one for a transaction.
        `function` takes no arguments, because aiosqlite writes them to its log.
        """
        return cast(T, await self._execute(function))  # type: ignore[no-untyped-call]

    def patiently(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` returns, called again while another connection is in the way.

        Runs in the thread. SQLite has a timeout as well, but does not keep it everywhere, as where
        a file is switched to a write-ahead log; and it comes to wait so long between two attempts
        that it may never find the lock free while others are busy.
        """
        return self._retried(lambda: work(self._opened))

    def abandon(self) -> None:
        """Close the connection without its event loop and without waiting for it."""
        if not sys.is_finalizing():
            with suppress(RuntimeError):  # it is too late for a new thread
                threading.Thread(target=self._finish, daemon=True).start()
                return
        if not self._working.locked():
            self._close_now()

    def _serve(self, serve: Callable[[], None]) -> None:
        try:
            serve()
        except RuntimeError:
            pass  # the event loop that waited for the work was closed before it was done
        finally:
            self._close_now()

    @property
    def _opened(self) -> sqlite3.Connection:
        assert self._database is not None, "work comes after the connection"
        return self._database

    def _connected(self) -> sqlite3.Connection:
        def connect() -> sqlite3.Connection:
            self._database = self._connect_now()
            return self._database

        return self._retried(connect)

    def _retried(self, action: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                with self._working:
                    return action()
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(random.uniform(*PAUSE))

    def _finish(self) -> None:
        with self._working:
            self._close_now()
        self.stop()

    def _close_now(self) -> None:
        if self._database is not None:
            self._database.close()


# SQLite notes for the process which locks it holds on a file. A forked child inherits the notes
# but not the locks: a connection that it opens relies on them, and what it writes is lost when the
# parent closes the file. Closing the inherited connections first makes it forget them. That is
# harmless for the parent while none of them works, so a fork waits for that.

_workers: WeakSet[Worker] = WeakSet()
_paused: list[Worker] = []
_forking = threading.Lock()


def _pause_all() -> None:
    _forking.acquire()
    _paused.extend(_workers)
    for worker in _paused:
        worker._working.acquire()


def _resume_all() -> None:
    for worker in _paused:
        worker._working.release()
    _paused.clear()
    _forking.release()


def _close_all() -> None:
    for worker in _paused:
        worker._close_now()
    _resume_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_pause_all, after_in_parent=_resume_all, after_in_child=_close_all)
