"""What a page of a search costs among few sessions and among many.

    python -m bench.searches                      # all databases, each on a server of its own
    python -m bench.searches sqlite mongo
    python -m bench.searches --docs               # puts the table into docs/performance.md

Each database has two stores, one with 100 sessions and one with 10,000 that are alike. Their
searches are timed by turns, so that what disturbs one disturbs the other as well.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.environments import ROOT, default_cache
from bench.report import insert
from bench.servers import SERVERS, running
from historykit.config import build_config
from historykit.plugins import load_backend
from historykit.records import MessageDraft
from historykit.session_records import SessionDraft, SessionKey, SessionQuery
from historykit.store import HistoryStore

__all__ = ["main"]

PAGE: Final = ROOT / "docs" / "performance.md"

FEW: Final = 100
MANY: Final = 10_000
BOUND: Final = 3.0
"""A page among many takes at most so many times as long as one among few."""

ROUNDS: Final = 60
GROUP: Final = 20
"""So many sessions belong to one user, and have one label."""

NOW: Final = 1_760_000_000_000_000


@dataclass(frozen=True, slots=True)
class Cell:
    """A search; `matches` says how many sessions it finds, `conditions` what they have."""

    name: str
    matches: str
    conditions: Mapping[str, Any]
    is_bound: bool = True


CELLS: Final = (
    Cell("user", "20", {"user_id": "user 3"}),
    Cell("label", "20", {"labels": frozenset({"label 3"})}),
    Cell("agent", "a fifth", {"agent_id": "agent 3"}),
    Cell("status", "half", {"status": "status 1"}),
    Cell("memory", "a fifth", {"memory_enabled": False}),
    Cell("dates", "20", {"created_from": NOW + 60, "created_before": NOW + 80}),
    # Not one condition, and so in proportion to what one of the two leaves.
    Cell(
        "agent and status", "a tenth", {"agent_id": "agent 3", "status": "status 1"}, is_bound=False
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says and return the exit code: 1 where the bound is missed."""
    names = ["sqlite", *SERVERS]
    parser = argparse.ArgumentParser(prog="python -m bench.searches", description=__doc__)
    parser.add_argument("databases", nargs="*", choices=[*names, []], metavar="DATABASE")
    parser.add_argument("--docs", action="store_true", help=f"write the table into {PAGE.name}")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--many", type=int, default=MANY, help="how many sessions are many")
    options = parser.parse_args(arguments)
    found: dict[str, list[list[float]]] = {}
    for name in options.databases or names:
        with _settings(name) as settings:
            found[name] = asyncio.run(_measure(name, settings, options.many, options.rounds))
        print(_table({name: found[name]}, options.many))
    if options.docs:
        text = f"    python -m bench.searches\n\n{_table(found, options.many)}"
        PAGE.write_text(insert(PAGE.read_text("utf-8"), "searches", text), encoding="utf-8")
    ratio = max(
        few_and_many[1] / few_and_many[0]
        for rows in found.values()
        for cell, row in zip(CELLS, rows, strict=True)
        for few_and_many in (row[:2], row[2:])
        if cell.is_bound
    )
    print(f"by one condition at most {ratio:.2f} times; the bound is {BOUND}", file=sys.stderr)
    return int(ratio > BOUND)


@contextmanager
def _settings(name: str) -> Iterator[list[dict[str, object]]]:
    """Yield the settings of two stores that have nothing in common."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        if name == "sqlite":
            yield [{"path": folder / f"{size}.db"} for size in ("few", "many")]
            return
        server = stack.enter_context(running(name, default_cache(), places=1))
        part = {"redis": "prefix", "postgres": "schema", "mongo": "database"}[name]
        yield [{"url": server["url"], part: f"bench_{size}"} for size in ("few", "many")]


async def _measure(
    name: str, settings: Sequence[dict[str, object]], many: int, rounds: int
) -> list[list[float]]:
    """Return for each cell the medians among few and many: with a total, then without."""
    spec = load_backend(name)
    async with AsyncExitStack() as stack:
        stores = []
        for each, count in zip(settings, (FEW, many), strict=True):
            store = spec.make_store(build_config(spec, each))
            stores.append(await stack.enter_async_context(store))
            await _fill(store, count)
        if name == "postgres":
            await _gather_statistics(str(settings[0]["url"]))
        samples: dict[tuple[str, bool, int], list[float]] = {}
        for round, cell, total in itertools.product(range(rounds), CELLS, (True, False)):
            query = SessionQuery(namespace="bench", with_total=total, **cell.conditions)
            for place in (0, 1) if round % 2 else (1, 0):
                begin = time.perf_counter()
                page = await stores[place].find_sessions(query)
                taken = time.perf_counter() - begin
                assert page.records, cell.name
                samples.setdefault((cell.name, total, place), []).append(taken)
    warm = {key: taken[rounds // 10 :] for key, taken in samples.items()}
    return [
        [median(warm[cell.name, total, place]) for total in (True, False) for place in (0, 1)]
        for cell in CELLS
    ]


async def _fill(store: HistoryStore, count: int) -> None:
    """Create sessions with a turn each."""
    for first in range(0, count, 50):
        numbers = range(first, min(first + 50, count))
        await asyncio.gather(*(_create(store, number) for number in numbers))


async def _create(store: HistoryStore, number: int) -> None:
    group = number // GROUP
    key = SessionKey("bench", f"user {group}", f"session {number}")
    fields = SessionDraft(
        agent_id=f"agent {number % 5}",
        status=f"status {number % 2}",
        labels=frozenset({f"label {group}"}),
        body=b"x" * 100,
        created_at=NOW + number,
        memory_enabled=number % 5 > 0,  # the others keep no messages
    )
    turn = [
        MessageDraft(
            id=f"{number}.{place}",
            role=role,
            body=b"x" * 1000,
            digest=bytes(16),
            created_at=NOW + number,
            turn_start=not place,
        )
        for place, role in enumerate(("user", "assistant"))
    ]
    await store.append(key, turn, create=fields)


async def _gather_statistics(url: str) -> None:
    """Have PostgreSQL do what it does by itself after a minute."""
    connection = await import_module("asyncpg").connect(url)
    await connection.execute("VACUUM ANALYZE")
    await connection.close()


def _table(found: Mapping[str, list[list[float]]], many: int) -> str:
    sizes = (f"{FEW:,}", f"{many:,}", "ratio")
    heads = ["", "found by", "of these", *(f"{size}, with total" for size in sizes)]
    heads += [f"{size}, without" for size in sizes]
    lines = [f"| {' | '.join(heads)} |", f"| --- | --- | --- |{' --: |' * 6}"]
    for name, rows in found.items():
        for cell, row in zip(CELLS, rows, strict=True):
            with_total, without = row[:2], row[2:]
            cells = [name, cell.name, cell.matches, *_shown(with_total), *_shown(without)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _shown(times: Sequence[float]) -> list[str]:
    few, many = times
    return [f"{few * 1000:.2f} ms", f"{many * 1000:.2f} ms", f"{many / few:.2f}"]


if __name__ == "__main__":
    sys.exit(main())
