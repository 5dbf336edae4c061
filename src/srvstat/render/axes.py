"""Choose axis ticks: round numbers, and round times on the clock of a time zone."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count, takewhile
from math import ceil, floor, log10
from typing import NamedTuple
from zoneinfo import ZoneInfo

from srvstat.contract.time import LATEST
from srvstat.contract.windows import DAY_MS
from srvstat.render.text import MONTHS

_MANTISSAS = (1, 2, 5)
_LEAST_WHOLE = 1000
"""An axis that ends at this value or above has integer ticks; others have up to two decimals."""
_LONGEST_PLAIN = 9_999_999
"""Larger ticks are shown in thousands, millions and so on: `50M`."""
_PREFIXES = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))

_MOST_TIMES_HIGHER = 4
"""The maximum ratio between the rows of a shared axis. Beyond it, a low row would look flat."""

_MONDAY = datetime(1970, 1, 5)  # noqa: DTZ001 - a local time


class TimeTick(NamedTuple):
    """A labeled tick at an instant in Unix milliseconds."""

    at: int
    label: str


def choose_highs(highs: Sequence[float | None]) -> list[float | None]:
    """Return the top value of each row's axis: shared, unless that would make a row look flat."""
    known = [high for high in highs if high]
    if not known or max(known) > _MOST_TIMES_HIGHER * min(known):
        return list(highs)
    return [max(known)] * len(highs)


def choose_ticks(low: float, high: float, most: int) -> list[float]:
    """Return 2 to `most` round numbers at equal distances, ascending.

    They enclose the range: the first is at most `low`, the last at least `high`. They are integers
    if their distance is. `most` must be at least 3, because -1 to 1 needs 3.
    """
    if low == high:
        high = low + 1
    finest = -2 if max(abs(low), abs(high)) < _LEAST_WHOLE else 0
    exponent = max(floor(log10((high - low) / most)), finest)
    while True:
        for mantissa in _MANTISSAS:
            # Dividing once rounds once, so a fraction is exactly the float that its label names.
            scale, divisor = mantissa * 10 ** max(exponent, 0), 10 ** max(-exponent, 0)
            first, last = floor(low / scale * divisor), ceil(high / scale * divisor)
            if last - first < most:
                steps = range(first, last + 1)
                return [step * scale if divisor == 1 else step * scale / divisor for step in steps]
        exponent += 1


def format_ticks(ticks: Sequence[float]) -> list[str]:
    """Format an axis's ticks with the same number of decimals: `0.0`, `0.5`; `1,000`; `50M`."""
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

    Steps are minutes, hours, days, Mondays, months or years. Labels are `12:00`, `Mar 4`, `Mar` or
    `2026`: midnight is labeled with its day, and January with its year. A time that the clock skips
    has no tick, but every day has a tick. Ticks are at least about `least` milliseconds apart.
    """
    # When a clock is set back, it can show times before the local start or after the local end.
    low = convert_to_local(start, zone) - timedelta(hours=2)
    high = convert_to_local(end, zone) + timedelta(hours=2)
    for step in _STEPS:
        if step.shortest >= least and (end - start) // step.shortest <= most + 1:
            ticks = []
            for local in takewhile(lambda at: at <= high, step.iter_starts(low)):
                at = convert_to_instant(local, zone)
                is_skipped = step.shortest < DAY_MS and convert_to_local(at, zone) != local
                if start <= at <= end and not is_skipped:
                    ticks.append(TimeTick(at, _format_local_time(local, step)))
            if len(ticks) <= most:
                return ticks
    return []


class CalendarStep(NamedTuple):
    """A calendar step: its minimum length in milliseconds, and its months, if any.

    Steps other than months are aligned to midnight on a Monday. Local times have no zone.
    """

    shortest: int
    months: int = 0

    def find_number(self, local: datetime) -> int:
        """Return the number of the step that contains a local time."""
        if self.months:
            return (local.year * 12 + local.month - 1) // self.months
        return (local - _MONDAY) // timedelta(milliseconds=self.shortest)

    def iter_starts(self, local: datetime) -> Iterator[datetime]:
        """Yield the start of the step that contains a local time, and of all later steps."""
        for number in count(self.find_number(local)):
            try:
                yield self._find_start(number)
            except (OverflowError, ValueError):  # Python's calendar has no years 0 and 10,000
                if number:
                    return

    def _find_start(self, number: int) -> datetime:
        if not self.months:
            return _MONDAY + number * timedelta(milliseconds=self.shortest)
        year, month = divmod(number * self.months, 12)
        return datetime(year, month + 1, 1)  # noqa: DTZ001 - a local time


_YEARS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_STEPS = (
    *(CalendarStep(minutes * DAY_MS // 1440) for minutes in (1, 2, 5, 10, 15, 30)),
    *(CalendarStep(hours * DAY_MS // 24) for hours in (1, 2, 3, 6, 12)),
    *(CalendarStep(days * DAY_MS) for days in (1, 2, 7, 14)),
    *(CalendarStep(months * 28 * DAY_MS, months) for months in (1, 2, 3, 6)),
    *(CalendarStep(years * 12 * 28 * DAY_MS, 12 * years) for years in _YEARS),
)


def _format_local_time(local: datetime, step: CalendarStep) -> str:
    if step.months:
        return str(local.year) if local.month == 1 else MONTHS[local.month - 1]
    if local.hour or local.minute:
        return f"{local.hour:02}:{local.minute:02}"
    return f"{MONTHS[local.month - 1]} {local.day}"


def convert_to_local(at: int, zone: ZoneInfo) -> datetime:
    """Return the local time of a zone's clock at an instant."""
    # Local times after the year 9999 can't be represented.
    seconds, milliseconds = divmod(min(at, LATEST - DAY_MS), 1000)
    moment = datetime.fromtimestamp(seconds, zone)
    return moment.replace(tzinfo=None) + timedelta(milliseconds=milliseconds)


def convert_to_instant(local: datetime, zone: ZoneInfo) -> int:
    """Return the first instant at which a zone's clock shows a local time."""
    return round(local.replace(tzinfo=zone).timestamp() * 1000)
