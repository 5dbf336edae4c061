"""Compute the statistics of a window from its rows by the definitions alone."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import mean, median
from typing import Any

from explain.naive import format_naively

HOUR_MS = 3_600_000


def compute_naively(
    rows: Iterable[tuple[int, int]],
    window: tuple[int | None, int],
    quantiles: Sequence[Fraction],
    above: int | None,
) -> dict[str, Any]:
    """Return the figures of the rows (instant, players) in a window, as in JSON."""
    start, end = window
    kept = sorted(row for row in rows if row[0] <= end and (start is None or row[0] > start))
    values = [Fraction(players) for _, players in kept]
    usual, lasting = _find_durations([at for at, _ in kept], end)
    growth = values[-1] - values[0] if len(values) > 1 else None
    above_for = sum(length for length, n in zip(lasting, values, strict=True) if n > (above or 0))
    return {
        "averagePlayers": float(mean(values)) if kept else None,
        "medianPlayers": float(median(values)) if kept else None,
        "peakPlayers": max(values, default=None),
        "lowestPlayers": min(values, default=None),
        "growth": {
            "players": growth,
            "percentage": None
            if growth is None or not values[0]
            else float(100 * growth / values[0]),
        },
        "sampleCount": len(kept),
        **_find_extremes(kept, "peak", max),
        **_find_extremes(kept, "lowest", min),
        "quantiles": [
            {"quantile": float(q), "players": _find_quantile(values, q)} for q in quantiles
        ],
        "timeWeightedAverage": _weigh(values, lasting) if kept else None,
        "above": None
        if above is None
        else {"players": above, "hours": float(above_for / HOUR_MS) if kept else None},
        "usualIntervalSeconds": None if usual is None else float(usual / 1000),
        "coverage": _find_coverage(kept, lasting, start, end),
        "firstPlayers": kept[0][1] if kept else None,
        "lastPlayers": kept[-1][1] if kept else None,
    }


def _find_coverage(
    kept: Sequence[tuple[int, int]], lasting: Sequence[Fraction], start: int | None, end: int
) -> float | None:
    """Return the share of a window that is observed; one of all begins with the first of them."""
    first = start if start is not None else kept[0][0] if kept else end
    return float(sum(lasting) / (end - first)) if first < end else None


def _find_durations(instants: list[int], end: int) -> tuple[Fraction | None, list[Fraction]]:
    """Return the usual interval, and how long each observation lasts."""
    distances = [Fraction(after - before) for before, after in pairwise(instants)]
    usual = median(distances) if distances else None
    lengths = [*distances, *(Fraction(end - last) for last in instants[-1:])]
    return usual, [length if usual is None else min(length, 3 * usual) for length in lengths]


def _find_extremes(
    rows: list[tuple[int, int]], name: str, choose: Callable[[list[int]], int]
) -> dict[str, str | None]:
    extreme = choose([n for _, n in rows]) if rows else None
    instants = [at for at, n in rows if n == extreme]
    return {
        f"{name}FirstAt": format_naively(min(instants)) if rows else None,
        f"{name}LastAt": format_naively(max(instants)) if rows else None,
    }


def _find_quantile(values: list[Fraction], q: Fraction) -> float | None:
    """Return the mean of the least values that at least, and more than, a share q are up to."""
    if not values:
        return None
    up_to = {value: Fraction(sum(one <= value for one in values), len(values)) for value in values}
    lower = min(value for value in values if up_to[value] >= q)
    upper = min((value for value in values if up_to[value] > q), default=max(values))
    return float((lower + upper) / 2)


def _weigh(values: list[Fraction], weights: list[Fraction]) -> float:
    if not sum(weights):
        return float(mean(values))
    pairs = zip(values, weights, strict=True)
    return float(sum(value * weight for value, weight in pairs) / sum(weights))
