"""The rules of integrity: their figures by definition, honest series, and changed ones."""

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import naive_integrity as naive
from analysis.honest_series import SIZES, Shape, draw_series
from conftest import AS_OF, DAY
from srvstat.analysis.integrity import Series, check_series
from srvstat.contract.time import LATEST, Window, parse_instant
from srvstat.documents.integrity import AnyRule
from srvstat.snapshot.blocks import Observations

MINUTE = 60_000
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
        "flatLine": naive.judge_flat_line(rows) if positive >= 100 else None,
        "floor": naive.judge_floor(rows) if positive >= 200 and days >= 3 else None,
        "jitter": naive.judge_jitter(rows) if positive >= 500 else None,
        "missingValues": naive.judge_missing_values(rows) if positive >= 200 else None,
        "stepChange": naive.judge_step_change(rows),
        "noDailyCycle": naive.judge_daily_cycle(rows, BERLIN) if positive >= 120 else None,
        "aboveMaximum": naive.judge_maximum(rows, found.maximum),
        "gaps": naive.judge_gaps(rows, found.window.end) if len(rows) >= 10 else None,
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
    for seed, minutes in enumerate((5, 30, 60, 60)):
        assert list_suspect(draw_series(Shape(size, 30, minutes, seed))) == set()


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
        "noDailyCycle": "needs observations over 7 days",
        "aboveMaximum": "the record has no maximum",
        "gaps": None,
    }
