"""Parse rows of text, and times and player counts, in the strict forms or in those of a mapping."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from srvstat.contract.arrays import Numbers
from srvstat.contract.time import (
    DAY_MS,
    LATEST,
    NO_TIME_ZONE,
    OUTSIDE_YEARS,
    YEAR_2001,
    InstantError,
    parse_instant,
)
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.source import (
    COUNT_RULE,
    IDENTIFIER,
    IDENTIFIER_RULE,
    MAX_PLAYERS,
    NO_COUNT,
    Batch,
    Block,
    Reject,
    RowError,
    Source,
)

BEFORE_2001 = "before 2001 as milliseconds"
LOOKS_LIKE_SECONDS = f"{BEFORE_2001}, so it looks like seconds"
LOOKS_LIKE_MILLISECONDS = "after the year 9999 as seconds, so it looks like milliseconds"
LOOKS_LIKE_THOUSANDS = "a point before three zeros could separate thousands"
NOT_AN_INSTANT = "not a Unix time and not YYYY-MM-DD HH:MM:SS"

# As seconds, these are the instants from 2001 to 9999.
SECONDS = range(YEAR_2001 // 1000, LATEST // 1000 + 1)

# How spreadsheets, databases and data frames write a missing number, in lower case.
_EMPTY = frozenset({"", "na", "nan", "null", "none", r"\n"})

_COUNT = re.compile(r"([0-9]{1,16})(?:\.0*)?")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}\.000")
_NUMBER = re.compile(r"([0-9]+)(?:\.([0-9]*))?")
_CALENDAR = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?))?"
    r"(?: ?(?:(?P<utc>Z|UTC)|(?P<hours>[+-][0-9]{2})(?::?(?P<minutes>[0-9]{2}))?))?"
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


DIGITS_ONLY = "in digits only"
"""How the reason for a count ends in the strict forms."""
_INTEGER = re.compile(r"[0-9]+")
_PLAYERS = re.compile(r"0|[1-9][0-9]{0,15}")


class ValueParser:
    """Parses times and player counts in the forms that a mapping declares."""

    def __init__(self, mapping: ColumnMapping) -> None:
        self._unit = mapping.time_unit
        # A column in milliseconds may have seconds among them, which would be in 1970.
        self._invalid = SECONDS if mapping.time_unit == "ms" and not mapping.is_strict else range(0)
        self._zone = mapping.time_zone

    def parse_instant(self, text: str) -> int:
        """Return an instant in Unix milliseconds; digits beyond milliseconds are cut.

        Accepts a number in the unit of the mapping, or `YYYY-MM-DD`, optionally with a clock time
        and a zone. Without a zone it is a local time of the mapping's zone, and without a clock
        time it is midnight. Without a unit, `YYYYMMDD` is a date, too.

        Raises InstantError.
        """
        text = text.strip()
        if number := _NUMBER.fullmatch(text):
            return self._convert_number(number[1], number[2] or "")
        match = _CALENDAR.fullmatch(text)
        if match is None:
            raise InstantError(NOT_AN_INSTANT)
        written = f"{match['day']}T{match['clock'] or '00:00'}"
        if match["utc"]:
            return parse_instant(f"{written}Z")
        if match["hours"]:
            return parse_instant(f"{written}{match['hours']}:{match['minutes'] or '00'}")
        return _parse_local(written, self._zone)

    def parse_count(self, text: str) -> int | None:
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
        elif text.lower() in _EMPTY:
            return None
        raise RowError(f"players: {COUNT_RULE}", text)

    def _convert_number(self, digits: str, fraction: str) -> int:
        if self._unit is None:
            return parse_number(digits, fraction, self._zone)
        if self._unit == "s":
            # A longer number is no instant in milliseconds either.
            if len(digits) <= len(str(LATEST)) and int(digits) > LATEST // 1000:
                raise InstantError(LOOKS_LIKE_MILLISECONDS)
            return parse_instant(digits + f"{fraction}000"[:3])
        at = parse_instant(digits)
        if at in self._invalid:
            raise InstantError(LOOKS_LIKE_SECONDS)
        return at


def parse_number(digits: str, fraction: str = "", zone: str | None = None) -> int:
    """Return the instant of a number whose unit was not declared.

    Eight digits that are a date are its midnight in a zone. Any other number is milliseconds from
    2001 on: an earlier one would put seconds, days or dates in January 1970.

    Raises InstantError.
    """
    if len(digits) == len("YYYYMMDD") and not fraction.strip("0") and (day := _find_day(digits)):
        return _parse_local(f"{day}T00:00", zone)
    at = parse_instant(digits)
    if at < YEAR_2001:
        raise InstantError(LOOKS_LIKE_SECONDS if at in SECONDS else BEFORE_2001)
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
        raise InstantError(NO_TIME_ZONE)
    return convert_local_time(parse_instant(f"{written}Z"), zone)


def convert_local_times(local_times: Numbers, zone: str) -> Numbers:
    """Return the instants of local times of a zone; see `convert_local_time`.

    Raises InstantError if one of them is invalid.
    """
    days, of_row = np.unique(local_times // DAY_MS, return_inverse=True)
    offsets = [_find_offset_of_day(day, zone) for day in days.tolist()]
    # On the first and the last day, an instant can be outside the years.
    if None in offsets or not 0 < days[0] <= days[-1] < LATEST // DAY_MS:
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
            raise InstantError(f"does not exist in {zone}, where the clock was set forward")
        if offset > second:
            raise InstantError(f"occurs twice in {zone}, where the clock was set back")
    if not 0 <= at - offset <= LATEST:
        raise InstantError(OUTSIDE_YEARS)
    return at - offset


def _find_offsets(at: int, zone: str) -> tuple[int, int]:
    """Return the offsets of a local time, in milliseconds, if it is the first or second of two."""
    local = (_EPOCH + timedelta(milliseconds=at)).replace(tzinfo=ZoneInfo(zone))
    first, second = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return first // timedelta(milliseconds=1), second // timedelta(milliseconds=1)


@lru_cache(maxsize=4096)
def _find_offset_of_day(day: int, zone: str) -> int | None:
    """Return the offset of a local day, or None if it changes on that day."""
    # The last hour is that of the next day: a change at midnight is a change of both days.
    hours = range(day * DAY_MS, (day + 1) * DAY_MS + 1, DAY_MS // 24)
    found = {offset for at in hours for offset in _find_offsets(min(at, LATEST), zone)}
    return found.pop() if len(found) == 1 else None


class Row(NamedTuple):
    """The time of a record, and the player counts of servers, which are one unless it is wide.

    All are text.
    """

    observed_at: str
    players: Sequence[tuple[str, str]]


class _StrictParser:
    """Parses times and player counts in the strict forms, as ValueParser does others."""

    def parse_instant(self, text: str) -> int:
        return parse_number(text) if _INTEGER.fullmatch(text) else parse_instant(text)

    def parse_count(self, text: str) -> int:
        if not _PLAYERS.fullmatch(text) or int(text) > MAX_PLAYERS:
            raise RowError(f"players: {COUNT_RULE}, {DIGITS_ONLY}", text)
        return int(text)


def parse_records(
    source: Source,
    block: Block,
    records: Iterable[tuple[int, str]],
    split_record: Callable[[str], Row],
) -> Batch:
    """Parse the records of a block one by one, and keep the block's text if it has observations.

    Each record comes with the number of its first line; empty records are skipped. `split_record`
    returns the fields of a record or raises RowError.

    A malformed time of a wide record rejects all its counts, and a malformed count only itself.
    Empty counts of a wide record are no rows, and its text is not kept.
    """
    mapping = source.mapping
    parser = _StrictParser() if mapping.is_strict else ValueParser(mapping)
    found: list[tuple[str, int, int, int]] = []
    rejects: list[Reject] = []
    without_count = 0
    texts = ((line, text.removesuffix("\r")) for line, text in records)
    for line, record in filter(itemgetter(1), texts):
        lost = 1
        try:
            observed_at, players = split_record(record)
            if mapping.is_wide:
                lost = sum(bool(written.strip()) for _, written in players) or 1
            elif mapping.is_strict and not source.accepts_any_id:
                _check_id(players[0][0])
            instant = _parse_instant(parser, observed_at)
        except RowError as error:
            rejects.append(Reject(line, str(error), record, error.value, rows=lost))
            continue
        for server_id, written in players:
            try:
                count = parser.parse_count(written)
            except RowError as error:
                cell = f"{server_id},{observed_at},{written}" if mapping.is_wide else record
                column = server_id if mapping.is_wide else None
                rejects.append(Reject(line, str(error), cell, error.value, column))
                continue
            if count is not None:
                found.append((server_id, instant, count, line))
            elif not mapping.is_wide:
                without_count += 1
    if found and source.keep_text and not mapping.is_wide:
        source.keep_text(block)
    return Batch.from_rows(found, rejects, {NO_COUNT: without_count} if without_count else {})


def _check_id(text: str) -> None:
    if not IDENTIFIER.fullmatch(text):
        raise RowError(f"serverId: {IDENTIFIER_RULE}", text)


def _parse_instant(parser: ValueParser | _StrictParser, text: str) -> int:
    try:
        return parser.parse_instant(text)
    except InstantError as error:
        raise RowError(f"observedAt: {error}", text) from None
