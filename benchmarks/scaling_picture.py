"""Draw the time of `srvstat fleet` against the size of a fleet. Equal runs give equal bytes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.picture import STYLE

_ENGINES = {"spark": ("Spark, two executors", "#c2410c"), "duckdb": ("DuckDB", "#0369a1")}
_USUAL_SERVERS, _USUAL_ROWS = 1_000, range(2_500_000, 3_500_000)
"""The runs of the first panel have this number of servers, those of the second one of rows."""


def draw(path: str, runs: Sequence[Mapping[str, Any]]) -> None:
    """Draw an SVG with two panels: seconds against observations, and against servers."""
    even = [run for run in runs if run["skew"] == 1]
    with mpl.rc_context({**STYLE, "axes.grid.axis": "both"}):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        of_usual = [run for run in even if run["servers"] == _USUAL_SERVERS]
        _draw_panel(left, "1,000 servers: seconds by observations", of_usual, "rows")
        _draw_panel(
            right,
            "3 million observations: seconds by servers",
            [run for run in even if run["rows"] in _USUAL_ROWS],
            "servers",
        )
        left.legend(frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _draw_panel(axes: Axes, title: str, runs: Iterable[Mapping[str, Any]], size: str) -> None:
    """Draw a line for each engine on logarithmic axes."""
    ordered = sorted(runs, key=lambda run: int(run[size]))
    for engine, (label, color) in _ENGINES.items():
        seconds = [run[engine]["seconds"] for run in ordered]
        axes.plot([run[size] for run in ordered], seconds, marker="o", color=color, label=label)
    axes.set_title(title, fontweight="bold")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: _format_number(value))
    axes.minorticks_off()


def _format_number(value: float) -> str:
    """Format a number with a suffix for millions."""
    return f"{value / 1_000_000:g} M" if value >= 1_000_000 else f"{value:,g}"  # noqa: PLR2004 - the unit
