"""The rule noDailyCycle: counts that do not depend on the hour of the day."""

from collections import defaultdict
from datetime import datetime
from zoneinfo import ZoneInfo

from srvstat.analysis.integrity.series import Series, choose_result
from srvstat.contract.instants import LATEST
from srvstat.contract.ranges import DAY_MS
from srvstat.documents.integrity import DailyCycleEvidence, DailyCycleRule, DailyCycleThreshold

_HOURS = 24
_PER_HOUR = 5
"""The fewest observations of each hour of the day."""
_MIN_DAYS = 7
_MIN_PLAYERS = 5
"""Below this, one player more or less hides a cycle."""
_PERCENT = 10
_THRESHOLD = DailyCycleThreshold(share=_PERCENT / 100)
_CAUSES = (
    "The players live all around the world.",
    "The server is always full, or most of its players are always connected.",
    "The collector repeated its counts.",
    "The game fills empty slots with bots, or the source shows no lower counts.",
)


def check_daily_cycle(series: Series) -> DailyCycleRule:
    """Look for hours of the day with nearly the same medians."""
    reason = series.explain_shortage(_HOURS * _PER_HOUR, days=_MIN_DAYS)
    doubles = [] if reason else _compute_medians(series)
    reason = reason or _explain_shortage(doubles)
    evidence = None
    is_suspect = False
    if reason is None:
        values = [double for double in doubles if double is not None]
        ascending = sorted(values)
        low, high = ascending[0], ascending[-1]
        typical = ascending[_HOURS // 2 - 1] + ascending[_HOURS // 2]
        evidence = DailyCycleEvidence(
            lowest_players=low / 2,
            lowest_hour=values.index(low),
            highest_players=high / 2,
            highest_hour=values.index(high),
            typical_players=typical / 4,
            share=2 * (high - low) / typical,
        )
        is_suspect = 100 * 2 * (high - low) <= _PERCENT * typical
    return DailyCycleRule(
        result=choose_result(reason, is_suspect=is_suspect),
        reason=reason,
        evidence=evidence,
        threshold=_THRESHOLD,
        innocent_causes=_CAUSES,
    )


def _compute_medians(series: Series) -> list[int | None]:
    """Return twice the median of each local hour of the day; None for too few observations."""
    hours: defaultdict[int, list[int]] = defaultdict(list)
    for at, players in zip(series.instants, series.players, strict=True):
        hours[_find_hour(at, series.zone)].append(players)
    doubles: list[int | None] = []
    for hour in range(_HOURS):
        counts = sorted(hours[hour])
        is_enough = len(counts) >= _PER_HOUR
        double = counts[(len(counts) - 1) // 2] + counts[len(counts) // 2] if is_enough else None
        doubles.append(double)
    return doubles


def _find_hour(at: int, zone: ZoneInfo) -> int:
    # A local time after the year 9999 can't be represented. The day before has the same hours.
    is_last_day = at > LATEST - DAY_MS
    return datetime.fromtimestamp((at - DAY_MS if is_last_day else at) // 1000, zone).hour


def _explain_shortage(doubles: list[int | None]) -> str | None:
    values = sorted(double for double in doubles if double is not None)
    if len(values) < _HOURS:
        return f"needs {_PER_HOUR} observations of each hour of the day"
    if values[_HOURS // 2 - 1] + values[_HOURS // 2] < 4 * _MIN_PLAYERS:
        return f"needs a median of {_MIN_PLAYERS} players"
    return None
