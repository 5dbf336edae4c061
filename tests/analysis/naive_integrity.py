"""The figures of the rules of integrity, computed from their definitions alone.

Shares no code with the rules. Everything is a fraction until the end, and nothing is fast.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Any
from zoneinfo import ZoneInfo

Rows = list[tuple[int, int]]
"""Instants in milliseconds, ascending, and players."""

_HOUR = 3_600_000
_MIDNIGHT = datetime(1970, 1, 1, tzinfo=UTC)


def compute_usual(rows: Rows) -> Fraction:
    """Return the median distance; rows are at least two."""
    distances = [later - at for (at, _), (later, _) in pairwise(rows)]
    return find_median(distances)


def find_median(values: list[int] | list[Fraction]) -> Fraction:
    """Return the exact median."""
    return median(map(Fraction, values))


def judge_flat_line(rows: Rows) -> tuple[bool, Mapping[str, Any]]:
    usual = compute_usual(rows)
    best: tuple[tuple[bool, Fraction], Mapping[str, Any]] = ((False, Fraction(-1)), {})
    for first, (start, players) in enumerate(rows):
        last = first
        while (
            last + 1 < len(rows)
            and rows[last + 1][1] == players
            and rows[last + 1][0] - rows[last][0] <= 3 * usual
        ):
            last += 1
        hours = 24 if players < 10 else 12 if players < 100 else 6
        length = (last + 1 - first >= 12, Fraction(rows[last][0] - start, hours * _HOUR))
        if players and length > best[0]:
            found = {"longestRun": last + 1 - first, "players": players}
            best = (length, found | {"from": start, "to": rows[last][0]})
    return best[0] >= (True, Fraction(1)), best[1]


def judge_floor(rows: Rows) -> tuple[bool, Mapping[str, Any]]:
    counts = sorted(players for _, players in rows if players)
    lowest = next(
        one for one in counts if sum(other <= one for other in counts) > len(counts) // 100
    )
    share = Fraction(counts.count(lowest), len(counts))
    return lowest >= 5 and share >= Fraction(1, 5), {"players": lowest, "share": float(share)}


def judge_jitter(rows: Rows) -> tuple[bool, Mapping[str, Any]] | None:
    usual = compute_usual(rows)
    used = {
        at: rows[at + 1][1] - rows[at][1]
        for at in range(len(rows) - 1)
        if rows[at][1] and rows[at + 1][1] and rows[at + 1][0] - rows[at][0] <= usual * 3 / 2
    }
    if not used or usual > 12 * 60_000:
        return None
    sizes = sorted(map(abs, used.values()))
    most = 4 * max(sizes[len(sizes) // 2], 1)
    limited = {at: max(-most, min(most, one)) for at, one in used.items()}
    pairs = [(one, limited[at + 1]) for at, one in limited.items() if at + 1 in limited]
    squares = sum(one * one for one in limited.values())
    if len(pairs) < 500 or not squares:
        return None
    correlation = Fraction(sum(one * other for one, other in pairs), squares)
    found = {"correlation": float(correlation), "pairs": len(pairs)}
    return correlation <= Fraction(-3, 10), found


def judge_missing_values(rows: Rows) -> tuple[bool, Mapping[str, Any]] | None:
    counts = sorted(players for _, players in rows if players)
    rare = len(counts) // 20
    low, high = counts[rare], counts[len(counts) - 1 - rare]
    usual = [one for one in counts if low <= one <= high]
    numbers = range(low, high + 1)
    if len(numbers) < 15 or len(usual) < 5 * len(numbers):
        return None
    missing = [one for one in numbers if one not in usual]
    starts = [one for one in missing if one - 1 not in missing]
    distances = [later - one for one, later in pairwise(starts)]
    regular = {one: sum(other in {one, one + 1} for other in distances) for one in distances}
    spacing = min((one for one in regular if regular[one] == max(regular.values())), default=None)
    share = Fraction(len(missing), len(numbers))
    of_distances = None if spacing is None else Fraction(regular[spacing], len(distances))
    found = {
        "from": low,
        "to": high,
        "missing": len(missing),
        "share": float(share),
        "first": missing[:5],
        "holes": len(starts),
        "spacing": spacing,
        "regular": None if of_distances is None else float(of_distances),
    }
    is_regular = of_distances is not None and of_distances >= Fraction(9, 10)
    return is_regular and share >= Fraction(1, 20) and len(starts) >= 5, found


def judge_step_change(rows: Rows) -> tuple[bool, Mapping[str, Any]] | None:
    by_day: defaultdict[int, list[int]] = defaultdict(list)
    for at, players in rows:
        if players:
            by_day[(_MIDNIGHT + timedelta(milliseconds=at)).toordinal()].append(players)
    days = sorted(day for day, counts in by_day.items() if len(counts) >= 8)
    medians = [find_median(by_day[day]) for day in days]
    best: tuple[Fraction, Mapping[str, Any]] = (Fraction(0), {})
    for at in range(7, len(days) - 6):
        before, after = find_median(medians[at - 7 : at]), find_median(medians[at : at + 7])
        ratio = max((before + 5) / (after + 5), (after + 5) / (before + 5))
        if ratio > best[0]:
            midnight = (days[at] - _MIDNIGHT.toordinal()) * 24 * _HOUR
            found = {"at": midnight, "medianBefore": float(before), "medianAfter": float(after)}
            best = (ratio, found | {"ratio": float(ratio)})
    return (best[0] >= 3, best[1]) if best[1] else None


def judge_daily_cycle(rows: Rows, zone: str) -> tuple[bool, Mapping[str, Any]] | None:
    by_hour: defaultdict[int, list[int]] = defaultdict(list)
    for at, players in rows:
        local = (_MIDNIGHT + timedelta(milliseconds=at)).astimezone(ZoneInfo(zone))
        by_hour[local.hour].append(players)
    if len(by_hour) < 24 or min(map(len, by_hour.values())) < 5:
        return None
    medians = [find_median(by_hour[hour]) for hour in range(24)]
    typical, low, high = find_median(medians), min(medians), max(medians)
    if typical < 5 or rows[-1][0] - rows[0][0] < 7 * 24 * _HOUR:
        return None
    share = (high - low) / typical
    found = {
        "lowestPlayers": float(low),
        "lowestHour": medians.index(low),
        "highestPlayers": float(high),
        "highestHour": medians.index(high),
        "typicalPlayers": float(typical),
        "share": float(share),
    }
    return share <= Fraction(1, 10), found


def judge_maximum(rows: Rows, maximum: int) -> tuple[bool, Mapping[str, Any]] | None:
    if not maximum:
        return None
    above = [at for at, players in rows if players > maximum]
    found = {
        "observations": len(above),
        "maximumPlayers": maximum,
        "peakPlayers": max(Counter(players for _, players in rows)),
        "firstAt": above[0] if above else None,
        "lastAt": above[-1] if above else None,
    }
    return bool(above), found


def judge_gaps(rows: Rows, end: int) -> tuple[bool, Mapping[str, Any]]:
    usual = compute_usual(rows)
    edges = [*(at for at, _ in rows), end]
    pairs = list(pairwise(edges))
    covered = sum(min(Fraction(last - first), 3 * usual) for first, last in pairs)
    gaps = [(last - first, -first) for first, last in pairs if last - first > usual * 3 / 2]
    longest = [{"from": -first, "to": length - first} for length, first in sorted(gaps)[::-1][:3]]
    coverage = covered / (end - edges[0])
    found = {"coverage": float(coverage), "gapCount": len(gaps), "longest": longest}
    return coverage < Fraction(9, 10), found
