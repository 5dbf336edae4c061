"""Compute how the players of servers change from step to step: the document `growth`."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, get_args
from zoneinfo import ZoneInfo

from srvstat import stats
from srvstat.analysis.local_time import find_step_start, list_step_edges, parse_step
from srvstat.analysis.selection import iter_batches
from srvstat.analysis.statistics import build_window_part
from srvstat.analysis.windows import find_previous
from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.contract.instants import LATEST
from srvstat.contract.ranges import BEFORE_ALL, DAY_MS, Window
from srvstat.documents.document import GrowthPart
from srvstat.documents.growth import GrowthDocument, GrowthStep, GrowthStepName, ServerGrowth
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.figures import StepTotals
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.trends import Average, compute_median_slope

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
    snapshot: SnapshotFile,
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
    times = _list_steps(window, step, zone, _find_first_instant(snapshot, servers))
    previous = None if window.start == BEFORE_ALL else find_previous(window)
    if previous is not None and previous.start < (snapshot.covered_from or previous.start):
        previous = None
    return GrowthDocument(
        as_of=snapshot.as_of,
        root=snapshot.root,
        step=step,
        time_zone=zone.key,
        window=build_window_part(window),
        previous_window=previous and build_window_part(previous),
        servers=tuple(_iter_servers(snapshot, servers, times, previous)),
    )


def _find_first_instant(snapshot: SnapshotFile, servers: Sequence[ServerRow]) -> int | None:
    """Return the instant of the first observation of any of the servers."""
    with snapshot.convert_decode_errors("the servers"):
        found = [one.first_observed_at for one in servers if one.first_observed_at is not None]
        if not all(0 <= instant <= LATEST for instant in found):
            raise ValueError("not an instant")
    return min(found, default=None)


def _list_steps(
    window: Window, step: GrowthStepName, zone: ZoneInfo, first: int | None
) -> list[_StepTimes]:
    """Return the steps of a window; `first` is the first observation, where it has no beginning."""
    size = parse_step(step)
    start = window.start
    if start == BEFORE_ALL:
        if first is None or first > window.end:
            return []
        start = find_step_start(first, size, zone)
    # A step that begins or ends with the window has an edge inside a longer window.
    _, *edges, _ = list_step_edges(Window(start - 1, window.end + 1), size, zone)
    inside = [edge for edge in edges if start < edge < window.end]
    last = len(inside)
    return [
        _StepTimes(
            before,
            after,
            is_partial=(number == 0 and start not in edges[:1])
            or (number == last and window.end not in edges[-1:]),
        )
        for number, (before, after) in enumerate(pairwise([start, *inside, window.end]))
    ]


def _iter_servers(
    snapshot: SnapshotFile,
    servers: Sequence[ServerRow],
    times: Sequence[_StepTimes],
    previous: Window | None,
) -> Iterator[ServerGrowth]:
    edges = [*(step.start for step in times[:1]), *(step.end for step in times)]
    for batch in iter_batches(snapshot, servers):
        for server in batch:
            totals = snapshot.compute_step_totals(server, edges) if edges else []
            before = None
            if previous is not None:
                before = _compute_growth(snapshot.compute_step_totals(server, previous))
            yield _describe_server(server, times, totals, before)


def _describe_server(
    server: ServerRow,
    times: Sequence[_StepTimes],
    totals: Sequence[StepTotals],
    previous: GrowthPart | None,
) -> ServerGrowth:
    count = sum(step.observations for step in totals)
    return ServerGrowth(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        sample_count=count,
        average_players=sum(step.total for step in totals) / count if count else None,
        growth=_compute_growth(totals),
        previous_growth=previous,
        players_per_week=_compute_trend(times, totals),
        steps=tuple(map(_build_step, times, totals)),
    )


def _build_step(times: _StepTimes, totals: StepTotals) -> GrowthStep:
    count, total, first, last = totals
    if first is None or last is None:
        return GrowthStep(*times, 0, None, None, None)
    growth = stats.compute_growth(first, last) if count > 1 else (None, None)
    return GrowthStep(*times, count, total / count, *growth)


def _compute_growth(totals: Sequence[StepTotals]) -> GrowthPart:
    """Return the growth from the first observation in steps to the last."""
    firsts = [step.first for step in totals if step.first is not None]
    lasts = [step.last for step in totals if step.last is not None]
    if sum(step.observations for step in totals) < 2:  # noqa: PLR2004 - growth is between two
        return GrowthPart(players=None, percentage=None)
    growth = stats.compute_growth(firsts[0], lasts[-1])
    return GrowthPart(players=growth.players, percentage=growth.percentage)


def _compute_trend(times: Sequence[_StepTimes], totals: Sequence[StepTotals]) -> float | None:
    """Return the median slope in players a week."""
    averages = [
        # The sum is twice the midpoint, which may be a half.
        Average(start + end, step.total, step.observations)
        for (start, end, _), step in zip(times, totals, strict=True)
        if step.observations
    ]
    slope = compute_median_slope(averages)
    return None if slope is None else float(slope * _HALF_MS_PER_WEEK)
