"""Draw latency against range for all tools. Equal results give equal bytes."""

import math
from collections.abc import Mapping

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import commands, engines
from benchmarks.questions import RANGES
from benchmarks.results import Results
from benchmarks.rounds import Latencies
from srvstat.contract.ranges import DAYS

_OURS = "#c2410c"
_COLOR_OF = {
    "srvstat": _OURS,
    "DuckDB": "#a16207",
    "sqlite3": "#0369a1",
    "polars": "#4d7c0f",
    "pandas": "#7e22ce",
    "Datasette": "#be185d",
    "datasette": "#be185d",
    "sqlite-utils": "#0f766e",
    "python": "#57534e",
}
"""Start of a name to color."""

_SECOND = {engines.STATISTICS, *engines.DUCKDB[1:], *commands.DUCKDB[1:]}
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "srvstat",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e7e5e4",
}
_LABEL_STEP = 0.05
"""Minimum distance of labels, as a fraction of the height."""


def draw(path: str, results: Results) -> None:
    """Draw an SVG with two panels: in process, and whole processes."""
    in_process = {
        name: latencies
        for (name, size), latencies in results.latencies.items()
        if size == results.size
    }
    whole = {
        name: {range: timed[range].seconds for range in RANGES}
        for name, timed in results.processes.items()
    }
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 5), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_panel(left, "In process, ms", in_process)
        _draw_panel(right, "Whole process, ms", whole)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _draw_panel(axes: Axes, title: str, lines: Mapping[str, Latencies]) -> None:
    """Draw one labeled line per name on logarithmic axes."""
    days = [DAYS[range] for range in RANGES]
    for name, latencies in lines.items():
        ours = _find_color(name) == _OURS
        axes.plot(
            days,
            [latencies[range] * 1_000 for range in RANGES],
            color=_find_color(name),
            linestyle="dashed" if name in _SECOND or name.endswith(_DASHED) else "solid",
            linewidth=2.5 if ours else 1.2,
            marker="o",
            markersize=3,
            zorder=3 if ours else 2,
        )
    axes.set_title(title, fontweight="bold")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(days, labels=RANGES)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    bottom, top = map(math.log, axes.get_ylim())
    ends = {
        name: (math.log(latencies["1y"] * 1_000) - bottom) / (top - bottom)
        for name, latencies in lines.items()
    }
    for name, height in _spread_labels(ends).items():
        axes.text(
            1.02,
            height,
            name,
            color=_find_color(name),
            fontweight="bold" if _find_color(name) == _OURS else "normal",
            transform=axes.transAxes,
            verticalalignment="center",
        )


_DASHED = ("window function", "Parquet")


def _find_color(name: str) -> str:
    return next(color for start, color in _COLOR_OF.items() if name.startswith(start))


def _spread_labels(heights: Mapping[str, float]) -> dict[str, float]:
    """Return the heights of labels, moved so that none overlap.

    Moves a label up if it is too close to the one below; at the top, moves labels down instead.
    """
    names = sorted(heights, key=heights.__getitem__)
    placed: dict[str, float] = {}
    floor = -math.inf
    for name in names:
        placed[name] = max(heights[name], floor)
        floor = placed[name] + _LABEL_STEP
    ceiling = 1.0
    for name in reversed(names):
        placed[name] = min(placed[name], ceiling)
        ceiling = placed[name] - _LABEL_STEP
    return placed
