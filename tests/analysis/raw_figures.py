"""Figures of raw rows, computed with fractions."""

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from operator import itemgetter
from statistics import mean, median_high, median_low
from typing import Any

from conftest import DAY
from explain.naive import explain_naively, format_naively

HOUR = DAY // 24

Row = tuple[int, int]
"""An instant and the players observed at it."""
Window = tuple[int | None, int]


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


def compute_quantile(values: Sequence[int], quantile: Fraction) -> float:
    ranked, place = sorted(values), len(values) * quantile
    ranks = (max(ceil(place), 1), min(floor(place) + 1, len(values)))
    return float(mean(Fraction(ranked[rank - 1]) for rank in ranks))


def compute_durations(rows: Sequence[Row], end: int) -> list[int]:
    """Return how long each observation lasts: until the next one, at most 3 usual intervals.

    Counts half milliseconds, because a median of milliseconds may not be a whole number.
    """
    edges = [*(at for at, _ in rows), end]
    distances = [2 * (after - before) for before, after in pairwise(edges)]
    usual = (median_low(distances[:-1]) + median_high(distances[:-1])) // 2
    return [min(distance, 3 * usual) for distance in distances]


def compute_hours_above(rows: Sequence[Row], end: int, limit: int) -> float:
    lasting = zip(rows, compute_durations(rows, end), strict=True)
    total = sum(length for (_, players), length in lasting if players > limit)
    return float(Fraction(total, 2 * HOUR))


def compute_figures(rows: Sequence[Row], window: Window) -> dict[str, Any]:
    """Return the figures of `stats` with FIGURES."""
    kept = select(rows, window)
    values = [players for _, players in kept]
    explained = explain_naively(kept, *window)
    spans = [[at for at, count in kept if count == edge] for edge in (max(values), min(values))]
    names = ("peakFirstAt", "peakLastAt", "lowestFirstAt", "lowestLastAt")
    instants = [format_naively(at) for span in spans for at in (span[0], span[-1])]
    lasting = Fraction(sum(compute_durations(kept, window[1])), 2)
    copied = ("sampleCount", "timeWeightedAverage", "usualIntervalSeconds")
    return {
        "averagePlayers": compute_mean(values),
        "medianPlayers": compute_median(values),
        "peakPlayers": max(values),
        "lowestPlayers": min(values),
        "firstPlayers": values[0],
        "lastPlayers": values[-1],
        "growth": compute_growth(values),
        **dict(zip(names, instants, strict=True)),
        "quantiles": [
            {"quantile": float(quantile), "players": compute_quantile(values, quantile)}
            for quantile in (Fraction(0), Fraction(95, 100), Fraction(999, 1000))
        ],
        "above": {"players": 20, "hours": compute_hours_above(kept, window[1], 20)},
        "coverage": float(lasting / (window[1] - (window[0] or kept[0][0]))),
        **{name: explained[name] for name in copied},
    }
