"""Divide a window into calendar steps, or into hours of the week, on the clock of a time zone.

Local time is counted like Unix milliseconds: from midnight of 1970-01-01 on the local clock.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from srvstat.contract import wire
from srvstat.contract.arrays import Numbers
from srvstat.contract.errors import ParameterError
from srvstat.contract.time import DAY_MS, LATEST

HOUR_MS = DAY_MS // 24
WEEK_HOURS = 7 * 24

_MAX_STEPS = 1_000_000
_MONDAY = 4 * DAY_MS
"""1970-01-05, the first Monday in local time."""
_THURSDAY_HOUR = 3 * 24
"""The hour of the week at which local time begins: 1970-01-01 was a Thursday."""
_SHORTEST_MONTH = 28 * DAY_MS

# In the IANA database of 2026, two changes of a zone's offset are at least 3.9 days apart since
# 1900, and 6.9 days since 1970.
_BETWEEN_LOOKUPS = 2 * DAY_MS

_STEP = re.compile(r"([1-9][0-9]{0,3})([mhd])")
_UNITS = {"m": 60_000, "h": HOUR_MS, "d": DAY_MS}


class Step(NamedTuple):
    """A step as a user names it. `length` is in milliseconds, None for a month.

    Local times at which steps begin are `origin` and all multiples of `length` before and after.
    """

    name: str
    length: int | None
    origin: int = 0

    @property
    def shortest(self) -> int:
        """The length of the shortest step where the clock does not change."""
        return _SHORTEST_MONTH if self.length is None else self.length


_CALENDAR_STEPS = {
    "day": Step("day", DAY_MS),
    "week": Step("week", 7 * DAY_MS, _MONDAY),
    "month": Step("month", None),
}


def parse_step(text: str) -> Step:
    """Return the step of a text: minutes or hours that divide 24 hours, days, a week or a month.

    Raises UsageError.
    """
    if text in _CALENDAR_STEPS:
        return _CALENDAR_STEPS[text]
    match = _STEP.fullmatch(text)
    length = int(match[1]) * _UNITS[match[2]] if match else 0
    if match and (match[2] == "d" or DAY_MS % length == 0):
        return Step(text, length)
    raise ParameterError(
        "{step}: {value} does not divide 24 hours and is not a number of days; use a step such as"
        " 15m, 1h, 6h, 7d, day, week or month",
        value=wire.quote_value(text),
    )


def list_step_edges(first: int, last: int, step: Step, zone: ZoneInfo) -> Numbers:
    """Return the edges of the steps that contain the instants from `first` to `last`, ascending.

    A step is `[edge, next edge)`: the first edge is at most `first`, the last one is after `last`.
    A step begins when the local clock first reaches its start, or skips it. Where the clock is set
    back by at least the length of a step, the repeated time has steps of its own: with `1h`, a
    repeated hour is a second step, while with `6h` one step has seven hours. Steps of several days
    are counted from 1970-01-01.

    Raises UsageError for more than a million steps.
    """
    if (last - first) // step.shortest > _MAX_STEPS:
        raise ParameterError(
            f"{{step}}: more than {_MAX_STEPS:,} steps in the window; use a longer step or a"
            " shorter window"
        )
    # A step that the clock repeats in part is less than twice as long, and the clock may have been
    # set back shortly before it.
    margin = 2 * step.shortest + _BETWEEN_LOOKUPS
    periods = _list_periods(first - margin, last + margin, zone)
    low = min(period.start + period.offset for period in periods)
    starts = _list_local_starts(low, max(period.end + period.offset for period in periods), step)
    edges = _convert_to_instants(starts, periods, step.shortest)
    return edges[edges.searchsorted(first, "right") - 1 : edges.searchsorted(last, "right") + 1]


def find_hours_of_week(instants: Numbers, zone: ZoneInfo) -> Numbers:
    """Return the hours that the local clock shows, from 0, Monday 0:00, to 167."""
    hours: Numbers = convert_to_local(instants, zone) // HOUR_MS + _THURSDAY_HOUR
    # In numpy, a quotient takes much less time than a remainder.
    return hours - hours // WEEK_HOURS * WEEK_HOURS


def convert_to_local(instants: Numbers, zone: ZoneInfo) -> Numbers:
    """Return the local times of ascending instants."""
    if not len(instants):
        return instants
    periods = _list_periods(int(instants[0]), int(instants[-1]) + 1, zone)
    ends = instants.searchsorted([period.end for period in periods])
    offsets = np.repeat([period.offset for period in periods], np.diff(ends, prepend=0))
    local: Numbers = instants + offsets
    return local


class _Period(NamedTuple):
    """The interval `[start, end)` in which local time is the instant plus `offset`."""

    start: int
    end: int
    offset: int


def _list_periods(start: int, end: int, zone: ZoneInfo) -> list[_Period]:
    """Return the periods of equal offset that cover `[start, end)`."""
    changes = [(start, _find_offset(start, zone))]
    if zone.utcoffset(None) is None:  # the offset is not constant
        first = start - start % _BETWEEN_LOOKUPS + _BETWEEN_LOOKUPS
        for before, after in pairwise([start, *range(first, end, _BETWEEN_LOOKUPS), end]):
            offset = _find_offset(after, zone)
            if offset != changes[-1][1]:
                changes.append((_find_change(before, after, offset, zone), offset))
    ends = [*(at for at, _ in changes[1:]), end]
    return [
        _Period(at, until, offset)
        for (at, offset), until in zip(changes, ends, strict=True)
        if at < until
    ]


def _find_change(before: int, after: int, offset: int, zone: ZoneInfo) -> int:
    """Return the instant in `(before, after]` from which an offset is valid: a whole second."""
    seconds = range(before // 1000, after // 1000 + 1)
    position = bisect_left(seconds, 1, key=lambda at: _find_offset(at * 1000, zone) == offset)
    return 1000 * seconds[position]


@lru_cache(maxsize=10_000)
def _find_offset(at: int, zone: ZoneInfo) -> int:
    """Return the difference of local time and UTC at an instant, in milliseconds."""
    # A local time after the year 9999 can't be represented.
    moment = datetime.fromtimestamp(min(at, LATEST - 2 * DAY_MS) // 1000, zone)
    return (moment.utcoffset() or timedelta()) // timedelta(milliseconds=1)


def _list_local_starts(low: int, high: int, step: Step) -> Numbers:
    """Return the local times from `low` to `high` at which steps begin."""
    if step.length is not None:
        return np.arange(low + (step.origin - low) % step.length, high + 1, step.length)
    first, last = np.array([low, high], "M8[ms]").astype("M8[M]")
    return np.arange(first, last + 1).astype("M8[ms]").astype(np.int64)


def _convert_to_instants(starts: Numbers, periods: Sequence[_Period], shortest: int) -> Numbers:
    """Return the instants at which the local clock first reaches or skips local times.

    Where it is set back by at least `shortest`, also those at which it reaches them again.
    """
    found = []
    before = periods[0].start + periods[0].offset
    for start, end, offset in periods:
        local = start + offset
        first = starts.searchsorted(local)
        is_repeated, is_skipped = before - local >= shortest, starts.searchsorted(before) < first
        if local < before and not is_repeated:
            first = starts.searchsorted(before)
        elif (is_repeated or is_skipped) and local not in starts[first : first + 1]:
            found.append(np.array([start]))
        found.append(starts[first : starts.searchsorted(end + offset)] - offset)
        before = end + offset
    return np.concatenate(found)
