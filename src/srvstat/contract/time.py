"""Parse and format times, and find time zones (D4, D18)."""

import re
from contextlib import suppress
from datetime import date
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from srvstat.contract import wire
from srvstat.contract.windows import DAY_MS

LATEST = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z, the last time with a text form."""

YEAR_2001 = 978_307_200_000
"""2001-01-01T00:00Z. A smaller value in milliseconds is probably in seconds."""

OUTSIDE_YEARS = "outside the years 1970 to 9999"
NO_TIME_ZONE = "no time zone; add Z or an offset such as +02:00"
NOT_MILLISECONDS = "not a time; use YYYY-MM-DDTHH:MM:SSZ or Unix milliseconds"
"""The reasons why a text is not a time."""

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_INTEGER = re.compile(r"[0-9]+")
_TEXT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)


class InstantError(ValueError):
    """The text is not a time. The message gives the reason and does not quote the text."""


def format_instant(at: int) -> str:
    """Format Unix milliseconds as UTC with exactly three fractional digits and `Z` (D4)."""
    day, rest = divmod(at, DAY_MS)
    seconds, milliseconds = divmod(rest, 1000)
    minutes, seconds = divmod(seconds, 60)
    clock = (minutes // 60, minutes % 60, seconds, milliseconds)
    # Faster than an f-string; a history formats millions of times.
    return "%sT%02d:%02d:%02d.%03dZ" % (_format_day(day), *clock)  # noqa: UP031 - see above


def parse_instant(text: str) -> int:
    """Parse a time and return it in Unix milliseconds.

    Accepts Unix milliseconds (ASCII digits without a sign), or `YYYY-MM-DD`, `T` or a space,
    `HH:MM[:SS[.digits]]`, then `Z` or `±HH:MM`. Digits after milliseconds are ignored.

    Raises InstantError, for example for a time without a zone (D18).
    """
    match = _TEXT.fullmatch(text)
    at = _parse_calendar(match) if match else _parse_integer(text)
    if not 0 <= at <= LATEST:
        raise InstantError(OUTSIDE_YEARS)
    return at


def parse_shown_time(text: str) -> int:
    """Parse an instant in a form of `parse_instant`, or in the form of tables, which end in ` UTC`.

    Raises InstantError if the text is in neither form.
    """
    return parse_instant(f"{text.removesuffix(' UTC')}Z" if text.endswith(" UTC") else text)


def explain_instant_error(text: str, error: InstantError, remedy: str) -> str:
    """Return an error message that quotes a text that is not a time, with the remedy."""
    value = wire.quote_value(text)
    if str(error) != NOT_MILLISECONDS:
        return f"{value}: {error}" if ";" in str(error) else f"{value}: {error}; {remedy}"
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return f"{value} is not a time; {remedy}"
    with suppress(InstantError):
        _find_midnight(text)
        return f"{value} has no time of day; write {text}T00:00Z"
    return f"{value} is not a valid date"


@lru_cache(maxsize=4096)
def _format_day(day: int) -> str:
    return date.fromordinal(_EPOCH_ORDINAL + day).isoformat()


def _parse_integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise InstantError(NOT_MILLISECONDS)
    digits = text.lstrip("0")
    # Converting thousands of digits is slow, and such a value is out of range anyway.
    return int(digits or "0") if len(digits) <= len(str(LATEST)) else LATEST + 1


def _parse_calendar(match: re.Match[str]) -> int:
    day, hours, minutes, seconds, fraction, zone = match.groups()
    if zone is None:
        raise InstantError(NO_TIME_ZONE)
    clock = _count_seconds(int(hours), int(minutes), int(seconds or 0))
    milliseconds = int(((fraction or "") + "000")[:3])
    return _find_midnight(day) + (clock - _parse_offset(zone)) * 1000 + milliseconds


def _count_seconds(hours: int, minutes: int, seconds: int) -> int:
    if hours > 23 or minutes > 59 or seconds > 59:  # noqa: PLR2004 - the maximum values of a clock
        raise InstantError("invalid time of day")
    return (hours * 60 + minutes) * 60 + seconds


def _parse_offset(zone: str) -> int:
    if zone == "Z":
        return 0
    seconds = _count_seconds(int(zone[1:3]), int(zone[4:6]), 0)
    return -seconds if zone[0] == "-" else seconds


@lru_cache(maxsize=4096)
def _find_midnight(day: str) -> int:
    try:
        ordinal = date.fromisoformat(day).toordinal()
    except ValueError:
        raise InstantError("invalid date") from None
    return (ordinal - _EPOCH_ORDINAL) * DAY_MS


_MACHINE_DEPENDENT = ("localtime", "posixrules")
"""Names that refer to different time zones on different machines."""


def load_zone(name: str) -> ZoneInfo:
    """Return a time zone of the IANA database, such as Europe/Berlin.

    Raises ValueError if there is none. The message quotes the name and gives the remedy.
    """
    # ZoneInfo raises ValueError and OSError for names such as /etc and Europe.
    with suppress(KeyError, ValueError, OSError):
        if name not in _MACHINE_DEPENDENT:
            return ZoneInfo(name)
    city = f"/{name.replace(' ', '_')}".casefold()
    known = sorted(available_timezones().difference(_MACHINE_DEPENDENT))
    near = [one for one in known if f"/{one}".casefold().endswith(city)]
    remedy = f"did you mean {near[0]}?" if near else "use UTC or a name such as Europe/Berlin"
    raise ValueError(f"no time zone {wire.quote_value(name)}; {remedy}")
