"""Escape untrusted text for a terminal, and format counts, averages, times and durations.

Hostnames are chosen by strangers. Unescaped, a hostname could move the cursor, recolor the screen,
set the clipboard, reverse a line or be invisible; Rich does not prevent this.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from zoneinfo import ZoneInfo

from srvstat.contract import wire
from srvstat.contract.time import LATEST, format_instant
from srvstat.contract.wire import UNSAFE_CATEGORIES

_MARKS = frozenset({"Mn", "Me"})
_MAX_MARKS = 4
_INVISIBLE = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Blank characters that Unicode classifies as letters or symbols."""

NOTHING = "–"  # noqa: RUF001 - the dash that tables show for a missing value
UTC = ZoneInfo("UTC")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UNITS = (
    ("day", 86_400_000),
    ("hour", 3_600_000),
    ("minute", 60_000),
    ("second", 1000),
    ("millisecond", 1),
)


def escape_text(text: str, *, max_length: int | None = None) -> str:
    r"""Return text as one harmless, visible line.

    Control, format and unassigned characters become escapes such as `\u001b`, spaces of any kind
    become ASCII spaces, and blank letters become U+FFFD. Combining marks after four in a row are
    removed. Text longer than `max_length` is cut and ends with an ellipsis.
    """
    if text.isascii() and text.isprintable() and len(text) <= (max_length or len(text)):
        return text  # faster, because reports have thousands of texts
    shown: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in _MARKS else 0
        if marks > _MAX_MARKS:
            continue
        if len(shown) == max_length:
            shown.append("…")
            break
        shown.append(_escape_character(character, category))
    return "".join(shown)


def _escape_character(character: str, category: str) -> str:
    if category in UNSAFE_CATEGORIES:
        return _escape_code(character)
    if category == "Zs":
        return " "
    return "\ufffd" if character in _INVISIBLE else character


def escape_non_ascii(text: str) -> str:
    """Return text in ASCII, with all other characters escaped."""
    return "".join(
        character if character.isascii() else _escape_code(character)
        for character in text.replace("…", "...")
    )


