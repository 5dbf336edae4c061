"""Figures of raw rows, computed with fractions."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from statistics import mean, median
from typing import Any

from conftest import DAY
from explain.naive import explain_naively, format_naively

HOUR = DAY // 24

Row = tuple[int, int]
"""An instant and the players observed at it."""
Window = tuple[int | None, int]


def select(rows: Iterable[Row], window: Window) -> list[Row]:
    start, end = window
    return [row for row in rows if (start is None or row[0] > start) and row[0] <= end]


def compute_mean(values: Sequence[int]) -> float | None:
    return float(Fraction(sum(values), len(values))) if values else None


def compute_median(values: Sequence[int]) -> float | None:
    return float(median(map(Fraction, values))) if values else None


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


def compute_durations(rows: Sequence[Row], end: int) -> list[Fraction]:
    """Return how long each observation lasts: until the next one, at most 3 usual intervals."""
    edges = [*(at for at, _ in rows), end]
    distances = [Fraction(after - before) for before, after in pairwise(edges)]
    longest = 3 * median(distances[:-1])
    return [min(distance, longest) for distance in distances]


def compute_hours_above(rows: Sequence[Row], end: int, limit: int) -> float:
    lasting = zip(rows, compute_durations(rows, end), strict=True)
    total = sum((length for (_, players), length in lasting if players > limit), Fraction())
    return float(total / HOUR)


def compute_figures(rows: Sequence[Row], window: Window) -> dict[str, Any]:
    """Return the figures of `stats` with FIGURES."""
    kept = select(rows, window)
    values = [players for _, players in kept]
    explained = explain_naively(kept, *window)
    spans = [[at for at, count in kept if count == edge] for edge in (max(values), min(values))]
    names = ("peakFirstAt", "peakLastAt", "lowestFirstAt", "lowestLastAt")
    instants = [format_naively(at) for span in spans for at in (span[0], span[-1])]
    copied = ("sampleCount", "timeWeightedAverage", "usualIntervalSeconds", "coverage")
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
        **{name: explained[name] for name in copied},
    }
