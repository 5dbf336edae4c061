"""The rules of integrity: their figures by definition, honest series, and changed ones."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from random import Random
from statistics import median
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.definitions import find_usual_interval, read_clock
from conftest import AS_OF, DAY
from srvstat.analysis.integrity import Series, check_series
from srvstat.contract.time import LATEST, parse_instant
from srvstat.contract.windows import Window
from srvstat.documents.integrity import AnyRule
from srvstat.snapshot.blocks import Observations

MINUTE = 60_000
HOUR = 60 * MINUTE
SIZES = (5, 30, 200, 2_000)
"""The mean number of players."""
BERLIN = "Europe/Berlin"

KINDS: Mapping[str, Callable[[Random, int], int]] = {
    "any": lambda random, _at: random.randrange(30),
    "low": lambda random, _at: random.choice((0, 1, 2, 2, 2, 3)),
    "sticky": lambda random, at: 7 if at // 200 % 2 else random.randrange(4, 9),
    "rounded": lambda random, at: at % 50 * 3 // 2 + random.randrange(2) * 3,
    "scaled": lambda random, _at: random.randrange(50) * 9 // 7,
    "step": lambda random, at: random.randrange(9, 12) * (8 if at > 300 else 1),
    "floor": lambda random, _at: max(random.randrange(30), 12),
    "zero": lambda _random, _at: 0,
    "huge": lambda random, _at: 2**53 - 1 - random.randrange(2),
}


class Case(NamedTuple):
    """What a series of some kind is drawn from: up to 25 days, with missing observations."""

    kind: str
    seed: int
    minutes: int
    length: int
    missing_percent: int
    maximum: int

    def draw(self) -> Series:
        """Return the series; equal cases give equal ones."""
        random = Random(self.seed)  # noqa: S311 - drawn from a seed, to be drawn again
        start = AS_OF - 26 * DAY + random.randrange(DAY)
        is_missing = [random.randrange(100) < self.missing_percent for _ in range(self.length)]
        steps = [step for step in range(self.length) if step < 2 or not is_missing[step]]
        instants = [
            start + step * self.minutes * MINUTE + random.randrange(3) * 500 for step in steps
        ]
        players = [KINDS[self.kind](random, step) for step in steps]
        window = Window(start - 1, instants[-1] + random.randrange(0, DAY, MINUTE))
        return Series(
            Observations(np.array(instants), np.array(players)),
            window,
            ZoneInfo(BERLIN),
            self.maximum,
        )


CASES = st.builds(
    Case,
    kind=st.sampled_from(sorted(KINDS)),
    seed=st.integers(0, 2**20),
    minutes=st.sampled_from([10, 20, 60]),
    length=st.sampled_from([2, 150, 600, 600]),
    missing_percent=st.sampled_from([0, 5, 30]),
    maximum=st.sampled_from([0, 10, 2**53]),
)


def judge_naively(found: Series) -> dict[str, Any]:
    rows = list(zip(*(column.tolist() for column in found.observations), strict=True))
    positive = sum(players > 0 for _, players in rows)
    days = (rows[-1][0] - rows[0][0]) / DAY
    judged: dict[str, Any] = {
        "flatLine": judge_flat_line(rows) if positive >= 100 else None,
        "floor": judge_floor(rows) if positive >= 200 and days >= 3 else None,
        "jitter": judge_jitter(rows) if positive >= 500 else None,
        "missingValues": judge_missing_values(rows) if positive >= 200 else None,
        "stepChange": judge_step_change(rows),
        "noDailyCycle": judge_daily_cycle(rows, BERLIN) if positive >= 120 else None,
        "aboveMaximum": judge_maximum(rows, found.maximum),
        "gaps": judge_gaps(rows, found.window.end) if len(rows) >= 10 else None,
    }
    return judged


def describe(rule: AnyRule) -> Any:
    """Return whether a rule is suspect, and its evidence with instants as integers."""
    assert (rule.result == "notEvaluated") is (rule.reason is not None) is (rule.evidence is None)
    if rule.evidence is None:
        return None
    evidence = json.loads(json.dumps(rule.evidence.model_dump()), object_hook=_parse_instants)
    return rule.result == "suspect", evidence


def _parse_instants(members: dict[str, Any]) -> dict[str, Any]:
    return {
        name: parse_instant(value) if isinstance(value, str) else value
        for name, value in members.items()
    }


@given(CASES)
def test_each_rule_has_the_figures_of_its_definition(case: Case) -> None:
    found = case.draw()

    judged = {rule.rule: describe(rule) for rule in check_series(found)}

    assert judged == judge_naively(found)


def find_evidence(name: str, found: Series) -> Any:
    return next(describe(rule) for rule in check_series(found) if rule.rule == name)


def test_a_run_of_few_observations_hides_no_suspect_one() -> None:
    instants = [AS_OF + hour * 60 * MINUTE for hour in (*range(100), *range(100, 122, 2))]
    players = [20, 21] * 40 + [90] * 13 + [20, 21, 20, 21, 20, 21, 20] + [80] * 11
    observations = Observations(np.array(instants), np.array(players))
    found = Series(observations, Window(0, instants[-1]), ZoneInfo("UTC"))

    is_suspect, evidence = find_evidence("flatLine", found)

    assert (is_suspect, evidence["longestRun"], evidence["players"]) == (True, 13, 90)


def test_the_last_day_of_the_year_9999_has_local_hours() -> None:
    hours = np.arange(LATEST - 8 * DAY, LATEST + 1, 60 * MINUTE)
    observations = Observations(hours, 10 + hours // (60 * MINUTE) % 24)
    found = Series(observations, Window(0, LATEST), ZoneInfo("Asia/Tokyo"))

    _, evidence = find_evidence("noDailyCycle", found)

    assert (evidence["lowestPlayers"], evidence["lowestHour"]) == (10, 9)
    assert (evidence["highestPlayers"], evidence["highestHour"]) == (33, 8)


def list_suspect(found: Series) -> set[str]:
    return {rule.rule for rule in check_series(found) if rule.result == "suspect"}


@pytest.mark.parametrize("size", SIZES)
def test_honest_series_are_not_suspect(size: int) -> None:
    for seed, minutes in enumerate((5, 10, 30, 60)):
        assert list_suspect(draw_series(size, minutes, seed)) == set()


def test_a_rule_without_enough_data_says_what_it_needs() -> None:
    instants = np.arange(AS_OF - 5 * DAY, AS_OF, DAY // 24)
    observations = Observations(instants, np.full(len(instants), 3))
    found = Series(observations, Window(0, AS_OF), ZoneInfo("UTC"))

    reasons = {rule.rule: rule.reason for rule in check_series(found)}

    assert reasons == {
        "flatLine": None,
        "floor": "needs 200 counts above 0, has 120",
        "jitter": "needs 500 counts above 0, has 120",
        "missingValues": "needs 200 counts above 0, has 120",
        "stepChange": "needs 14 days with 8 counts above 0, has 6",
        "noDailyCycle": "needs observations from at least 7 days",
        "aboveMaximum": "the server has no player limit in its metadata",
        "gaps": None,
    }


Rows = list[tuple[int, int]]
"""Instants in milliseconds, ascending, and players."""


def judge_flat_line(rows: Rows) -> tuple[bool, Mapping[str, Any]]:
    usual = find_usual_interval(rows) or Fraction()
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
        length = (last + 1 - first >= 12, Fraction(rows[last][0] - start, hours * HOUR))
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
    usual = find_usual_interval(rows) or Fraction()
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
            by_day[at // DAY].append(players)
    days = sorted(day for day, counts in by_day.items() if len(counts) >= 8)
    medians = [median(map(Fraction, by_day[day])) for day in days]
    best: tuple[Fraction, Mapping[str, Any]] = (Fraction(0), {})
    for at in range(7, len(days) - 6):
        before, after = median(medians[at - 7 : at]), median(medians[at : at + 7])
        ratio = max((before + 5) / (after + 5), (after + 5) / (before + 5))
        if ratio > best[0]:
            midnight = days[at] * DAY
            found = {"at": midnight, "medianBefore": float(before), "medianAfter": float(after)}
            best = (ratio, found | {"ratio": float(ratio)})
    return (best[0] >= 3, best[1]) if best[1] else None


def judge_daily_cycle(rows: Rows, zone: str) -> tuple[bool, Mapping[str, Any]] | None:
    by_hour: defaultdict[int, list[int]] = defaultdict(list)
    for at, players in rows:
        local = read_clock(at, ZoneInfo(zone))
        by_hour[local.hour].append(players)
    if len(by_hour) < 24 or min(map(len, by_hour.values())) < 5:
        return None
    medians = [median(map(Fraction, by_hour[hour])) for hour in range(24)]
    typical, low, high = median(medians), min(medians), max(medians)
    if typical < 5 or rows[-1][0] - rows[0][0] < 7 * 24 * HOUR:
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
    usual = find_usual_interval(rows) or Fraction()
    edges = [*(at for at, _ in rows), end]
    pairs = list(pairwise(edges))
    covered = sum(min(Fraction(last - first), 3 * usual) for first, last in pairs)
    gaps = [(last - first, -first) for first, last in pairs if last - first > usual * 3 / 2]
    longest = [{"from": -first, "to": length - first} for length, first in sorted(gaps)[::-1][:3]]
    coverage = covered / (end - edges[0])
    found = {"coverage": float(coverage), "gapCount": len(gaps), "longest": longest}
    return coverage < Fraction(9, 10), found


def draw_series(size: int, minutes: int, seed: int) -> Series:
    """Return the observations of an honest server: players come and go with the hour and the day.

    Once a day the server restarts, and some observations are missing.
    """
    drawn = np.random.default_rng(seed)
    dues = np.arange(AS_OF - 30 * DAY + MINUTE, AS_OF - MINUTE, minutes * MINUTE)
    instants = dues + drawn.integers(20_000, size=len(dues))
    night, stay = drawn.uniform(0.15, 0.6), drawn.uniform(20, 120) * MINUTE
    angles = 2 * np.pi * (instants / DAY + drawn.random())
    weekend = np.where((instants // DAY + 4) % 7 >= 5, drawn.uniform(0.9, 1.4), 1)
    levels = size * weekend * (1 + np.cos(angles) * (1 - night) / (1 + night))
    staying = np.exp(-np.diff(instants, prepend=instants[0]) / stay)
    is_restarting = np.abs(instants % DAY - drawn.integers(DAY)) < 2 * MINUTE
    players, count = [], int(drawn.poisson(levels[0]))
    for level, share, restarts in zip(levels, staying, is_restarting, strict=True):
        stayed = 0 if restarts else drawn.binomial(count, share)
        count = int(stayed + drawn.poisson(level * (1 - share)))
        players.append(0 if restarts else count)
    outage = drawn.integers(len(dues) - 12)
    is_kept = drawn.random(len(dues)) > 0.01
    is_kept[outage : outage + 12] = False
    observations = Observations(instants[is_kept], np.array(players)[is_kept])
    return Series(observations, Window(0, AS_OF), ZoneInfo("UTC"), 2 * max(*players, size))
