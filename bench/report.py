"""The tables of a run, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from bench.adapter import Bounds
from bench.imports import BASELINE, EVERYTHING, SUBJECT
from bench.plan import LAST
from bench.results import Results

__all__ = ["insert", "render", "table"]

NOTHING: Final = "-"


def render(results: Results, bounds: Bounds) -> str:
    """Return everything that a run has to say about one database."""
    parts = [
        _headline(results),
        _verdicts(results, bounds),
        "### Append a turn of two messages, by the messages that the session has\n",
        _appends(results, bounds),
        "### Load\n",
        _loads(results, bounds),
        "### Many sessions at once\n",
        _throughput(results, bounds),
        "### Many writers of one session\n",
        _contention(results),
        "### Import\n",
        _imports(results),
        "### What was measured\n",
        _adapters(results),
    ]
    return "\n".join(parts)


def insert(page: str, name: str, text: str) -> str:
    """Return a page with `text` in the place that is marked for `name`."""
    begin, end = f"<!-- bench {name} -->", f"<!-- end of bench {name} -->"
    before, found, rest = page.partition(begin)
    if not found:
        raise SystemExit(f"the page has no mark {begin}")
    return f"{before}{begin}\n\n{text}\n{end}{rest.partition(end)[2]}"


def _headline(results: Results) -> str:
    machine, plan = results.data["machine"], results.data["plan"]
    server = results.data.get("server")
    return (
        f"Measured {machine['when']} on {machine['cores']} cores, {machine['system']}, Python "
        f"{machine['python']}, {f'with {server}, ' if server else ''}in {plan['rounds']} rounds, "
        f"{results.data['seconds'] // 60} min {results.data['seconds'] % 60} s, by\n\n"
        f"    {results.data['command']}\n"
    )


def _verdicts(results: Results, bounds: Bounds) -> str:
    rows = [
        (one.target, one.bound, one.reached, "yes" if one.met else "**no**")
        for one in results.verdicts(bounds)
    ]
    return table(("target", "bound", "reached", "met"), rows, words=1)


def _appends(results: Results, bounds: Bounds) -> str:
    labels = [f"append {size}" for size in results.sizes]
    at = [size for size in (100, 1_000) if size in results.sizes]
    head = ["", *(f"{size:,}" for size in results.sizes), "slowest / fastest"]
    head += [f"x {_shown(floor)} at {size:,}" for floor in _floors(bounds) for size in at]
    rows = []
    for name in _with(results, labels):
        row = [name, *(_time(results.value(name, label)) for label in labels)]
        row.append(_number(results.spread(name)))
        row += [
            _ratio(results, name, f"append {size}", floor)
            for floor in _floors(bounds)
            for size in at
        ]
        rows.append(row)
    return table(head, rows)


def _floors(bounds: Bounds) -> list[str]:
    """Return the floors that appends are compared with."""
    return [bounds.floor] if bounds.bare is None else [bounds.bare, bounds.floor]


def _shown(floor: str) -> str:
    """Return what a column calls a floor."""
    return floor.partition(": ")[2]


def _loads(results: Results, bounds: Bounds) -> str:
    columns = {
        **{f"load {size}": f"all of {size:,}" for size in (100, 1_000, 10_000)},
        "last 1000": f"last {LAST} of 1,000",
        "last 10000": f"last {LAST} of 10,000",
        "stall 10000": "loop stalls, 10,000",
    }
    compared = ("load 100", "load 1000", "last 1000")
    head = ["", *columns.values(), *(f"x floor, {columns[label]}" for label in compared)]
    rows = []
    for name in _with(results, columns):
        row = [name, *(_time(results.value(name, label)) for label in columns)]
        row += [_ratio(results, name, label, bounds.floor) for label in compared]
        rows.append(row)
    return table(head, rows)


def _throughput(results: Results, bounds: Bounds) -> str:
    plan = results.data["plan"]
    rows = []
    for name in _with(results, ["throughput"]):
        value = results.value(name, "throughput")
        failed = results.value(name, "failed turns")
        rows.append(
            [
                name,
                f"{value:,.0f}",
                _ratio(results, name, "throughput", bounds.floor),
                f"{failed:.0f}" if failed else NOTHING,
            ]
        )
    head = ("", "turns a second", "x floor", "turns that failed")
    what = f"{plan['sessions']} new sessions, {plan['session_turns']} turns each."
    return f"{what}\n\n{table(head, rows)}"


def _contention(results: Results) -> str:
    plan = results.data["plan"]
    rows = []
    for name in results.names("historykit", "peer"):
        for where, found in results.adapters[name].get("contention", {}).items():
            errors = [f"{count} {kind}" for kind, count in found["errors"].items()]
            rows.append(
                [
                    name,
                    where,
                    f"{found.get('kept', 0)} of {found.get('messages', 0)}",
                    f"{found.get('whole', 0)} of {found.get('turns', 0)}",
                    f"{found['seconds']:.2f} s",
                    ", ".join(errors) or NOTHING,
                ]
            )
    head = ("", "", "messages kept", "turns whole", "took", "errors")
    what = f"{plan['writers']} writers, {plan['writer_turns']} turns of two messages each."
    return f"{what}\n\n{table(head, rows, words=2)}"


def _imports(results: Results) -> str:
    found = results.data["imports"]
    rows = [
        [f"`{statement}`", f"{median(times):.1f} ms", f"{min(times):.1f} to {max(times):.1f} ms"]
        for statement, times in found["milliseconds"].items()
    ]
    runs = len(found["milliseconds"][SUBJECT])
    return (
        f"In {runs} fresh interpreters each, by turns. `{SUBJECT}` takes "
        f"{results.import_cost():.1f} ms more than `{BASELINE}`: the modules of its names are "
        f"imported when these are first used. `{EVERYTHING}` brings, beside the standard library: "
        f"{', '.join(found['packages'])}.\n\n" + table(("", "median", "range"), rows)
    )


def _adapters(results: Results) -> str:
    rows = [
        [
            name,
            one["durability"],
            ", ".join(f"{what} {version}" for what, version in one.get("versions", {}).items()),
            "; ".join([*filter(None, [one["notes"]]), *one["troubles"]]),
        ]
        for name, one in results.adapters.items()
    ]
    versions = table(("", "durability", "versions", "notes"), rows, words=4)
    left_out = results.data.get("left_out", {})
    lines = [f"- {name}: {reason}" for name, reason in left_out.items()]
    return "\n".join([versions, "Not measured:\n", *lines, ""]) if lines else versions


def _with(results: Results, labels: Iterable[str]) -> list[str]:
    wanted = list(labels)
    return [
        name
        for name in results.names()
        if any(results.value(name, label) is not None for label in wanted)
    ]


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Return a table in Markdown, whose first columns are words and the others numbers."""
    rule = ["---" if index < words else "--:" for index in range(len(head))]
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)]
    return "\n".join(lines) + "\n"


def _time(microseconds: float | None) -> str:
    if microseconds is None:
        return NOTHING
    if microseconds < 1_000:
        return f"{microseconds:.0f} µs"
    digits = 2 if microseconds < 10_000 else 1 if microseconds < 100_000 else 0
    return f"{microseconds / 1_000:.{digits}f} ms"


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _ratio(results: Results, name: str, label: str, floor: str) -> str:
    ratio = results.ratio(name, label, floor)
    return NOTHING if ratio is None else _number(ratio[0])
