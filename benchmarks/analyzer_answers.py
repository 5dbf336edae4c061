"""The correct answers to the analyzer's questions, computed from the generated observations."""

from collections.abc import Sequence
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


class Step(NamedTuple):
    """A step in `growth` or `history`; without observations, its other figures are None."""

    key: int
    start: int
    end: int
    observations: int
    mean: float | None
    growth: int | None = None


class Change(NamedTuple):
    """The change of a server in `growth`, in this window and in the previous one."""

    key: int
    growth: int | None
    previous: int | None
    per_week: float


class Growth(NamedTuple):
    """The whole answer to `growth`."""

    steps: list[Step]
    changes: list[Change]


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
            if abs(one - other) > _TOLERANCE * abs(other):
                raise WrongAnswerError(f"{tool}, growth: a trend of {one}, expected {other}")
    for one, other in zip(answer, correct, strict=True):
        if one != other:
            raise WrongAnswerError(f"{tool}, {question.name}: got {one}, expected {other}")


def _separate_trends(answer: Growth) -> tuple[list[Step | Change], list[float]]:
    changes = [change._replace(per_week=0) for change in answer.changes]
    return [*answer.steps, *changes], [change.per_week for change in answer.changes]


@lru_cache(maxsize=64)
def _load(key: int) -> tuple[Integers, Integers]:
    course = fleet.generate_course(key - 1)
    return course.instants, course.players


def _load_window(key: int, window: Window) -> tuple[Integers, Integers]:
    instants, players = _load(key)
    inside = (instants > window.start) & (instants <= window.end)
    return instants[inside], players[inside]


def _compute_stats(question: Question) -> list[Figures]:
    return [_compute_figures(key, question.window) for key in question.keys]


def _compute_figures(key: int, window: Window) -> Figures:
    instants, players = _load_window(key, window)
    values = players.tolist()
    ranked, count = sorted(values), len(values)
    at_peak, at_lowest = (instants[players == value] for value in (ranked[-1], ranked[0]))
    distances = sorted(np.diff(instants).tolist())
    doubled = distances[(count - 2) // 2] + distances[(count - 1) // 2]
    lasting = np.minimum(2 * np.diff(instants, append=window.end), 3 * doubled)
    weight = int(lasting.sum())
    return Figures(
        key=key,
        observations=count,
        mean=sum(values) / count,
        median=(ranked[(count - 1) // 2] + ranked[count // 2]) / 2,
        quantile=(ranked[-(-count * PERCENT // 100) - 1] + ranked[count * PERCENT // 100]) / 2,
        peak=ranked[-1],
        lowest=ranked[0],
        first=values[0],
        last=values[-1],
        peak_first_at=int(at_peak[0]),
        peak_last_at=int(at_peak[-1]),
        lowest_first_at=int(at_lowest[0]),
        lowest_last_at=int(at_lowest[-1]),
        usual_seconds=doubled / 2_000,
        weighted_mean=int((lasting * players).sum()) / weight,
        coverage=weight / (2 * (window.end - window.start)),
    )


def _compute_top(question: Question) -> list[Figures]:
    means = {}
    for key in question.keys:
        players = _load_window(key, question.window)[1]
        means[key] = Fraction(int(players.sum()), len(players))
    best = sorted(means, key=lambda key: (-means[key], key))[:WINNERS]
    return [_compute_figures(key, question.window) for key in best]


def _compute_growth(question: Question) -> Growth:
    steps, changes = [], []
    for key in question.keys:
        found = _compute_steps(key, question.window, DAY_MS)
        values, before = (
            _load_window(key, window)[1].tolist() for window in (question.window, question.previous)
        )
        previous = before[-1] - before[0] if len(before) > 1 else None
        steps += found
        changes.append(Change(key, values[-1] - values[0], previous, _compute_trend(key, found)))
    return Growth([step for step in steps if step.observations], changes)


def _compute_steps(key: int, window: Window, length: int) -> list[Step]:
    instants, players = _load_window(key, window)
    inner = range(window.start // length * length + length, window.end, length)
    edges = np.array([window.start, *inner, window.end])
    positions = instants.searchsorted(edges, "right").tolist()
    steps = []
    for (start, end), (first, after) in zip(
        pairwise(edges.tolist()), pairwise(positions), strict=True
    ):
        values = players[first:after].tolist()
        growth = values[-1] - values[0] if len(values) > 1 else None
        mean = sum(values) / len(values) if values else None
        steps.append(Step(key, start, end, len(values), mean, growth))
    return steps


def _compute_trend(key: int, steps: Sequence[Step]) -> float:
    """Return the median slope of all pairs of steps with observations, in players a week."""
    instants, players = _load(key)
    points = []
    for step in steps:
        if step.observations:
            inside = (instants > step.start) & (instants <= step.end)
            points.append((step.start + step.end, int(players[inside].sum()), step.observations))
    # A midpoint is half the sum of its edges. Each slope is one division of integers.
    slopes = sorted(
        2 * WEEK_MS * (total_b * count_a - total_a * count_b) / (count_a * count_b * (b - a))
        for (a, total_a, count_a), (b, total_b, count_b) in combinations(points, 2)
    )
    return (slopes[(len(slopes) - 1) // 2] + slopes[len(slopes) // 2]) / 2


def _compute_history(question: Question) -> list[Step]:
    return [
        step._replace(growth=None)
        for key in question.keys
        for step in _compute_steps(key, question.window, HOUR_MS)
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
