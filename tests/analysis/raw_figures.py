"""Figures of raw rows, computed with fractions."""

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from operator import itemgetter, mul
from statistics import mean, median_high, median_low
from typing import Any

from conftest import DAY
from explain.naive import explain_naively, format_naively

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


def compute_growth(values: Sequence[int]) -> dict[str, Any]:
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
) -> dict[str, Any]:
    """Return the figures of `stats`, those of FIGURES unless others are given."""
    start, end = window
    kept = select(rows, window)
    values = [players for _, players in kept]
    lasting = compute_durations(kept, end)
    first = start if start is not None else kept[0][0] if kept else end
    extremes = {"peak": max(values, default=None), "lowest": min(values, default=None)}
    instants = {name: [at for at, n in kept if n == extremes[name]] for name in extremes}
    weights = lasting if sum(lasting) else [1] * len(lasting)
    weighed = sum(map(mul, values, weights))
    above_for = sum(map(mul, lasting, (n > (above or 0) for n in values)))
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
        "growth": compute_growth(values),
        "sampleCount": len(values),
        "quantiles": [
            {"quantile": float(one), "players": compute_quantile(values, one)} for one in quantiles
        ],
        "timeWeightedAverage": float(Fraction(weighed, sum(weights))) if values else None,
        "above": None
        if above is None
        else {
            "players": above,
            "hours": float(Fraction(above_for, 2 * HOUR)) if values else None,
        },
        "usualIntervalSeconds": explain_naively(kept, start, end)["usualIntervalSeconds"],
        "coverage": float(Fraction(sum(lasting), 2 * (end - first))) if first < end else None,
    }
