"""Write what a run has measured: docs/benchmarks.md, and the figures for a terminal."""

import os
import platform
import shutil
import sqlite3
import subprocess
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from benchmarks import builds, commands, engines, fleet, picture, service
from benchmarks.builds import Build
from benchmarks.figures import Finding
from benchmarks.questions import RANGES
from benchmarks.results import FULL, SMALL, Results

_PAGE = "benchmarks.md"
_PICTURE = "benchmarks.svg"

_PACKAGES = (
    "srvstat",
    "pydantic",
    "typer",
    "duckdb",
    "duckdb-cli",
    "polars",
    "pandas",
    "numpy",
    "sqlite-utils",
    "datasette",
    "starlette",
    "uvicorn",
    "h11",
)

_TEMPLATE = """# Benchmarks

srvstat beside other tools that can answer the same question: the statistics of five servers over
one range. `make bench` writes this page and the picture; nothing in it is written by hand.

```
make bench            # {full} servers: up to 40 minutes, 10 GB of disk and 4 GB of memory
make bench SIZE={small}    # {small} servers: about three minutes; its page goes to benchmarks/data
```

This run: {size:,} servers, {observations:,} observations, {minutes:.1f} minutes.

## What must hold

{figures}

A figure that misses what it must be makes `make bench` end with an error. DuckDB is taken in
whichever of its two forms is faster for the range.

## In process, milliseconds

The median of up to 200 calls, fewer where one takes long, and in brackets how many times as long as
srvstat from request to bytes. A peer runs only its query.

{engines}

![Latency against range]({picture})

## Whole processes, milliseconds

From the start of the process to its end, with its output read; files are in the page cache and
modules are compiled. The last column is the most memory it held over 1y, about 11 MiB of which
belong to whatever starts it.

{commands}

## The service, requests a second

One server process on one core, the client on another one; {connections} connections, each of which
asks again once it is answered. In brackets: over the bare application.

{service}

## Loading

{builds}

On disk, in bytes an observation: {files}.

## What each was given

{given}

## How it is measured

- **The data** is generated (`benchmarks/fleet.py`): servers polled every 5 minutes for {days} days,
  each poll some seconds late, with daily and weekly waves, growth or decline, 0.3 to 1.5 % of the
  observations missing, gaps of 2 hours to 3 days, and restarts, which fall to 0. It is the same to
  the byte on every machine. Peaks lie between 30 and 2,000 players.
- **Equal answers first.** Before anything is timed, each engine answers 10 random requests a
  range, each command one. Number, mean, median, peak, lowest and growth of each server must equal
  what plain Python computes from the generated data; floats are compared with `==`.
- **Warm.** Files are read once before each round, so that none waits for the disk.
- **Alternated.** A round goes over the ranges and, for each, over all engines, beginning with
  another one each time. All get the same random requests. Figures are medians of all rounds.
- **The service's answers** are compared, every one, while it is timed: with what the same request
  is answered with in process. Those of Datasette say the same as ours before they are timed.
- **No peer has rollups of its own**, as srvstat's `days` are; each computes from the rows of the
  window.
- **Processes** are started without the benchmark's own Python variables and run once before they
  are timed.

## The machine

{machine}
"""


def write(directory: str, results: Results, found: Sequence[Finding], seconds: float) -> list[str]:
    """Write the page and the picture into a directory and return their paths."""
    page, drawing = (os.path.join(directory, name) for name in (_PAGE, _PICTURE))
    with open(page, "w", encoding="utf-8") as file:
        file.write(_page(results, found, seconds))
    picture.draw(drawing, results)
    return [page, drawing]


