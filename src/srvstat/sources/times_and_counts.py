"""Parse rows of text, and times and player counts, in the strict forms or in those of a mapping."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from srvstat.arrays import Numbers
from srvstat.contract.instants import (
    LATEST,
    NO_TIME_ZONE,
    OUTSIDE_YEARS,
    YEAR_2001,
    InstantError,
    parse_instant,
)
from srvstat.contract.windows import DAY_MS
from srvstat.sources.batch import (
    COUNT_RULE,
    IDENTIFIER,
    IDENTIFIER_RULE,
    MAX_PLAYERS,
    NO_COUNT,
    Batch,
    Reject,
    RowError,
)
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.source import Block, Source

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
    """The three fields of a row, as text."""

    server_id: str
    observed_at: str
    players: str


class WideRow(NamedTuple):
    """The time of a row, and the player count of each server; both as text."""

    observed_at: str
    players: Sequence[tuple[str, str]]


def parse_values(row: Row) -> tuple[int, int]:
    """Return the instant and the player count of a row in the strict forms.

    Raises RowError for a malformed field.
    """
    try:
        is_integer = _INTEGER.fullmatch(row.observed_at)
        observed_at = (parse_number if is_integer else parse_instant)(row.observed_at)
    except InstantError as error:
        raise RowError(f"observedAt: {error}", row.observed_at) from None
    if not _PLAYERS.fullmatch(row.players) or int(row.players) > MAX_PLAYERS:
        raise RowError(f"players: {COUNT_RULE}, {DIGITS_ONLY}", row.players)
    return observed_at, int(row.players)


def parse_records(
    source: Source,
    block: Block,
    records: Iterable[tuple[int, str]],
    split_record: Callable[[str], Row],
) -> Batch:
    """Parse the records of a block one by one, and keep the block's text if it has observations.

    Each record comes with the number of its first line; empty records are skipped. `split_record`
    returns the fields of a record or raises RowError.
    """
    parse_row = _choose_row_parser(source)
    found: list[tuple[str, int, int, int]] = []
    rejects: list[Reject] = []
    without_count = 0
    for line, text in records:
        record = text.removesuffix("\r")
        if not record:
            continue
        try:
            row = split_record(record)
            instant, count = parse_row(row)
        except RowError as error:
            rejects.append(Reject(line, str(error), record, error.value))
            continue
        if count is None:
            without_count += 1
            continue
        found.append((row.server_id, instant, count, line))
    if found and source.keep_text:
        source.keep_text(block)
    skipped = {NO_COUNT: without_count} if without_count else {}
    return Batch.from_rows(found, rejects, skipped)


def parse_wide_records(
    source: Source,
    records: Iterable[tuple[int, str]],
    split_record: Callable[[str], WideRow],
) -> Batch:
    """Parse records with the player counts of many servers one by one.

    Empty counts are not rows. A malformed count rejects only itself, a malformed time all counts of
    its record.
    The other parameters are those of `parse_records`.
    """
    values = ValueParser(source.mapping)
    found: list[tuple[str, int, int, int]] = []
    rejects: list[Reject] = []
    for line, text in records:
        record = text.removesuffix("\r")
        if not record:
            continue
        lost = 1
        try:
            row = split_record(record)
            lost = sum(bool(written.strip()) for _, written in row.players) or 1
            instant = _parse_instant(values, row.observed_at)
        except RowError as error:
            rejects.append(Reject(line, str(error), record, error.value, rows=lost))
            continue
        for server_id, written in row.players:
            try:
                count = values.parse_count(written)
            except RowError as error:
                cell = f"{server_id},{row.observed_at},{written}"
                rejects.append(Reject(line, str(error), cell, error.value, server_id))
            else:
                if count is not None:
                    found.append((server_id, instant, count, line))
    return Batch.from_rows(found, rejects)


def _choose_row_parser(source: Source) -> Callable[[Row], tuple[int, int | None]]:
    """Return the function that parses the instant and the player count of a row.

    The count is None if it is empty. The function raises RowError for a malformed field.
    """
    if source.mapping.is_strict:
        return parse_values if source.accepts_any_id else _parse_strictly
    values = ValueParser(source.mapping)
    return lambda row: (_parse_instant(values, row.observed_at), values.parse_count(row.players))


def _parse_strictly(row: Row) -> tuple[int, int]:
    if not IDENTIFIER.fullmatch(row.server_id):
        raise RowError(f"serverId: {IDENTIFIER_RULE}", row.server_id)
    return parse_values(row)


def _parse_instant(values: ValueParser, text: str) -> int:
    try:
        return values.parse_instant(text)
    except InstantError as error:
        raise RowError(f"observedAt: {error}", text) from None
