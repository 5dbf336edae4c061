"""Compute how many players servers have in each hour of the week: the document `peakHours`."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from srvstat.analysis.local_time import WEEK_HOURS, LocalHours, list_local_hours
from srvstat.analysis.selection import iter_batches
from srvstat.analysis.statistics import build_window_part
from srvstat.contract.ranges import DAY_MS, Window
from srvstat.documents.peak_hours import HourCell, HourPart, PeakHours, ServerPeakHours
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.stats import find_middle_ranks

MIN_OBSERVATIONS = 4
"""The observations from which an hour of the week has figures."""

_PERIOD = 364 * DAY_MS
"""Hours are listed for periods of this length; those without observations are left out."""

_FindHours = Callable[[int], LocalHours]


def compute_peak_hours(
    snapshot: SnapshotFile, servers: Sequence[ServerRow], window: Window, zone: ZoneInfo
) -> PeakHours:
    """Return the players of servers in each hour of the week, in their order.

    Raises SnapshotError.
    """

    @lru_cache(maxsize=100)
    def find_hours(period: int) -> LocalHours:
        start = period * _PERIOD
        return list_local_hours(Window(start - 1, start + _PERIOD - 1), zone)

    return PeakHours(
        as_of=snapshot.as_of,
        root=snapshot.root,
        time_zone=zone.key,
        window=build_window_part(window),
        servers=tuple(
            _describe_server(snapshot, server, window, find_hours)
            for batch in iter_batches(snapshot, servers)
            for server in batch
        ),
    )


def _describe_server(
    snapshot: SnapshotFile, server: ServerRow, window: Window, find_hours: _FindHours
) -> ServerPeakHours:
    instants, players = snapshot.read_observations(server, window)
    observed = _divide(instants, players, find_hours)
    averages = {
        number: Fraction(sum(values), len(values))
        for number, values in enumerate(observed)
        if len(values) >= MIN_OBSERVATIONS
    }
    return ServerPeakHours(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_count=len(players),
        # Of equal averages, both take the first.
        busiest=_build_hour(max(averages, key=averages.__getitem__, default=None)),
        quietest=_build_hour(min(averages, key=averages.__getitem__, default=None)),
        cells=tuple(_build_cell(number, values) for number, values in enumerate(observed)),
    )


def _divide(
    instants: Sequence[int], players: Sequence[int], find_hours: _FindHours
) -> list[list[int]]:
    """Return the players observed in each hour of the week."""
    found: list[list[int]] = [[] for _ in range(WEEK_HOURS)]
    start = 0
    while start < len(instants):
        edges, hours = find_hours(instants[start] // _PERIOD)
        positions = [bisect_left(instants, edge, start) for edge in edges]
        for (first, last), hour in zip(pairwise(positions), hours, strict=True):
            if first < last:
                found[hour] += players[first:last]
        start = positions[-1]
    return found


def _build_cell(number: int, values: list[int]) -> HourCell:
    weekday, hour = divmod(number, 24)
    count = len(values)
    if count < MIN_OBSERVATIONS:
        return HourCell(weekday + 1, hour, count, None, None)
    values.sort()
    lower, upper = find_middle_ranks(count)
    return HourCell(
        weekday + 1, hour, count, sum(values) / count, (values[lower] + values[upper]) / 2
    )


def _build_hour(number: int | None) -> HourPart | None:
    return None if number is None else HourPart(weekday=number // 24 + 1, hour=number % 24)
