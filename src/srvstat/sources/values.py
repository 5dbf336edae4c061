"""Parse times and player counts from text: in the strict forms of our own files, or in others."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

import numpy as np

from srvstat.contract import time
from srvstat.contract.arrays import Numbers
from srvstat.contract.windows import DAY_MS
from srvstat.contract.wire import IDENTIFIER_PATTERN, MAX_IDENTIFIER_LENGTH, MAX_SAFE_INTEGER

TimeUnit = Literal["s", "ms", "us"]

MAX_PLAYERS = MAX_SAFE_INTEGER
"""The largest player count accepted."""

IDENTIFIER = re.compile(IDENTIFIER_PATTERN)
IDENTIFIER_RULE = f"must be 1 to {MAX_IDENTIFIER_LENGTH} letters, digits and hyphens"
COUNT_RULE = f"must be a whole number from 0 to {MAX_PLAYERS}"
DIGITS_ONLY = "in digits only"
"""How the reason for a count ends in the strict form."""

NO_COUNT = "without a player count"
"""The reason to skip a row whose count is empty or null: it is no observation."""

BEFORE_2001 = "before 2001 as milliseconds"
LOOKS_LIKE_SECONDS = f"{BEFORE_2001}, so it looks like seconds"
LOOKS_LIKE_MILLISECONDS = "after the year 9999 as seconds, so it looks like milliseconds"
LOOKS_LIKE_THOUSANDS = "a point before three zeros could separate thousands"
NOT_AN_INSTANT = "not a Unix time and not YYYY-MM-DD HH:MM:SS"

SECONDS = range(time.YEAR_2001 // 1000, time.LATEST // 1000 + 1)
"""The instants from 2001 to 9999 as seconds."""

EMPTY = frozenset({"", "na", "nan", "null", "none", r"\n"})
"""How spreadsheets, databases and data frames write a missing number, in lower case."""

_STRICT_COUNT = re.compile(r"0|[1-9][0-9]{0,15}")
_COUNT = re.compile(r"([0-9]{1,16})(?:\.0*)?")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}\.000")
_STRICT_NUMBER = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"([0-9]+)(?:\.([0-9]*))?")
_CALENDAR = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?))?"
    r"(?: ?(?:(?P<utc>Z|UTC)|(?P<hours>[+-][0-9]{2})(?::?(?P<minutes>[0-9]{2}))?))?"
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """How a source writes times and player counts; nothing is guessed (D18).

    `time_zone` is the zone of times without an offset, and `time_unit` the unit of numbers.
    `time_format` is `day-first`, `month-first`, or a format of strptime. `thousands` is the
    character between thousands; with a point, a comma precedes decimals. `rounds` rounds fractions.
    """

    time_zone: str | None = None
    time_unit: TimeUnit | None = None
    time_format: str | None = None
    thousands: str | None = None
    rounds: bool = False


class RowError(ValueError):
    """A row is malformed. The message gives the reason and does not quote the row.

    `value` is the text of the value that is malformed; None if the row as a whole is.
    """

    def __init__(self, reason: str, value: str | None = None) -> None:
        super().__init__(reason)
        self.value = value


def check_identifier(text: str) -> None:
    """Raise RowError if the contract does not allow a server's identifier."""
    if not IDENTIFIER.fullmatch(text):
        raise RowError(f"serverId: {IDENTIFIER_RULE}", text)


def parse_strict_time(text: str) -> int:
    """Return an instant in Unix milliseconds from a number or a time with its zone.

    Raises InstantError.
    """
    return parse_number(text) if _STRICT_NUMBER.fullmatch(text) else time.parse_instant(text)


def parse_strict_count(text: str) -> int:
    """Return a player count from digits without leading zeros.

    Raises RowError.
    """
    if not _STRICT_COUNT.fullmatch(text) or int(text) > MAX_PLAYERS:
        raise RowError(f"players: {COUNT_RULE}, {DIGITS_ONLY}", text)
    return int(text)


def parse_time(text: str, unit: TimeUnit | None = None, zone: str | None = None) -> int:
    """Return an instant in Unix milliseconds; digits beyond milliseconds are cut.

    Accepts a number in the unit, or `YYYY-MM-DD`, optionally with a clock time and a zone. Without
    a zone it is a local time of the given zone, and without a clock time it is midnight. Without a
    unit, `YYYYMMDD` is a date, too.

    Raises InstantError.
    """
    text = text.strip()
    if number := _NUMBER.fullmatch(text):
        return _convert_number(number[1], number[2] or "", unit, zone)
    match = _CALENDAR.fullmatch(text)
    if match is None:
        raise time.InstantError(NOT_AN_INSTANT)
    written = f"{match['day']}T{match['clock'] or '00:00'}"
    if match["utc"]:
        return time.parse_instant(f"{written}Z")
    if match["hours"]:
        return time.parse_instant(f"{written}{match['hours']}:{match['minutes'] or '00'}")
    return _parse_local(written, zone)


