"""Compute the documents timeline and distribution from rows by the definitions alone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any
from zoneinfo import ZoneInfo

from analysis.naive_steps import NaiveStep, find_usual_interval, split_naively
from analysis.raw_figures import HOUR, Row, compute_mean, compute_quantile, select
from conftest import DAY
from explain.naive import format_naively

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
    """Return the figures of a document of a snapshot, those of servers by id."""
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
