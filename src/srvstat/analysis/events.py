"""Find unusual events in player counts: the document `events`.

docs/explanation/events.md has the rules.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Self, get_args

import numpy as np

from srvstat.analysis import questions
from srvstat.analysis.parameters import Parameter, check_choice
from srvstat.analysis.pictures import compute_peak_hours
from srvstat.analysis.questions import HOUR_MS, Steps
from srvstat.analysis.selection import Question
from srvstat.analysis.series import Series, compute_figures, get_name
from srvstat.contract.arrays import Numbers
from srvstat.contract.windows import DAY_MS, Window
from srvstat.documents.analysis import EventKind, EventPart, Events
from srvstat.documents.document import WHOLE_SHARE
from srvstat.snapshot.blocks import Observations
from srvstat.snapshot.read.observations import WindowFigures

EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)

_GAP_MS = 2 * HOUR_MS
_ZEROS_MS = HOUR_MS // 2
_LEAST_USUAL = 10
"""The minimum usual player count for a run of zeros to be an event. Smaller servers are often
empty.
"""

_WEEK = 7
_LEAST_OTHERS = 4
"""The minimum number of other days with the same weekday for a usual average."""
_LEAST_HOURS = 8
"""The minimum number of same hours in other weeks for a usual last hour."""
_MOST_WEEKS = 52
_FAR = 5
"""The robust z-score above which a day, or the last hour, is unusual."""
_LEAST_DAYS = 5
"""The minimum number of whole days in a week for its median to be a level."""
_LEAST_PAIRS = 14
"""The minimum number of pairs of days a week apart, used to estimate the usual weekly change."""
_FAR_LEVEL = 3
_LEAST_RATIO = Fraction(3, 2)
_MAD_FACTOR = Fraction(7413, 5000)
"""The ratio of standard deviation to median absolute deviation for a normal distribution."""
_SLACK = 1 - 1e-9

_Values = Mapping[int, Any]
"""The averages of whole days, by the number of the day: all floats, or all fractions."""
_Judged = tuple[int, Any, Any]


@dataclass(frozen=True)
class EventOptions:
    """Options that choose the events to list."""

    since: Annotated[
        str | None,
        Parameter("Only events that end in the last LENGTH of the window, such as 24h.", "LENGTH"),
    ] = None
    kinds: Annotated[
        list[str] | None,
        Parameter(
            f"Only events of this kind: {', '.join(EVENT_KINDS)}; repeatable.",
            "KIND",
            ("--kind",),
            completes=EVENT_KINDS,
        ),
    ] = None
    longer: Annotated[
        str | None,
        Parameter(
            "The minimum length of gaps and empty periods [default: 2h for gaps, 30 minutes for"
            " empty periods].",
            "LENGTH",
        ),
    ] = None

    def __post_init__(self) -> None:
        self.parse_kinds()
        self.parse_since(0)
        self.parse_longer()

    def parse_kinds(self) -> list[EventKind]:
        """Return the kinds. Raises UsageError for an unknown kind."""
        return [check_choice("kinds", one, EVENT_KINDS) for one in self.kinds or EVENT_KINDS]

    def parse_since(self, end: int) -> int:
        """Return the time after which events end. Raises UsageError if `since` is invalid."""
        return 0 if self.since is None else end - questions.parse_length(self.since, "since")

    def parse_longer(self) -> int | None:
        """Return a length in milliseconds, or None for the defaults.

        Raises UsageError if it is invalid.
        """
        return None if self.longer is None else questions.parse_length(self.longer, "longer")


def list_events(question: Question, options: EventOptions) -> Events:
    """Return the document `events` for the servers and window of a question.

    Raises UsageError for too many steps, and SnapshotError if data are damaged.
    """
    ids = tuple(server.id for server in question.iter_rows()) if question.is_sum else None
    return Events(**question.describe(), servers=ids, events=find_events(question, options))


def find_events(question: Question, options: EventOptions) -> tuple[EventPart, ...]:
    """Return the events of servers in a window, the newest first.

    Raises UsageError for too many steps, and SnapshotError if data are damaged.
    """
    start, end = question.window
    end = min(end, question.snapshot.as_of)
    if start >= end:
        return ()
    question = question._replace(window=Window(start, end))
    since, kinds = options.parse_since(end), options.parse_kinds()
    days = _Days.create(question)
    found = []
    for server in question.servers:
        search = _Search(question, server, days, options.parse_longer())
        found += [
            EventPart(name, kind, start, end, (end - start) / 1000, *others)
            for name in [get_name(server).server_id]
            for kind in kinds
            for start, end, *others in _RULES[kind](search)
            if end > since
        ]
    return tuple(sorted(found, key=lambda one: (-one.to, -one.from_, one.server_id or "")))


def may_be_down(counts: Observations, window: Window) -> bool:
    """Return whether a window has a zero count or an interval longer than the minimum gap."""
    distances = np.diff(np.concatenate([[window.start], counts.instants, [window.end]]))
    return bool(distances.max() > _GAP_MS or not counts.players.all())


class _Days(NamedTuple):
    """The days of a window, and their numbers on the local calendar, counted from 1970-01-01."""

    steps: Steps
    numbers: Numbers

    @classmethod
    def create(cls, question: Question) -> Self:
        """Return the days of a query's window."""
        steps = questions.divide_window(question, questions.parse_step("day"))
        return cls(steps, questions.convert_to_local(steps.edges[:-1], question.zone) // DAY_MS)

    def find_times(self, first: int, last: int) -> tuple[int, int]:
        """Return the start of the first day and the end of the last day."""
        found = self.numbers.searchsorted(first), self.numbers.searchsorted(last, "right")
        return int(self.steps.edges[found[0]]), int(self.steps.edges[found[1]])


class _Event(NamedTuple):
    from_: int
    to: int
    expected: float | None = None
    seen: float | None = None


@dataclass(frozen=True)
class _Search:
    """A server or total in the window of a query. The window does not end after the snapshot.

    `longer` overrides the minimum length of gaps and zeros; a gap also exceeds three polling
    intervals.
    """

    question: Question
    server: Series
    days: _Days
    longer: int | None

    @cached_property
    def figures(self) -> WindowFigures:
        """The statistics of the window's observations."""
        return compute_figures(self.question.snapshot, self.server, self.question.window)

    def find_gaps(self) -> Iterator[_Event]:
        """Yield the times without observations, starting with the first observation."""
        first, (start, end) = self.server.first_observed_at, self.question.window
        if first is None or first > end or self.question.snapshot.is_held:
            return
        before = [start] if first <= start else []
        edges = np.concatenate([before, self.figures.observations.instants, [end]])
        least = max(self.longer or _GAP_MS, 3 * (self.figures.usual_interval or 0))
        for gap in np.flatnonzero(np.diff(edges) > least).tolist():
            yield _Event(int(edges[gap]), int(edges[gap + 1]))

    def find_zeros(self) -> Iterator[_Event]:
        """Yield the times without players in hours of the week that usually have players."""
        (instants, players), durations = self.figures.counts, self.figures.durations
        is_zero = players == 0
        is_joined = is_zero[:-1] & is_zero[1:] & (durations[:-1] == 2 * np.diff(instants))
        lasts = is_zero & ~np.append(is_joined, False)[: len(is_zero)]
        starts = instants[is_zero & ~np.append(False, is_joined)[: len(is_zero)]]
        ends = instants[lasts] + durations[lasts] // 2
        is_long = ends - starts > (self.longer or _ZEROS_MS)
        if not self.question.snapshot.is_held:
            is_long &= instants[lasts] > starts  # a single zero may be a restart
        if not is_long.any():
            return
        hours = compute_peak_hours(self.question._replace(servers=[self.server])).servers[0].cells
        for start, end in zip(starts[is_long].tolist(), ends[is_long].tolist(), strict=True):
            times = np.arange(start, end, HOUR_MS)
            passed = questions.find_hours_of_week(times, self.question.zone).tolist()
            medians = [hours[hour].median_players or 0 for hour in passed]
            usual = sum(medians) / len(medians)
            if usual >= _LEAST_USUAL:
                yield _Event(start, end, usual, 0)

    def find_unusual_days(self) -> Iterator[_Event]:
        """Yield the days far from their weekday's median, unless a level change explains them."""
        for day, expected, seen in self._judged[0]:
            if not any(change <= day < change + _WEEK for change, _, _ in self._judged[1]):
                yield _Event(*self.days.find_times(day, day), float(expected), float(seen))

    def find_step_changes(self) -> Iterator[_Event]:
        """Yield the level changes, from their midnight to the end of the following week."""
        for day, before, after in self._judged[1]:
            times = self.days.find_times(day, day + _WEEK - 1)
            yield _Event(*times, float(before), float(after))

    @cached_property
    def _judged(self) -> tuple[list[_Judged], list[_Judged]]:
        """Unusual days and level changes, computed exactly if a check with floats finds any."""
        averages = self._list_averages(self.days.steps)
        known = [
            (day, one)
            for day, one in zip(self.days.numbers.tolist(), averages, strict=True)
            if one is not None
        ]
        values = {day: total / weight for day, (total, weight) in known}
        exact = {day: Fraction(total, weight) for day, (total, weight) in known}
        return (
            _find_unusual_days(exact, 1) if _find_unusual_days(values, _SLACK) else [],
            _find_level_changes(exact, 1) if _find_level_changes(values, _SLACK) else [],
        )

    def find_below_usual(self) -> Iterator[_Event]:
        """Yield the last hour if it is far below the same hour of the previous weeks."""
        start, end = self.question.window
        weeks = range(min((end - start) // (_WEEK * DAY_MS), _MOST_WEEKS), -1, -1)
        ends = [questions.subtract_days(end, _WEEK * one, self.question.zone) for one in weeks]
        edges = [edge for at in ends for edge in (at - HOUR_MS, at)]
        steps = Steps(np.array([edges[0] - HOUR_MS, *edges]), self.question.window)
        *others, now = self._list_averages(steps)[1::2]
        usual = sorted(Fraction(*one) for one in others if one is not None)
        if now is None or len(usual) < _LEAST_HOURS:
            return
        seen, expected = Fraction(*now), _find_median(usual)
        spread = _find_median(sorted(abs(one - expected) for one in usual))
        far = _FAR * _compute_deviation(spread, expected)
        if expected - seen >= far and 2 * seen <= expected:
            yield _Event(end - HOUR_MS, end, float(expected), float(seen))

    def _list_averages(self, steps: Steps) -> list[tuple[int, int] | None]:
        """Return the average of each step as a quotient, or None if too little was observed."""
        counts = questions.count_steps(self.question.snapshot, self.server, self.figures, steps)
        columns = (one.tolist() for one in (*counts.sum_players(), counts.shares))
        return [
            (total, weight) if weight and share >= WHOLE_SHARE else None
            for total, weight, share in zip(*columns, strict=True)
        ]


def _find_unusual_days(values: _Values, slack: float) -> list[_Judged]:
    """Return the days that are far from their weekday's median, with expected and actual values.

    `slack` scales the thresholds. It is 1 for exact values, and slightly less for floats, so that
    rounding errors exclude no day.
    """
    usual: dict[int, Any] = {}
    for weekday in range(_WEEK):
        ranked = sorted((values[day], day) for day in values if day % _WEEK == weekday)
        for rank, (_, day) in enumerate(ranked) if len(ranked) > _LEAST_OTHERS else ():
            others = (len(ranked) - 2) // 2, (len(ranked) - 1) // 2
            usual[day] = sum(ranked[one + (one >= rank)][0] for one in others) / 2
    spread = _find_median(sorted(abs(values[day] - usual[day]) for day in usual)) if usual else 0
    found = []
    for day, expected in usual.items():
        distance = values[day] - expected
        if abs(distance) < _FAR * slack * _compute_deviation(spread, expected):
            continue
        before = values.get(day - _WEEK, expected)
        if 2 * (values[day] - before) / distance >= slack:
            found.append((day, expected, values[day]))
    return sorted(found)


def _find_level_changes(values: _Values, slack: float) -> list[_Judged]:
    """Return the days on which a new level begins, with the medians of the weeks before and after.

    `slack` is as in `_find_unusual_days`.
    """
    pairs = [(values[day - _WEEK], values[day]) for day in values if day - _WEEK in values]
    if len(pairs) < _LEAST_PAIRS:
        return []
    spread = _find_median(sorted(abs(after - before) for before, after in pairs))
    found = []
    for day in range(min(values) + _WEEK, max(values) - _WEEK + 2):
        weeks = [
            [values[one] for one in range(first, first + _WEEK) if one in values]
            for first in (day - _WEEK, day)
        ]
        if min(map(len, weeks)) < _LEAST_DAYS:
            continue
        before, after = (_find_median(sorted(week)) for week in weeks)
        low, high = sorted((before, after))
        far = _FAR_LEVEL * _compute_deviation(spread, low)
        if high - low >= slack * far and high >= slack * _LEAST_RATIO * low:
            means = [sum(week) / len(week) for week in weeks]
            found.append((abs(means[1] - means[0]), -day, before, after))
    chosen: list[_Judged] = []
    for _, negative, before, after in sorted(found, reverse=True):
        if all(abs(-negative - day) >= _WEEK for day, _, _ in chosen):
            chosen.append((-negative, before, after))
    return sorted(chosen)


def _compute_deviation(spread: Any, expected: Any) -> Any:
    """Return the scaled median absolute deviation, with a lower bound.

    The bound is 5 % of the expected value, but at least 1 player.
    """
    return max(_MAD_FACTOR * spread, expected / 20, 1)


def _find_median(ranked: Sequence[Any]) -> Any:
    return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2


_RULES: dict[EventKind, Callable[[_Search], Iterator[_Event]]] = {
    "gap": _Search.find_gaps,
    "zeros": _Search.find_zeros,
    "unusualDay": _Search.find_unusual_days,
    "stepChange": _Search.find_step_changes,
    "belowUsual": _Search.find_below_usual,
}
