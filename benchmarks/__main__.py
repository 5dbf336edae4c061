"""Compare srvstat with other tools, and write docs/benchmarks.md: `python -m benchmarks`.

The tools answer the same questions about the same observations.
"""

import argparse
import gc
import os
import platform
import sqlite3
import sys
import time
from importlib.metadata import version
from typing import Literal, NamedTuple

from benchmarks import analyzer, comparison, processes, service
from benchmarks.data import FleetFiles
from benchmarks.measure import FailedError, print_progress
from benchmarks.questions import WrongAnswerError

_HERE = os.path.dirname(os.path.abspath(__file__))
_PAGE = os.path.join(os.path.dirname(_HERE), "docs", "benchmarks.md")

SMALL, FULL = 20, 200
"""Sizes of the fleets, in servers."""

_PACKAGES = (
    *("pydantic", "typer", "duckdb", "polars", "pandas", "numpy", "sqlite-utils", "datasette"),
    *("starlette", "uvicorn"),
)


class Figure(NamedTuple):
    """A figure of the page; `required` is None if it is only reported."""

    name: str
    value: float
    form: str
    limit: Literal["≥", "≤"]
    required: float | None

    @property
    def is_missed(self) -> bool:
        """Whether the value misses the requirement."""
        if self.required is None:
            return False
        return self.value < self.required if self.limit == "≥" else self.value > self.required

    def format_row(self) -> str:
        """Return the row of the table."""
        required = "" if self.required is None else f"{self.limit} {self.form % self.required}"
        verdict = "missed" if self.is_missed else ""
        return f"| {self.name} | {self.form % self.value} | {required} | {verdict} |"


