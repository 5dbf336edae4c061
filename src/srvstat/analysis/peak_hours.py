"""Compute how many players servers have in each hour of the week: the document `peakHours`."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo

from srvstat.analysis.local_time import WEEK_HOURS, list_local_hours
from srvstat.analysis.selection import iter_batches
from srvstat.analysis.statistics import build_window_part
from srvstat.contract.windows import DAY_MS, Window
from srvstat.documents.analysis import HourCellPart, HourPart, PeakHours, ServerPeakHours
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.stats import find_middle_ranks

MIN_OBSERVATIONS = 4
"""The observations from which an hour of the week has figures."""

_PERIOD_DAYS = 364
"""Hours are listed for periods of this length; those without observations are left out."""


class _Hours(NamedTuple):
    """Local hours, each the interval `(edge, next edge]`, and their numbers in the week."""

    edges: Sequence[int]
    hours_of_week: Sequence[int]


_FindHours = Callable[[int], _Hours]


def compute_peak_hours(
    snapshot: Snapshot, servers: Sequence[ServerRow], window: Window, zone: ZoneInfo
) -> PeakHours:
    """Return the players of servers in each hour of the week, in their order.

    Raises SnapshotError.
    """

    @lru_cache(maxsize=100)
    def find_hours(period: int) -> _Hours:
        start = period * _PERIOD_DAYS * DAY_MS
        found = list_local_hours(Window(start - 1, start + _PERIOD_DAYS * DAY_MS - 1), zone)
        return _Hours([edge - 1 for edge in found.edges], found.hours_of_week)

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
    snapshot: Snapshot, server: ServerRow, window: Window, find_hours: _FindHours
) -> ServerPeakHours:
    observed = _read_hours(snapshot, server, window, find_hours)
    averages = {
        number: Fraction(sum(values), len(values))
        for number, values in enumerate(observed)
        if len(values) >= MIN_OBSERVATIONS
    }
    return ServerPeakHours(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_count=sum(map(len, observed)),
        # Of equal averages, both take the first.
        busiest=_build_hour(max(averages, key=averages.__getitem__, default=None)),
        quietest=_build_hour(min(averages, key=averages.__getitem__, default=None)),
        cells=tuple(_build_cell(number, values) for number, values in enumerate(observed)),
    )


def _read_hours(
    snapshot: Snapshot, server: ServerRow, window: Window, find_hours: _FindHours
) -> list[list[int]]:
    """Return the players observed in each hour of the week."""
    found: list[list[int]] = [[] for _ in range(WEEK_HOURS)]
    for period in _list_periods(snapshot, server, window):
        all_edges, all_hours = find_hours(period)
        start, end = max(window.start, all_edges[0]), min(window.end, all_edges[-1])
        if start == end:  # the window begins with the next period
            continue
        first, last = bisect_right(all_edges, start), bisect_left(all_edges, end)
        edges = [start, *all_edges[first:last], end]
        positions, players = snapshot.read_steps(server, edges)
        hours = all_hours[first - 1 : last]
        for (before, after), hour in zip(pairwise(positions), hours, strict=True):
            if before < after:
                found[hour] += players[before:after]
    return found


def _list_periods(snapshot: Snapshot, server: ServerRow, window: Window) -> list[int]:
    """Return the periods of a window that have observations."""
    days = (entry.day for entry in snapshot.iter_entries(server, max(window.start // DAY_MS, 0)))
    inside = takewhile(lambda day: day <= window.end // DAY_MS, days)
    return list(dict.fromkeys(day // _PERIOD_DAYS for day in inside))


def _build_cell(number: int, values: list[int]) -> HourCellPart:
    weekday, hour = divmod(number, 24)
    count = len(values)
    if count < MIN_OBSERVATIONS:
        return HourCellPart(weekday + 1, hour, count, None, None)
    values.sort()
    lower, upper = find_middle_ranks(count)
    return HourCellPart(
        weekday + 1, hour, count, sum(values) / count, (values[lower] + values[upper]) / 2
    )


def _build_hour(number: int | None) -> HourPart | None:
    return None if number is None else HourPart(weekday=number // 24 + 1, hour=number % 24)
