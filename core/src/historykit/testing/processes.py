"""Other processes that use the store under test.

The store's class and its configuration are pickled and sent to the standard input of a new
interpreter, which imports the class by its name: one that is defined inside of a function is not
found there."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any, Final, Literal

from historykit.records import StoredMessage
from historykit.session_records import SessionKey
from historykit.testing.subject import StoreSubject

__all__ = ["How", "append", "append_until_killed", "end", "read"]

PATIENCE: Final = 50
"""After so many seconds a process is held to be stuck, and killed."""

WARNINGS: Final = ("-W", "ignore", "-W", "default::ResourceWarning")

How = Literal["closed", "forgotten", "cancelled"]
"""How a process ends with its store."""


async def read(subject: StoreSubject, key: SessionKey) -> list[StoredMessage]:
    """Return the messages of a session as another process reads them."""
    output, _ = await _run(_job(subject, "read", key))
    rows: list[StoredMessage] = pickle.loads(output)
    return rows


async def append(
    subject: StoreSubject, key: SessionKey, *, writers: Sequence[str], batches: int, size: int
) -> None:
    """Let one process for each writer append batches to a session, all at the same time.

    The processes begin when all of them have opened the store.
    """
    jobs = [_job(subject, "append", key, writer, batches, size) for writer in writers]
    await asyncio.to_thread(_run_together, jobs)


async def append_until_killed(subject: StoreSubject, key: SessionKey, *, batches: int) -> int:
    """Kill a process that appends batches of three, and return how many it had acknowledged.

    It is killed at some time after the given number of them.
    """
    job = _job(subject, "append_forever", key)
    return await asyncio.to_thread(_run_until_killed, job, batches)


async def end(subject: StoreSubject, key: SessionKey, *, how: How) -> str:
    """Let a process use the store and end, and return what it had to complain about.

    It closes the store, or forgets to, or is cancelled while it does.
    """
    _, errors = await _run(_job(subject, "end", key, how))
    return errors


def _job(subject: StoreSubject, name: str, *arguments: Any) -> bytes:
    store = subject.spec.store()
    try:
        return pickle.dumps((name, store, subject.config, arguments))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(
            f"another process cannot import {store.__qualname__} or its configuration ({error}); "
            "define both at the top of a module that can be imported"
        ) from error


async def _run(job: bytes) -> tuple[bytes, str]:
    return await asyncio.to_thread(_run_together, [job])


def _run_together(jobs: Sequence[bytes]) -> tuple[bytes, str]:
    """Run jobs in one process each, and return the outputs and the complaints of all of them.

    They begin when every process is ready.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker(job)) for job in jobs]
        for worker in workers:
            _expect(worker, b"ready\n")
        for worker in workers:
            _stdin(worker).write(b"go\n")
            _stdin(worker).flush()
        ends = [worker.communicate() for worker in workers]
        for worker, (_, errors) in zip(workers, ends, strict=True):
            if worker.returncode != 0:
                raise AssertionError(f"process ended with {worker.returncode}: {errors.decode()}")
    return b"".join(output for output, _ in ends), b"".join(errors for _, errors in ends).decode()


def _run_until_killed(job: bytes, batches: int) -> int:
    with _worker(job) as worker:
        _expect(worker, b"ready\n")
        _stdin(worker).write(b"go\n")
        _stdin(worker).flush()
        for number in range(batches):
            _expect(worker, f"{number}\n".encode())
        worker.kill()
        assert worker.stdout is not None
        rest = worker.stdout.read()  # communicate() would lose what was read ahead
    return batches + rest.count(b"\n")


@contextmanager
def _worker(job: bytes) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process with a job, which is killed if it takes too long."""
    worker = subprocess.Popen(
        [sys.executable, *WARNINGS, "-m", "historykit.testing.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    watchdog = threading.Timer(PATIENCE, worker.kill)
    watchdog.start()
    try:
        with worker:
            _stdin(worker).write(job)
            _stdin(worker).flush()
            yield worker
    finally:
        watchdog.cancel()
        worker.kill()


def _stdin(worker: subprocess.Popen[bytes]) -> IO[bytes]:
    assert worker.stdin is not None
    return worker.stdin


def _expect(worker: subprocess.Popen[bytes], line: bytes) -> None:
    """Wait for a line of the worker's output."""
    assert worker.stdout is not None
    assert worker.stderr is not None
    found = worker.stdout.readline()
    if found != line:
        worker.kill()
        raise AssertionError(
            f"process said {found!r}, not {line!r}: {worker.stderr.read().decode()}"
        )
