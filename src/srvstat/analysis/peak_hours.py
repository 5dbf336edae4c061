"""Compute how many players servers have in each hour of the week: the document `peakHours`."""

from collections.abc import Sequence
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np

from srvstat.analysis.local_time import WEEK_HOURS, find_hours_of_week
from srvstat.analysis.statistics import build_window_part
from srvstat.contract.arrays import sort_groups, sum_groups
from srvstat.contract.stats import find_middle_ranks
from srvstat.contract.time import Window
from srvstat.documents.analysis import HourCellPart, HourPart, PeakHours, ServerPeakHours
from srvstat.snapshot.blocks import Observations
from srvstat.snapshot.read.observations import read_observations
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import ServerRow

MIN_OBSERVATIONS = 4
"""The observations from which an hour of the week has figures."""


def compute_peak_hours(
    snapshot: Snapshot, servers: Sequence[ServerRow], window: Window, zone: ZoneInfo
) -> PeakHours:
    """Return the players of servers in each hour of the week, in their order.

    Raises SnapshotError.
    """
    return PeakHours(
        as_of=snapshot.as_of,
        root=snapshot.root,
        time_zone=zone.key,
        window=build_window_part(window),
        servers=tuple(
            _describe_server(server, read_observations(snapshot, server, window), zone)
            for server in servers
        ),
    )


def _describe_server(
    server: ServerRow, observations: Observations, zone: ZoneInfo
) -> ServerPeakHours:
    hours = find_hours_of_week(observations.instants, zone)
    ranked = sort_groups(hours, observations.players)
    counts = np.bincount(hours, minlength=WEEK_HOURS)
    starts = counts.cumsum() - counts
    sums = sum_groups(ranked, np.append(starts, len(ranked)))
    columns = counts.tolist(), starts.tolist(), sums.tolist()
    cells: list[HourCellPart] = []
    averages: dict[int, Fraction] = {}
    for number, (count, start, total) in enumerate(zip(*columns, strict=True)):
        mean = median = None
        if count >= MIN_OBSERVATIONS:
            averages[number] = Fraction(total, count)
            lower, upper = (ranked.item(start + rank) for rank in find_middle_ranks(count))
            mean, median = total / count, (lower + upper) / 2
        cells.append(HourCellPart(number // 24 + 1, number % 24, count, mean, median))
    return ServerPeakHours(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_count=len(ranked),
        # Of equal averages, both take the first.
        busiest=_build_hour(max(averages, key=averages.__getitem__, default=None)),
        quietest=_build_hour(min(averages, key=averages.__getitem__, default=None)),
        cells=tuple(cells),
    )


def _build_hour(number: int | None) -> HourPart | None:
    return None if number is None else HourPart(number // 24 + 1, number % 24)