def main() -> int:
    """Measure, print the table and write the page; return 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", type=int, choices=(SMALL, FULL), default=FULL)
    parser.add_argument("--data", metavar="DIR", default=os.path.join(_HERE, "data"))
    arguments = parser.parse_args()
    started = time.monotonic()
    files = FleetFiles(arguments.data, arguments.size)
    try:
        figures = _measure(files, FleetFiles(arguments.data, SMALL))
    except (WrongAnswerError, FailedError) as error:
        print_progress(f"error: {error}")
        return 1
    gc.unfreeze()  # DuckDB complains of what is not collected at the end
    table = "\n".join(figure.format_row() for figure in figures)
    sys.stdout.write(f"{table}\n")
    with open(_PAGE, "w", encoding="utf-8") as file:
        file.write(_format_page(table, files, time.monotonic() - started))
    return int(any(figure.is_missed for figure in figures))


def _measure(files: FleetFiles, small: FleetFiles) -> list[Figure]:
    """Return the figures; raises WrongAnswerError, FailedError."""
    is_full = files.size == FULL
    built = processes.build_snapshot(files)
    engines = comparison.time_engines(files, rounds=5, seconds=2 if is_full else 0.4)
    commands = processes.time_commands(files, rounds=9 if is_full else 5)
    loads = processes.time_loads(files, small)
    rates = service.measure_rates(files, rounds=5 if is_full else 3, seconds=2)
    asked = analyzer.time_questions(files, rounds=5 if is_full else 3)
    ours = {range: engines[comparison.SRVSTAT, range] for range in comparison.TIMED}
    duckdb = {
        range: min(engines[name, range] for name in comparison.DUCKDB) / ours[range]
        for range in comparison.TIMED
    }
    year = {
        name: engines[name, "1y"] / ours["1y"]
        for name in (comparison.POLARS, comparison.PANDAS, comparison.DATASETTE)
    }
    process, hello = commands[processes.SRVSTAT], rates[service.HELLO]
    speeds = {
        name: asked[name, analyzer.DUCKDB] / asked[name, analyzer.SRVSTAT]
        for name in analyzer.QUESTIONS
    }
    insert, serve = loads[processes.INSERT], rates[service.CACHED]
    return [
        Figure("answer in process, 24h: × DuckDB", duckdb["24h"], "%.1f×", "≥", 5),
        Figure("answer in process, 1y: × DuckDB", duckdb["1y"], "%.1f×", "≥", 20),
        *(
            Figure(f"answer in process, 1y: × {name}", speed, "%.1f×", "≥", None)
            for name, speed in year.items()
        ),
        Figure(
            "whole process, 1y: time / time of two imports",
            process / commands[processes.START_UP],
            "%.2f×",
            "≤",
            1.3,
        ),
        Figure(
            "whole process, 1y: × sqlite-utils query",
            commands[processes.SQLITE_UTILS] / process,
            "%.1f×",
            "≥",
            2.5,
        ),
        Figure("build from CSV: × sqlite-utils insert", built / insert, "%.1f×", "≥", 25),
        Figure(
            "build from Parquet: × sqlite-utils insert",
            loads[processes.BUILD_PARQUET] / insert,
            "%.1f×",
            "≥",
            40,
        ),
        Figure(
            "update with a day: time / time of a build",
            built / loads[processes.UPDATE],
            "%.3f×",
            "≤",
            0.05,
        ),
        Figure(
            "verify: million observations per second",
            loads[processes.VERIFY] / 1e6,
            "%.2f",
            "≥",
            None,
        ),
        Figure(
            "serve, 1y, not cached: rate / rate of the minimal application",
            rates[service.UNCACHED] / hello,
            "%.3f×",
            "≥",
            0.06,
        ),
        Figure(
            "serve, 1y, cached: rate / rate of the minimal application",
            serve / hello,
            "%.3f×",
            "≥",
            0.3,
        ),
        Figure("serve, 1y: × Datasette", serve / rates[service.DATASETTE], "%.1f×", "≥", 15),
        Figure(
            "snapshot: bytes per observation",
            os.path.getsize(files.snapshot) / files.observation_count,
            "%.1f",
            "≤",
            34,
        ),
        *(
            Figure(f"{name}, 1y: × DuckDB", speeds[name], "%.2f×", "≥", required)
            for name, required in (
                *(("stats", 10), ("top", 15), ("growth", 3)),
                *(("peak-hours", 0.2), ("history", 0.2)),
            )
        ),
    ]


def _format_page(table: str, files: FleetFiles, seconds: float) -> str:
    setups = comparison.SETUPS | processes.SETUPS | service.SETUPS | analyzer.SETUPS
    given = "\n".join(f"- **{name}**: {setup}" for name, setup in setups.items())
    minutes = seconds / 60
    python = f"Python {platform.python_version()} with SQLite {sqlite3.sqlite_version}"
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"""# Benchmarks

Compares srvstat with other tools that can answer the same questions, mostly the statistics of five
servers over one range. "×" is how many times as fast as another tool. `make bench` generates this
page.

```
make bench            # {FULL} servers: half an hour, 5 GB of disk
make bench SIZE={SMALL}    # {SMALL} servers: a few minutes
```

This run: {files.size} servers, {files.observation_count:,} observations, {minutes:.0f} minutes.
The requirements are for {FULL} servers.

| figure | measured | required | |
| --- | ---: | ---: | --- |
{table}

## Setup of each tool

{given}

## Method

- **Data.** Generated by `benchmarks/fleet.py`, the same on every machine: servers polled every 5
  minutes for 370 days, with daily and weekly waves, missing observations, gaps and restarts. Peaks
  are between 30 and 2,000 players.
- **Answers are checked first.** Count, mean, median, peak, lowest and growth of each server must
  equal those that plain Python computes from the generated data. The analyzer's figures must equal
  those of DuckDB.
- **Alternation.** Each round asks all tools the same random requests in another order. Figures are
  medians of all rounds, with files in the page cache.
- **No precomputed data for the peers.** srvstat reads what its build precomputed; every peer
  computes from the rows of the window.

## Machine

- {os.cpu_count()} cores, {platform.system()}
- {python}
- {versions}
"""


if __name__ == "__main__":
    sys.exit(main())
