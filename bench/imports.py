"""What `import historykit` costs, in fresh interpreters by turns with what it cannot do without."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

from bench.environments import ROOT, python_of

__all__ = ["BASELINE", "EVERYTHING", "SUBJECT", "measure"]

SUBJECT: Final = "import historykit"
BASELINE: Final = "import pluggy, asyncio"
EVERYTHING: Final = "from historykit import *"
"""Imports what `import historykit` leaves to the first use of each name."""

_HEAVY: Final = (
    "aiosqlite sqlite3 redis pymongo motor bson sqlalchemy asyncpg psycopg pydantic numpy "
    "click rich pytest hypothesis agent_framework agents google langchain_core llama_index"
)
"""What an import of core should leave to those who need it."""

TIMED: Final = """
import sys, time
begin = time.perf_counter()
{statement}
print((time.perf_counter() - begin) * 1000)
"""

LISTED: Final = """
import json, sys
before = set(sys.modules)
{statement}
names = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(json.dumps([sorted(names - sys.stdlib_module_names), sorted(names)]))
"""


def measure(cache: Path, *, runs: int) -> dict[str, Any]:
    """Return milliseconds of the imports, and which packages all names of historykit bring."""
    python = python_of("historykit", cache)
    # Installed distributions are compiled; so is the checkout here, without a trace of it.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    times: dict[str, list[float]] = {BASELINE: [], SUBJECT: [], EVERYTHING: []}
    for number in range(runs + 1):
        for statement, found in times.items():
            milliseconds = float(_output(python, TIMED, statement, environment))
            if number:  # the first may have had to compile
                found.append(round(milliseconds, 2))
    packages, names = json.loads(_output(python, LISTED, EVERYTHING, environment))
    return {
        "milliseconds": times,
        "packages": packages,
        "heavy": [name for name in _HEAVY.split() if name in names],
    }


def _output(python: Path, program: str, statement: str, environment: dict[str, str]) -> str:
    return subprocess.run(
        [str(python), "-c", program.format(statement=statement)],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
