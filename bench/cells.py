"""What is measured. Each cell is one pass of one adapter and returns samples by their label.

Times are in microseconds, throughput in turns a second.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from bench.adapter import Adapter
from bench.plan import LAST, Plan
from bench.workload import history_tags, tag_of

__all__ = ["CELLS", "Samples", "contend", "survivors", "verify", "warm_up"]

Samples = dict[str, list[float]]

PATIENCE: Final = 1.0
"""After so many seconds a pass of a peer ends; our own and the floors' are always whole."""

TICK: Final = 0.0002
"""How often, in seconds, somebody else wants the event loop while it is watched for stalls."""

STALL_SIZE: Final = 10_000


async def warm_up(adapter: Adapter, plan: Plan, round: int) -> None:
    """Do everything a few times, so that nothing measured is the first of its kind."""
    session = await adapter.session(plan.warm(round))
    for tag in plan.warm_tags():
        await adapter.append(session, adapter.turn(session, tag))
    for _ in plan.warm_tags():
        await adapter.load(session)
        if adapter.reads_last:
            await adapter.last(session, LAST)
    await adapter.leave(session)
    gc.collect()
    gc.freeze()  # what was imported is not what is measured


async def load(adapter: Adapter, plan: Plan, round: int, part: int) -> Samples:
    """Load whole sessions."""
    samples: Samples = {}
    for size, count in plan.loads(adapter.largest).items():
        session = await adapter.session(plan.session(size, round))
        samples[f"load {size}"] = await _timed(adapter, count, partial(adapter.load, session))
        await adapter.leave(session)
    return samples


async def last(adapter: Adapter, plan: Plan, round: int, part: int) -> Samples:
    """Load the newest messages, where the store can do so without loading all."""
    if not adapter.reads_last:
        return {}
    samples: Samples = {}
    for size in plan.loads(adapter.largest):
        if size > LAST:
            session = await adapter.session(plan.session(size, round))
            samples[f"last {size}"] = await _timed(
                adapter, 2 * plan.appends, partial(adapter.last, session, LAST)
            )
            await adapter.leave(session)
    return samples


async def append(adapter: Adapter, plan: Plan, round: int, part: int) -> Samples:
    """Append turns to sessions of all sizes by turns."""
    samples: Samples = {}
    sessions: dict[str, Any] = {}
    end = _end(adapter)
    for size, session_id, tag in plan.appends_of(round, part, adapter.largest):
        if session_id not in sessions:
            sessions[session_id] = await adapter.session(session_id)
        session = sessions[session_id]
        turn = adapter.turn(session, tag)
        begin = time.perf_counter_ns()
        await adapter.append(session, turn)
        samples.setdefault(f"append {size}", []).append((time.perf_counter_ns() - begin) / 1_000)
        if size == 0 and time.monotonic() > end:
            break
    for session in sessions.values():
        await adapter.leave(session)
    return samples


async def throughput(adapter: Adapter, plan: Plan, round: int, part: int) -> Samples:
    """Write many new sessions at once. A turn that fails does not count."""
    sessions = [await adapter.session(id) for id in plan.crowd(round, part)]
    turns = [[adapter.turn(session, tag) for tag in plan.crowd_tags()] for session in sessions]

    failed = 0

    async def write(session: Any, own: list[Any]) -> None:
        nonlocal failed
        for turn in own:
            try:
                await adapter.append(session, turn)
            except Exception:  # what a peer does under load is a result
                failed += 1

    begin = time.perf_counter()
    await asyncio.gather(*map(write, sessions, turns))
    seconds = time.perf_counter() - begin
    for session in sessions:
        await adapter.leave(session)
    done = plan.sessions * plan.session_turns - failed
    return {"throughput": [done / seconds], "failed turns": [failed]}


