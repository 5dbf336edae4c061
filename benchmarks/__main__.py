"""Measure the requirements, and write docs/explanation/benchmarks.md: `python -m benchmarks`.

srvstat and other tools answer the same questions about the same observations.
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
from benchmarks.data import WIDE_PLAYERS, WIDE_POLLS, FleetFiles
from benchmarks.measure import FailedError, print_progress
from benchmarks.questions import WrongAnswerError

_HERE = os.path.dirname(os.path.abspath(__file__))
_PAGE = os.path.join(os.path.dirname(_HERE), "docs", "explanation", "benchmarks.md")

SMALL, FULL, GROWTH = 20, 200, 5
"""Sizes of the fleets in servers; the large fleet is `GROWTH` times as large as the fleet."""

_PACKAGES = (
    *("pydantic", "typer", "duckdb", "numpy", "pyarrow", "sqlite-utils", "starlette", "uvicorn"),
)


class Figure(NamedTuple):
    """A figure of the page with what it must reach, and what it aims for."""

    name: str
    value: float
    form: str
    limit: Literal["≥", "≤"]
    must: float
    aim: float | None = None

    @property
    def is_missed(self) -> bool:
        """Whether the value misses what it must reach."""
        return not self._reaches(self.must)

    def format_row(self) -> str:
        """Return the row of the table."""
        goals = [self.must] if self.aim is None else [self.must, self.aim]
        first, *others = (f"{self.limit}{self.form % goal}" for goal in goals)
        value = self.form % self.value
        shown = f"**{value}**" if self.is_missed else value
        return " | ".join([self.name, shown, first, *others])

    def _reaches(self, goal: float) -> bool:
        return self.value >= goal if self.limit == "≥" else self.value <= goal


def main() -> int:
    """Measure, print the table and write the page; return 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", type=int, choices=(SMALL, FULL), default=FULL)
    parser.add_argument("--data", metavar="DIR", default=os.path.join(_HERE, "data"))
    arguments = parser.parse_args()
    started = time.monotonic()
    files, large, small = (
        FleetFiles(arguments.data, size)
        for size in (arguments.size, arguments.size * GROWTH, SMALL)
    )
    try:
        figures = _measure(files, large, small)
    except (WrongAnswerError, FailedError) as error:
        print_progress(f"error: {error}")
        return 1
    gc.unfreeze()  # DuckDB complains of what is not collected at the end
    table = "\n".join(figure.format_row() for figure in figures)
    sys.stdout.write(f"{table}\n")
    with open(_PAGE, "w", encoding="utf-8") as file:
        file.write(_format_page(table, files, large, time.monotonic() - started))
    return int(any(figure.is_missed for figure in figures))


