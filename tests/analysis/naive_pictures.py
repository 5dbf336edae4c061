"""Compute the documents timeline and distribution from rows by the definitions alone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from math import ceil, floor
from statistics import median
from typing import Any

from analysis.raw_figures import Row, compute_mean, compute_quantile, select
from conftest import DAY
from explain.naive import format_naively

_MINUTE = 60_000
_ROUND = [factor * 10**power for power in range(17) for factor in (1, 2, 5)]
_LENGTHS = [
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(days * DAY for days in _ROUND),
]

Servers = dict[str, list[Row]]


def read_figures(document: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a document of a snapshot, those of servers by id."""
    outer, names = ("document", "version", "asOf", "root"), ("serverId", "cfxId", "hostname")
    found = {name: value for name, value in document.items() if name not in outer}
    found["servers"] = {
        one["serverId"]: {name: value for name, value in one.items() if name not in names}
        for one in document["servers"]
    }
    return found


def compute_timeline_naively(
    servers: Servers, window: tuple[int | None, int], most: int, as_of: int
) -> dict[str, Any]:
    """Return the window, the steps and, for each server, the figures of a timeline."""
    start, end = _bound_window(servers, window)
    kept = {name: select(rows, (start, end)) for name, rows in servers.items()}
    usual = {name: _find_usual_interval(rows) for name, rows in kept.items()}
    shortest = min((one for one in usual.values() if one is not None), default=Fraction(0))
    length = next(
        one
        for one in _LENGTHS
        if one >= shortest * Fraction(95, 100) and ceil(end / one) - floor(start / one) <= most
    )
    steps = _list_steps(start, end, length)
    return {
        "window": {"from": format_naively(start), "to": format_naively(end)},
        "stepsFrom": format_naively(start // length * length),
        "stepSeconds": length // 1000,
        "servers": {
            name: {
                **_describe_steps([select(rows, step) for step in steps]),
                "gaps": [
                    {"from": format_naively(first), "to": format_naively(last)}
                    for first, last in _iter_gaps(rows, steps, usual[name], as_of)
                ],
            }
            for name, rows in kept.items()
        },
    }


def _bound_window(servers: Servers, window: tuple[int | None, int]) -> tuple[int, int]:
    start, end = window
    first = min((at for rows in servers.values() for at, _ in rows), default=end)
    return (min(first, end) - 1 if start is None else start), end


def _find_usual_interval(rows: Sequence[Row]) -> Fraction | None:
    distances = [Fraction(after - before) for (before, _), (after, _) in pairwise(rows)]
    return median(distances) if distances else None


def _list_steps(start: int, end: int, length: int) -> list[tuple[int, int]]:
    first = start // length * length
    return list(pairwise([start, *range(first + length, end, length), end]))


def _describe_steps(steps: Sequence[Sequence[Row]]) -> dict[str, Any]:
    players = [[count for _, count in step] for step in steps]
    return {
        "sampleCounts": [len(step) for step in players],
        "averages": [compute_mean(step) for step in players],
        "lowest": [min(step, default=None) for step in players],
        "peak": [max(step, default=None) for step in players],
    }


def _iter_gaps(
    rows: Sequence[Row], steps: Sequence[tuple[int, int]], usual: Fraction | None, as_of: int
) -> Iterator[tuple[int, int]]:
    """Yield the runs of steps without observations in distances of over three usual intervals."""
    first, last = steps[0][0], min(steps[-1][1], as_of)

    def is_in_gap(step: tuple[int, int]) -> bool:
        if select(rows, step) or step[0] >= last:
            return False
        before = max((at for at, _ in rows if at <= step[0]), default=first)
        after = min((at for at, _ in rows if at > step[1]), default=last)
        return usual is None or after - before > 3 * usual

    for is_gap, run in groupby(steps, is_in_gap):
        members = list(run)
        if is_gap:
            yield members[0][0], min(members[-1][1], last)


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
