"""The picture of a run, drawn with matplotlib, which only the environment `plots` has.

python -m bench.plots RESULTS PICTURE
"""

from __future__ import annotations

import json
import math
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bench.results import Results

COLORS: Final = {"floor": "#9a9a9a", "historykit": "#c2185b", "peer": "#5b7fa6"}


GAP: Final = 0.028
"""The least distance of two names beside the lines, as a part of the height."""


def draw(results: Results, picture: Path) -> None:
    """Draw appends by size beside bars for load and throughput."""
    matplotlib = import_module("matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "bench", "svg.fonttype": "none", "font.size": 8})
    pyplot = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4.5), width_ratios=(4, 2, 2))
    _draw_appends(axes[0], results)
    _draw_bars(axes[1], results, "load 1000", "load of 1,000 messages, ms", 1_000, "{:.1f}")
    _draw_bars(axes[2], results, "throughput", "turns a second", 1, "{:,.0f}")
    figure.tight_layout()
    figure.savefig(picture, metadata={"Date": None})


def _draw_appends(axes: Any, results: Results) -> None:
    axes.set(yscale="log", title="append of a turn, µs, by messages in the session")
    axes.set_xticks(range(len(results.sizes)), [f"{size:,}" for size in results.sizes])
    axes.margins(x=0.03)
    ends = {}
    for name, one in results.adapters.items():
        times = [results.value(name, f"append {size}") for size in results.sizes]
        shown = [time for time in times if time is not None]
        if shown:
            style = {"color": COLORS[one["kind"]], "linewidth": 1 + (one["kind"] == "historykit")}
            axes.plot(shown, marker=".", linestyle="--" if one["kind"] == "floor" else "-", **style)
            ends[name] = shown[-1]
    _draw_names(axes, results, ends)


def _draw_names(axes: Any, results: Results, ends: dict[str, float]) -> None:
    """Write the names beside the ends of their lines, none over another."""
    bottom, top = axes.get_ylim()
    height = math.log(top / bottom)
    place = 0.0
    for name, end in sorted(ends.items(), key=lambda pair: pair[1]):
        place = max(place + GAP, math.log(end / bottom) / height)
        color = COLORS[results.adapters[name]["kind"]]
        where = {"xycoords": "axes fraction", "verticalalignment": "center"}
        axes.annotate(name, (1.01, place), color=color, fontsize=6, annotation_clip=False, **where)


def _draw_bars(
    axes: Any, results: Results, label: str, title: str, unit: float, shown_as: str
) -> None:
    found = {name: results.value(name, label) for name in reversed(results.names())}
    shown = {name: value / unit for name, value in found.items() if value is not None}
    colors = [COLORS[results.adapters[name]["kind"]] for name in shown]
    bars = axes.barh(list(shown), list(shown.values()), color=colors)
    axes.bar_label(bars, fmt=shown_as, fontsize=6, padding=2)
    axes.set(title=title)
    axes.tick_params(axis="y", labelsize=6)
    axes.margins(x=0.2)


if __name__ == "__main__":
    draw(Results(json.loads(Path(sys.argv[1]).read_text("utf-8"))), Path(sys.argv[2]))
