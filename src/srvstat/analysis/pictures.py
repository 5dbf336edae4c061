"""Compute picture data: timelines, hours of the week and histograms."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import count
from zoneinfo import ZoneInfo

import numpy as np

from srvstat.analysis import questions
from srvstat.analysis.history import WITHIN_DAY, aggregate_steps
from srvstat.analysis.questions import HOUR_MS, Steps
from srvstat.analysis.selection import Question
from srvstat.analysis.series import Series, TotalFigures, compute_figures, get_name, read_lasting
from srvstat.contract.arrays import Numbers, compute_double_medians, multiply, sum_groups
from srvstat.contract.errors import ParameterError
from srvstat.documents import analysis as documents
from srvstat.documents.document import GapPart
from srvstat.snapshot.read.observations import HeldFigures, WindowFigures
from srvstat.snapshot.read.snapshot import Snapshot

_STEPS = [*map(questions.parse_step, (*WITHIN_DAY, "12h", "day", "week", "month"))]

_LEAST_INTERVALS = 0.95
"""The minimum length of a step in polling intervals, so that hourly polls a second late get 1h
steps.
"""


def compute_timeline(
    question: Question,
    max_steps: int,
    marks: Iterable[documents.MarkPart] = (),
    step: questions.Step | None = None,
) -> documents.Timeline:
    """Return the players of servers over time, in their order.

    - `max_steps`: the maximum number of steps.
    - `marks`: only marks inside the window are included.
    - `step`: by default, the shortest suitable step. It is at least about as long as the shortest
      polling interval of the servers.

    Besides the document, needs memory for the observations of one server.

    Raises UsageError for more than `max_steps` steps, and SnapshotError if data are damaged.
    """
    window = questions.bound_window(question)
    question = question._replace(window=window)
    snapshot, servers, _, _ = question
    if step is None:
        step, steps = _choose_steps(question, max_steps)
    else:
        steps = questions.divide_window(question, step)
        if steps.step_count > max_steps:
            raise ParameterError(
                f"{{step}}: {steps.step_count:,} steps, at most {max_steps:,} can be drawn; use a"
                " longer step or a shorter window"
            )
    return documents.Timeline(
        **question.describe(),
        step=step.name,
        steps=documents.build_runs(steps.edges.tolist()),
        marks=tuple(one for one in marks if window.start <= one.at <= window.end),
        servers=tuple(_describe_timeline(snapshot, server, steps) for server in servers),
    )


def _choose_steps(question: Question, max_steps: int) -> tuple[questions.Step, Steps]:
    snapshot, servers, window, _ = question
    usual = [compute_figures(snapshot, server, window).usual_interval for server in servers]
    shortest = min((interval for interval in usual if interval is not None), default=HOUR_MS)
    for step in _STEPS:
        is_long = step.shortest >= _LEAST_INTERVALS * shortest or step is _STEPS[-1]
        if is_long and (window.end - window.start) // (2 * step.shortest) <= max_steps:
            steps = questions.divide_window(question, step)
            if steps.step_count <= max_steps:
                return step, steps
    problem = f"{{max_steps}}: {max_steps} is less than the number of months in the window"
    raise ParameterError(problem)


def _describe_timeline(
    snapshot: Snapshot, server: Series, steps: Steps
) -> documents.ServerTimeline:
    figures = compute_figures(snapshot, server, steps.window)
    counts = questions.count_steps(snapshot, server, figures, steps)
    return documents.ServerTimeline(
        **get_name(server)._asdict(),
        sample_counts=tuple(counts.samples.tolist()),
        averages=tuple(aggregate_steps(counts, "mean").tolist()),
        lowest=tuple(aggregate_steps(counts, "min").tolist()),
        peak=tuple(aggregate_steps(counts, "max").tolist()),
        observed_shares=tuple(counts.shares.tolist()),
        gaps=tuple(_find_gaps(snapshot, server, figures)),
    )


def _find_gaps(snapshot: Snapshot, server: Series, figures: WindowFigures) -> Iterator[GapPart]:
    """Yield the gaps of a window: more than three polling intervals without an observation.

    Explanations and integrity checks use 1.5 polling intervals. Here, each missed poll would then
    interrupt the line. If counts are held, only the time before the first count is a gap.
    """
    if isinstance(figures, HeldFigures):
        first = int(figures.held.instants[0]) if len(figures.held.instants) else figures.until
        if figures.window.first < first:
            yield GapPart(from_=figures.window.start, to=first)
        return
    lasting = read_lasting(snapshot, server, figures)
    start, end = figures.window.start, min(figures.window.end, snapshot.as_of)
    longest = 3 * (figures.usual_interval or 0)
    edges = np.append(lasting, end)
    if start < edges[0]:
        is_first = server.first_observed_at is None or server.first_observed_at > start
        # An earlier observation is too old to last into the window, so the gap begins before the
        # window.
        edges = np.append(start if is_first else start - int(longest) - 1, edges)
    for at in np.flatnonzero(np.diff(edges) > longest).tolist():
        before, after = max(int(edges[at]), start), min(int(edges[at + 1]), end)
        if before < after:
            yield GapPart(from_=before, to=after)


MOST_BINS = 40


def compute_distribution(question: Question, max_bins: int = MOST_BINS) -> documents.Distribution:
    """Return the histogram of servers' observations in at most `max_bins` bins, in their order.

    Bins are 1, 2, 5, 10, 20, … players wide, and begin at a multiple of their width.

    Raises SnapshotError if data are damaged.
    """
    snapshot, servers, window, _ = question
    extremes: list[int] = []
    for server in servers:
        figures = compute_figures(snapshot, server, window)
        extremes += (each.players for each in (figures.lowest, figures.peak) if each)
    least, most = min(extremes, default=0), max(extremes, default=0)
    width = _choose_width(least, most, max_bins)
    first = least // width * width
    edges = np.arange(first, most + width + 1, width)
    return documents.Distribution(
        **question.describe("time_zone"),
        first_players=first,
        bin_players=width,
        servers=tuple(
            _describe_distribution(server, compute_figures(snapshot, server, window), edges)
            for server in servers
        ),
    )


def _choose_width(lowest: int, peak: int, max_bins: int) -> int:
    """Return the smallest width with which `max_bins` bins cover all player counts."""
    widths: Iterator[int] = (factor * 10**power for power in count() for factor in (1, 2, 5))
    return next(one for one in widths if peak // one - lowest // one < max_bins)


def _describe_distribution(
    server: Series, figures: WindowFigures, edges: Numbers
) -> documents.ServerDistribution:
    order = figures.counts.players.argsort()
    places = figures.counts.players[order].searchsorted(edges)
    is_held = isinstance(figures, HeldFigures)
    counts = sum_groups(figures.durations[order] // 2, places) if is_held else np.diff(places)
    return documents.ServerDistribution(
        **get_name(server)._asdict(),
        sample_count=figures.count,
        lowest_players=figures.lowest and figures.lowest.players,
        lower_quartile=figures.find_quantile(Fraction(1, 4)),
        median_players=figures.median,
        upper_quartile=figures.find_quantile(Fraction(3, 4)),
        peak_players=figures.peak and figures.peak.players,
        counts=tuple(counts.tolist()),
    )


MIN_OBSERVATIONS = 4
"""The minimum number of observations for an hour to have statistics; held counts need a whole
hour.
"""


_CELLS: dict[documents.HourKey, list[documents.HourPart]] = {
    "week-hour": [documents.HourPart(day, hour) for day in range(1, 8) for hour in range(24)],
    "hour": [documents.HourPart(None, hour) for hour in range(24)],
    "weekday": [documents.HourPart(day, None) for day in range(1, 8)],
}


def compute_peak_hours(
    question: Question, by: documents.HourKey = "week-hour"
) -> documents.PeakHours:
    """Return the players of servers in each hour of the week or day, or on each weekday.

    Raises SnapshotError if data are damaged.
    """
    snapshot, servers, window, zone = question
    return documents.PeakHours(
        **question.describe(),
        by=by,
        servers=tuple(
            _describe_server(server, compute_figures(snapshot, server, window), zone, by)
            for server in servers
        ),
    )


def _find_cells(instants: Numbers, zone: ZoneInfo, by: documents.HourKey) -> Numbers:
    """Return the number of each instant's cell."""
    hours = questions.find_hours_of_week(instants, zone)
    if by == "week-hour":
        return hours
    return hours // 24 if by == "weekday" else hours % 24


