"""Recompute documents of the analyzer from rows by the definitions alone, with fractions."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import cache
from itertools import groupby, pairwise
from math import ceil, floor
from operator import itemgetter, mul
from statistics import mean, median, median_high, median_low
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from conftest import AS_OF, DAY
from replay.explained import format_naively

HOUR = DAY // 24

Row = tuple[int, int]
"""An instant and the players observed at it."""
Window = tuple[int | None, int]
QUANTILES = (Fraction(0), Fraction(95, 100), Fraction(999, 1000))


def select(rows: Sequence[Row], window: Window) -> Sequence[Row]:
    """Return the rows of a window; the rows are in order of time."""
    first, last = (
        0 if edge is None else bisect_right(rows, edge, key=itemgetter(0)) for edge in window
    )
    return rows[first:last]


def compute_mean(values: Sequence[int]) -> float | None:
    return float(Fraction(sum(values), len(values))) if values else None


def compute_median(values: Sequence[int]) -> float | None:
    return float(Fraction(median_low(values) + median_high(values), 2)) if values else None


def compute_growth_naively(values: Sequence[int]) -> dict[str, Any]:
    if len(values) < 2:
        return {"players": None, "percentage": None}
    first, last = values[0], values[-1]
    percentage = float(Fraction(100 * (last - first), first)) if first else None
    return {"players": last - first, "percentage": percentage}


def compute_quantile(values: Sequence[int], quantile: Fraction) -> float | None:
    if not values:
        return None
    ranked, place = sorted(values), len(values) * quantile
    ranks = (max(ceil(place), 1), min(floor(place) + 1, len(values)))
    return float(mean(Fraction(ranked[rank - 1]) for rank in ranks))


def compute_durations(rows: Sequence[Row], end: int) -> list[int]:
    """Return how long each observation lasts: until the next one, at most 3 usual intervals.

    Counts half milliseconds, because a median of milliseconds may not be a whole number.
    """
    edges = [*(at for at, _ in rows), end]
    distances = [2 * (after - before) for before, after in pairwise(edges)]
    if len(distances) < 2:
        return distances
    usual = (median_low(distances[:-1]) + median_high(distances[:-1])) // 2
    return [min(distance, 3 * usual) for distance in distances]


def compute_figures(
    rows: Sequence[Row],
    window: Window,
    quantiles: Sequence[Fraction] = QUANTILES,
    above: int | None = 20,
    most: int = 0,
) -> dict[str, Any]:
    """Return the figures of `stats` for a server whose record has a maximum, or 0."""
    return compute_joined_figures(rows, [window], quantiles, above, most)


def compute_joined_figures(
    rows: Sequence[Row],
    windows: Sequence[Window],
    quantiles: Sequence[Fraction] = (),
    above: int | None = None,
    most: int = 0,
) -> dict[str, Any]:
    """Return the figures of several windows together."""
    parts = [select(rows, one) for one in windows]
    kept = [row for part in parts for row in part]
    values = [players for _, players in kept]
    lasting = [
        one
        for part, (_, end) in zip(parts, windows, strict=True)
        for one in compute_durations(part, end)
    ]
    usual = find_usual_intervals(parts)
    coverages = [_compute_share(part, window) for part, window in zip(parts, windows, strict=True)]
    extremes = {"peak": max(values, default=None), "lowest": min(values, default=None)}
    instants = {name: [at for at, n in kept if n == extremes[name]] for name in extremes}
    weights = lasting if sum(lasting) else [1] * len(lasting)
    weighed = sum(map(mul, values, weights))

    def count_hours(least: int) -> float | None:
        lasted = sum(map(mul, lasting, (n >= least for n in values)))
        return float(Fraction(lasted, 2 * HOUR)) if values else None

    return {
        "averagePlayers": compute_mean(values),
        "medianPlayers": compute_median(values),
        **{f"{name}Players": players for name, players in extremes.items()},
        **{
            f"{name}{edge}At": format_naively(found[at]) if found else None
            for name, found in instants.items()
            for edge, at in (("First", 0), ("Last", -1))
        },
        "firstPlayers": values[0] if values else None,
        "lastPlayers": values[-1] if values else None,
        "growth": compute_growth_naively(values),
        "sampleCount": len(values),
        "quantiles": [
            {"quantile": float(one), "players": compute_quantile(values, one)} for one in quantiles
        ],
        "timeWeightedAverage": float(Fraction(weighed, sum(weights))) if values else None,
        "above": None if above is None else {"players": above, "hours": count_hours(above + 1)},
        "usualIntervalSeconds": None if usual is None else float(usual / 1000),
        "coverage": coverages[0] if len(coverages) == 1 else min(one or 0 for one in coverages),
        "occupancy": float(Fraction(sum(values), len(values) * most)) if values and most else None,
        "fullHours": count_hours(most) if most else None,
        "averageWhenOpen": compute_mean([n for n in values if n]),
    }


def _compute_share(kept: Sequence[Row], window: Window) -> float | None:
    start, end = window
    first = start if start is not None else kept[0][0] if kept else end
    lasting = compute_durations(kept, end)
    return float(Fraction(sum(lasting), 2 * (end - first))) if first < end else None


def find_usual_intervals(parts: Sequence[Sequence[Row]]) -> Fraction | None:
    """Return the median distance of successive rows of each part."""
    distances = [Fraction(b - a) for part in parts for (a, _), (b, _) in pairwise(part)]
    return median(distances) if distances else None


TICK = 900_000
"""A quarter of an hour: clocks change by whole ones."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEYS: dict[str, Callable[[datetime], Any]] = {
    "day": lambda local: local.date(),
    "week": lambda local: local.isocalendar()[:2],
    "month": lambda local: (local.year, local.month),
}
"""Instants belong to one calendar step if they have the same key on the local clock."""

