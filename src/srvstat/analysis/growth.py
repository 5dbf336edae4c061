"""Compute how the players of servers change from step to step: the document `growth`."""

from collections.abc import Iterator, Sequence
from itertools import compress, pairwise
from typing import NamedTuple, get_args
from zoneinfo import ZoneInfo

from srvstat import stats
from srvstat.analysis.history import list_history_edges
from srvstat.analysis.local_time import Step, list_step_edges, parse_step
from srvstat.analysis.selection import iter_batches
from srvstat.analysis.statistics import build_window_part
from srvstat.analysis.windows import find_previous
from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.contract.ranges import BEFORE_ALL, DAY_MS, Window
from srvstat.documents.document import GrowthPart
from srvstat.documents.growth import GrowthDocument, GrowthStep, GrowthStepName, ServerGrowth
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.figures import StepTotals, build_empty_steps
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.trends import Averages, compute_median_slope

GROWTH_STEPS: tuple[GrowthStepName, ...] = get_args(GrowthStepName)

_HALF_MS_PER_WEEK = 2 * 7 * DAY_MS


class _StepTimes(NamedTuple):
    """A step: the interval `(start, end]`, and whether the window cuts it."""

    start: int
    end: int
    is_partial: bool


def parse_growth_step(text: str) -> GrowthStepName:
    """Return the name of a step.

    Raises UsageError.
    """
    for name in GROWTH_STEPS:
        if name == text:
            return name
    names = ", ".join(GROWTH_STEPS)
    raise UsageError(f"--step: {wire.quote_value(text)} is not one of {names}")


def compute_growth(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    window: Window,
    step: GrowthStepName,
    zone: ZoneInfo,
) -> GrowthDocument:
    """Return the growth of servers in a window by step, in their order.

    A window without a beginning is divided from the first whole step in which one of the servers
    was observed.

    Raises UsageError for too many steps, SnapshotError.
    """
    size = parse_step(step)
    edges = list_history_edges(snapshot, servers, window, size, zone)
    times = _list_steps(edges, size, zone)
    previous = _find_previous(snapshot, window)
    return GrowthDocument(
        as_of=snapshot.as_of,
        root=snapshot.root,
        step=step,
        time_zone=zone.key,
        window=build_window_part(window),
        previous_window=previous and build_window_part(previous),
        servers=tuple(_iter_servers(snapshot, servers, edges, times, previous)),
    )


def _find_previous(snapshot: Snapshot, window: Window) -> Window | None:
    """Return the window before; None if there is none, or a bundle does not cover it."""
    if window.start == BEFORE_ALL:
        return None
    previous = find_previous(window)
    covered_from = snapshot.covered_from
    return None if covered_from is not None and previous.start < covered_from else previous


def _list_steps(edges: Sequence[int], step: Step, zone: ZoneInfo) -> list[_StepTimes]:
    """Return the steps between edges. Only the first and the last can be partial."""
    ends = {edge for edge in (*edges[:1], *edges[-1:]) if not _is_start_of_step(edge, step, zone)}
    return [_StepTimes(start, end, start in ends or end in ends) for start, end in pairwise(edges)]


def _is_start_of_step(instant: int, step: Step, zone: ZoneInfo) -> bool:
    return instant in list_step_edges(Window(instant - 1, instant + 1), step, zone)


def _iter_servers(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    edges: Sequence[int],
    times: Sequence[_StepTimes],
    previous: Window | None,
) -> Iterator[ServerGrowth]:
    # The sum of its ends is twice the midpoint of a step, which may be a half.
    positions = [step.start + step.end for step in times]
    for batch in iter_batches(snapshot, servers):
        for server in batch:
            totals = snapshot.compute_step_totals(server, edges) if edges else build_empty_steps(0)
            before = None
            if previous is not None:
                before = _compute_growth(snapshot.compute_step_totals(server, previous))
            trend = _compute_trend(positions, totals)
            yield _describe_server(server, times, totals, before, trend)


def _describe_server(
    server: ServerRow,
    times: Sequence[_StepTimes],
    totals: StepTotals,
    previous: GrowthPart | None,
    trend: float | None,
) -> ServerGrowth:
    count = sum(totals.counts)
    return ServerGrowth(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_count=count,
        average_players=sum(totals.sums) / count if count else None,
        growth=_compute_growth(totals),
        previous_growth=previous,
        players_per_week=trend,
        steps=tuple(_iter_steps(times, totals)),
    )


def _iter_steps(times: Sequence[_StepTimes], totals: StepTotals) -> Iterator[GrowthStep]:
    # A Growth for each step would take a tenth of the time of the whole answer.
    for (start, end, is_partial), count, total, first, last in zip(times, *totals, strict=True):
        if first is None or last is None:
            yield GrowthStep(start, end, is_partial, 0, None, None, None)
        elif count == 1:
            yield GrowthStep(start, end, is_partial, 1, total / 1, None, None)
        else:
            percentage = stats.compute_growth_percentage(first, last)
            average = total / count
            yield GrowthStep(start, end, is_partial, count, average, last - first, percentage)


def _compute_growth(totals: StepTotals) -> GrowthPart:
    """Return the growth from the first observation in steps to the last."""
    first = next((players for players in totals.firsts if players is not None), None)
    last = next((players for players in reversed(totals.lasts) if players is not None), None)
    if first is None or last is None or sum(totals.counts) == 1:
        return GrowthPart(players=None, percentage=None)
    growth = stats.compute_growth(first, last)
    return GrowthPart(players=growth.players, percentage=growth.percentage)


def _compute_trend(positions: Sequence[int], totals: StepTotals) -> float | None:
    """Return the median slope in players a week; `positions` are twice the midpoints of steps."""
    columns = positions, totals.sums, totals.counts
    averages = Averages(*([*compress(column, totals.counts)] for column in columns))
    slope = compute_median_slope(averages)
    return None if slope is None else float(slope * _HALF_MS_PER_WEEK)
