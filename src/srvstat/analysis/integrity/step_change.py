"""The rule stepChange: a level that changes from one week to the next."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from srvstat.analysis.integrity.series import Series, choose_result
from srvstat.contract.ranges import DAY_MS
from srvstat.documents.integrity import StepChangeEvidence, StepChangeRule, StepChangeThreshold
from srvstat.snapshot.format.days import find_day_starts

_DAYS = 7
"""The days on each side: a whole week, so that weekends do not matter."""
_PER_DAY = 8
"""The fewest observations above 0 of a day that counts."""
_ADDED = 5
"""Players added to both medians, so that small servers need a greater change."""
_RATIO = 3
_THRESHOLD = StepChangeThreshold(ratio=_RATIO)
_CAUSES = (
    "The game or the server was updated, advertised or reset.",
    "A streamer played there, or an event took place.",
    "Servers were merged or split, or the collector counts something else.",
)


class _Split(NamedTuple):
    """The first midnight after a split, twice the medians on its sides, and their ratio."""

    at: int
    before: int
    after: int
    ratio: Fraction


def check_step_change(series: Series) -> StepChangeRule:
    """Look for two successive weeks with very different medians."""
    days = list(_iter_days(series))
    reason = evidence = None
    is_suspect = False
    if len(days) < 2 * _DAYS:
        reason = f"needs {2 * _DAYS} days with {_PER_DAY} counts above 0, has {len(days):,}"
    else:
        split = max(_iter_splits(days), key=lambda one: one.ratio)
        is_suspect = split.ratio >= _RATIO
        evidence = StepChangeEvidence(
            at=split.at,
            median_before=split.before / 2,
            median_after=split.after / 2,
            ratio=split.ratio.numerator / split.ratio.denominator,
        )
    return StepChangeRule(
        result=choose_result(reason, is_suspect=is_suspect),
        reason=reason,
        evidence=evidence,
        threshold=_THRESHOLD,
        innocent_causes=_CAUSES,
    )


def _iter_days(series: Series) -> Iterator[tuple[int, int]]:
    """Yield the midnight (UTC) of each day that counts, and twice the median above 0."""
    instants, players = series.instants, series.players
    starts = [*find_day_starts(instants), len(instants)]
    for start, end in pairwise(starts):
        counts = sorted(count for count in players[start:end] if count > 0)
        if len(counts) >= _PER_DAY:
            double = counts[(len(counts) - 1) // 2] + counts[len(counts) // 2]
            yield instants[start] // DAY_MS * DAY_MS, double


def _iter_splits(days: Sequence[tuple[int, int]]) -> Iterator[_Split]:
    """Yield each split of the days that has a week on both sides; the medians are of the weeks."""
    for at in range(_DAYS, len(days) - _DAYS + 1):
        before, after = (
            sorted(double for _, double in days[first : first + _DAYS])[_DAYS // 2]
            for first in (at - _DAYS, at)
        )
        lesser, greater = sorted((before + 2 * _ADDED, after + 2 * _ADDED))
        yield _Split(days[at][0], before, after, Fraction(greater, lesser))
