"""Compute the steps of servers for a chart in a terminal: as many as fit its width."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from zoneinfo import ZoneInfo

from srvstat.analysis.drawing import bound_window, check_server_count
from srvstat.analysis.history_tables import describe_cells, get_name, read_lines
from srvstat.analysis.local_time import Step, parse_step
from srvstat.analysis.steps import Steps, divide_window
from srvstat.contract.errors import UsageError
from srvstat.contract.ranges import DAY_MS, Window
from srvstat.documents.analysis import HistoryQuery, StepLine, StepTable
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot

_WITHIN_DAY = ("1m", "2m", "5m", "10m", "15m", "30m", "1h", "2h", "3h", "6h")
"""Without 12h: with two values a day, the difference of day and night hides everything else."""

_INTERVALS_PER_STEP = 2
"""With fewer, polls that are a little early or late would leave steps without an observation."""

_FEW_OBSERVATIONS = 10
"""Fewer observations do not show how often a server is polled."""


def compute_step_chart(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    query: HistoryQuery,
    step: Step | None,
    most: int,
) -> StepTable:
    """Return all steps of a window, at most `most`; by default the shortest step that suits.

    A step chosen by default is at least two usual intervals long, of every server that has more
    than a few observations.

    Raises UsageError for too many steps and for too many servers, SnapshotError.
    """
    if not query.is_sum:
        check_server_count(len(servers))
    zone = ZoneInfo(query.zone)
    if step is None:
        step, steps = _choose_steps(snapshot, servers, query.window, zone, most)
    else:
        steps = divide_window(snapshot, servers, query.window, step, zone)
        if steps.step_count > most:
            raise UsageError(
                f"--step: {steps.step_count:,} steps, but the chart has room for {most:,}; use a"
                " longer step, a shorter window or a wider terminal"
            )
    lines = tuple(_read_lines(snapshot, servers, steps, query))
    query = replace(query, step=step.name)
    return StepTable(query, tuple(map(get_name, servers)), lines, (), len(lines))


def _read_lines(
    snapshot: Snapshot, servers: Sequence[ServerRow], steps: Steps, query: HistoryQuery
) -> Iterator[StepLine]:
    if query.is_sum or query.aggregate != "mean" or not steps.step_count:
        yield from read_lines(snapshot, servers, steps, query, range(steps.step_count))
        return
    columns = [describe_cells(snapshot, server, steps) for server in servers]
    for (start, end), *line in zip(steps.iter_times(), *columns, strict=True):
        yield StepLine(start, end, tuple(line))


def _choose_steps(
    snapshot: Snapshot, servers: Sequence[ServerRow], window: Window, zone: ZoneInfo, most: int
) -> tuple[Step, Steps]:
    bounded = bound_window(snapshot, servers, window)
    figures = snapshot.compute_figures(servers, bounded)
    intervals = [
        one.usual_interval
        for one in figures
        if one.usual_interval is not None and one.statistics.observations >= _FEW_OBSERVATIONS
    ]
    usual = max(intervals, default=0)
    for step in _iter_steps():
        is_long = step.shortest >= _INTERVALS_PER_STEP * usual
        if is_long and (bounded.end - bounded.start) // step.shortest < most:
            steps = divide_window(snapshot, servers, window, step, zone)
            if steps.step_count <= most:
                return step, steps
    raise AssertionError  # the steps become longer without end


def _iter_steps() -> Iterator[Step]:
    """Yield the steps that a chart can have, in ascending order."""
    yield from map(parse_step, (*_WITHIN_DAY, "1d", "2d", "week", "14d", "month"))
    for power in count():
        for factor in (50, 100, 200):
            days = factor * 10**power
            yield Step(f"{days}d", days * DAY_MS)
