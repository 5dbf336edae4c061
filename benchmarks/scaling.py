"""Measure how the time of `srvstat fleet` grows, with Spark and with DuckDB: docs/fleet.json.

`python -m benchmarks.scaling [CASE…]`, such as `1000x3000000`, measures all cases or some, and
keeps the stored runs of the others. The full run takes up to three hours. Spark runs as two
executor processes with one core and 2 GiB each. All results must be equal, and for fleets of up to
SNAPSHOT_ROWS those of `srvstat compare`, too.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pyarrow import parquet

from benchmarks.daily_files import FOLDER, SERVERS_FILE, create_fleet
from benchmarks.measure import FailedError, find_program, print_progress, run
from benchmarks.questions import WrongAnswerError
from benchmarks.report import describe_machine
from benchmarks.scaling_picture import draw
from benchmarks.spark_events import log_events, read_totals

_HERE = os.path.dirname(os.path.abspath(__file__))
_DOCS = os.path.join(os.path.dirname(_HERE), "docs")

MASTER = "local-cluster[2,1,2048]"
RANGE = "1y"
SNAPSHOT_ROWS = 30_000_000
_MOST_SERVERS = 5
"""In one request; the numbers of servers are multiples of it."""

_RESULT = re.compile(rb'\{"serverId".*?"sampleCount":[0-9]+\}')
_DIGITS = 4
_PACKAGES = ("srvstat", "duckdb", "pyarrow", "pyspark")


class Case(NamedTuple):
    """A fleet of about so many rows; its first server has `skew` times as many as the others."""

    servers: int
    rows: int
    skew: int = 1

    @property
    def name(self) -> str:
        """The name of the case on the command line and in the results."""
        return f"{self.servers}x{self.rows}" + (f"x{self.skew}" if self.skew > 1 else "")


CASES = (
    *(Case(1_000, rows) for rows in (1_000_000, 3_000_000, 10_000_000, 30_000_000, 105_000_000)),
    *(Case(servers, 3_000_000) for servers in (10, 100, 10_000, 30_000)),
    Case(1_000, 3_000_000, 1_000),
)


def main() -> None:
    """Measure cases, and store each one when it is complete."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"[all of {', '.join(names)}]")
    parser.add_argument("--data", metavar="DIR", default=os.path.join(_HERE, "data"))
    parser.add_argument("--docs", metavar="DIR", default=_DOCS)
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    os.makedirs(arguments.data, exist_ok=True)
    for case in CASES:
        if not arguments.cases or case.name in arguments.cases:
            try:
                measured = measure_case(case, arguments.data)
            except (FailedError, WrongAnswerError) as error:
                print_progress(f"error: {case.name}: {error}")
                sys.exit(1)
            _store(arguments.docs, case, measured)


def measure_case(case: Case, data: str) -> dict[str, Any]:
    """Compute the results of a fleet with each engine, and compare them.

    Raises FailedError, WrongAnswerError.
    """
    fleet = create_fleet(data, *case)
    with tempfile.TemporaryDirectory(dir=data) as folder:
        paths = {name: os.path.join(folder, f"{name}.ndjson") for name in ("spark", "duckdb")}
        print_progress(f"{case.name}: DuckDB")
        duckdb = run(_build_line(fleet, paths["duckdb"], ["--memory", "4GiB", "--threads", "2"]))
        print_progress(f"{case.name}: Spark")
        events = os.path.join(folder, "events")
        with log_events(events):
            options = ["--engine", "spark", "--master", MASTER]
            spark = run(_build_line(fleet, paths["spark"], options))
        _check_equal(paths["spark"], _read_lines(paths["duckdb"]))
        if case.rows <= SNAPSHOT_ROWS:
            print_progress(f"{case.name}: a snapshot")
            _check_equal(paths["spark"], _compare_all(fleet, paths["spark"], folder))
        measured: dict[str, Any] = {
            "servers": case.servers,
            "skew": case.skew,
            **_measure_files(fleet),
            "duckdb": {"seconds": duckdb.seconds, "mib": duckdb.peak_mib},
            "spark": {"seconds": spark.seconds, "mib": spark.peak_mib}
            | read_totals(events)._asdict(),
        }
    return _round_all(measured)


def _build_line(fleet: str, output: str, options: Sequence[str]) -> list[str]:
    sources = [os.path.join(fleet, FOLDER), "--servers", os.path.join(fleet, SERVERS_FILE)]
    command = [find_program("srvstat"), "fleet", "--range", RANGE, *sources, "--quiet"]
    return [*command, *options, "-o", output]


def _measure_files(fleet: str) -> dict[str, int]:
    folder = os.path.join(fleet, FOLDER)
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    return {
        "rows": sum(parquet.read_metadata(path).num_rows for path in paths),
        "files": len(paths),
        "bytes": sum(map(os.path.getsize, paths)),
    }


def _read_lines(path: str) -> list[bytes]:
    with open(path, "rb") as file:
        return file.read().splitlines()


def _compare_all(fleet: str, results: str, folder: str) -> Iterator[bytes]:
    """Yield the results of all servers, in their order, from the answers of `srvstat compare`."""
    snapshot, requests = (os.path.join(folder, name) for name in ("snapshot.db", "requests"))
    sources = ["--servers", os.path.join(fleet, SERVERS_FILE), "--quiet", "--observations"]
    build = [find_program("srvstat"), "snapshot", "build", snapshot, *sources]
    run([*build, os.path.join(fleet, FOLDER)])
    ids = [json.loads(line)["serverId"] for line in _read_lines(results)]
    sets = [ids[first : first + _MOST_SERVERS] for first in range(0, len(ids), _MOST_SERVERS)]
    with open(requests, "w", encoding="utf-8") as file:
        for names in sets:
            servers = [{"identifier": name, "by": "id"} for name in names]
            file.write(json.dumps({"servers": servers, "range": RANGE}) + "\n")
    compare = [find_program("srvstat"), "compare", "--batch", requests, "--snapshot", snapshot]
    for names, answer in zip(sets, run(compare).output.splitlines(), strict=True):
        yield from _RESULT.findall(answer)[-len(names) :]


def _check_equal(path: str, expected: Sequence[bytes] | Iterator[bytes]) -> None:
    """Compare results with the expected ones.

    Raises WrongAnswerError.
    """
    for one, other in zip(_read_lines(path), expected, strict=True):
        if one != other:
            raise WrongAnswerError(f"{one!r} instead of {other!r}")


def _store(directory: str, case: Case, measured: dict[str, Any]) -> None:
    """Add a run to the stored ones, and draw all of them."""
    path = os.path.join(directory, "fleet.json")
    runs: dict[str, Any] = {}
    with suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        runs = json.load(file)["runs"]
    runs[case.name] = measured
    ordered = {one.name: runs[one.name] for one in CASES if one.name in runs}
    kept = {"machine": describe_machine(_PACKAGES), "runs": ordered}
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(kept, indent=1) + "\n")
    draw(os.path.join(directory, "fleet.svg"), list(ordered.values()))


def _round_all(values: dict[str, Any]) -> dict[str, Any]:
    """Round floats to a few digits."""
    return {
        name: _round_all(value)
        if isinstance(value, dict)
        else float(f"{value:.{_DIGITS}g}")
        if isinstance(value, float)
        else value
        for name, value in values.items()
    }


if __name__ == "__main__":
    main()
