"""Where the processor's time goes in the client, by samples of the process's own time.

python -m bench.profiles DATABASE SETTINGS

A sample is taken whenever the process has used some milliseconds of a processor: so what else the
machine does is not in it, nor what a server does. It counts for the package whose Python code ran,
or had called into C.
"""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from bench import cells
from bench.adapter import Adapter, Place
from bench.adapters import bounds_of, find_adapter
from bench.plan import LAST, Plan
from bench.report import table

SECONDS: Final = 4.0
"""So much time of a processor is sampled for each cell."""

INTERVAL: Final = 0.004
"""Shorter ones are no shorter: systems count the time of a process in ticks."""

LEAST: Final = 0.03
"""A module of historykit that takes less than this part of each cell has no row of its own."""

SIZE: Final = 1_000
PLAN: Final = Plan(run="profile", sizes=(SIZE,), rounds=1, passes=4, appends=100)

Cell = Callable[[Adapter, int], Awaitable[int]]

Profile = dict[str, float]
"""Microseconds of a processor for one call, by the part of the program that they go into."""


async def _append(adapter: Adapter, part: int) -> int:
    """Append turns to one session, one after the other."""
    session = await adapter.session(PLAN.session(SIZE, 0))
    tags = [tag for _, _, tag in PLAN.appends_of(0, part, SIZE)]
    turns = [adapter.turn(session, tag) for tag in tags]
    with _sampled():
        for turn in turns:
            await adapter.append(session, turn)
    return len(turns)


async def _throughput(adapter: Adapter, part: int) -> int:
    """Append to many sessions at once."""
    sessions = [await adapter.session(id) for id in PLAN.crowd(0, part)]
    turns = [[adapter.turn(session, tag) for tag in PLAN.crowd_tags()] for session in sessions]

    async def write(session: Any, own: list[Any]) -> None:
        for turn in own:
            await adapter.append(session, turn)

    with _sampled():
        await asyncio.gather(*map(write, sessions, turns))
    return PLAN.sessions * PLAN.session_turns


async def _load(adapter: Adapter, part: int) -> int:
    """Load a session whole."""
    session = await adapter.session(PLAN.session(SIZE, 0))
    gc.collect()
    with _sampled():
        for _ in range(10):
            loaded = await adapter.load(session)
            del loaded
    return 10


async def _last(adapter: Adapter, part: int) -> int:
    """Load the newest messages."""
    session = await adapter.session(PLAN.session(SIZE, 0))
    gc.collect()
    with _sampled():
        for _ in range(100):
            await adapter.last(session, LAST)
    return 100


CELLS: Final[dict[str, Cell]] = {
    # Loads come first: their session grows with each append.
    f"load {SIZE}": _load,
    f"last {LAST}": _last,
    "append": _append,
    "throughput": _throughput,
}

_samples: Counter[str] = Counter()
_used = [0.0]


@contextmanager
def _sampled() -> Iterator[None]:
    """Take samples, and note the time of the processor, while the context lasts."""
    signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
    begin = time.process_time()
    try:
        yield
    finally:
        _used[0] += time.process_time() - begin
        signal.setitimer(signal.ITIMER_PROF, 0)


def _sample(_: int, frame: FrameType | None) -> None:
    if frame is not None:
        _samples[_part(Path(frame.f_code.co_filename))] += 1


def _part(path: Path) -> str:
    """Return what a table calls the code of a file: a module of core, else a package."""
    parts = path.parts
    for place in ("src", "site-packages"):
        if place in parts:
            package = parts[len(parts) - parts[::-1].index(place)]
            return f"historykit.{path.stem}" if package == "historykit" else package
    return "asyncio" if {"asyncio", "selectors.py"} & set(parts) else "other"


async def _profile(adapter: Adapter, name: str) -> Profile:
    """Return the profile of a cell; "all" is its whole."""
    _samples.clear()
    _used[0] = 0.0
    count = part = 0
    # A floor appends what was recorded, and no more.
    enough = PLAN.passes if adapter.kind == "floor" and name in ("append", "throughput") else 1_000
    while part < enough and _used[0] < SECONDS:
        count += await CELLS[name](adapter, part)
        part += 1
    whole = 1e6 * _used[0] / count
    total = _samples.total() or 1
    return {"all": whole, **{key: whole * each / total for key, each in _samples.items()}}


async def _profiles(
    database: str, settings: dict[str, str], folder: Path
) -> list[tuple[str, Profile, Profile]]:
    """Return each cell with the floor's profile and historykit's."""
    signal.signal(signal.SIGPROF, _sample)
    bounds = bounds_of(database)
    found: list[dict[str, Profile]] = []
    for number, name in enumerate((bounds.floor, bounds.subject)):
        place = Place(folder=folder / str(number), number=number, settings=settings)
        adapter = find_adapter(database, name)(place)
        place.folder.mkdir()
        await adapter.open()
        await adapter.prepare(PLAN)
        await adapter.close()
        await adapter.open()
        await cells.warm_up(adapter, PLAN, 0)
        found.append({cell: await _profile(adapter, cell) for cell in CELLS})
        await adapter.close()
    return [(cell, found[0][cell], found[1][cell]) for cell in CELLS]


def render(profiles: list[tuple[str, Profile, Profile]]) -> str:
    """Return a table with a row for each part of the program."""
    shown = [(cell, floor["all"], _merged(own, profiles)) for cell, floor, own in profiles]
    parts = {part for _, _, own in shown for part in own if part != "all"}
    weights = {part: sum(own.get(part, 0) / own["all"] for _, _, own in shown) for part in parts}
    rows = [
        ["floor, all", *(f"{floor:,.0f}" for _, floor, _ in shown)],
        ["historykit, all", *(f"{own['all']:,.0f}" for _, _, own in shown)],
    ]
    ordered = sorted(parts, key=lambda part: -weights[part])
    rows += [
        [f"of that {part}", *(f"{own.get(part, 0):,.0f}" for _, _, own in shown)]
        for part in ordered
    ]
    return table(["µs of a processor", *(cell for cell, _, _ in shown)], rows)


def _merged(own: Profile, profiles: list[tuple[str, Profile, Profile]]) -> Profile:
    """Return a profile with all modules of core in one that take little of each cell."""
    merged: dict[str, float] = defaultdict(float)
    for part, time_taken in own.items():
        is_small = all(each.get(part, 0) < LEAST * each["all"] for _, _, each in profiles)
        rest = "the rest of historykit"
        merged[rest if is_small and part.startswith("historykit.") else part] += time_taken
    return merged


def main(database: str, settings: str) -> None:
    """Print a profile of a database that is reached by these settings."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        profiles = asyncio.run(_profiles(database, json.loads(settings), Path(folder)))
    print(render(profiles))


if __name__ == "__main__":
    main(*sys.argv[1:])
