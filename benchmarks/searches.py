"""Measure the cost of finding when an answer was true, relative to comparing at every instant."""

import operator
import random
import time
from contextlib import closing
from itertools import repeat
from statistics import median
from typing import NamedTuple

from benchmarks.data import FleetFiles
from benchmarks.measure import print_progress
from benchmarks.questions import Request, WrongAnswerError, draw_requests
from srvstat import operations
from srvstat.contract.ranges import DAY_MS, DAYS, Range, Window
from srvstat.contract.requests import CompareRequest
from srvstat.contract.responses import ServerResult
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile, open_file
from srvstat.support.search import Instants, find_true_intervals, intersect

_WITHIN = 2 * DAY_MS
_COMPARISONS = 200


class SearchCost(NamedTuple):
    """The time of a search divided by that of a comparison at each of its instants, by range."""

    month: float
    year: float


def measure_searches(files: FleetFiles, *, rounds: int) -> SearchCost:
    """Search two days for answers about five servers that were true one day before the end.

    The comparisons at random instants of the search have their servers cached.

    Raises WrongAnswerError if a search and these comparisons disagree.
    """
    print_progress("timing searches")
    with closing(open_file(files.snapshot)) as snapshot:
        return SearchCost(
            _measure_range(snapshot, files, "30d", rounds),
            _measure_range(snapshot, files, "1y", rounds),
        )


def _measure_range(snapshot: SnapshotFile, files: FleetFiles, range: Range, rounds: int) -> float:
    """Return the median ratio of searches for answers over one range."""
    ratios = []
    for request in draw_requests("search", files, range, rounds):
        servers = operations.resolve_servers(snapshot, request.references)
        instants = sum(_count_instants(snapshot, server, request) for server in servers)
        recorded = _compare(snapshot, request, request.window.end - DAY_MS)
        started = time.perf_counter()
        found = _search(snapshot, servers, request, recorded)
        searched = (time.perf_counter() - started) / instants
        ratios.append(searched / _time_comparisons(snapshot, request, recorded, found))
    return median(ratios)


def _count_instants(snapshot: SnapshotFile, server: ServerRow, request: Request) -> int:
    """Return the number of observations that enter or leave a server's window in a search."""
    end = request.window.end
    ends = (end, end - DAYS[request.range] * DAY_MS)
    return sum(len(snapshot.read_observations(server, Window(at - _WITHIN, at))[0]) for at in ends)


def _compare(snapshot: SnapshotFile, request: Request, at: int) -> tuple[ServerResult, ...]:
    asked = CompareRequest(servers=request.references, range=request.range)
    return operations.compare(snapshot, asked, at=at).data


def _search(
    snapshot: SnapshotFile,
    servers: list[ServerRow],
    request: Request,
    recorded: tuple[ServerResult, ...],
) -> list[Instants]:
    end = request.window.end
    return intersect(
        [
            find_true_intervals(
                snapshot,
                server,
                result.model_dump(),
                request.range,
                end - _WITHIN,
                end,
                operator.eq,
            )
            for server, result in zip(servers, recorded, strict=True)
        ]
    )


def _time_comparisons(
    snapshot: SnapshotFile,
    request: Request,
    recorded: tuple[ServerResult, ...],
    found: list[Instants],
) -> float:
    """Return the median seconds of a comparison, and check the intervals against each."""
    end, seconds = request.window.end, []
    source = random.Random(f"search {request.range}")
    instants = [
        end - DAY_MS,
        *(source.randint(end - _WITHIN, end) for _ in repeat(None, _COMPARISONS)),
    ]
    for at in instants:
        started = time.perf_counter()
        results = _compare(snapshot, request, at)
        seconds.append(time.perf_counter() - started)
        if (results == recorded) != any(first <= at <= last for first, last in found):
            raise WrongAnswerError(f"search, {request.range}, {at}: not what compare answers")
    return median(seconds)
