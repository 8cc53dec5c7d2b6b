"""One run: seed, measure in rounds, let writers contend."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from bench import adapters, imports
from bench.adapter import Adapter, Place
from bench.cells import CELLS
from bench.environments import set_up
from bench.plan import Plan
from bench.processes import Process

__all__ = ["choose", "run"]

PEER_PASSES: Final = 1
"""Peers are slower by more than the noise is: they need fewer passes."""


def choose(database: str, only: Sequence[str]) -> list[type[Adapter]]:
    """Return the adapters of a database whose names contain one of `only`, or all."""
    return [
        adapter
        for adapter in adapters.adapters_of(database)
        if not only or any(part.lower() in adapter.name.lower() for part in only)
    ]


def run(
    database: str, chosen: Sequence[type[Adapter]], plan: Plan, *, cache: Path, command: str
) -> dict[str, Any]:
    """Return the results of a run, as JSON has them."""
    begin = time.time()
    set_up("historykit", cache)
    missing = _set_up({adapter.environment for adapter in chosen}, cache)
    folder = cache / "runs" / plan.run
    folder.mkdir(parents=True)
    try:
        with adapters.serve(database, cache, places=len(chosen)) as settings:
            work = _Run(chosen, plan, folder=folder, settings=settings, cache=cache)
            measured = work.all(missing)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "database": database,
        "command": command,
        "machine": _machine(begin),
        "server": settings.get("server"),
        "left_out": adapters.left_out_of(database),
        "plan": plan.to_dict(),
        "imports": imports.measure(cache, runs=6 * plan.rounds),
        "adapters": measured,
        "seconds": round(time.time() - begin),
    }


def _set_up(environments: set[str], cache: Path) -> dict[str, str]:
    """Make environments, and return those that cannot be made, with the reason."""
    missing = {}
    for environment in sorted(environments):
        try:
            set_up(environment, cache)
        except subprocess.CalledProcessError as error:
            missing[environment] = f"its environment could not be made: {error}"
    return missing


class _Run:
    def __init__(
        self,
        chosen: Sequence[type[Adapter]],
        plan: Plan,
        *,
        folder: Path,
        settings: dict[str, str],
        cache: Path,
    ) -> None:
        self.chosen = list(chosen)
        self.plan = plan
        self.cache = cache
        self.places = {
            adapter: Place(folder=folder / f"adapter-{index}", number=index, settings=settings)
            for index, adapter in enumerate(self.chosen)
        }
        self.results = {adapter: _empty_result(adapter) for adapter in self.chosen}
        self.processes: dict[type[Adapter], Process] = {}

    def all(self, missing: dict[str, str]) -> dict[str, Any]:
        """Do the whole run and return the results by the adapters' names.

        `missing` says why adapters in some environments cannot be run.
        """
        for adapter in self.chosen:
            if adapter.environment in missing:
                self._note(adapter, "setup", {"failed": missing[adapter.environment]})
        self.chosen = [one for one in self.chosen if not self.results[one]["troubles"]]
        with ThreadPoolExecutor(max_workers=2) as pool:  # nothing is measured yet
            list(pool.map(self._prepare, self.chosen))
        self.chosen = [one for one in self.chosen if not self.results[one]["troubles"]]
        for round in range(self.plan.rounds):
            self._round(round)
        for adapter in self.chosen:
            if adapter.kind != "floor":
                self._contend(adapter)
        return {adapter.name: result for adapter, result in self.results.items()}

    def _start(self, adapter: type[Adapter]) -> Process:
        return Process(adapter, self.places[adapter], self.plan, cache=self.cache)

    def _prepare(self, adapter: type[Adapter]) -> None:
        process = self._start(adapter)
        begin = time.monotonic()
        answer = self._note(adapter, "seeding", process.do("prepare"))
        self.results[adapter]["versions"] = answer.get("versions", {})
        process.close()
        _say(f"seeded {adapter.name} in {time.monotonic() - begin:.1f} s")

    def _round(self, round: int) -> None:
        if hasattr(os, "sync"):
            os.sync()  # what was copied shall not be written in the midst of a measurement
        for adapter in self.chosen:
            self.processes[adapter] = self._start(adapter)
            answer = self.processes[adapter].do("begin", round=round)
            self._note(adapter, f"round {round}", answer)
        for cell in CELLS:
            for part in range(self.plan.passes):
                self._pass(cell, round, part)
        for process in self.processes.values():
            process.close()
        _say(f"round {round + 1} of {self.plan.rounds}")

    def _pass(self, cell: str, round: int, part: int) -> None:
        taking_part = [a for a in self.chosen if a.kind != "peer" or part < PEER_PASSES]
        shift = (round + part) % len(taking_part)  # nobody is always the first, or behind another
        for adapter in taking_part[shift:] + taking_part[:shift]:
            answer = self.processes[adapter].do("measure", cell=cell, round=round, part=part)
            self._note(adapter, cell, answer)
            samples = self.results[adapter]["samples"]
            for label, values in answer.get("samples", {}).items():
                rounds = samples.setdefault(label, [[] for _ in range(self.plan.rounds)])
                rounds[round] += [float(f"{value:.5g}") for value in values]

    def _contend(self, adapter: type[Adapter]) -> None:
        writers = list(range(self.plan.writers))
        half = len(writers) // 2
        self.results[adapter]["contention"] = {
            "one process": self._contend_in(adapter, [writers]),
            "two processes": self._contend_in(adapter, [writers[:half], writers[half:]]),
        }
        _say(f"writers of one session: {adapter.name}")

    def _contend_in(self, adapter: type[Adapter], shares: list[list[int]]) -> dict[str, Any]:
        session = self.plan.contended(len(shares))
        processes = [self._start(adapter) for _ in shares]
        for process in processes:
            self._note(adapter, "contention", process.do("join"))
        for process, writers in zip(processes, shares, strict=True):
            process.send("contend", session=session, writers=writers)
        answers = [self._note(adapter, "contention", process.receive()) for process in processes]
        counted = self._note(adapter, "contention", processes[0].do("survivors", session=session))
        for process in processes:
            process.close()
        errors: Counter[str] = Counter()
        for answer in answers:
            errors.update(answer.get("errors", {}))
        seconds = max(answer.get("seconds", 0.0) for answer in answers)
        return {**counted, "seconds": round(seconds, 3), "errors": dict(errors)}

    def _note(self, adapter: type[Adapter], what: str, answer: dict[str, Any]) -> dict[str, Any]:
        trouble = answer.get("failed") or answer.get("wrong")
        if trouble:
            self.results[adapter]["troubles"].append(f"{what}: {trouble}")
            _say(f"!! {adapter.name}: {what}: {trouble}")
        return answer


def _empty_result(adapter: type[Adapter]) -> dict[str, Any]:
    return {
        "kind": adapter.kind,
        "durability": adapter.durability,
        "durable": adapter.durable,
        "notes": adapter.notes,
        "samples": {},
        "troubles": [],
    }


def _machine(begin: float) -> dict[str, Any]:
    return {
        "when": time.strftime("%Y-%m-%d %H:%M", time.localtime(begin)),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def _say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)
