"""Numbers that are made of a run's samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.adapter import Bounds
from bench.imports import BASELINE, EVERYTHING, SUBJECT

__all__ = ["Results", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One target: what was to be reached, what was, and whether that is enough."""

    target: str
    bound: str
    reached: str
    met: bool


class Results:
    """The results of one run, read from its JSON."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.adapters: dict[str, dict[str, Any]] = data["adapters"]
        self.sizes: list[int] = data["plan"]["sizes"]

    def names(self, *kinds: str) -> list[str]:
        """Return the names of the adapters of these kinds, or of all."""
        return [name for name, one in self.adapters.items() if not kinds or one["kind"] in kinds]

    def value(self, name: str, label: str) -> float | None:
        """Return the median of all samples, None where there are none."""
        samples = [value for values in self._rounds(name, label) for value in values]
        return median(samples) if samples else None

    def ratio(self, name: str, label: str, other: str) -> tuple[float, float, float] | None:
        """Return how many times the other's an adapter's value is: median, least, most.

        Both are compared round by round: what disturbed a round disturbed both.
        """
        ratios = [
            median(own) / median(others)
            for own, others in zip(
                self._rounds(name, label), self._rounds(other, label), strict=False
            )
            if own and others
        ]
        return (median(ratios), min(ratios), max(ratios)) if ratios else None

    def spread(self, name: str) -> float | None:
        """Return how many times an append at its slowest size takes that at its fastest."""
        found = [self.value(name, f"append {size}") for size in self.sizes]
        times = [time for time in found if time is not None]
        return max(times) / min(times) if times else None

    def import_cost(self) -> float:
        """Return how many milliseconds more importing historykit takes than its baseline."""
        times: dict[str, list[float]] = self.data["imports"]["milliseconds"]
        return median(times[SUBJECT]) - median(times[BASELINE])

    def verdicts(self, bounds: Bounds) -> list[Verdict]:
        """Return how the run stands against the project's targets."""
        return [
            verdict
            for verdicts in (
                self._against_floor(bounds),
                self._alone(bounds),
                self._against_peers(bounds),
                self._of_imports(),
            )
            for verdict in verdicts
        ]

    def _rounds(self, name: str, label: str) -> list[list[float]]:
        rounds: list[list[float]] = self.adapters.get(name, {}).get("samples", {}).get(label, [])
        return rounds

    def _against_floor(self, bounds: Bounds) -> Iterable[Verdict]:
        bare = bounds.bare or bounds.floor
        cells = [(f"append {size}", bounds.append, bare) for size in (100, 1_000)]
        cells += [(f"load {size}", bounds.load, bounds.floor) for size in (100, 1_000)]
        cells.append(("last 1000", bounds.last, bounds.floor))
        for label, bound, floor in cells:
            ratio = self.ratio(bounds.subject, label, floor)
            if ratio is not None:
                which = "the floor" if bounds.bare is None else floor.replace("floor: ", "")
                yield _at_most(f"{label}: times {which}", bound, ratio[0], "{:.2f}".format)
        ratio = self.ratio(bounds.subject, "throughput", bounds.floor)
        if ratio is not None:
            yield Verdict(
                target="many sessions at once: part of the floor's turns a second",
                bound=f">= {bounds.throughput}",
                reached=f"{ratio[0]:.2f}",
                met=ratio[0] >= bounds.throughput,
            )

    def _alone(self, bounds: Bounds) -> Iterable[Verdict]:
        spread = self.spread(bounds.subject)
        if spread is not None:
            what = f"append: slowest by fastest size, {self.sizes[0]} to {self.sizes[-1]}"
            yield _at_most(what, bounds.flat, spread, "{:.2f}".format)
        stall = self.value(bounds.subject, "stall 10000")
        if stall is not None:
            what = "longest stall of the loop while 10000 load"
            yield _at_most(what, 1_000 * bounds.stall, stall / 1_000, "{:.1f} ms".format)
        for where, found in self.adapters.get(bounds.subject, {}).get("contention", {}).items():
            if "kept" in found:
                yield _of_contention(where, found)

    def _against_peers(self, bounds: Bounds) -> Iterable[Verdict]:
        for label in ("append 100", "append 1000", "load 100", "load 1000", "last 1000"):
            own = self.value(bounds.subject, label)
            best = self._best_peer(label, min)
            if own is not None and best is not None:
                name, other = best
                what = f"{label}: times the fastest durable peer's ({name})"
                yield _at_most(what, 1.0, own / other, "{:.2f}".format)
        own = self.value(bounds.subject, "throughput")
        best = self._best_peer("throughput", max)
        if own is not None and best is not None:
            name, other = best
            what = f"many sessions at once: times the turns of the best durable peer ({name})"
            yield Verdict(target=what, bound="> 1.0", reached=f"{own / other:.2f}", met=own > other)

    def _best_peer(
        self, label: str, choose: Callable[..., tuple[str, float]]
    ) -> tuple[str, float] | None:
        found = [
            (name, value)
            for name in self.names("peer")
            if self.adapters[name]["durable"] and (value := self.value(name, label)) is not None
        ]
        return choose(found, key=lambda pair: pair[1]) if found else None

    def _of_imports(self) -> Iterable[Verdict]:
        yield _at_most(
            f"{SUBJECT}: more than {BASELINE}", 40, self.import_cost(), "{:.1f} ms".format
        )
        heavy = self.data["imports"]["heavy"]
        yield Verdict(
            target=f"{EVERYTHING}: heavy packages",
            bound="none",
            reached=", ".join(heavy) or "none",
            met=not heavy,
        )


def _at_most(target: str, bound: float, value: float, shown: Callable[[float], str]) -> Verdict:
    unit = " ms" if shown(0).endswith("ms") else ""
    return Verdict(
        target=target, bound=f"<= {bound:g}{unit}", reached=shown(value), met=value <= bound
    )


def _of_contention(where: str, found: dict[str, Any]) -> Verdict:
    kept, messages = found["kept"], found["messages"]
    whole, turns = found["whole"], found["turns"]
    errors = sum(found["errors"].values())
    return Verdict(
        target=f"writers of one session, {where}: messages kept, turns whole",
        bound=f"{messages}, {turns}",
        reached=f"{kept}, {whole}" + (f", {errors} errors" if errors else ""),
        met=(kept, whole, found["doubled"], errors) == (messages, turns, 0, 0),
    )