def parse_count(text: str) -> int | None:
    """Return a player count, or None for an empty value.

    Raises RowError.
    """
    text = text.strip()
    if _THOUSANDS.fullmatch(text):
        raise RowError(f"players: {LOOKS_LIKE_THOUSANDS}", text)
    if match := _COUNT.fullmatch(text):
        count = int(match[1])
        if count <= MAX_PLAYERS:
            return count
    elif text.lower() in EMPTY:
        return None
    raise RowError(f"players: {COUNT_RULE}", text)


def _convert_number(digits: str, fraction: str, unit: TimeUnit | None, zone: str | None) -> int:
    if unit is None:
        return parse_number(digits, fraction, zone)
    if unit == "s":
        # A longer number is no instant in milliseconds either.
        if len(digits) <= len(str(time.LATEST)) and int(digits) > time.LATEST // 1000:
            raise time.InstantError(LOOKS_LIKE_MILLISECONDS)
        return time.parse_instant(digits + f"{fraction}000"[:3])
    at = time.parse_instant(digits)
    # A column in milliseconds may have seconds among them, which would be in 1970.
    if at in SECONDS:
        raise time.InstantError(LOOKS_LIKE_SECONDS)
    return at


def parse_number(digits: str, fraction: str = "", zone: str | None = None) -> int:
    """Return the instant of a number whose unit was not declared.

    Eight digits that are a date are its midnight in a zone. Any other number is milliseconds from
    2001 on: an earlier one would put seconds, days or dates in January 1970.

    Raises InstantError.
    """
    if len(digits) == len("YYYYMMDD") and not fraction.strip("0") and (day := _find_day(digits)):
        return _parse_local(f"{day}T00:00", zone)
    at = time.parse_instant(digits)
    if at < time.YEAR_2001:
        raise time.InstantError(LOOKS_LIKE_SECONDS if at in SECONDS else BEFORE_2001)
    return at


def _find_day(digits: str) -> date | None:
    try:
        return date.fromisoformat(digits)
    except ValueError:
        return None


def _parse_local(written: str, zone: str | None) -> int:
    """Return the instant of a local time such as `2014-11-23T00:00`.

    Raises InstantError.
    """
    if zone is None:
        raise time.InstantError(time.NO_TIME_ZONE)
    return convert_local_time(time.parse_instant(f"{written}Z"), zone)


def convert_local_times(local_times: Numbers, zone: str) -> Numbers:
    """Return the instants of local times of a zone; see `convert_local_time`.

    Raises InstantError if one of them is invalid.
    """
    days, of_row = np.unique(local_times // DAY_MS, return_inverse=True)
    offsets = [_find_offset_of_day(day, zone) for day in days.tolist()]
    # On the first and the last day, an instant can be outside the years.
    if None in offsets or not 0 < days[0] <= days[-1] < time.LATEST // DAY_MS:
        return np.array([convert_local_time(at, zone) for at in local_times.tolist()])
    return np.subtract(local_times, np.array(offsets, np.int64)[of_row])


def convert_local_time(at: int, zone: str) -> int:
    """Return the instant of a local time of a zone.

    A local time counts milliseconds from midnight of 1970-01-01 on the local clock.

    Raises InstantError for a time that occurs twice or never, because the clock was changed.
    """
    offset = _find_offset_of_day(at // DAY_MS, zone)
    if offset is None:
        offset, second = _find_offsets(at, zone)
        if offset < second:
            raise time.InstantError(f"does not exist in {zone}, where the clock was set forward")
        if offset > second:
            raise time.InstantError(f"occurs twice in {zone}, where the clock was set back")
    if not 0 <= at - offset <= time.LATEST:
        raise time.InstantError(time.OUTSIDE_YEARS)
    return at - offset


def _find_offsets(at: int, zone: str) -> tuple[int, int]:
    """Return the offsets of a local time, in milliseconds, if it is the first or second of two."""
    local = (_EPOCH + timedelta(milliseconds=at)).replace(tzinfo=ZoneInfo(zone))
    first, second = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return first // timedelta(milliseconds=1), second // timedelta(milliseconds=1)


@lru_cache(maxsize=4096)
def _find_offset_of_day(day: int, zone: str) -> int | None:
    """Return the offset of a local day, or None if it changes on that day."""
    # This includes the first hour of the next day: a change at midnight is a change of both days.
    hours = range(day * DAY_MS, (day + 1) * DAY_MS + 1, DAY_MS // 24)
    found = {offset for at in hours for offset in _find_offsets(min(at, time.LATEST), zone)}
    return found.pop() if len(found) == 1 else None


def is_utf8(text: str) -> bool:
    """Return whether UTF-8 can encode a text, as databases need."""
    return not any("\ud800" <= each <= "\udfff" for each in text)