def _describe_server(
    server: Series, figures: WindowFigures, zone: ZoneInfo, by: documents.HourKey
) -> documents.ServerPeakHours:
    count = len(_CELLS[by])
    # Differences between a total's hours must not come from missing servers.
    whole = figures.list_whole() if isinstance(figures, TotalFigures) else figures.observations
    found = _find_cells(whole.instants, zone, by)
    sizes = np.bincount(found, minlength=count)
    least, players, lengths = MIN_OBSERVATIONS, whole.players, None
    if isinstance(figures, HeldFigures) and len(figures.held.instants):
        first, step = int(figures.held.instants[0]), questions.parse_step("1h")
        edges = questions.list_step_edges(first, figures.until, step, zone)
        (instants, players), lengths = figures.split(edges)
        least, found = HOUR_MS, _find_cells(instants, zone, by)
    weights, doubles = compute_double_medians(found, players, lengths, count)
    products = players if lengths is None else multiply(players, lengths)
    edges = np.append(0, np.bincount(found, minlength=count).cumsum())
    sums = sum_groups(products[found.argsort(kind="stable")], edges)
    cells: list[documents.HourCellPart] = []
    averages: dict[documents.HourPart, Fraction] = {}
    columns = sizes.tolist(), weights.tolist(), sums.tolist(), doubles.tolist()
    for hour, size, weight, total, double in zip(_CELLS[by], *columns, strict=True):
        mean = median = None
        if weight >= least:
            averages[hour] = Fraction(total, weight)
            mean, median = total / weight, double / 2
        cells.append(documents.HourCellPart(hour.weekday, hour.hour, size, mean, median))
    # Ties: the earliest cell wins.
    quietest = min(averages, key=averages.__getitem__, default=None)
    can_restart = quietest and by != "weekday" and documents.has_known_hours(cells)
    return documents.ServerPeakHours(
        **get_name(server)._asdict(),
        sample_count=figures.count,
        busiest=max(averages, key=averages.__getitem__, default=None),
        quietest=quietest,
        restart_player_hours=float(averages[quietest]) if quietest and can_restart else None,
        cells=tuple(cells),
    )
