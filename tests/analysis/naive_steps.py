"""Divide rows into the steps of a calendar, by the definitions alone.

A step includes its start and excludes its end, the last one of a window includes its end.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter
from statistics import median
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from analysis.raw_figures import Row, compute_mean, select
from explain.naive import format_naively

TICK = 900_000
"""A quarter of an hour: clocks change by whole ones."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEYS: dict[str, Callable[[datetime], Any]] = {
    "1h": lambda local: (local.date(), local.hour, local.fold),
    "2h": lambda local: (local.date(), local.hour // 2),
    "3h": lambda local: (local.date(), local.hour // 3),
    "6h": lambda local: (local.date(), local.hour // 6),
    "12h": lambda local: (local.date(), local.hour // 12),
    "1d": lambda local: local.date(),
    "7d": lambda local: (local.date() - date(1970, 1, 1)).days // 7,
    "day": lambda local: local.date(),
    "week": lambda local: local.isocalendar()[:2],
    "month": lambda local: (local.year, local.month),
}
"""Instants belong to one step if they have the same key on the local clock."""


class NaiveStep(NamedTuple):
    """A step, cut to its window; `whole` are its ends on the calendar."""

    start: int
    end: int
    whole: tuple[int, int]
    share: Fraction
    values: list[int]

    @property
    def is_partial(self) -> bool:
        """Whether observations cover less than 90 % of the step."""
        return self.share < Fraction(9, 10)

    def describe(self) -> dict[str, Any]:
        """Return the members that every step has in JSON."""
        return {
            "from": format_naively(self.start),
            "to": format_naively(self.end),
            "isPartial": self.is_partial,
            "observedShare": float(self.share),
            "sampleCount": len(self.values),
        }


def list_edges(first: int, last: int, step: str, zone: ZoneInfo) -> list[int]:
    """Return the edges of the whole steps from that of `first` to that of `last`."""

    def find_key(at: int) -> Any:
        if step.endswith("m"):
            local = (_EPOCH + timedelta(milliseconds=at)).astimezone(zone)
            return local.date(), (local.hour * 60 + local.minute) // int(step[:-1]), local.fold
        return _KEYS[step]((_EPOCH + timedelta(milliseconds=at)).astimezone(zone))

    def iter_edges(at: int, tick: int) -> Iterator[int]:
        key = find_key(at)
        while True:
            at += tick
            if find_key(at) != key:
                yield at
                key = find_key(at)

    tick = min(TICK, int(step[:-1]) * 60_000) if step.endswith("m") else TICK
    start = next(iter_edges(first // tick * tick, -tick)) + tick
    edges = [start]
    for edge in iter_edges(start, tick):
        edges.append(edge)
        if edge > last:
            return edges
    raise AssertionError


def find_usual_interval(rows: Sequence[Row]) -> Fraction | None:
    distances = [Fraction(after - before) for (before, _), (after, _) in pairwise(rows)]
    return median(distances) if distances else None


def split_naively(
    rows: Sequence[Row],
    window: tuple[int | None, int],
    step: str,
    zone: ZoneInfo,
    first: int | None = None,
) -> list[NaiveStep]:
    """Return the steps of a window, and the players and the observed share of each.

    A window of all observations begins with the step of the instant `first`; without one, it has no
    step.
    """
    start, end = window
    if start is None:
        if first is None or first > end:
            return []
        edges = list_edges(min(first, end - 1), end - 1, step, zone)
        start = edges[0] - 1
    else:
        edges = list_edges(min(start + 1, end - 1), end - 1, step, zone)
    kept = select(rows, (start, end))
    lasting = list_lasting(rows, end, find_usual_interval(kept))
    return [
        NaiveStep(
            max(one, start),
            min(other, end),
            (one, other),
            Fraction(measure(lasting, max(one, start), min(other, end)), other - one),
            [n for at, n in kept if one <= at < other or (at == end == other)],
        )
        for one, other in pairwise(edges)
    ]


def list_lasting(
    rows: Sequence[Row], end: int, usual: Fraction | None
) -> list[tuple[Fraction, Fraction]]:
    """Return the intervals in which observations last up to `end`."""
    if usual is None:
        return []
    instants = [*(at for at, _ in rows if at <= end), end]
    return [
        (Fraction(at), min(Fraction(after), at + 3 * usual)) for at, after in pairwise(instants)
    ]


def measure(lasting: Sequence[tuple[Fraction, Fraction]], start: int, end: int) -> Fraction:
    """Return the length of the part of an interval in which observations last."""
    first = bisect_right(lasting, start, key=itemgetter(1))
    last = bisect_left(lasting, end, key=itemgetter(0))
    parts = [
        min(until, Fraction(end)) - max(at, Fraction(start)) for at, until in lasting[first:last]
    ]
    return sum((part for part in parts if part > 0), Fraction(0))


def describe_average(values: Sequence[int]) -> dict[str, Any]:
    return {"averagePlayers": compute_mean(values)}


def compare_naively(before: Sequence[int], after: Sequence[int]) -> dict[str, Any]:
    """Return the change from the average of some counts to that of others."""
    old, new = (Fraction(sum(values), len(values)) for values in (before, after))
    percentage = float(100 * (new - old) / old) if old else None
    return {"players": float(new - old), "percentage": percentage}


def describe_changes(steps: Sequence[NaiveStep]) -> list[dict[str, Any] | None]:
    """Return the change of each step against the one before, if both are whole."""
    found: list[dict[str, Any] | None] = [None] * len(steps)
    for at, (before, after) in enumerate(pairwise(steps), 1):
        if all(one.values and not one.is_partial for one in (before, after)):
            found[at] = compare_naively(before.values, after.values)
    return found


def compute_trend_naively(days: Sequence[NaiveStep]) -> float | None:
    """Return the median slope between the averages of whole days, in players a week."""
    points: list[tuple[Fraction, Fraction]] = [
        (Fraction(sum(day.whole), 2), Fraction(sum(day.values), len(day.values)))
        for day in days
        if day.values and not day.is_partial
    ]
    slopes = [
        (y2 - y1) / (x2 - x1)
        for number, (x1, y1) in enumerate(points)
        for x2, y2 in points[number + 1 :]
    ]
    return float(median(slopes) * 7 * 86_400_000) if len(points) > 2 else None


def compute_change_naively(
    rows: Sequence[Row], window: tuple[int | None, int]
) -> tuple[dict[str, Any] | None, float | None]:
    """Return the change of a window against the one before, and the coverage of that one."""
    start, end = window
    if start is None:
        return None, None
    windows = (2 * start - end, start), (start, end)
    coverages = [compute_coverage(rows, some) for some in windows]
    values = [[n for _, n in select(rows, some)] for some in windows]
    is_known = min(coverages) >= Fraction(8, 10)
    return compare_naively(*values) if is_known else None, float(coverages[0])


def compute_coverage(rows: Sequence[Row], window: tuple[int, int]) -> Fraction:
    """Return the share of a window in which its observations last."""
    start, end = window
    kept = select(rows, window)
    if len(kept) == 1:
        return Fraction(end - kept[0][0], end - start)
    lasting = list_lasting(kept, end, find_usual_interval(kept))
    return measure(lasting, start, end) / (end - start)