async def stall(adapter: Adapter, plan: Plan, round: int, part: int) -> Samples:
    """Watch how long the event loop stands still while a long session loads."""
    if STALL_SIZE not in plan.loads(adapter.largest):
        return {}
    session = await adapter.session(plan.session(STALL_SIZE, round))
    gaps: list[int] = []
    ticker = asyncio.create_task(_tick(gaps))
    await asyncio.sleep(10 * TICK)
    gaps.clear()
    loaded = await adapter.load(session)
    await asyncio.sleep(0)  # the ticker has to notice a stall at the very end
    await asyncio.sleep(2 * TICK)
    ticker.cancel()
    del loaded  # letting go of it is not part of the load
    await adapter.leave(session)
    return {f"stall {STALL_SIZE}": [max(gaps) / 1_000]}


CELLS: Final[dict[str, Callable[[Adapter, Plan, int, int], Awaitable[Samples]]]] = {
    # Loads come first: once a round has appended, its sessions do not have their size any more.
    "load": load,
    "last": last,
    "stall": stall,
    "append": append,
    "throughput": throughput,
}


async def contend(
    adapter: Adapter, plan: Plan, session_id: str, writers: Sequence[int]
) -> dict[str, Any]:
    """Let writers, each with an object of its own, append their turns to one session at once.

    A writer that fails goes on with its next turn. Returns the seconds and the errors.
    """
    errors: Counter[str] = Counter()

    async def write(writer: int) -> None:
        session = None
        for index in range(plan.writer_turns):
            try:
                session = session or await adapter.session(session_id)
                await adapter.append(session, adapter.turn(session, f"writer-{writer}-{index}"))
            except Exception as error:  # counted: what a peer raises is a result
                errors[type(error).__name__] += 1
        if session is not None:
            await adapter.leave(session)

    begin = time.perf_counter()
    await asyncio.gather(*map(write, writers))
    return {"seconds": time.perf_counter() - begin, "errors": dict(errors)}


async def survivors(adapter: Adapter, plan: Plan, session_id: str) -> dict[str, int]:
    """Count what is there after `contend`: messages kept and doubled, turns that are whole."""
    session = await adapter.session(session_id)
    tags = [tag_of(adapter.text(message)) for message in await adapter.load(session)]
    await adapter.leave(session)
    turns = [
        f"writer-{writer}-{index}"
        for writer in range(plan.writers)
        for index in range(plan.writer_turns)
    ]
    pairs = set(itertools.pairwise(tags))
    return {
        "messages": 2 * len(turns),
        "kept": len(set(tags)),
        "doubled": len(tags) - len(set(tags)),
        "turns": len(turns),
        "whole": sum((f"{turn}-0", f"{turn}-1") in pairs for turn in turns),
    }


async def verify(adapter: Adapter, plan: Plan) -> str:
    """Return what is wrong with the seeded sessions, "" if nothing is."""
    for session_id, size in plan.seeded(adapter.largest):
        session = await adapter.session(session_id)
        wanted = history_tags(size)
        if size in plan.loads(adapter.largest):
            found = [tag_of(adapter.text(message)) for message in await adapter.load(session)]
            if found != wanted:
                return f"{size} messages were seeded, {len(found)} came back or in another order"
        if adapter.reads_last and size in plan.loads(adapter.largest):
            found = [tag_of(adapter.text(item)) for item in await adapter.last(session, LAST)]
            if found != wanted[-LAST:]:
                return f"the last {LAST} of {size} came back as {found[:1]} to {found[-1:]}"
        await adapter.leave(session)
    return ""


async def _timed(
    adapter: Adapter, count: int, call: Callable[[], Awaitable[object]]
) -> list[float]:
    times: list[float] = []
    end = _end(adapter)
    while len(times) < count and time.monotonic() < end:
        begin = time.perf_counter_ns()
        loaded = await call()
        times.append((time.perf_counter_ns() - begin) / 1_000)
        del loaded  # letting go of it is not part of the load
    gc.collect()
    return times


def _end(adapter: Adapter) -> float:
    return time.monotonic() + PATIENCE if adapter.kind == "peer" else float("inf")


async def _tick(gaps: list[int]) -> None:
    before = time.perf_counter_ns()
    while True:
        await asyncio.sleep(TICK)
        now = time.perf_counter_ns()
        gaps.append(now - before)
        before = now
