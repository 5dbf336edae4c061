"""Run the whole benchmark: `python -m benchmarks --size 200`.

With `--only service` that part alone is measured, and no report is written.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks import batch, builds, engines, hypixel, report, rounds, service, trust, wide
from benchmarks.builds import Order
from benchmarks.commands import commands
from benchmarks.data import FleetFiles
from benchmarks.engines import Engine
from benchmarks.figures import FIGURES, SERVICE_FIGURES, Finding, find
from benchmarks.measure import FailedError, tell
from benchmarks.questions import UnequalError
from benchmarks.results import FULL, LARGE, SMALL, SNAPSHOT, Results

_HERE = os.path.dirname(os.path.abspath(__file__))
_REPOSITORY = os.path.dirname(_HERE)
_DOCS = os.path.join(_REPOSITORY, "docs")

_BUILT: tuple[tuple[int, Order], ...] = (
    (SMALL, "recorded"),
    (FULL, "shuffled"),
    # Through a pipe, because the file would have almost 3 GB.
    (LARGE, "piped"),
)
"""How the snapshot of each fleet is built."""


def main() -> int:
    """Measure, write the report, and return 1 where a figure is not what it must be."""
    arguments = _arguments()
    try:
        found = (
            _service_alone(arguments.size, arguments.data)
            if arguments.only
            else _whole(arguments.size, arguments.data)
        )
    except (UnequalError, FailedError) as error:
        tell(f"error: {error}")
        return 1
    sys.stdout.write(report.table(found))
    missed = [finding.what for finding in found if finding.is_missed]
    for what in missed:
        tell(f"missed: {what}")
    return 1 if missed else 0


def _whole(size: int, data: str) -> list[Finding]:
    """Measure everything, and write the report.

    Raises UnequalError, FailedError.
    """
    started = time.monotonic()
    results = _measured(size, data)
    found = [find(figure, results) for figure in FIGURES]
    found += [find(figure, results.service) for figure in SERVICE_FIGURES]
    # The repository's own report is that of the full size.
    output = _DOCS if size == FULL else data
    for path in report.write(output, results, found, time.monotonic() - started):
        tell(f"wrote {os.path.relpath(path)}")
    return found


def _service_alone(size: int, data: str) -> list[Finding]:
    """Measure the service.

    Raises UnequalError, FailedError.
    """
    files = FleetFiles(data, size)
    (order,) = (order for built, order in _BUILT if built == size)
    builds.build_snapshot(files, order)
    rates = _service_rates(files, quick=size == SMALL)
    for name, rate in rates.items():
        tell(f"{rate:>9,.0f}  {name}")
    return [find(figure, rates) for figure in SERVICE_FIGURES]


def _service_rates(files: FleetFiles, *, quick: bool) -> service.Rates:
    return service.rates(files, rounds=3 if quick else 5, seconds=1 if quick else 3)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", type=int, choices=(SMALL, FULL), default=FULL)
    parser.add_argument("--only", choices=("service",), help="the part to measure")
    parser.add_argument("--data", metavar="DIR", default=os.path.join(_HERE, "data"))
    return parser.parse_args()


def _measured(size: int, data: str) -> Results:
    """Build, compare every answer with the right one, and only then time.

    Raises UnequalError, FailedError.
    """
    quick = size == SMALL
    fleets = {one: FleetFiles(data, one) for one in ((SMALL,) if quick else (SMALL, FULL, LARGE))}
    files = fleets[size]
    built = [builds.build_snapshot(fleets[one], order) for one, order in _BUILT if one in fleets]
    every_command = commands(files)
    with _opened(fleets, size) as every_engine:
        tell("comparing answers")
        rounds.check_engines(every_engine)
        rounds.check_commands(every_command, files)
        loads = builds.timed(fleets[SMALL], quick=quick)
        processes = rounds.time_commands(every_command, files, rounds=3 if quick else 11)
        batched = batch.time_batch(files, rounds=1 if quick else 3)
        rates = _service_rates(files, quick=quick)
        digests = trust.cost_of_digests(files)
        verified = trust.time_verify(files)
        latencies = rounds.time_engines(
            every_engine, rounds=3 if quick else 5, seconds=0.15 if quick else 2
        )
    return Results(
        size=size,
        observations=files.observation_count,
        file_bytes={
            SNAPSHOT: os.path.getsize(files.snapshot),
            "DuckDB's native file": os.path.getsize(files.duckdb()),
            "Parquet": os.path.getsize(files.parquet()),
        },
        latencies=latencies,
        processes=processes,
        loads=loads + [build for build in built if build.servers != SMALL],
        batch=batched,
        digests=digests,
        verified=verified,
        hypixel=hypixel.bytes_an_observation(_REPOSITORY, data),
        service=rates,
        wide=wide.time_wide_servers(data),
    )


@contextmanager
def _opened(fleets: dict[int, FleetFiles], size: int) -> Iterator[list[Engine]]:
    """Open every engine on the fleet of one size, and srvstat alone on the others."""
    with ExitStack() as stack:
        found = stack.enter_context(engines.opened(fleets[size]))
        for other in fleets.values():
            if other.size != size:
                found += stack.enter_context(engines.srvstat(other))
        yield found


if __name__ == "__main__":
    sys.exit(main())
