"""Compute how the players of servers change from step to step: the document `growth`."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from srvstat.analysis import questions, statistics
from srvstat.analysis.selection import Question, build_window_part
from srvstat.analysis.series import Series, compute_figures, get_name
from srvstat.contract import errors, stats, time
from srvstat.contract.arrays import Doubles, Exact, Numbers, divide, find_ranks
from srvstat.contract.windows import DAY_MS, Window
from srvstat.documents import analysis as documents
from srvstat.documents.document import LEAST_COVERAGE, WHOLE_SHARE, GrowthPart
from srvstat.operations.answers import check_coverage
from srvstat.snapshot.read.observations import WindowFigures
from srvstat.snapshot.read.snapshot import Snapshot

_HALF_MS_PER_WEEK = 2 * 7 * DAY_MS

_LEAST_DAYS = 3
"""The minimum number of averages for a trend."""


def compute_growth(
    question: Question, step: documents.GrowthStepName | None = None, after: int | None = None
) -> documents.GrowthDocument:
    """Return the growth of servers in a window by step, in their order.

    - `step`: by default a day, a week or a month, depending on the length of the window. This gives
      at most about 60 steps for a window of up to five years. A window without a start begins with
      the step that contains the first observation.
    - `after`: the start of a local day in Unix milliseconds. Adds the averages of this day and of
      later days, and their shares of this day's average.

    Raises UsageError for too many steps and for a day after the snapshot, NotInBundleError if a
    bundle does not cover that day, and SnapshotError if data are damaged.
    """
    if after is not None:
        _check_day(question.snapshot, after)
    if step is None:
        step = choose_growth_step(questions.bound_window(question))
    days = questions.divide_window(question, questions.parse_step("day"))
    steps = days if step == "day" else questions.divide_window(question, questions.parse_step(step))
    earlier = statistics.find_earlier(question.snapshot, question.window)
    return documents.GrowthDocument(
        **question.describe(),
        step=step,
        previous_window=build_window_part(earlier[0]) if earlier else None,
        servers=tuple(_iter_servers(question, days, steps, earlier, after)),
    )


def choose_growth_step(window: Window) -> documents.GrowthStepName:
    """Return the default step for the growth in a window."""
    days = (window.end - window.start) // DAY_MS
    if days > 366:  # noqa: PLR2004 - a leap year
        return "month"
    return "day" if days <= 62 else "week"  # noqa: PLR2004 - two months


def _check_day(snapshot: Snapshot, after: int) -> None:
    if after > snapshot.as_of:
        end = time.format_instant(snapshot.as_of)
        raise errors.ParameterError(
            "{after}: must be earlier than the end of the snapshot, {end}", end=end
        )
    check_coverage(snapshot, Window(after - 1, snapshot.as_of))


_DAYS_LATER = (0, 7, 30, 90)


def _list_remaining(
    question: Question, series: Series, after: int
) -> Iterator[documents.RemainingPart]:
    """Yield how much of a day's average remains on later days."""
    last = after + (max(_DAYS_LATER) + 2) * DAY_MS
    edges = questions.list_step_edges(after, last, questions.parse_step("day"), question.zone)
    base: tuple[int, int] | None = None
    for days in _DAYS_LATER:
        start, end = edges[days : days + 2].tolist()
        quotient = _find_average(question.snapshot, series, Window(start, end))
        average = share = None
        if quotient:
            average = quotient[0] / quotient[1]
            base = quotient if days == 0 else base
            if base and base[0]:
                share = quotient[0] * base[1] / (quotient[1] * base[0])
        yield documents.RemainingPart(days, start, end, average, share)


def _find_average(snapshot: Snapshot, series: Series, step: Window) -> tuple[int, int] | None:
    """Return the average of a step as a quotient, or None if less than 80 % of it is observed."""
    # An observation's duration can extend beyond the end of the snapshot, where nothing is known.
    if snapshot.as_of - step.start < LEAST_COVERAGE * (step.end - step.start):
        return None
    # A step includes its start and excludes its end; a window does the opposite.
    figures = compute_figures(snapshot, series, Window(step.start - 1, step.end - 1))
    return figures.quotient if (figures.coverage or 0) >= LEAST_COVERAGE else None


def _iter_servers(
    question: Question,
    days: questions.Steps,
    steps: questions.Steps,
    earlier: Sequence[Window],
    after: int | None,
) -> Iterator[documents.ServerGrowth]:
    snapshot, servers, window, _ = question
    for server in servers:
        found, before, change = statistics.compare_with_earlier(snapshot, server, window, earlier)
        by_day = questions.count_steps(snapshot, server, found, days)
        by_step = by_day
        if steps is not days:
            by_step = questions.count_steps(snapshot, server, found, steps)
        yield documents.ServerGrowth(
            **get_name(server)._asdict(),
            sample_count=found.count,
            average_players=found.mean,
            change=change,
            coverage=found.coverage,
            previous_coverage=None if before is None else before.coverage,
            first_players=found.first,
            last_players=found.last,
            growth=GrowthPart(*found.growth),
            previous_growth=None if before is None else GrowthPart(*before.growth),
            players_per_week=_compute_trend(days, by_day),
            remaining=None if after is None else (*_list_remaining(question, server, after),),
            steps=tuple(_iter_steps(found, steps, by_step)),
        )