def table(found: Sequence[Finding]) -> str:
    """Return the figures as aligned lines."""
    rows = [_FIGURE_HEAD, *_figure_rows(found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        f"{what:<{widths[0]}}  {measured:>{widths[1]}}  {must:>{widths[2]}}  {aim:>{widths[3]}}"
        f"  {verdict}".rstrip()
        + "\n"
        for what, measured, must, aim, verdict in rows
    )


def _page(results: Results, found: Sequence[Finding], seconds: float) -> str:
    return _TEMPLATE.format(
        full=FULL,
        small=SMALL,
        size=results.size,
        observations=results.observations,
        minutes=seconds / 60,
        figures=_markdown(_FIGURE_HEAD, _figure_rows(found)),
        engines=_engine_table(results),
        picture=_PICTURE,
        commands=_command_table(results),
        connections=service.CONNECTIONS,
        service=_service_table(results.service),
        builds=_build_table(results.loads),
        files=", ".join(
            f"{name} {size / results.observations:.1f}" for name, size in results.file_bytes.items()
        ),
        given="\n".join(
            f"- **{name}**: {given}"
            for part in (engines.GIVEN, commands.GIVEN, service.GIVEN, builds.GIVEN)
            for name, given in part.items()
        ),
        days=fleet.DAYS,
        machine="\n".join(f"- {line}" for line in _machine()),
    )


_FIGURE_HEAD = ("", "measured", "must be", "aim", "")


def _figure_rows(found: Sequence[Finding]) -> list[tuple[str, str, str, str, str]]:
    return [(one.what, one.measured, one.must, one.aim, one.verdict) for one in found]


def _engine_table(results: Results) -> str:
    ours = results.latencies[engines.SRVSTAT, results.size]
    rows = [
        (
            name if size == results.size else f"srvstat on {size:,} servers",
            *(_cell(latencies[range], ours[range]) for range in RANGES),
        )
        for (name, size), latencies in results.latencies.items()
        if size == results.size or name == engines.SRVSTAT
    ]
    return _markdown(("", *RANGES), rows)


def _command_table(results: Results) -> str:
    ours = results.processes[commands.SRVSTAT]
    rows = [
        (
            name,
            *(_cell(timed[range].seconds, ours[range].seconds) for range in RANGES),
            f"{timed['1y'].peak_mib:.0f}",
        )
        for name, timed in results.processes.items()
    ]
    return _markdown(("", *RANGES, "MiB"), rows)


def _cell(seconds: float, ours: float) -> str:
    """Return milliseconds, and how many times ours that is, each with what digits it has."""
    if seconds == ours:
        return f"{_short(seconds * 1_000)}"
    return f"{_short(seconds * 1_000)} ({_short(seconds / ours)}×)"


def _short(value: float) -> str:
    """Return a number with about three digits."""
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"  # noqa: PLR2004 - digits


def _service_table(rates: service.Rates) -> str:
    hello = rates[service.HELLO]
    rows = [
        (name, f"{rate:,.0f}" + (f" ({rate / hello:.3f}×)" if name != service.HELLO else ""))
        for name, rate in rates.items()
    ]
    return _markdown(("", "requests a second"), rows)


def _build_table(found: Sequence[Build]) -> str:
    rows = [
        (
            build.name,
            f"{build.rows:,}",
            build.order,
            f"{build.seconds:,.1f}",
            f"{build.rate:,.0f}",
            f"{build.peak_mib:,.0f}",
            f"{build.file_bytes / build.rows:.1f}",
            str(build.runs),
        )
        for build in found
    ]
    head = ("", "rows", "order", "seconds", "rows a second", "MiB", "bytes a row", "runs")
    return _markdown(head, rows)


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose columns, but for the first, are aligned to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _machine() -> list[str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    found = [
        f"{os.cpu_count()} cores, {_processor()}, {memory:.0f} GiB of memory, {platform.system()}",
        f"Python {platform.python_version()} with SQLite {sqlite3.sqlite_version}",
        ", ".join(f"{package} {version(package)}" for package in _PACKAGES),
    ]
    if cli := shutil.which("sqlite3"):
        printed = subprocess.run([cli, "--version"], capture_output=True, text=True, check=True)
        found.append(f"sqlite3's CLI {printed.stdout.split()[0]}")
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
