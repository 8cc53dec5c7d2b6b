"""Runs of scenarios, to the count at their end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.chaos.counting import Count, count
from tests.chaos.crowd import Crowd
from tests.chaos.scenarios import Scenario
from tests.chaos.writer import Job

__all__ = ["Outcome", "run_contention", "run_scenario"]

SESSIONS = [f"s{number}" for number in range(8)]
PROCESSES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a run."""

    backend: str
    product: str
    what: str
    kills: int
    seconds: float
    count: Count

    @property
    def is_good(self) -> bool:
        """Whether every turn is as it has to be."""
        return self.count.is_good


async def run_scenario(scenario: Scenario, *, writers: int, turns: int, kills: int) -> Outcome:
    """Let writers write at least so many turns, with kills spread evenly over them, and count."""
    with scenario.arena():
        job = Job(backend=scenario.backend, settings=dict(scenario.settings))
        begin = time.monotonic()
        crowd = Crowd(job, writers=writers, processes=PROCESSES, sessions=SESSIONS)
        async with crowd:
            for number in range(kills):
                await crowd.reach(turns * (number + 1) // (kills + 1))
                await scenario.strike(crowd)
            await crowd.reach(turns)
            await crowd.finish()
        seconds = time.monotonic() - begin
        return Outcome(
            backend=scenario.backend,
            product=scenario.product,
            what=scenario.what,
            kills=kills,
            seconds=seconds,
            count=await count(job, crowd.sessions, crowd.acknowledged),
        )


async def run_contention(
    backend: str, settings: Mapping[str, Any], *, processes: int, writers: int = 50, turns: int = 4
) -> Outcome:
    """Let many writers write to one session at once; any error ends the run with `RuntimeError`."""
    job = Job(backend=backend, settings=dict(settings), turns=turns, insists=False)
    begin = time.monotonic()
    crowd = Crowd(job, writers=writers, processes=processes, sessions=[f"from {processes}"])
    async with crowd:
        await crowd.end()
    if crowd.complaints:
        raise RuntimeError(f"a writer failed: {crowd.complaints}")
    seconds = time.monotonic() - begin
    where = "1 process" if processes == 1 else f"{processes} processes"
    return Outcome(
        backend=backend,
        product="",
        what=f"{writers} writers on one session from {where}",
        kills=0,
        seconds=seconds,
        count=await count(job, crowd.sessions, crowd.acknowledged),
    )
