"""Compute the figures of windows from raw rows, independently of our code."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

Rows = Sequence[tuple[int, int]]
"""Instants and players, in ascending order of instants."""


def describe_window(
    rows: Rows, start: int, end: int, quantiles: Sequence[Fraction], *, is_bounded: bool
) -> dict[str, Any]:
    """Return the figures of the rows in `(start, end]`."""
    inside = [(at, players) for at, players in rows if start < at <= end]
    found: dict[str, Any] = {
        "observations": len(inside),
        "total": 0,
        "mean": None,
        "median": None,
        "growth": None,
        "quantiles": (),
        "peak": None,
        "lowest": None,
        "usual_interval": None,
        "weighted_mean": None,
        "coverage": 0.0 if is_bounded and end > start else None,
        "first": None,
        "last": None,
    }
    if not inside:
        return found
    values = sorted(players for _, players in inside)
    length = end - (start if is_bounded else inside[0][0])
    distances = [later - earlier for (earlier, _), (later, _) in pairwise(inside)]
    weights = _weigh(distances, end - inside[-1][0])
    mean = Fraction(sum(values), len(values))
    if sum(weights):
        products = (weight * players for weight, (_, players) in zip(weights, inside, strict=True))
        mean = Fraction(sum(products), sum(weights))
    return {
        "observations": len(inside),
        "total": sum(values),
        "mean": float(Fraction(sum(values), len(values))),
        "median": float(Fraction(sum(_find_middle(values)), 2)),
        "growth": inside[-1][1] - inside[0][1] if len(inside) > 1 else None,
        "quantiles": tuple(_find_quantile(values, quantile) for quantile in quantiles),
        "peak": _find_ends(inside, values[-1]),
        "lowest": _find_ends(inside, values[0]),
        "usual_interval": sum(_find_middle(distances)) / 2 if distances else None,
        "weighted_mean": float(mean),
        "coverage": float(Fraction(sum(weights), 2 * length)) if length else None,
        "first": inside[0][1],
        "last": inside[-1][1],
    }


def _find_middle(numbers: Sequence[int]) -> list[int]:
    """Return the two middle numbers; they are one if their number is odd."""
    count = len(numbers)
    return [sorted(numbers)[place] for place in ((count - 1) // 2, count // 2)]


def _weigh(distances: Sequence[int], rest: int) -> list[int]:
    """Return how long each observation lasts, in half units; the last one at most the rest."""
    lasting = [2 * each for each in (*distances, rest)]
    longest = 3 * sum(_find_middle(distances)) if distances else lasting[0]
    return [min(each, longest) for each in lasting]


def _find_quantile(values: Sequence[int], quantile: Fraction) -> float:
    """Return the middle of all numbers with enough values on each side."""
    below, above = quantile * len(values), (1 - quantile) * len(values)
    fitting = [
        value for place, value in enumerate(values, 1) if below <= place <= len(values) + 1 - above
    ]
    return float(Fraction(fitting[0] + fitting[-1], 2))


def _find_ends(rows: Rows, value: int) -> tuple[int, int]:
    instants = [at for at, players in rows if players == value]
    return instants[0], instants[-1]
