"""Compute how the players of servers change from step to step: the document `growth`."""

from collections.abc import Iterator, Sequence
from itertools import compress, pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

from srvstat import stats
from srvstat.analysis.figures import compute_figures
from srvstat.analysis.local_time import parse_step
from srvstat.analysis.selection import iter_batches
from srvstat.analysis.statistics import (
    build_growth_part,
    build_window_part,
    compare_averages,
    compare_windows,
    find_earlier,
    read_earlier,
)
from srvstat.analysis.steps import Steps, compute_shares, divide_window, find_unobserved
from srvstat.contract.windows import DAY_MS, Window
from srvstat.documents.analysis import GrowthDocument, GrowthStepName, GrowthStepPart, ServerGrowth
from srvstat.documents.document import WHOLE_SHARE, GrowthPart
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.figures import StepTotals, WindowFigures, build_empty_steps
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.trends import Averages, compute_median_slope

_HALF_MS_PER_WEEK = 2 * 7 * DAY_MS

_LEAST_DAYS = 3
"""A trend through fewer averages would say no more than their difference."""


class _Observed(NamedTuple):
    """The steps of a server: their totals, and the share of each that observations cover."""

    steps: Steps
    totals: StepTotals
    shares: Sequence[float]


def compute_growth(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    window: Window,
    step: GrowthStepName,
    zone: ZoneInfo,
) -> GrowthDocument:
    """Return the growth of servers in a window by step, in their order.

    A window without a beginning is divided from the step of the first observation of the servers.

    Raises UsageError for too many steps, SnapshotError.
    """
    days = divide_window(snapshot, servers, window, parse_step("day"), zone)
    steps = days
    if step != "day":
        steps = divide_window(snapshot, servers, window, parse_step(step), zone)
    earlier = find_earlier(snapshot, window)
    return GrowthDocument(
        as_of=snapshot.as_of,
        root=snapshot.root,
        step=step,
        time_zone=zone.key,
        window=build_window_part(window),
        previous_window=earlier and build_window_part(earlier),
        servers=tuple(_iter_servers(snapshot, servers, window, (days, steps), earlier)),
    )


def _iter_servers(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    window: Window,
    divided: tuple[Steps, Steps],
    earlier: Window | None,
) -> Iterator[ServerGrowth]:
    for batch in iter_batches(snapshot, servers):
        figures = snapshot.compute_figures(batch, window)
        previous = read_earlier(snapshot, batch, earlier)
        for server, before, found in zip(batch, previous, figures, strict=True):
            days, steps = _observe(snapshot, server, divided)
            yield _describe_server(server, before, found, days, steps)


def _observe(
    snapshot: Snapshot, server: ServerRow, divided: tuple[Steps, Steps]
) -> list[_Observed]:
    """Return the observed steps of a server, in each of the ways in which a window is divided."""
    observed: list[_Observed] = []
    for steps in divided:
        if observed and steps is observed[0].steps:
            observed.append(observed[0])
        elif not steps.step_count:
            observed.append(_Observed(steps, build_empty_steps(0), []))
        else:
            (figures,) = compute_figures(snapshot, server, [steps.window])
            unobserved = find_unobserved(snapshot, server, figures)
            totals = snapshot.compute_step_totals(server, steps.list_read_edges())
            observed.append(_Observed(steps, totals, compute_shares(steps, unobserved)))
    return observed


def _describe_server(
    server: ServerRow,
    before: WindowFigures | None,
    found: WindowFigures,
    days: _Observed,
    steps: _Observed,
) -> ServerGrowth:
    return ServerGrowth(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_count=found.statistics.observations,
        average_players=found.statistics.mean,
        change=compare_windows(before, found),
        coverage=found.coverage,
        previous_coverage=None if before is None else before.coverage,
        first_players=found.first,
        last_players=found.last,
        growth=build_growth_part(found),
        previous_growth=None if before is None else build_growth_part(before),
        players_per_week=_compute_trend(days),
        steps=tuple(_iter_steps(steps)),
    )


def _iter_steps(observed: _Observed) -> Iterator[GrowthStepPart]:
    steps, totals, shares = observed
    earlier: tuple[int, int] | None = None
    for (start, end), share, count, total, first, last in zip(
        steps.iter_times(), shares, *totals, strict=True
    ):
        is_partial = share < WHOLE_SHARE
        if first is None or last is None:
            yield GrowthStepPart(
                start, end, is_partial, share, 0, None, None, GrowthPart(None, None)
            )
            earlier = None
            continue
        change = None
        if earlier and not is_partial:
            change = compare_averages(*earlier, total, count)
        growth = GrowthPart(None, None)
        if count > 1:
            growth = GrowthPart(last - first, stats.compute_growth_percentage(first, last))
        yield GrowthStepPart(start, end, is_partial, share, count, total / count, change, growth)
        earlier = None if is_partial else (total, count)


def _compute_trend(days: _Observed) -> float | None:
    """Return the median slope of the averages of whole days, in players a week."""
    steps, totals, shares = days
    # The sum of its ends is twice the midpoint of a day, which may be a half.
    positions = [start + end for start, end in pairwise(steps.edges)]
    is_used = [
        share >= WHOLE_SHARE and count > 0
        for share, count in zip(shares, totals.counts, strict=True)
    ]
    if sum(is_used) < _LEAST_DAYS:
        return None
    columns = positions, totals.sums, totals.counts
    slope = compute_median_slope(Averages(*([*compress(column, is_used)] for column in columns)))
    return None if slope is None else float(slope * _HALF_MS_PER_WEEK)