def _measure(files: FleetFiles, large: FleetFiles, small: FleetFiles) -> list[Figure]:
    """Return the figures; raises WrongAnswerError, FailedError."""
    loads = processes.time_loads(files, small, rounds=3)
    processes.build(small.snapshot, small, *small.recorded_paths("csv"))
    texts = processes.time_texts(small)
    wide = os.path.join(files.directory, "wide.db")
    processes.build(wide, files, files.wide_path())
    update = processes.time_update(large, rounds=3)
    answers = comparison.time_engines(files, rounds=20)
    ours = {length: answers[comparison.SRVSTAT, length] for length in comparison.TIMED}
    speeds = {
        length: min(answers[name, length] for name in comparison.DUCKDB) / taken
        for length, taken in ours.items()
    }
    asked = analyzer.time_questions(files, large, rounds=5)
    servers, _, seconds = analyzer.time_integrity(large, rounds=3)
    events, today = analyzer.time_morning(large, rounds=5)
    rates = service.measure_rates(files, rounds=3, seconds=2)
    hello, count = rates[service.HELLO], files.observation_count
    compare = "compare"
    return [
        Figure(f"{compare}, 24h: × DuckDB", speeds["24h"], "%.1f×", "≥", 6, 10),
        Figure(f"{compare}, 30d: × DuckDB", speeds["30d"], "%.1f×", "≥", 7, 12),
        Figure(f"{compare}, 1y: × DuckDB", speeds["1y"], "%.1f×", "≥", 22, 40),
        Figure(f"{compare}: time of 1y / 24h", ours["1y"] / ours["24h"], "%.2f×", "≤", 1.3, 1.1),
        Figure(
            f"{compare}, 1y: time of {large.size:,} / {small.size} servers",
            comparison.compare_sizes(large, small, rounds=50),
            *("%.2f×", "≤", 1.6, 1.3),
        ),
        Figure(
            f"{compare}, {WIDE_POLLS:,} counts to {WIDE_PLAYERS:,}, 1y: ms",
            1_000 * comparison.time_wide(wide, rounds=9),
            *("%.0f", "≤", 100, 20),
        ),
        Figure(
            "compare, process, 1y: time / two imports",
            processes.time_compare(files, rounds=15),
            *("%.2f×", "≤", 1.3, 1.1),
        ),
        Figure("stats, 1y: × DuckDB", asked["stats"], "%.1f×", "≥", 4, 12),
        Figure("growth by day, 1y: × DuckDB", asked["growth"], "%.1f×", "≥", 2.5, 6),
        Figure("peak-hours, 1y: × DuckDB", asked["peak-hours"], "%.1f×", "≥", 1.5, 4),
        Figure("history by hour, 1y: × DuckDB", asked["history"], "%.1f×", "≥", 1.5, 4),
        Figure(f"top of {large.size:,} servers, 1y: × DuckDB", asked["top"], "%.1f×", "≥", 6, 15),
        Figure(
            f"total of {files.size} servers by hour, 30 days: × DuckDB",
            *(asked["total"], "%.1f×", "≥", 1.5),
        ),
        Figure(f"events of {large.size:,} servers, 90 days: s", *(events, "%.1f", "≤", 3)),
        Figure(f"today of {large.size:,} servers: s", today, "%.2f", "≤", 0.5),
        Figure(f"integrity of {servers} servers, 90 days: s", *(seconds, "%.1f", "≤", 4, 1)),
        Figure("build from CSV: × sqlite-utils", loads.csv, "%.0f×", "≥", 50, 100),
        *(
            # sqlite-utils inserts the 20 counts of a wide row as one row.
            Figure(
                f"build from {name}: × sqlite-utils",
                *(rate, "%.0f×", "≥", 2 if name == "wide.csv" else 10),
            )
            for name, rate in texts.items()
        ),
        Figure("build from Parquet: × sqlite-utils", loads.parquet, "%.0f×", "≥", 50, 100),
        Figure(
            f"build of {count / 1e6:.0f} million observations: peak MiB",
            *(loads.csv_mib, "%.0f", "≤", 300, 200),
        ),
        Figure("verify: rate / a loop's", loads.verify, "%.2f×", "≥", 0.6, 0.9),
        Figure(
            f"update of {large.observation_count / 1e6:.0f} million with a day: time / build",
            *(update.share, "%.3f×", "≤", 0.05, 0.02),
        ),
        Figure("same update: peak MiB", update.mib, "%.0f", "≤", 300, 150),
        Figure(
            "bytes per observation, 5-minute polls",
            os.path.getsize(files.snapshot) / count,
            *("%.1f", "≤", 10, 8),
        ),
        Figure(
            "bytes per observation, hourly polls",
            processes.measure_hourly_bytes(files),
            *("%.1f", "≤", 15, 12),
        ),
        Figure(
            "serve, uncached, 1y: rate / minimal app's",
            rates[service.UNCACHED] / hello,
            *("%.3f×", "≥", 0.06),
        ),
        Figure(
            "serve, cached, 1y: rate / minimal app's",
            rates[service.CACHED] / hello,
            *("%.3f×", "≥", 0.3),
        ),
    ]


def _format_page(table: str, files: FleetFiles, large: FleetFiles, seconds: float) -> str:
    setups = comparison.SETUPS | processes.SETUPS | service.SETUPS | analyzer.SETUPS
    given = "\n".join(f"- **{name}**: {setup}" for name, setup in setups.items())
    minutes = seconds / 60
    python = f"Python {platform.python_version()} with SQLite {sqlite3.sqlite_version}"
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"""# Benchmarks

This page shows how fast and small srvstat is, with the required and target values. "×" is the
speed relative to another tool that computes the same result from the same data. A result in
**bold** misses the required value. `make bench` writes this page in half an hour, and needs 8 GB of
disk.
`make bench SIZE={SMALL}` takes a few minutes.

This run took {minutes:.0f} minutes. Its fleets have {files.size} and {large.size:,} servers, with
{files.observation_count:,} and {large.observation_count:,} observations. The requirements are for
{FULL} and {FULL * GROWTH:,} servers.

measurement | result | must | aim
--- | --: | --: | --:
{table}

## Setup

{given}

## Method

- **Data**: The data is generated and the same on every machine. It has 5-minute polls for 370 days,
  with waves, gaps, restarts, and peaks of 30 to 2,000 players.
- **Results**: Each result is first compared with the result of plain Python or DuckDB.
- **Rounds**: In each round, all tools answer the same random requests. The page shows medians over
  the rounds. The files are in the page cache.
- **Memory**: Memory includes child processes.

## Machine

{os.cpu_count()} cores, {platform.system()}, {python}, {versions}
"""


if __name__ == "__main__":
    sys.exit(main())
