"""A process that writes turns: ``python -m tests.chaos.writer JOB``, a job being JSON.

It says on standard output which turns were acknowledged, and ends when its standard input does,
or when each writer has written as many turns as the job says."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from historykit.config import build_config
from historykit.errors import StorageError
from historykit.plugins import load_backend
from historykit.session_records import SessionKey
from historykit.store import HistoryStore
from historykit.testing.drafts import drafts

NAMESPACE = "chaos"
PAUSE = 0.05
"""Seconds before a turn that failed is sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a process does. `writers` maps the name of each to its session.

    Without `insists` a turn that fails ends the process with the error; with it the same turn is
    sent until it is acknowledged.
    """

    backend: str
    settings: dict[str, Any]
    writers: dict[str, str] = field(default_factory=dict)
    turns: int | None = None
    insists: bool = True

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    def store(self) -> HistoryStore:
        spec = load_backend(self.backend)
        return spec.make_store(build_config(spec, self.settings))

    def key(self, session: str) -> SessionKey:
        return SessionKey(NAMESPACE, "", session)


async def work(job: Job) -> None:
    async with job.store() as store:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        stop = asyncio.Event()
        watching = asyncio.create_task(_watch(stop))
        async with asyncio.TaskGroup() as group:
            for writer, session in job.writers.items():
                group.create_task(write(store, job, writer, session, stop))
        watching.cancel()


async def _watch(stop: asyncio.Event) -> None:
    """Set `stop` when there is nobody any more who wants turns."""
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, stop.set)
    try:
        await stop.wait()
    finally:
        loop.remove_reader(sys.stdin)


async def write(
    store: HistoryStore, job: Job, writer: str, session: str, stop: asyncio.Event
) -> None:
    """Write turns of two messages that name their writer, their number and their place."""
    numbers = itertools.count() if job.turns is None else range(job.turns)
    for number in numbers:
        if stop.is_set():
            return
        turn = drafts(f"{writer} {number}", 2)
        while True:
            try:
                await store.append(job.key(session), turn)
            except StorageError:
                if not job.insists:
                    raise
                await asyncio.sleep(PAUSE)
            else:
                break
        print(f"{session}\t{writer} {number}", flush=True)


if __name__ == "__main__":
    asyncio.run(work(Job(**json.loads(sys.argv[1]))))
