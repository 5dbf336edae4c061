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
        sections = _measure(files, large, small)
    except (WrongAnswerError, FailedError) as error:
        print_progress(f"error: {error}")
        return 1
    gc.unfreeze()  # DuckDB complains of what is not collected at the end
    tables = "\n".join(map(_format_section, sections, sections.values()))
    sys.stdout.write(tables)
    with open(_PAGE, "w", encoding="utf-8") as file:
        file.write(_format_page(tables, files, large, time.monotonic() - started))
    return int(any(figure.is_missed for figures in sections.values() for figure in figures))


def _measure(files: FleetFiles, large: FleetFiles, small: FleetFiles) -> dict[str, list[Figure]]:
    """Return the figures by section of the page; raises WrongAnswerError, FailedError."""
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
    return {
        "Compare": [
            Figure("24h: × DuckDB", speeds["24h"], "%.1f×", "≥", 6, 10),
            Figure("30d: × DuckDB", speeds["30d"], "%.1f×", "≥", 7, 12),
            Figure("1y: × DuckDB", speeds["1y"], "%.1f×", "≥", 22, 40),
            Figure("time for 1y / time for 24h", ours["1y"] / ours["24h"], "%.2f×", "≤", 1.3, 1.1),
            Figure(
                f"1y: time with {large.size:,} servers / time with {small.size}",
                comparison.compare_sizes(large, small, rounds=50),
                *("%.2f×", "≤", 1.6, 1.3),
            ),
            Figure(
                f"1y, {WIDE_POLLS:,} observations a server, up to {WIDE_PLAYERS:,} players: ms",
                1_000 * comparison.time_wide(wide, rounds=9),
                *("%.0f", "≤", 100, 20),
            ),
            Figure(
                "`srvstat compare` as a process, 1y: time / time to import typer and pydantic",
                processes.time_compare(files, rounds=15),
                *("%.2f×", "≤", 1.3, 1.1),
            ),
        ],
        "Analyze": [
            Figure("stats, 1y: × DuckDB", asked["stats"], "%.1f×", "≥", 4, 12),
            Figure("growth by day, 1y: × DuckDB", asked["growth"], "%.1f×", "≥", 2.5, 6),
            Figure("peak-hours, 1y: × DuckDB", asked["peak-hours"], "%.1f×", "≥", 1.5, 4),
            Figure("history by hour, 1y: × DuckDB", asked["history"], "%.1f×", "≥", 1.5, 4),
            Figure(
                f"top of {large.size:,} servers, 1y: × DuckDB", asked["top"], "%.1f×", "≥", 6, 15
            ),
            Figure(
                f"total of {files.size} servers by hour, 30 days: × DuckDB",
                *(asked["total"], "%.1f×", "≥", 1.5),
            ),
            Figure(f"events of {large.size:,} servers, 90 days: s", *(events, "%.1f", "≤", 3)),
            Figure(f"today of {large.size:,} servers: s", today, "%.2f", "≤", 0.5),
            Figure(f"integrity of {servers} servers, 90 days: s", *(seconds, "%.1f", "≤", 4, 1)),
        ],
        "Build, verify and update": [
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
            Figure(
                f"build of {processes.MILLIONS_OF_REPEATS} million repeats of a row: peak MiB",
                *(processes.measure_repeats(small), "%.0f", "≤", 300, 200),
            ),
            Figure(
                "verify: speed / speed of a loop that only hashes each row",
                loads.verify,
                "%.2f×",
                "≥",
                0.6,
                0.9,
            ),
            Figure(
                f"update of {large.observation_count / 1e6:.0f} million observations with one day:"
                " time / time of a build",
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
        ],
        "Serve": [
            Figure(
                "uncached, 1y: requests per second / those of a minimal app",
                rates[service.UNCACHED] / hello,
                *("%.3f×", "≥", 0.06),
            ),
            Figure(
                "cached, 1y: requests per second / those of a minimal app",
                rates[service.CACHED] / hello,
                *("%.3f×", "≥", 0.3),
            ),
        ],
    }


def _format_section(name: str, figures: list[Figure]) -> str:
    rows = "\n".join(figure.format_row() for figure in figures)
    return (
        f"### {name}\n\nmeasurement | result | required | target\n--- | --: | --: | --:\n{rows}\n"
    )


def _format_page(tables: str, files: FleetFiles, large: FleetFiles, seconds: float) -> str:
    setups = comparison.SETUPS | processes.SETUPS | service.SETUPS | analyzer.SETUPS
    given = "\n".join(f"- **{name}**: {setup}" for name, setup in setups.items())
    minutes = seconds / 60
    python = f"Python {platform.python_version()} with SQLite {sqlite3.sqlite_version}"
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"""# Benchmarks

Most measurements compare srvstat with another tool that computes the same result from the same
data. *× DuckDB* says how many times faster srvstat is than DuckDB. `make bench` fails if a result
misses its *required* value, shown in **bold**. The *target* is a goal for later releases. Both are
for fleets of {FULL} and {FULL * GROWTH:,} servers.

## Results

{tables}
## Setup

{given}

## Method

`make bench` writes this page. It needs 8 GB of disk space and, if it must generate the data first,
about half an hour. `make bench SIZE={SMALL}` takes a few minutes. This run took {minutes:.0f}
minutes on fleets of {files.size} servers ({files.observation_count:,} observations) and
{large.size:,} servers ({large.observation_count:,} observations).

- **Data**: The data is generated and the same on every machine. It has 5-minute polls for 370 days,
  with waves, gaps, restarts, and peaks of 30 to 2,000 players.
- **Correctness**: Before we measure, we compare each result with one from plain Python or DuckDB.
- **Rounds**: In each round, all tools get the same random requests. The results are medians over
  the rounds. The files are already in the operating system's page cache.
- **Memory**: Memory includes child processes.

## Machine

{os.cpu_count()} cores, {platform.system()}, {python}, {versions}
"""


if __name__ == "__main__":
    sys.exit(main())
