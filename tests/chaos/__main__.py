"""``python -m tests.chaos [BACKEND ...]``: kills servers and writers, counts, prints a table."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Sequence

from tests.chaos.runs import Outcome, run_contention, run_scenario
from tests.chaos.scenarios import SCENARIOS, Scenario

COLUMNS = (
    *("backend", "server", "what", "kills", "acknowledged", "stored", "messages"),
    *("missing", "torn", "doubled", "disordered", "seconds"),
)


def main() -> int:
    options = arguments().parse_args()
    return asyncio.run(run(options))


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("backends", nargs="*", metavar="BACKEND", help=", ".join(SCENARIOS))
    parser.add_argument("--writers", type=int, default=32)
    parser.add_argument("--turns", type=int, default=10_000, help="at least so many in all")
    parser.add_argument("--kills", type=int, default=6)
    return parser


async def run(options: argparse.Namespace) -> int:
    rows: list[Sequence[str]] = [COLUMNS]
    is_good = True
    for name in options.backends or SCENARIOS:
        async for outcome in outcomes(SCENARIOS[name](), options):
            rows.append(row(outcome))
            is_good &= outcome.is_good
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    print(table(rows))
    return 0 if is_good else 1


async def outcomes(scenario: Scenario, options: argparse.Namespace) -> AsyncIterator[Outcome]:
    yield await run_scenario(
        scenario, writers=options.writers, turns=options.turns, kills=options.kills
    )
    with scenario.arena():
        for processes in (1, 2):
            yield await run_contention(scenario.backend, scenario.settings, processes=processes)


def row(outcome: Outcome) -> tuple[str, ...]:
    count = outcome.count
    return (
        *(outcome.backend, outcome.product, outcome.what, str(outcome.kills)),
        *(str(count.acknowledged), str(count.stored), str(count.messages)),
        *(str(count.missing), str(count.torn), str(count.doubled), str(count.disordered)),
        f"{outcome.seconds:.1f}",
    )


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table in Markdown."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, _line(["-" * width for width in widths], widths))
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


if __name__ == "__main__":
    sys.exit(main())
