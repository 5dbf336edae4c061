"""The correct answers to the analyzer's questions, computed from the generated observations."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from benchmarks import fleet
from benchmarks.fleet import Integers
from benchmarks.questions import WrongAnswerError
from srvstat.contract.ranges import DAY_MS, Window

Name = Literal["stats", "top", "growth", "peak-hours", "history"]

ZONE = "Europe/Berlin"
HOUR_MS = DAY_MS // 24
QUARTER_MS = HOUR_MS // 4
WEEK_MS = 7 * DAY_MS
PERCENT = 95
"""The quantile that `stats` and `top` compute, in percent."""
WINNERS = 20
"""The number of servers that `top` shows."""
MIN_OBSERVATIONS = 4
"""The number of observations from which a cell of `peak-hours` has figures."""
LEAST_COVERAGE = 0.8
"""The share of two windows that must be observed to compare their averages."""
WHOLE_SHARE = 0.9
"""The share of a step that must be observed for a whole step."""
MIN_DAYS = 3
"""The number of whole days from which there is a trend."""

_TOLERANCE = 1e-12
"""The largest relative difference of a trend, which the peers compute with floats."""


class Question(NamedTuple):
    """A question about some servers in a window. Keys are 1, 2, 3, … in order of id."""

    name: Name
    keys: tuple[int, ...]
    window: Window

    @property
    def ids(self) -> list[str]:
        """The ids of the servers."""
        return [fleet.build_server_id(key - 1) for key in self.keys]

    @property
    def previous(self) -> Window:
        """The window of equal length before."""
        return Window(2 * self.window.start - self.window.end, self.window.start)


class Figures(NamedTuple):
    """The figures of a server in `stats` and `top`; instants in milliseconds.

    A server with observations has all of them.
    """

    key: int
    observations: int
    mean: float | None
    median: float | None
    quantile: float | None
    peak: int | None
    lowest: int | None
    first: int | None
    last: int | None
    peak_first_at: int | None
    peak_last_at: int | None
    lowest_first_at: int | None
    lowest_last_at: int | None
    usual_seconds: float | None
    weighted_mean: float | None
    coverage: float | None
    previous_coverage: float | None
    change: float | None
    percentage: float | None


class Step(NamedTuple):
    """A step in `growth` or `history`; without observations, it has no mean.

    `change` and `percentage` compare its mean with that of the step before. `history` has neither
    these nor the growth.
    """

    key: int
    start: int
    end: int
    observations: int
    mean: float | None
    share: float
    is_partial: bool
    growth: int | None = None
    change: float | None = None
    percentage: float | None = None


class Summary(NamedTuple):
    """The figures of a server in `growth`, beside its steps."""

    key: int
    observations: int
    mean: float | None
    coverage: float | None
    previous_coverage: float | None
    change: float | None
    percentage: float | None
    growth: int | None
    previous_growth: int | None
    per_week: float | None


class Growth(NamedTuple):
    """The whole answer to `growth`; steps without observations are left out."""

    steps: list[Step]
    summaries: list[Summary]


class Cell(NamedTuple):
    """An hour of the week in `peak-hours`: 0 is Monday from 00:00 to 01:00."""

    key: int
    cell: int
    observations: int
    mean: float | None
    median: float | None


def compute_answer(question: Question) -> Any:
    """Compute the correct answer to a question in plain Python and numpy."""
    return {
        "stats": _compute_stats,
        "top": _compute_top,
        "growth": _compute_growth,
        "peak-hours": _compute_peak_hours,
        "history": _compute_history,
    }[question.name](question)


def check_answer(tool: str, question: Question, answer: Any, correct: Any) -> None:
    """Compare an answer with the correct one: exactly, apart from the trend.

    Raises WrongAnswerError.
    """
    if question.name == "growth":
        answer, correct = (_separate_trends(one) for one in (answer, correct))
        (answer, trends), (correct, expected) = answer, correct
        for one, other in zip(trends, expected, strict=True):
            if abs((one or 0) - (other or 0)) > _TOLERANCE * abs(other or 0):
                raise WrongAnswerError(f"{tool}, growth: a trend of {one}, expected {other}")
    for one, other in zip(answer, correct, strict=True):
        if one != other:
            raise WrongAnswerError(f"{tool}, {question.name}: got {one}, expected {other}")


def _separate_trends(answer: Growth) -> tuple[list[Step | Summary], list[float | None]]:
    summaries = [one._replace(per_week=None) for one in answer.summaries]
    return [*answer.steps, *summaries], [one.per_week for one in answer.summaries]


@lru_cache(maxsize=64)
def _load(key: int) -> tuple[Integers, Integers]:
    course = fleet.generate_course(key - 1)
    return course.instants, course.players


def _load_window(key: int, window: Window) -> tuple[Integers, Integers]:
    instants, players = _load(key)
    inside = (instants > window.start) & (instants <= window.end)
    return instants[inside], players[inside]


def _compute_stats(question: Question) -> list[Figures]:
    return [_compute_figures(key, question) for key in question.keys]


def _compute_figures(key: int, question: Question) -> Figures:
    window = question.window
    instants, players = _load_window(key, window)
    values = players.tolist()
    ranked, count = sorted(values), len(values)
    at_peak, at_lowest = (instants[players == value] for value in (ranked[-1], ranked[0]))
    lasting = _find_durations(instants, window, _double_usual(instants))
    return Figures(
        key,
        count,
        sum(values) / count,
        (ranked[(count - 1) // 2] + ranked[count // 2]) / 2,
        (ranked[-(-count * PERCENT // 100) - 1] + ranked[count * PERCENT // 100]) / 2,
        ranked[-1],
        ranked[0],
        values[0],
        values[-1],
        int(at_peak[0]),
        int(at_peak[-1]),
        int(at_lowest[0]),
        int(at_lowest[-1]),
        _double_usual(instants) / 2_000,
        int((lasting * players).sum()) / int(lasting.sum()),
        *_compare_windows(key, question),
    )


def _double_usual(instants: Integers) -> int:
    """Return twice the median of the distances between at least two successive instants."""
    distances: list[int] = sorted(np.diff(instants).tolist())
    return distances[(len(distances) - 1) // 2] + distances[len(distances) // 2]


def _find_durations(instants: Integers, window: Window, doubled: int) -> Integers:
    """Return how long observations last, in half milliseconds."""
    return np.minimum(2 * np.diff(instants, append=window.end), 3 * doubled)


def _compare_windows(
    key: int, question: Question
) -> tuple[float | None, float | None, float | None, float | None]:
    """Return the coverages of the window and of the previous one, and the change of the mean."""
    coverages, means = [], []
    for window in (question.window, question.previous):
        instants, players = _load_window(key, window)
        coverages.append(0.0)
        if len(instants) > 1:
            weight = int(_find_durations(instants, window, _double_usual(instants)).sum())
            coverages[-1] = weight / (2 * (window.end - window.start))
            means.append(Fraction(int(players.sum()), len(players)))
    if min(coverages) < LEAST_COVERAGE:
        return coverages[0], coverages[1], None, None
    return coverages[0], coverages[1], *_compare_means(means[1], means[0])


def _compare_means(before: Fraction, after: Fraction) -> tuple[float, float | None]:
    """Return the change of a mean, and that in percent."""
    return float(after - before), float(100 * (after - before) / before) if before else None


def _compute_top(question: Question) -> list[Figures]:
    means = {}
    for key in question.keys:
        players = _load_window(key, question.window)[1]
        means[key] = Fraction(int(players.sum()), len(players))
    best = sorted(means, key=lambda key: (-means[key], key))[:WINNERS]
    return [_compute_figures(key, question) for key in best]


class _Part(NamedTuple):
    """A step of a calendar, from its edge on: the counts of a server and the observed share."""

    edge: int
    values: list[int]
    share: float

    @property
    def mean(self) -> Fraction | None:
        return Fraction(sum(self.values), len(self.values)) if self.values else None

    @property
    def is_whole(self) -> bool:
        return self.share >= WHOLE_SHARE


def _divide(key: int, window: Window, length: int) -> list[_Part]:
    """Divide a window by a calendar. Steps exclude their end, but the last one includes it."""
    instants, players = _load_window(key, window)
    first, last = (window.start + 1) // length, (window.end - 1) // length
    edges: Integers = np.arange(first, last + 2) * length
    positions = instants.searchsorted(edges[:-1]).tolist()
    observed = np.diff(_observe_until(key, window, edges.clip(*window)))
    return [
        _Part(edge, players[begin:end].tolist(), share)
        for edge, (begin, end), share in zip(
            edges[:-1].tolist(),
            pairwise([*positions, len(players)]),
            (observed / (2 * length)).tolist(),
            strict=True,
        )
    ]


def _observe_until(key: int, window: Window, moments: Integers) -> Integers:
    """Return how long a server was observed from its first observation to each moment of a window.

    In half milliseconds.
    """
    instants, _ = _load(key)
    instants = instants[instants <= window.end]
    usual = _double_usual(instants[instants > window.start])
    lasting = _find_durations(instants, window, usual)
    before = np.cumsum(lasting) - lasting
    at = instants.searchsorted(moments, "right") - 1
    observed = before[at] + np.minimum(lasting[at], 2 * (moments - instants[at]))
    return np.where(at < 0, 0, observed)


def _build_step(key: int, window: Window, length: int, part: _Part) -> Step:
    start, end = max(part.edge, window.start), min(part.edge + length, window.end)
    mean = None if part.mean is None else float(part.mean)
    return Step(key, start, end, len(part.values), mean, part.share, not part.is_whole)


def _compute_growth(question: Question) -> Growth:
    steps, summaries = [], []
    for key in question.keys:
        days = _divide(key, question.window, DAY_MS)
        steps += [step for step in _list_days(key, question.window, days) if step.observations]
        values, previous = (
            _load_window(key, window)[1].tolist() for window in (question.window, question.previous)
        )
        summaries.append(
            Summary(
                key,
                len(values),
                sum(values) / len(values),
                *_compare_windows(key, question),
                _subtract(values),
                _subtract(previous),
                _compute_trend(days),
            )
        )
    return Growth(steps, summaries)


def _list_days(key: int, window: Window, days: Sequence[_Part]) -> Iterator[Step]:
    before = None
    for day in days:
        step = _build_step(key, window, DAY_MS, day)._replace(growth=_subtract(day.values))
        mean = day.mean if day.is_whole else None
        if mean is not None and before is not None:
            change, percentage = _compare_means(before, mean)
            step = step._replace(change=change, percentage=percentage)
        yield step
        before = mean


def _subtract(values: Sequence[int]) -> int | None:
    """Return the last of at least two values minus the first."""
    return values[-1] - values[0] if len(values) > 1 else None


def _compute_trend(days: Sequence[_Part]) -> float | None:
    """Return the median slope of all pairs of at least three whole days, in players a week."""
    points = [
        (day.edge, sum(day.values), len(day.values)) for day in days if day.is_whole and day.values
    ]
    # As all days have the same length, their midpoints are as far apart as their edges. Each slope
    # is one division of integers.
    slopes = sorted(
        WEEK_MS * (total_b * count_a - total_a * count_b) / (count_a * count_b * (b - a))
        for (a, total_a, count_a), (b, total_b, count_b) in combinations(points, 2)
    )
    if len(points) < MIN_DAYS:
        return None
    return (slopes[(len(slopes) - 1) // 2] + slopes[len(slopes) // 2]) / 2


def _compute_history(question: Question) -> list[Step]:
    return [
        _build_step(key, question.window, HOUR_MS, part)
        for key in question.keys
        for part in _divide(key, question.window, HOUR_MS)
    ]


def _compute_peak_hours(question: Question) -> list[Cell]:
    cells = []
    for key in question.keys:
        instants, players = _load_window(key, question.window)
        places = find_local_hours(instants)
        for cell in range(7 * 24):
            values = sorted(players[places == cell].tolist())
            count = len(values)
            if count < MIN_OBSERVATIONS:
                cells.append(Cell(key, cell, count, None, None))
                continue
            median = (values[(count - 1) // 2] + values[count // 2]) / 2
            cells.append(Cell(key, cell, count, sum(values) / count, median))
    return cells


def find_local_hours(instants: Integers) -> Integers:
    """Return the local hour of the week of each instant.

    The offsets of all zones today are whole quarters of an hour, so that one instant of each
    quarter is converted.
    """
    quarters, places = np.unique(instants // QUARTER_MS, return_inverse=True)
    zone = ZoneInfo(ZONE)
    hours = []
    for quarter in quarters.tolist():
        local = datetime.fromtimestamp(quarter * QUARTER_MS // 1_000, UTC).astimezone(zone)
        hours.append(local.weekday() * 24 + local.hour)
    return np.array(hours)[places]
