"""Parse times and player counts from text, in the strict forms of our own files or in others."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from srvstat.contract import time
from srvstat.contract.arrays import Numbers
from srvstat.contract.windows import DAY_MS
from srvstat.contract.wire import IDENTIFIER_PATTERN, MAX_IDENTIFIER_LENGTH, MAX_SAFE_INTEGER

TimeUnit = Literal["s", "ms", "us", "ns"]
PER_MILLISECOND = {"us": 1_000, "ns": 1_000_000}
"""The units shorter than a millisecond, and how many of them a millisecond has."""

MAX_PLAYERS = MAX_SAFE_INTEGER
"""The largest player count accepted."""

IDENTIFIER = re.compile(IDENTIFIER_PATTERN)
IDENTIFIER_RULE = f"must be 1 to {MAX_IDENTIFIER_LENGTH} letters, digits and hyphens"
COUNT_RULE = "must be a whole number from 0 to 2^53 - 1"
DIGITS_ONLY = "without separators"
"""The end of the reason to reject a count in the strict form."""

NO_COUNT = "without a player count"
"""The reason to skip a row whose count is empty or null."""

BEFORE_2001 = "before 2001 as milliseconds"
BEFORE_2001_IN_UNIT = "before 2001 in the unit of --time-unit; give a longer unit, such as s"
LOOKS_LIKE_SECONDS = f"{BEFORE_2001}; it looks like Unix seconds"
LOOKS_LIKE_MILLISECONDS = "after the year 9999 as seconds; it looks like Unix milliseconds"
NOT_AN_INSTANT = "unknown time format; set it with --time-format"
OTHER_FORM = "does not match --time-format"
DAY_OR_MONTH = "day or month first? add --time-format day-first or month-first"
LOOKS_LIKE_THOUSANDS = "thousands or a fraction? set the separator with --thousands, or add --round"
FRACTION = "fractional count; add --round to round it"
DECIMAL_COMMA = "decimal comma; add --thousands . and --round"
GROUPED = "has thousands separators; set them with --thousands"

SECONDS = range(time.YEAR_2001 // 1000, time.LATEST // 1000 + 1)
"""The instants from 2001 to 9999 in Unix seconds."""

HOUR_MS = DAY_MS // 24

CHANGES = ("first", "second")
"""Suffixes of a zone name, after a colon, that choose between two equal local times."""

DAY_FIRST, MONTH_FIRST = "day-first", "month-first"
"""The values of `--time-format` that are not strptime formats."""

EMPTY = frozenset(
    {"", "-", "\u2013", "\u2014", "?", "na", "n/a", "#n/a", "nan", "null", "none", r"\n"}
    | {"unavailable", "unknown"}
)
"""How spreadsheets, databases, data frames and Home Assistant write a missing number."""

_STRICT_COUNT = re.compile(r"0|[1-9][0-9]{0,15}")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:[.,' \u00a0\u2009\u202f\u2019][0-9]{3})+(?:[.,][0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[0-9]+,[0-9]+")
_EXPONENT = re.compile(r"[0-9](?:\.[0-9]{1,20})?[eE][+-]?0?[0-9]")
_SEPARATORS = {" ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]"}
_STRICT_NUMBER = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"([0-9]+)(?:\.([0-9]*))?")
_STRICT_TIME = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[T ]"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r"(?P<zone>Z|(?P<sign>[+-])(?P<hours>[0-9]{2}):(?P<minutes>[0-9]{2}))"
)
_ZONE = (
    r"(?P<zone> ?(?:(?:Z|UTC|GMT)(?![+-])|(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>[0-9]{2})"
    r"(?::?(?P<minutes>[0-9]{2}))?(?: ?\([^()]*\))?))?(?![\w:.+-])"
)
_CLOCK = re.compile(
    r"(?<![0-9:.+-])(?P<hour>[0-9]{1,2})(?=:| ?[AP]\.?M)"
    r"(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))?)?)?"
    rf"(?: ?(?P<half>[AP])\.?M\b\.?)?{_ZONE}",
    re.IGNORECASE,
)
_COMPACT = re.compile(
    r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})[T ]?"
    rf"(?P<hour>[0-9]{{2}})(?P<minute>[0-9]{{2}})(?:(?P<second>[0-9]{{2}})"
    rf"(?:\.(?P<fraction>[0-9]+))?)?{_ZONE}"
)
_MONTH = "(?P<month>[0-9]{1,2})"
_YEAR, _DAY = "(?P<year>[0-9]{4}|[0-9]{2})", "(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_NAME = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATES = tuple(
    re.compile(
        r"\s*(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*[.,]?\s+)?"
        rf"(?:{form})(?:\s*,|T|\s+at)?\s*",
        re.IGNORECASE,
    )
    for form in (
        rf"(?P<year>[0-9]{{4}})(?P<mark>[-/.]) ?{_MONTH}(?P=mark) ?(?P<day>[0-9]{{1,2}})\.?",
        rf"(?P<first>[0-9]{{1,2}})(?P<mark>[-/.]) ?(?P<then>[0-9]{{1,2}})(?P=mark) ?{_YEAR}",
        rf"{_DAY}[-. ]*{_NAME}[-, ]+{_YEAR}",
        rf"{_NAME}[- ]+{_DAY}(?:,|-|\s)\s*(?P<year>[0-9]{{4}})",
        r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})",
        rf"{_NAME}[- ]+(?P<year>[0-9]{{4}})",
        r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})",
    )
)

_COUNT_REASONS = (
    (_EXPONENT, FRACTION),
    (_THOUSANDS, LOOKS_LIKE_THOUSANDS),
    (_GROUPED, GROUPED),
    (_DECIMAL_COMMA, DECIMAL_COMMA),
)
"""The forms of malformed counts, with the reason to reject each."""
_NO_DIGIT = re.compile(r"[^0-9]")
_MOST_DIGITS = 16
FIRST_YEAR_OF_1900S = 69
"""Two-digit years from this year on are in the 20th century, as in strptime."""
NOON = 12
NO_SUCH_HALF = "no such time of day (hours 1 to 12 before AM and PM)"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """How a source writes times and player counts. Nothing is guessed (D18).

    - `time_zone`: the zone of times without an offset.
    - `time_unit`: the unit of numeric times.
    - `time_format`: `day-first`, `month-first`, or a strptime format.
    - `thousands`: the thousands separator. With a point, decimals follow a comma.
    - `rounds`: whether fractional counts are rounded.
    """

    time_zone: str | None = None
    time_unit: TimeUnit | None = None
    time_format: str | None = None
    thousands: str | None = None
    rounds: bool = False


_NO_FORMS = Forms()


class RowError(ValueError):
    """A row is malformed. The message gives the reason and does not quote the row.

    `value` is the malformed value, or None if the whole row is malformed.
    """

    def __init__(self, reason: str, value: str | None = None) -> None:
        super().__init__(reason)
        self.value = value


@lru_cache(1 << 14)
def is_identifier(text: str) -> bool:
    """Return whether the contract allows a server identifier."""
    return IDENTIFIER.fullmatch(text) is not None


def check_identifier(text: str) -> None:
    """Raise RowError if the contract does not allow a server identifier."""
    if not is_identifier(text):
        raise RowError(f"serverId: {IDENTIFIER_RULE}", text)


def parse_strict_time(text: str) -> int:
    """Return an instant in Unix milliseconds from a number or a time with a zone.

    Raises InstantError if the text is not a time in the strict form.
    """
    return parse_number(text) if _STRICT_NUMBER.fullmatch(text) else time.parse_instant(text)


def parse_strict_count(text: str) -> int:
    """Return a player count from digits without leading zeros.

    Raises RowError if the text is not a count in the strict form.
    """
    if not _STRICT_COUNT.fullmatch(text) or int(text) > MAX_PLAYERS:
        raise RowError(f"players: {COUNT_RULE}, {DIGITS_ONLY}", text)
    return int(text)


class TimeForm(NamedTuple):
    """The positions of a time's digits, and its parts that are words.

    Texts that differ only in digits have the same form.

    - `spans`: the positions of `year`, `month`, `day`, `hour`, `minute`, `second`, `fraction`, and
      of the `hours` and `minutes` of an offset. A part that the text lacks is missing.
    - `month`: the number of a month written as a word, or 0.
    - `half`: `a`, `p` or empty.
    - `sign`: the sign of the offset, or None without a zone.
    """

    spans: Mapping[str, tuple[int, int]]
    month: int = 0
    half: str = ""
    sign: int | None = None


def find_strict_time_form(text: str) -> TimeForm | None:
    """Return the form of a text such as `2026-03-01T12:00:00Z`, or None for any other text."""
    match = _STRICT_TIME.fullmatch(text)
    return _build_time_form(match) if match else None


def find_time_form(text: str, forms: Forms) -> TimeForm:
    """Return the form of a date with or without a clock time.

    Raises InstantError if the text is not a date, or if the order of day and month is ambiguous.
    """
    if compact := _COMPACT.fullmatch(text):
        return _build_time_form(compact)
    clock = _CLOCK.search(text)
    date_text = text
    if clock:
        date_text = text[: clock.start()] + " " * len(clock[0]) + text[clock.end() :]
    match = next(filter(None, (form.fullmatch(date_text) for form in _DATES)), None)
    if match is None:
        raise time.InstantError(NOT_AN_INSTANT)
    return _build_time_form(match, clock, forms.time_format)


def _build_time_form(
    date_match: re.Match[str], clock: re.Match[str] | None = None, order: str | None = None
) -> TimeForm:
    found: dict[str, str] = {}
    spans: dict[str, tuple[int, int]] = {}
    for match in filter(None, (clock, date_match)):
        groups = {name: text for name, text in match.groupdict().items() if text}
        found |= groups
        spans |= {name: match.span(name) for name in groups}
    if "first" in spans:
        is_german = found["mark"] == "." and len(found["year"]) == len("2026")
        if order is None and not is_german:
            raise time.InstantError(DAY_OR_MONTH)
        names = ("month", "day") if order == MONTH_FIRST else ("day", "month")
        spans |= dict(zip(names, (spans["first"], spans["then"]), strict=True))
    month = 1 + _MONTHS.index(found["name"][:3].lower()) if "name" in found else 0
    sign = (-1 if found.get("sign") == "-" else 1) if "zone" in found else None
    return TimeForm(spans, month, found.get("half", "").lower(), sign)


def parse_time(text: str, forms: Forms = _NO_FORMS) -> int:
    """Return an instant in Unix milliseconds. Further digits are cut off.

    With a strptime format, only that format is accepted. Otherwise accepts a number in the declared
    unit, and a date in numbers or with an English month name, with or without a clock time and
    zone. A time without a zone is local to the declared zone, and a date without a clock time means
    midnight. If no unit is declared, `YYYYMMDD` is also a date.

    Raises InstantError if the text is not a time in such a form.
    """
    text = " ".join(text.split())
    if not text:
        raise time.InstantError("missing")
    if forms.time_format not in {None, DAY_FIRST, MONTH_FIRST}:
        return _parse_declared(text, str(forms.time_format), forms.time_zone)
    if number := _NUMBER.fullmatch(text):
        # As milliseconds, these numbers would be before 2001 or after 2500.
        is_compact = text.startswith(("19", "20")) and _COMPACT.fullmatch(text)
        if forms.time_unit or not is_compact:
            return _convert_number(number[1], number[2] or "", forms)
    form = find_time_form(text, forms)
    parts = {name: text[slice(*span)] for name, span in form.spans.items()}
    year = int(parts["year"])
    if len(parts["year"]) == len("26"):
        year += 2000 if year < FIRST_YEAR_OF_1900S else 1900
    hour = int(parts.get("hour", 0))
    if form.half:
        if not 1 <= hour <= NOON:
            raise time.InstantError(NO_SUCH_HALF)
        hour = hour % NOON + NOON * (form.half == "p")
    written = (
        f"{year:04}-{form.month or int(parts['month']):02}-{int(parts.get('day', 1)):02}"
        f"T{hour:02}:{parts.get('minute', '00')}:{parts.get('second', '00')}"
        f".{parts.get('fraction', '0')}"
    )
    if form.sign is None:
        return _parse_local(written, forms.time_zone)
    sign = "-" if form.sign < 0 else "+"
    offset = f"{sign}{parts.get('hours', '00')}:{parts.get('minutes', '00')}"
    return time.parse_instant(written + offset)


def _parse_declared(text: str, time_format: str, zone: str | None) -> int:
    """Return the instant of a text in a strptime format.

    Raises InstantError if the text does not match.
    """
    try:
        found = datetime.strptime(text, time_format)  # noqa: DTZ007 - a format may have the zone
    except ValueError:
        raise time.InstantError(OTHER_FORM) from None
    written = found.replace(tzinfo=None).isoformat(timespec="milliseconds")
    if found.tzinfo is None:
        return _parse_local(written, zone)
    at = (found - _EPOCH) // timedelta(milliseconds=1)
    if not 0 <= at <= time.LATEST:
        raise time.InstantError(time.OUTSIDE_YEARS)
    return at


def parse_count(text: str, forms: Forms = _NO_FORMS) -> int | None:
    """Return a player count, or None for an empty value. Halves are rounded up.

    Raises RowError if the text is not a count in a declared form.
    """
    text = text.strip()
    if match := _compile_count(forms.thousands).fullmatch(text):
        digits, fraction = _NO_DIGIT.sub("", match["whole"]), (match["fraction"] or "").rstrip("0")
        if forms.thousands is None and not forms.rounds and _THOUSANDS.fullmatch(text):
            raise RowError(f"players: {LOOKS_LIKE_THOUSANDS}", text)
        if fraction and not forms.rounds:
            raise RowError(f"players: {FRACTION}", text)
        # Converting thousands of digits is slow.
        if (
            len(digits) <= _MOST_DIGITS
            and (count := int(digits) + (fraction >= "5")) <= MAX_PLAYERS
        ):
            return count
    elif text.lower() in EMPTY:
        return None
    elif _EXPONENT.fullmatch(text) and forms.rounds:
        return int(Decimal(text).quantize(Decimal(1), ROUND_HALF_UP))
    else:
        found = (reason for form, reason in _COUNT_REASONS if form.fullmatch(text))
        raise RowError(f"players: {next(found, COUNT_RULE)}", text)
    raise RowError(f"players: {COUNT_RULE}", text)


@lru_cache
def _compile_count(thousands: str | None) -> re.Pattern[str]:
    """Return the expression for a count with a thousands separator, or without one."""
    grouped = ""
    if thousands is not None:
        mark = _SEPARATORS.get(thousands, re.escape(thousands))
        grouped = f"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|"
    decimal = "," if thousands == "." else r"\."
    return re.compile(f"(?P<whole>{grouped}[0-9]+)(?:{decimal}(?P<fraction>[0-9]*))?")


def _convert_number(digits: str, fraction: str, forms: Forms) -> int:
    unit = forms.time_unit
    if unit is None:
        return parse_number(digits, fraction, forms.time_zone)
    if unit == "s":
        # A longer number isn't an instant in milliseconds either.
        if len(digits) <= len(str(time.LATEST)) and int(digits) > time.LATEST // 1000:
            raise time.InstantError(LOOKS_LIKE_MILLISECONDS)
        return time.parse_instant(digits + f"{fraction}000"[:3])
    if parts := PER_MILLISECOND.get(unit):
        at = time.parse_instant(digits[: 1 - len(str(parts))] or "0")
        if at < time.YEAR_2001:
            raise time.InstantError(BEFORE_2001_IN_UNIT)
        return at
    at = time.parse_instant(digits)
    # A column of milliseconds may contain seconds, which would be in 1970.
    if at in SECONDS:
        raise time.InstantError(LOOKS_LIKE_SECONDS)
    return at


def parse_number(digits: str, fraction: str = "", zone: str | None = None) -> int:
    """Return the instant of a number with no declared unit.

    Eight digits that form a date mean midnight in the zone. Any other number is Unix milliseconds
    from 2001 on: an earlier time is more likely to be seconds, days or a date.

    Raises InstantError if the number is neither.
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

    Raises InstantError if there is no zone, and the errors of `convert_local_time`.
    """
    if zone is None:
        raise time.InstantError(time.NO_TIME_ZONE)
    return convert_local_time(time.parse_instant(f"{written}Z"), zone)


def convert_local_times(local_times: Numbers, zone: str) -> Numbers:
    """Convert local times from 1970 to 9999 to instants, negative where invalid.

    See `convert_local_time`.
    """
    days, places = np.unique(local_times // DAY_MS, return_inverse=True)
    offsets = [_find_offset_of_day(day, zone) for day in days.tolist()]
    found: Numbers = local_times - np.array([offset or 0 for offset in offsets], np.int64)[places]
    is_changing = np.array([offset is None for offset in offsets], np.bool_)[places]
    for row in np.flatnonzero(is_changing):
        try:
            found[row] = convert_local_time(int(local_times[row]), zone)
        except time.InstantError:
            found[row] = -1
    return found


def convert_local_time(at: int, zone: str) -> int:
    """Convert a local time to an instant.

    A local time is the number of milliseconds from midnight of 1970-01-01 on the local clock. A
    zone such as `Europe/Berlin:first` chooses between two equal times.

    Raises InstantError if the time occurs twice or never because of a clock change, or is outside
    the supported years.
    """
    offset = _find_offset_of_day(at // DAY_MS, zone)
    if offset is None:
        offset, second = _find_offsets(at, zone)
        name, _, choice = zone.partition(":")
        if offset < second:
            fixed = "UTC" if offset % HOUR_MS else f"Etc/GMT{-offset // HOUR_MS:+}"
            raise time.InstantError(
                f"does not exist in {name}, where the clock was set forward; if the times ignore"
                f" that, give --time-zone {fixed}"
            )
        if offset > second and not choice:
            raise time.InstantError(
                f"occurs twice in {name}, where the clock was set back; choose one with"
                f" --time-zone {name}:first or {name}:second"
            )
        offset = second if choice == CHANGES[1] else offset
    if not 0 <= at - offset <= time.LATEST:
        raise time.InstantError(time.OUTSIDE_YEARS)
    return at - offset


def _find_offsets(at: int, zone: str) -> tuple[int, int]:
    """Return the UTC offsets in milliseconds of a local time's first and second occurrence."""
    local = (_EPOCH + timedelta(milliseconds=at)).replace(tzinfo=ZoneInfo(zone.partition(":")[0]))
    first, second = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return first // timedelta(milliseconds=1), second // timedelta(milliseconds=1)


@lru_cache(maxsize=4096)
def _find_offset_of_day(day: int, zone: str) -> int | None:
    """Return the offset of a local day, or None if the offset changes on that day."""
    # The range includes the first hour of the next day: a change at midnight affects both days.
    hours = range(day * DAY_MS, (day + 1) * DAY_MS + 1, DAY_MS // 24)
    found = {offset for at in hours for offset in _find_offsets(min(at, time.LATEST), zone)}
    return found.pop() if len(found) == 1 else None


def is_utf8(text: str) -> bool:
    """Return whether UTF-8 can encode a text, as databases require."""
    return not any("\ud800" <= each <= "\udfff" for each in text)
