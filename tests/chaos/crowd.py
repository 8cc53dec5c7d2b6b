"""Processes full of writers, and what they were told."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from tests.chaos.writer import Job

__all__ = ["Crowd"]

PATIENCE = 120
"""Seconds without a single acknowledged turn after which something is stuck."""


class Crowd:
    """Writers in several processes, used as an asynchronous context manager.

    `acknowledged` holds the session, the writer and the number of each turn that was acknowledged,
    `complaints` what processes said that ended with an error.
    """

    def __init__(self, job: Job, *, writers: int, processes: int, sessions: Sequence[str]) -> None:
        self.acknowledged: list[str] = []
        self.complaints: list[str] = []
        self.sessions = sessions
        self._job = job
        self._shares = [len(range(first, writers, processes)) for first in range(processes)]
        self._names = itertools.count()
        self._processes: dict[asyncio.subprocess.Process, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        """Start the processes, and let them begin when all are ready."""
        processes = [await self._start(share) for share in self._shares]
        for process in processes:
            self._let_go(process)
        return self

    async def __aexit__(self, *exception: object) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.kill()
        await asyncio.gather(*self._processes.values(), return_exceptions=True)

    async def reach(self, turns: int) -> None:
        """Return when so many turns were acknowledged. Raises `RuntimeError` if none come."""
        loop = asyncio.get_running_loop()
        known, last = len(self.acknowledged), loop.time()
        while len(self.acknowledged) < turns:
            await asyncio.sleep(0.005)
            if len(self.acknowledged) > known:
                known, last = len(self.acknowledged), loop.time()
            if self.complaints or loop.time() - last > PATIENCE:
                raise RuntimeError(f"{known} turns, and no more: {self.complaints}")

    async def replace_one(self) -> None:
        """Kill a process with -9, and start another one with as many new writers."""
        process = next(iter(self._processes))
        process.kill()
        await self._processes.pop(process)
        share = self._shares[0]
        self._shares = [*self._shares[1:], share]
        self._let_go(await self._start(share))

    async def finish(self) -> None:
        """Let all writers end their turns, and return when they have."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        await self.end()

    async def end(self) -> None:
        """Return when all writers have written what they had to."""
        await asyncio.gather(*self._processes.values())

    async def _start(self, writers: int) -> asyncio.subprocess.Process:
        names = [f"w{next(self._names)}" for _ in range(writers)]
        sessions = itertools.cycle(self.sessions)
        job = replace(self._job, writers=dict(zip(names, sessions, strict=False)))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", "-m", "tests.chaos.writer", job.as_json()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        ready = await process.stdout.readline()
        self._processes[process] = asyncio.create_task(self._listen(process))
        if ready != b"ready\n":
            await self._processes[process]
            raise RuntimeError(f"writers did not start: {self.complaints}")
        return process

    def _let_go(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        process.stdin.write(b"go\n")

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """Note what a process says, to its end."""
        assert process.stdout is not None
        assert process.stderr is not None
        complaints = asyncio.create_task(process.stderr.read())
        async for line in process.stdout:
            if line.endswith(b"\n"):
                self.acknowledged.append(line.decode().strip())
        if await process.wait() > 0:
            self.complaints.append((await complaints).decode()[-2000:])
