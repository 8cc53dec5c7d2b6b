"""Runs one adapter in a process of its own: reads a command a line, as JSON, and answers likewise.

python -m bench.worker DATABASE NAME PLACE PLAN
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import sqlite3
import sys
import traceback
from pathlib import Path
from typing import Any, TextIO

from bench import cells
from bench.adapter import Adapter, Place
from bench.adapters import find_adapter
from bench.plan import Plan


async def prepare(adapter: Adapter, plan: Plan) -> dict[str, Any]:
    """Store what is there before the first round, read it again, and say what is wrong."""
    await adapter.open()
    await adapter.prepare(plan)
    await adapter.close()
    await adapter.open()
    wrong = await cells.verify(adapter, plan)
    return {"wrong": wrong, "versions": versions(adapter)}


async def begin(adapter: Adapter, plan: Plan, round: int) -> dict[str, Any]:
    """Open the adapter for a round and warm up."""
    await adapter.open()
    await cells.warm_up(adapter, plan, round)
    return {}


async def measure(adapter: Adapter, plan: Plan, cell: str, round: int, part: int) -> dict[str, Any]:
    """Return the samples of one pass of a cell."""
    return {"samples": await cells.CELLS[cell](adapter, plan, round, part)}


async def join(adapter: Adapter, plan: Plan) -> dict[str, Any]:
    """Open the adapter to be one of the processes that write one session."""
    await adapter.open()
    return {}


async def contend(adapter: Adapter, plan: Plan, session: str, writers: list[int]) -> dict[str, Any]:
    """Let some of the writers write a session."""
    return await cells.contend(adapter, plan, session, writers)


async def survivors(adapter: Adapter, plan: Plan, session: str) -> dict[str, Any]:
    """Count what all the writers have left there."""
    return await cells.survivors(adapter, plan, session)


async def close(adapter: Adapter, plan: Plan) -> dict[str, Any]:
    """Disconnect."""
    await adapter.close()
    return {}


COMMANDS = {
    command.__name__: command
    for command in (prepare, begin, measure, join, contend, survivors, close)
}


def versions(adapter: Adapter) -> dict[str, str]:
    """Return the versions of what the adapter is made of."""
    found = {name: importlib.metadata.version(name) for name in adapter.distributions}
    if adapter.database == "sqlite":
        found = {"sqlite": sqlite3.sqlite_version, **found}
    return {"python": sys.version.split()[0], **found}


async def serve(adapter: Adapter, plan: Plan, answers: TextIO) -> None:
    """Do what standard input says until it ends."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        request = json.loads(line)
        command = COMMANDS[request.pop("do")]
        try:
            answer: dict[str, Any] = await command(adapter, plan, **request)
        except Exception as error:
            traceback.print_exc()
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def main() -> None:
    """Take standard output for the answers, so that nothing a library prints gets among them."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    database, name, place, plan = sys.argv[1:]
    settings = json.loads(place)
    folder = Path(settings.pop("folder"))
    adapter = find_adapter(database, name)(Place(folder=folder, **settings))
    asyncio.run(serve(adapter, Plan.from_dict(json.loads(plan)), answers))
    os._exit(0)  # the threads of some drivers would hold the process


if __name__ == "__main__":
    main()