_MINUTES = {"m": 1, "h": 60, "d": 1440}


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


def read_clock(at: int, zone: ZoneInfo) -> datetime:
    return (EPOCH + timedelta(milliseconds=at)).astimezone(zone)


@cache
def list_edges(first: int, last: int, step: str, zone: ZoneInfo) -> list[int]:
    """Return the edges of the whole steps that contain the instants from `first` to `last`."""
    length = 1440 if step in _KEYS else int(step[:-1]) * _MINUTES[step[-1]]

    def find_key(at: int) -> Any:
        local = read_clock(at, zone)
        if step in _KEYS:
            return _KEYS[step](local)
        days = (local.date() - date(1970, 1, 1)).days
        number = ((days * 24 + local.hour) * 60 + local.minute) // length
        return number, local.fold if length <= 60 else 0

    def iter_edges(at: int, tick: int) -> Iterator[int]:
        key = find_key(at)
        while True:
            at += tick
            if find_key(at) != key:
                yield at
                key = find_key(at)

    tick = min(TICK, length * 60_000)
    start = next(iter_edges(first // tick * tick, -tick)) + tick
    edges = [start]
    for edge in iter_edges(start, tick):
        edges.append(edge)
        if edge > last:
            return edges
    raise AssertionError


def find_usual_interval(rows: Sequence[Row]) -> Fraction | None:
    """Return the median distance of successive rows."""
    return find_usual_intervals([rows])


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


def compare_naively(before: Sequence[int], after: Sequence[int]) -> dict[str, Any]:
    """Return the change from the average of some counts to the average of others."""
    old, new = (Fraction(sum(values), len(values)) for values in (before, after))
    percentage = float(100 * (new - old) / old) if old else None
    return {"players": float(new - old), "percentage": percentage}


def describe_growth_steps(steps: Sequence[NaiveStep]) -> list[dict[str, Any]]:
    """Return the steps of growth; a change needs two successive whole steps with observations."""
    found = [
        {
            **one.describe(),
            "averagePlayers": compute_mean(one.values),
            "change": None,
            "growth": compute_growth_naively(one.values),
        }
        for one in steps
    ]
    for shown, (before, after) in zip(found[1:], pairwise(steps), strict=True):
        if all(one.values and not one.is_partial for one in (before, after)):
            shown["change"] = compare_naively(before.values, after.values)
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
    return Fraction(sum(compute_durations(select(rows, window), end)), 2 * (end - start))


_ROUND = [factor * 10**power for power in range(17) for factor in (1, 2, 5)]
_LENGTHS = {
    **{f"{minutes}m": minutes * HOUR // 60 for minutes in (1, 2, 5, 10, 15, 30)},
    **{f"{hours}h": hours * HOUR for hours in (1, 2, 3, 6, 12)},
    "day": DAY,
    "week": 7 * DAY,
    "month": 28 * DAY,
}

Servers = dict[str, list[Row]]


def read_figures(document: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a document, with the figures of servers by id."""
    outer, names = ("document", "version", "asOf", "root"), ("serverId", "cfxId", "hostname")
    found = {name: value for name, value in document.items() if name not in outer}
    found["servers"] = {
        one["serverId"]: {name: value for name, value in one.items() if name not in names}
        for one in document["servers"]
    }
    return found


def compute_timeline_naively(
    servers: Servers, window: tuple[int | None, int], most: int, as_of: int, zone: ZoneInfo
) -> dict[str, Any]:
    """Return the window, the steps and, for each server, the figures of a timeline."""
    start, end = _bound_window(servers, window)
    usual = {
        name: find_usual_interval(select(rows, (start, end))) for name, rows in servers.items()
    }
    shortest = min((one for one in usual.values() if one is not None), default=Fraction(HOUR))
    for step, length in _LENGTHS.items():
        if (length < shortest * Fraction(95, 100) and step != "month") or end - start > (
            3 * length * most
        ):
            continue
        split = {
            name: split_naively(rows, (start, end), step, zone) for name, rows in servers.items()
        }
        steps = next(iter(split.values()))
        edges = [steps[0].whole[0], *(one.whole[1] for one in steps)]
        if len(edges) <= most + 1:
            break
    runs = [(one, other - one) for one, other in pairwise(edges)]
    return {
        "window": {"from": format_naively(start), "to": format_naively(end)},
        "timeZone": zone.key,
        "step": step,
        "steps": [
            {
                "from": format_naively(members[0][0]),
                "seconds": length // 1000,
                "count": len(members),
            }
            for length, run in groupby(runs, key=itemgetter(1))
            for members in [list(run)]
        ],
        "servers": {
            name: {
                **_describe_steps(steps),
                "gaps": [
                    {"from": format_naively(first), "to": format_naively(last)}
                    for first, last in _iter_gaps(servers[name], (start, end), usual[name], as_of)
                ],
            }
            for name, steps in split.items()
        },
    }


def _bound_window(servers: Servers, window: tuple[int | None, int]) -> tuple[int, int]:
    start, end = window
    first = min((at for rows in servers.values() for at, _ in rows), default=end)
    return (min(first, end) - 1 if start is None else start), end


def _describe_steps(steps: Sequence[NaiveStep]) -> dict[str, Any]:
    players = [step.values for step in steps]
    return {
        "sampleCounts": [len(step) for step in players],
        "averages": [compute_mean(step) for step in players],
        "lowest": [min(step, default=None) for step in players],
        "peak": [max(step, default=None) for step in players],
        "observedShares": [float(step.share) for step in steps],
    }


def _iter_gaps(
    rows: Sequence[Row], window: tuple[int, int], usual: Fraction | None, as_of: int
) -> Iterator[tuple[int, int]]:
    """Yield the times of a window between observations of over three usual intervals."""
    start, end = window
    known = min(end, as_of)
    instants = [at for at, _ in rows if at <= end]
    before = [at for at in instants if at <= start]
    edges = [*(before[-1:] or [start]), *(at for at in instants if at > start), known]
    for one, other in pairwise(edges):
        cut = max(one, start), min(other, known)
        if other - one > 3 * (usual or 0) and cut[0] < cut[1]:
            yield cut


def compute_distribution_naively(
    servers: Servers, window: tuple[int | None, int], most: int
) -> dict[str, Any]:
    """Return the bins and, for each server, the figures of a distribution."""
    kept = {name: [n for _, n in select(rows, window)] for name, rows in servers.items()}
    values = [n for players in kept.values() for n in players] or [0]
    width = next(w for w in _ROUND if max(values) // w - min(values) // w < most)
    bins = range(min(values) // width, max(values) // width + 1)
    start, end = window
    return {
        "window": {
            "from": start if start is None else format_naively(start),
            "to": format_naively(end),
        },
        "firstPlayers": bins[0] * width,
        "binPlayers": width,
        "servers": {name: _describe_counts(players, width, bins) for name, players in kept.items()},
    }


def _describe_counts(players: Sequence[int], width: int, bins: range) -> dict[str, Any]:
    counted = Counter(n // width for n in players)
    names = ("lowerQuartile", "medianPlayers", "upperQuartile")
    return {
        "sampleCount": len(players),
        "lowestPlayers": min(players, default=None),
        "peakPlayers": max(players, default=None),
        "counts": [counted[one] for one in bins],
        **{
            name: compute_quantile(players, Fraction(quarter, 4)) if players else None
            for quarter, name in enumerate(names, 1)
        },
    }


Rows = dict[int, int]


@st.composite
def series(draw: st.DrawFn) -> Rows:
    """Draw polled observations with gaps, and some at any instant; often few values repeat."""
    interval = draw(st.sampled_from([1, 60_000, HOUR, HOUR + 1, DAY]))
    steps = draw(st.lists(st.integers(0, 60), max_size=30))
    instants = [AS_OF - interval * step for step in steps]
    instants += draw(st.lists(st.integers(AS_OF - 3 * DAY, AS_OF), max_size=4))
    values = draw(st.sampled_from([st.integers(0, 3), st.integers(0, 2**53 - 1)]))
    return {at: draw(values) for at in instants}
