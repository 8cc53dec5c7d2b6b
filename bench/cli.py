"""The command line."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import report
from bench.adapters import DATABASES, adapters_of, bounds_of, serve
from bench.environments import ENVIRONMENTS, ROOT, default_cache, python_of, set_up
from bench.plan import Plan
from bench.results import Results
from bench.runs import choose, run

__all__ = ["main"]

SERVERS = [name for name in DATABASES if name != "sqlite"]
"""What a profile can be taken of: SQLite's time goes by in threads, which get no samples."""

PAGE = ROOT / "docs" / "performance.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says and return the exit code."""
    options = _parser().parse_args(arguments)
    handlers = {
        "setup": _setup,
        "list": _list,
        "run": _run,
        "report": _report,
        "profile": _profile,
    }
    return handlers[options.command](options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures historykit, its floors and its peers side by side in one run.",
    )
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="where environments and data lie"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup", help="make the environments of all peers")
    commands.add_parser("list", help="name what can be measured")
    measure = commands.add_parser("run", help="measure one database; sets up what is missing")
    measure.add_argument("database", choices=DATABASES)
    measure.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="parts of names")
    measure.add_argument("--rounds", type=int, default=Plan(run="").rounds)
    measure.add_argument("--sizes", type=int, nargs="+", default=list(Plan(run="").sizes))
    measure.add_argument("--out", type=Path, metavar="FILE", help="where the JSON goes")
    show = commands.add_parser("report", help="show a run's tables, or put them into the docs")
    show.add_argument("results", type=Path, help="the JSON of a run")
    show.add_argument("--docs", action="store_true", help=f"write {PAGE.name} and its plot")
    profile = commands.add_parser("profile", help="show where the client's time goes on a server")
    profile.add_argument("database", choices=SERVERS)
    return parser


def _setup(options: argparse.Namespace) -> int:
    for environment in ENVIRONMENTS:
        set_up(environment, options.cache)
    return 0


def _list(options: argparse.Namespace) -> int:
    for database in DATABASES:
        print(database)
        for adapter in adapters_of(database):
            print(f"    {adapter.name}")
    return 0


def _run(options: argparse.Namespace) -> int:
    chosen = choose(options.database, options.only)
    if not chosen:
        print(
            f"in {options.database} no name is like that; see: python -m bench list",
            file=sys.stderr,
        )
        return 2
    plan = Plan(
        run=time.strftime("%Y%m%d-%H%M%S"), rounds=options.rounds, sizes=tuple(options.sizes)
    )
    command = _command(options)
    data = run(options.database, chosen, plan, cache=options.cache, command=command)
    out = options.out or options.cache / f"{options.database}.json"
    out.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    print(report.render(Results(data), bounds_of(options.database)))
    print(f"written: {out}", file=sys.stderr)
    return 0


def _command(options: argparse.Namespace) -> str:
    """Return the command line that does the same again."""
    parts = ["python -m bench run", options.database]
    if options.only:
        parts += ["--only", *(f"'{text}'" for text in options.only)]
    if options.rounds != Plan(run="").rounds:
        parts += ["--rounds", str(options.rounds)]
    if tuple(options.sizes) != Plan(run="").sizes:
        parts += ["--sizes", *map(str, options.sizes)]
    return " ".join(parts)


def _profile(options: argparse.Namespace) -> int:
    set_up("historykit", options.cache)
    python = python_of("historykit", options.cache)
    with serve(options.database, options.cache, places=2) as settings:
        command = [str(python), "-m", "bench.profiles", options.database, json.dumps(settings)]
        return subprocess.call(command, cwd=ROOT)


def _report(options: argparse.Namespace) -> int:
    data = json.loads(options.results.read_text("utf-8"))
    database = data["database"]
    text = report.render(Results(data), bounds_of(database))
    if not options.docs:
        print(text)
        return 0
    picture = PAGE.with_name(f"performance-{database}.svg")
    set_up("plots", options.cache)
    python = python_of("plots", options.cache)
    subprocess.check_call(
        [str(python), "-m", "bench.plots", str(options.results), str(picture)], cwd=ROOT
    )
    text = f"![Append, load and turns a second]({picture.name})\n\n{text}"
    PAGE.write_text(report.insert(PAGE.read_text("utf-8"), database, text), encoding="utf-8")
    print(f"written: {PAGE} and {picture}", file=sys.stderr)
    return 0