def _escape_code(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the last of 4 digits


def format_count(number: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun: `1 server`, `2 servers`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def name_some(names: Sequence[str], most: int) -> str:
    """Return the first names and the number of others: `a, b and 3 more`."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def format_size(number: int) -> str:
    """Format a file size in kilobytes of 1,000 bytes, rounded up: `412 KB`."""
    return f"{-(-number // 1000):,} KB"


def format_ordinal(number: int) -> str:
    """Format a rank: `1st`, `12th`, `2,123rd`."""
    is_teen = number // 10 % 10 == 1
    ending = "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def format_fallbacks(number: int) -> str:
    """Format the number of current counts that are fallbacks, with an explanation."""
    counts = format_count(number, "current count")
    return f"{counts} taken from the last observation (0 if there is none)"


def format_withheld(number: int) -> str:
    """Format the number of servers that a build skipped, as a suffix of the number of servers."""
    return f" ({number:,} not public, omitted)" if number else ""


def format_completed(counts: Mapping[str, int]) -> str:
    """Format how many servers have completed fields: `cfxId, game of 3 servers`."""
    names: dict[int, list[str]] = {}
    for name, count in counts.items():
        names.setdefault(count, []).append(name)
    return "; ".join(
        f"{', '.join(each)} for {format_count(count, 'server')}" for count, each in names.items()
    )


def format_duration(milliseconds: int) -> str:
    """Format a duration in its largest suitable unit: `3 days`, `1 hour`, `90 minutes`."""
    for unit, length in _UNITS[:3]:
        if milliseconds == length or milliseconds >= 2 * length:
            return format_count(milliseconds // length, unit)
    return format_count(milliseconds // 1000, "second")


def format_exact_duration(milliseconds: int) -> str:
    """Format a duration exactly: `1 day`, `12 days 4 hours`."""
    words = []
    rest = milliseconds
    for unit, length in _UNITS:
        count, rest = divmod(rest, length)
        if count:
            words.append(format_count(count, unit))
    return " ".join(words) or "0 seconds"


def format_whole_minutes(milliseconds: int) -> str:
    """Format a duration in whole minutes, or in seconds below a minute: `3 hours 30 minutes`."""
    whole = 60_000 if milliseconds >= 60_000 else 1000  # noqa: PLR2004 - a minute
    return format_exact_duration(milliseconds // whole * whole)


def format_span_length(milliseconds: int) -> str:
    """Format a duration in its two largest units, rounded: `12 days 4 hours`."""
    at = next((at for at, (_, length) in enumerate(_UNITS) if milliseconds >= length), -1)
    smallest = _UNITS[at:][:2][-1][1]
    # Rounding up half a unit can carry into larger units.
    return format_exact_duration((milliseconds + smallest // 2) // smallest * smallest)


def format_interval(seconds: float) -> str:
    """Format an interval briefly, with at most one decimal: `30 min`, `1.5 h`, `3 s`."""
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    fitting = (unit for unit in units if round(seconds / unit[1], 1) >= 1)
    name, length = next(fitting, ("ms", 0.001))
    return f"{seconds / length:,.1f}".removesuffix(".0") + f" {name}"


def format_share(share: float) -> str:
    """Format a share in percent with at most one decimal. Only a share of 1 gives `100%`."""
    percent = 100 * share
    shown = min(percent, 99.9) if share < 1 else percent
    return f"{shown:.1f}".removesuffix(".0") + "%"


def format_time(at: int) -> str:
    """Format an instant: `2026-08-22 17:30:00 UTC`."""
    return format_instant(at).replace("T", " ").replace(".000Z", "Z").replace("Z", " UTC")


def format_window(start: int | None, end: int, zone: ZoneInfo | None = None) -> str:
    """Format the interval `(start, end]`. A start of None is before all observations.

    With a zone, the times are local and don't name it.
    """
    format_at = format_time if zone is None else partial(format_clock, zone=zone)
    is_whole = start is not None and (start + 1) % 1000 == (end + 1) % 1000 == 0
    if start is not None and is_whole and end < LATEST:
        start, end = start + 1, end + 1
    first = "the first observation" if start is None else format_at(start)
    return f"{first} to {format_at(end)}"


def format_span(first: int | None, last: int | None, zone: ZoneInfo = UTC) -> str:
    """Format the instants of the first and last observation; None if there are no observations."""
    if first is None or last is None:
        return "no observation"
    return f"{format_zoned_time(first, zone)} to {format_zoned_time(last, zone)}"


def format_date(at: int) -> str:
    """Format the UTC day of an instant: `2026-08-22`."""
    return format_instant(at)[:10]


def format_local_time(at: int, zone: ZoneInfo, precision: str = "minute") -> str:
    """Format an instant to the minute, the `day` or the `month`: `Aug 22, 2026, 19:30`.

    A local time that occurs twice gets its UTC offset: `Oct 25, 2026, 02:30 +01:00`.
    """
    # A window of all observations begins 1 ms before the first one, not a minute.
    moment = _convert((at + 1) // 1000, zone)
    if moment is None:
        return format_time(at)
    month = MONTHS[moment.month - 1]
    if precision == "month":
        return f"{month} {moment.year}"
    day = f"{month} {moment.day}, {moment.year}"
    if precision == "day":
        return day
    return f"{day}, {moment:%H:%M}{_format_repeated_offset(moment)}"


def format_clock(at: int, zone: ZoneInfo, precision: str = "seconds") -> str:
    """Format a local time without its zone: `2026-08-22 19:30:00`.

    `precision` is a `timespec` of `datetime.isoformat`. Unless it is `minutes`, milliseconds are
    shown if they are not 0. A local time that occurs twice gets its UTC offset.
    """
    moment = _convert(at // 1000, zone)
    if moment is None:
        return format_time(at)
    if at % 1000 and precision == "seconds":
        moment, precision = moment.replace(microsecond=at % 1000 * 1000), "milliseconds"
    text = moment.replace(tzinfo=None).isoformat(" ", precision)
    return f"{text}{_format_repeated_offset(moment)}"


def format_zoned_time(at: int, zone: ZoneInfo, precision: str = "seconds") -> str:
    """Format an instant with its zone: `2026-08-22 19:30:00 Europe/Berlin`."""
    text = format_clock(at, zone, precision)
    return text if text.endswith(" UTC") else f"{text} {zone.key}"


def format_day(at: int, today: int, zone: ZoneInfo) -> str:
    """Format the local day of an instant, with the year unless it is the current one: `May 31`."""
    text = format_clock(at, zone)[:10]
    if text[:4] != format_clock(today, zone)[:4]:
        return text
    return f"{MONTHS[int(text[5:7]) - 1]} {int(text[8:])}"


def format_hour(weekday: int | None, hour: int | None, letters: int | None = None) -> str:
    """Format an hour of a weekday, where 1 is Monday: `Sunday 14:00 to 15:00`.

    `letters` limits the length of the weekday's name. Weekday or hour may be None.
    """
    day = [] if weekday is None else [WEEKDAYS[weekday - 1][:letters]]
    return " ".join(day + ([] if hour is None else [f"{hour:02}:00 to {hour + 1:02}:00"]))


def _convert(seconds: int, zone: ZoneInfo) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, zone)
    except (OverflowError, ValueError):  # after the year 9999
        return None


def _format_repeated_offset(moment: datetime) -> str:
    """Return the UTC offset after a space if the local time occurs twice, otherwise ""."""
    if moment.replace(fold=1 - moment.fold).utcoffset() == moment.utcoffset():
        return ""
    return f" {moment.isoformat(timespec='minutes')[16:]}"


def format_average(value: float | None) -> str:
    """Format an average."""
    return NOTHING if value is None else f"{value:,.2f}"


def format_median(value: float | None) -> str:
    """Format a median or another quantile. Whole numbers have no decimals."""
    return NOTHING if value is None else f"{value:,.1f}".removesuffix(".0")


def format_quantile(quantile: float) -> str:
    """Format the level of a quantile exactly, in percent: `95`, `99.9`."""
    return f"{(Decimal(wire.format_number(quantile)) * 100).normalize():f}"


def format_id(server_id: str | None) -> str:
    """Return an id, or `total` for the total of servers."""
    return "total" if server_id is None else server_id


def format_whole(value: int | None) -> str:
    """Format a player count."""
    return NOTHING if value is None else f"{value:,}"


_MIN_DIGITS, _MAX_DIGITS = 2, 17
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]+)?")


def format_apart(values: Sequence[str]) -> list[str]:
    """Format JSON values with as many digits as numbers need to differ."""
    has_fraction = any(_NUMBER.fullmatch(one) and "." in one for one in values)
    for digits in range(_MIN_DIGITS if has_fraction else 0, _MAX_DIGITS + 1):
        shown = [format_number(value, digits) for value in values]
        if len({*shown}) == len(shown):
            return shown
    return [*values]


def format_number(value: str, digits: int) -> str:
    """Format a JSON number with `digits` decimals. Any other or very long value stays unchanged."""
    return f"{float(value):,.{digits}f}" if _NUMBER.fullmatch(value) else value