def _iter_steps(
    figures: WindowFigures, steps: questions.Steps, counts: questions.StepCounts
) -> Iterator[documents.GrowthStepPart]:
    instants, players = figures.observations
    positions, padded = steps.locate(instants), np.append(players, 0)
    # The values of a step without observations are meaningless, and not used.
    firsts, lasts = padded[positions[:-1]], padded[positions[1:] - 1]
    columns = (counts.samples, *counts.sum_players(), firsts, lasts, counts.shares)
    earlier: tuple[int, int] | None = None
    for (start, end), count, total, weight, first, last, share in zip(
        steps.iter_times(), *(column.tolist() for column in columns), strict=True
    ):
        is_partial = share < WHOLE_SHARE
        average = change = None
        growth = GrowthPart(None, None)
        if weight:
            average = total / weight
            if earlier and not is_partial:
                change = statistics.compare_averages(*earlier, total, weight)
        if count > 1:
            growth = GrowthPart(*stats.compute_growth(first, last))
        yield documents.GrowthStepPart(
            start, end, is_partial, share, count, average, change, growth
        )
        earlier = None if is_partial or not weight else (total, weight)


def _compute_trend(days: questions.Steps, counts: questions.StepCounts) -> float | None:
    """Return the median slope of the averages of whole days, in players per week."""
    sums, weights = counts.sum_players()
    is_used = (counts.shares >= WHOLE_SHARE) & (weights > 0)
    if is_used.sum() < _LEAST_DAYS:
        return None
    # Positions are twice the midpoints of days, because a midpoint may be a half.
    positions = (days.edges[:-1] + days.edges[1:])[is_used]
    slope = compute_median_slope(positions, sums[is_used], weights[is_used])
    return float(slope * _HALF_MS_PER_WEEK)


_PRECISION = 2.0**-50
"""The relative error bound of a slope computed in floats."""

_AT_ONCE = 64
_PAIRS_AT_ONCE = 1 << 20


def compute_median_slope(positions: Numbers, totals: Exact, counts: Numbers) -> Fraction:
    """Return the exact median of the slopes between all pairs of averages.

    This is the estimator of Theil (1950) and Sen (1968). The averages are `totals / counts`, at
    strictly ascending positions; there are at least two. For an even number of slopes, the median
    is the mean of the two middle slopes. Ten years of days need up to 600 MB.
    """
    xs, ys = (positions - positions[0]).astype(float), divide(totals, counts).astype(float)
    slopes = np.concatenate(list(_iter_slopes(xs, ys)))
    ranks = stats.find_middle_ranks(len(slopes))
    low, high = find_ranks(slopes, *ranks)
    # Each float slope has an error bound, which grows with its averages. Only slopes whose bounds
    # include the middle ranks are then compared exactly.
    margin = 2 * _PRECISION * float(ys.max() / np.diff(xs).min())
    near = np.flatnonzero((slopes >= low - margin) & (slopes <= high + margin))
    ends = np.cumsum(np.arange(len(xs) - 1, 0, -1))  # the end of each average's slopes
    at = ends.searchsorted(near, "right")
    to = near - ends[at] + len(xs)
    errors = _PRECISION * np.maximum(ys[at], ys[to]) / (xs[to] - xs[at])
    least, most = slopes[near] - errors, slopes[near] + errors
    below = int(np.count_nonzero(slopes < low - margin))
    first, last = (rank - below for rank in ranks)
    low, high = find_ranks(least, first, last)[0], find_ranks(most, first, last)[1]
    below += int(np.count_nonzero(most < low))
    if int(counts.max()) * max(int(totals.max()), int(counts.max()) * int(xs[-1])) >= 1 << 62:
        positions, totals, counts = (one.astype(object) for one in (positions, totals, counts))
    numbers = Counter[tuple[int, int]]()
    pairs = np.stack((at, to))[:, (most >= low) & (least <= high)]
    for start in range(0, pairs.shape[1], _PAIRS_AT_ONCE):
        at, to = pairs[:, start : start + _PAIRS_AT_ONCE]
        rises = totals[to] * counts[at] - totals[at] * counts[to]
        runs = counts[to] * counts[at] * (positions[to] - positions[at])
        # Millions of slopes may be equal, such as 0.
        common = np.gcd(rises, runs)
        numbers.update(zip((rises // common).tolist(), (runs // common).tolist(), strict=True))
    exact = sorted((Fraction(*slope), number) for slope, number in numbers.items())
    until = [*accumulate(number for _, number in exact)]
    middle = (exact[bisect_right(until, rank - below)][0] for rank in ranks)
    return sum(middle, Fraction()) / 2


def _iter_slopes(xs: Doubles, ys: Doubles) -> Iterator[Doubles]:
    """Yield batches of the slopes between each average and all later averages, in order."""
    for start in range(0, len(xs), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        with np.errstate(invalid="ignore"):  # the slope from an average to itself
            slopes = np.subtract.outer(ys[some], ys[start:])
            slopes /= np.subtract.outer(xs[some], xs[start:])
        yield slopes[~np.tri(*slopes.shape, dtype=np.bool)]
