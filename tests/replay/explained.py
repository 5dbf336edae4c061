"""Explain a window from its rows by the definitions alone, with exact fractions."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from operator import mul
from statistics import mean, median_high, median_low
from typing import Any


def format_naively(at: int) -> str:
    """Return Unix milliseconds as the contract writes an instant."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def explain_naively(rows: Iterable[tuple[int, int]], start: int | None, end: int) -> dict[str, Any]:
    """Return the explained figures of the rows (instant, players) in `(start, end]`."""
    kept = sorted(row for row in rows if row[0] <= end and (start is None or row[0] > start))
    values = sorted(players for _, players in kept)
    return {
        "window": {
            "from": None if start is None else format_naively(start),
            "to": format_naively(end),
        },
        "sampleCount": len(kept),
        "sum": sum(values),
        "first": _describe(kept[:1]),
        "last": _describe(kept[-1:]),
        "middle": [
            {"rank": rank, "players": players}
            for rank, players in enumerate(values, 1)
            # As many values have a lower rank as have a higher one, or one more or less.
            if abs((rank - 1) - (len(values) - rank)) <= (len(values) + 1) % 2
        ],
        "peak": _find_first(kept, max(values, default=0)),
        "lowest": _find_first(kept, min(values, default=0)),
        "growth": {"from": kept[0][1], "to": kept[-1][1]} if len(kept) > 1 else None,
        **_explain_intervals(kept, start, end),
    }


def _describe(rows: list[tuple[int, int]]) -> dict[str, Any] | None:
    return {"observedAt": format_naively(rows[0][0]), "players": rows[0][1]} if rows else None


def _find_first(rows: list[tuple[int, int]], players: int) -> dict[str, Any] | None:
    instants = [instant for instant, count in rows if count == players]
    return {"players": players, "firstAt": format_naively(min(instants))} if instants else None


def _explain_intervals(rows: list[tuple[int, int]], start: int | None, end: int) -> dict[str, Any]:
    """Explain the intervals between rows.

    Counts half milliseconds, because a median of milliseconds may not be a whole number.
    """
    if len(rows) < 2:
        return {
            "usualIntervalSeconds": None,
            "expectedCount": None,
            "coverage": None,
            "gapCount": 0,
            "gaps": [],
            "timeWeightedAverage": rows[0][1] if rows else None,
            "hasUnevenIntervals": False,
        }
    instants = [instant for instant, _ in rows]
    distances = [2 * (after - before) for before, after in pairwise([*instants, end])]
    usual = (median_low(distances[:-1]) + median_high(distances[:-1])) // 2
    lasting = [min(distance, 3 * usual) for distance in distances]
    players = [count for _, count in rows]
    edges = [*([] if start is None else [start]), *instants, end]
    gaps = [(first, last) for first, last in pairwise(edges) if 4 * (last - first) > 3 * usual]
    longest = sorted(gaps, key=lambda gap: (gap[0] - gap[1], gap[0]))[:5]
    return {
        "usualIntervalSeconds": float(Fraction(usual, 2000)),
        "expectedCount": None if start is None else 2 * (end - start) // usual,
        "coverage": None if start is None else float(Fraction(sum(lasting), 2 * (end - start))),
        "gapCount": len(gaps),
        "gaps": [
            {"from": format_naively(first), "to": format_naively(last)} for first, last in longest
        ],
        "timeWeightedAverage": float(_weight(players, lasting)),
        "hasUnevenIntervals": _is_uneven(players, lasting, usual),
    }


def _is_uneven(players: list[int], lasting: list[int], usual: int) -> bool:
    plain = Fraction(sum(players), len(players))
    weighted = _weight(players, lasting)
    regular = _weight(players, [*[usual] * (len(players) - 1), min(lasting[-1], usual)])
    return all(abs(weighted - other) > plain / 100 for other in (plain, regular))


def _weight(players: list[int], weights: list[int]) -> Fraction:
    return Fraction(sum(map(mul, players, weights)), sum(weights))


def find_contradictions(explained: dict[str, Any], result: dict[str, Any]) -> list[str]:
    """Return the figures of an answer that its explained operands do not give."""
    if not explained["sampleCount"]:
        return [name for name in ("averagePlayers", "medianPlayers") if result[name] is not None]
    growth: Any = explained["growth"]
    players: Any = growth["to"] - growth["from"] if growth else None
    percentage = (
        float(Fraction(100 * players, growth["from"])) if growth and growth["from"] else None
    )
    expected = {
        "averagePlayers": float(Fraction(explained["sum"], explained["sampleCount"])),
        "medianPlayers": float(mean(Fraction(value["players"]) for value in explained["middle"])),
        "peakPlayers": explained["peak"]["players"],
        "lowestPlayers": explained["lowest"]["players"],
        "growth": {"players": players, "percentage": percentage},
    }
    return [name for name, value in expected.items() if result[name] != value]
