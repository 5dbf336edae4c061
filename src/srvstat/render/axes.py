"""Choose the ticks of axes: round numbers, and round times on the clock of a time zone."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from math import ceil, floor, log10
from typing import NamedTuple
from zoneinfo import ZoneInfo

from srvstat.contract.time import LATEST
from srvstat.contract.windows import DAY_MS
from srvstat.render.text import MONTHS

_MANTISSAS = (1, 2, 5)
_LEAST_WHOLE = 1000
"""If an axis ends at this or above, its ticks are integers, else they have at most two decimals."""
_LONGEST_PLAIN = 9_999_999
"""Ticks above this are shown in thousands, millions and so on: `50M`."""
_PREFIXES = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))

_MONDAY = datetime(1970, 1, 5)  # noqa: DTZ001 - a local time


class TimeTick(NamedTuple):
    """A tick at an instant in Unix milliseconds."""

    at: int
    label: str


def choose_ticks(low: float, high: float, most: int) -> list[float]:
    """Return 2 to `most` round numbers at equal distances, ascending.

    They enclose the values from `low` to `high`: the first is at most `low`, the last at least
    `high`. They are integers if their distance is. `most` is at least 3, as -1 to 1 needs 3.
    """
    if low == high:
        high = low + 1
    finest = -2 if max(abs(low), abs(high)) < _LEAST_WHOLE else 0
    exponent = max(floor(log10((high - low) / most)), finest)
    while True:
        for mantissa in _MANTISSAS:
            # A division rounds once, so a fraction is the float that its label names.
            scale, divisor = mantissa * 10 ** max(exponent, 0), 10 ** max(-exponent, 0)
            first, last = floor(low / scale * divisor), ceil(high / scale * divisor)
            if last - first < most:
                steps = range(first, last + 1)
                return [step * scale if divisor == 1 else step * scale / divisor for step in steps]
        exponent += 1


def format_ticks(ticks: Sequence[float]) -> list[str]:
    """Format the ticks of an axis with equally many decimals: `0.0`, `0.5`; `1,000`; `50M`."""
    if all(float(tick).is_integer() for tick in ticks):
        whole = [int(tick) for tick in ticks]
        if max(map(abs, whole)) <= _LONGEST_PLAIN:
            return [f"{tick:,}" for tick in whole]
        fitting = (one for one in _PREFIXES if not any(tick % one[0] for tick in whole))
        unit, prefix = next(fitting, (1, ""))
        return [f"{tick // unit:,}{prefix if tick else ''}" for tick in whole]
    digits = max(len(repr(tick).partition(".")[2]) for tick in ticks)
    return [f"{tick:,.{digits}f}" for tick in ticks]


def choose_time_ticks(
    start: int, end: int, most: int, zone: ZoneInfo, least: int = 0
) -> list[TimeTick]:
    """Return at most `most` ticks at round local times from `start` to `end`, ascending.

    They are minutes, hours, days, Mondays, months or years, with labels such as `12:00`, `Mar 4`,
    `Mar` and `2026`: midnight is labeled with its day, and among months, January with its year. A
    time that the clock skips has no tick, but a day always has one. Ticks are at least about
    `least` milliseconds apart.
    """
    # A clock that is set back can show times before the one at the start, or after the end.
    low = _convert_to_local(start, zone) - timedelta(hours=2)
    high = _convert_to_local(end, zone) + timedelta(hours=2)
    for step in _STEPS:
        if step.shortest >= least and (end - start) // step.shortest <= most + 1:
            ticks = []
            for local in takewhile(lambda at: at <= high, _iter_local_times(step, low)):
                at = round(local.replace(tzinfo=zone).timestamp() * 1000)
                is_skipped = step.shortest < DAY_MS and _convert_to_local(at, zone) != local
                if start <= at <= end and not is_skipped:
                    ticks.append(TimeTick(at, _format_local_time(local, step)))
            if len(ticks) <= most:
                return ticks
    return []


class _TimeStep(NamedTuple):
    """The least distance of ticks in milliseconds, and the months between them, if any."""

    shortest: int
    months: int = 0


_YEARS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_STEPS = (
    *(_TimeStep(minutes * DAY_MS // 1440) for minutes in (1, 2, 5, 10, 15, 30)),
    *(_TimeStep(hours * DAY_MS // 24) for hours in (1, 2, 3, 6, 12)),
    *(_TimeStep(days * DAY_MS) for days in (1, 2, 7, 14)),
    *(_TimeStep(months * 28 * DAY_MS, months) for months in (1, 2, 3, 6)),
    *(_TimeStep(years * 12 * 28 * DAY_MS, 12 * years) for years in _YEARS),
)


def _iter_local_times(step: _TimeStep, first: datetime) -> Iterator[datetime]:
    if step.months:
        # No calendar has a year 0.
        start = (first.year * 12 + first.month - 1) // step.months * step.months or step.months
        for month in range(start, 12 * 10_000, step.months):
            yield datetime(month // 12, month % 12 + 1, 1)  # noqa: DTZ001 - a local time
        return
    length = timedelta(milliseconds=step.shortest)
    at = first - (first - _MONDAY) % length
    while True:
        yield at
        at += length


def _format_local_time(local: datetime, step: _TimeStep) -> str:
    if step.months:
        return str(local.year) if local.month == 1 else MONTHS[local.month - 1]
    if local.hour or local.minute:
        return f"{local.hour:02}:{local.minute:02}"
    return f"{MONTHS[local.month - 1]} {local.day}"


def _convert_to_local(at: int, zone: ZoneInfo) -> datetime:
    # Local times after the year 9999 can't be represented.
    seconds, milliseconds = divmod(min(at, LATEST - 21 * DAY_MS), 1000)
    moment = datetime.fromtimestamp(seconds, zone)
    return moment.replace(tzinfo=None) + timedelta(milliseconds=milliseconds)
