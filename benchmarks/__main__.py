"""Run the whole benchmark: `python -m benchmarks --size 200`.

`--only service` and `--only fleet` measure only a part and write no report.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from operator import attrgetter

from benchmarks import (
    analyzer,
    batch,
    browser,
    builds,
    diffs,
    digests,
    engines,
    fleet_runs,
    hypixel,
    report,
    reports,
    rounds,
    searches,
    service,
    updates,
    wide,
)
from benchmarks.builds import Order
from benchmarks.commands import list_commands
from benchmarks.data import FleetFiles
from benchmarks.engines import Engine
from benchmarks.figures import FIGURES, FLEET_FIGURES, SERVICE_FIGURES, Finding, evaluate
from benchmarks.measure import FailedError, print_progress
from benchmarks.questions import WrongAnswerError
from benchmarks.results import FULL, LARGE, SMALL, SNAPSHOT, Results

_HERE = os.path.dirname(os.path.abspath(__file__))
_REPOSITORY = os.path.dirname(_HERE)
_DOCS = os.path.join(_REPOSITORY, "docs")

_BUILT: tuple[tuple[int, Order], ...] = (
    (SMALL, "recorded"),
    (FULL, "shuffled"),
    # Through a pipe, because the file would be almost 3 GB.
    (LARGE, "piped"),
)
"""The order of the observations in the build of each fleet."""


def main() -> int:
    """Measure and write the report; return 1 if a requirement is missed."""
    arguments = _parse_arguments()
    try:
        found = _PARTS[arguments.only](arguments.size, arguments.data)
    except (WrongAnswerError, FailedError) as error:
        print_progress(f"error: {error}")
        return 1
    sys.stdout.write(report.format_table(found))
    missed = [finding.name for finding in found if finding.is_missed]
    for name in missed:
        print_progress(f"missed: {name}")
    return 1 if missed else 0


def _run_all(size: int, data: str) -> list[Finding]:
    """Measure everything and write the report.

    Raises WrongAnswerError, FailedError.
    """
    started = time.monotonic()
    results = _measure(size, data)
    found = [evaluate(figure, results) for figure in FIGURES]
    found += [evaluate(figure, results.service) for figure in SERVICE_FIGURES]
    found += [evaluate(figure, results.fleet) for figure in FLEET_FIGURES]
    # Only a run of the full size writes the report in docs.
    output = _DOCS if size == FULL else data
    for path in report.write_report(output, results, found, time.monotonic() - started):
        print_progress(f"wrote {os.path.relpath(path)}")
    return found


def _run_service_part(size: int, data: str) -> list[Finding]:
    """Measure only the service.

    Raises WrongAnswerError, FailedError.
    """
    files = FleetFiles(data, size)
    (order,) = (order for built, order in _BUILT if built == size)
    builds.build_snapshot(files, order)
    rates = _measure_service(files, quick=size == SMALL)
    for name, rate in rates.items():
        print_progress(f"{rate:>9,.0f}  {name}")
    return [evaluate(figure, rates) for figure in SERVICE_FIGURES]


def _run_fleet_part(size: int, data: str) -> list[Finding]:
    """Measure only the results of a whole fleet.

    Raises WrongAnswerError, FailedError.
    """
    os.makedirs(data, exist_ok=True)
    cost = fleet_runs.measure_fleet(data, quick=size == SMALL)
    sys.stdout.write(f"{report.format_fleet(cost)}\n\n")
    return [evaluate(figure, cost) for figure in FLEET_FIGURES]


_PARTS: Mapping[str | None, Callable[[int, str], list[Finding]]] = {
    None: _run_all,
    "service": _run_service_part,
    "fleet": _run_fleet_part,
}


def _measure_service(files: FleetFiles, *, quick: bool) -> service.Rates:
    return service.measure_rates(files, rounds=3 if quick else 5, seconds=1 if quick else 3)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--size", type=int, choices=(SMALL, FULL), default=FULL, help="number of servers [200]"
    )
    parser.add_argument("--only", choices=tuple(filter(None, _PARTS)), help="part to measure [all]")
    parser.add_argument(
        "--data",
        metavar="DIR",
        default=os.path.join(_HERE, "data"),
        help="directory of the generated files [benchmarks/data]",
    )
    return parser.parse_args()


def _measure(size: int, data: str) -> Results:
    """Build, check the answers of every tool, then time.

    Raises WrongAnswerError, FailedError.
    """
    quick = size == SMALL
    fleets = {one: FleetFiles(data, one) for one in ((SMALL,) if quick else (SMALL, FULL, LARGE))}
    files = fleets[size]
    built = [builds.build_snapshot(fleets[one], order) for one, order in _BUILT if one in fleets]
    every_command = list_commands(files)
    with _open_engines(fleets, size) as every_engine:
        print_progress("comparing answers")
        rounds.check_engines(every_engine)
        rounds.check_commands(every_command, files)
        loads = builds.time_builds(fleets[SMALL], quick=quick)
        processes = rounds.time_commands(every_command, files, rounds=7 if quick else 11)
        batched = batch.time_batch(files, rounds=1 if quick else 3)
        rates = _measure_service(files, quick=quick)
        digest_cost = digests.measure_digests(files)
        verified = digests.time_verify(files)
        searched = searches.measure_searches(files, rounds=5 if quick else 9)
        analyzed = analyzer.measure_analyzer(
            files, max(fleets.values(), key=attrgetter("size")), rounds=5 if quick else 9
        )
        reported = reports.measure_report(files, rounds=3 if quick else 5)
        latencies = rounds.time_engines(every_engine, rounds=9, seconds=0.4 if quick else 2)
    return Results(
        size=size,
        observations=files.observation_count,
        file_bytes=_measure_sizes(files),
        latencies=latencies,
        processes=processes,
        update=updates.time_update(max(fleets.values(), key=attrgetter("size"))),
        loads=loads + [build for build in built if build.servers != SMALL],
        batch=batched,
        digests=digest_cost,
        verified=verified,
        searches=searched,
        hypixel=hypixel.measure_bytes_per_observation(_REPOSITORY, data),
        service=rates,
        wide=wide.time_wide_servers(data),
        diff=diffs.time_diff(data, quick=quick),
        analyzer=analyzed,
        page=browser.measure_page(files, data),
        reports=reported,
        fleet=fleet_runs.measure_fleet(data, quick=quick),
    )


def _measure_sizes(files: FleetFiles) -> dict[str, int]:
    return {
        SNAPSHOT: os.path.getsize(files.snapshot),
        "DuckDB's native file": os.path.getsize(files.duckdb_path()),
        "Parquet": os.path.getsize(files.parquet_path()),
    }


@contextmanager
def _open_engines(fleets: dict[int, FleetFiles], size: int) -> Iterator[list[Engine]]:
    """Open every engine on the fleet of one size, and only srvstat on the others."""
    with ExitStack() as stack:
        found = stack.enter_context(engines.open_engines(fleets[size]))
        for other in fleets.values():
            if other.size != size:
                found += stack.enter_context(engines.open_srvstat(other))
        yield found


if __name__ == "__main__":
    sys.exit(main())
