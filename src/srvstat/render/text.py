"""Escape text from outside for a terminal, and format counts, times and durations.

Strangers choose hostnames. Unescaped, a hostname could move the cursor, recolor the screen, set the
clipboard, reverse a line or be invisible; Rich does not prevent this.
"""

import unicodedata
from collections.abc import Callable, Mapping

from srvstat.contract.time import format_instant
from srvstat.contract.wire import UNSAFE_CATEGORIES

_MARKS = frozenset({"Mn", "Me"})
_MAX_MARKS = 4
_INVISIBLE = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Characters that Unicode classes as letters or symbols, but that are blank."""

NOTHING = "–"  # noqa: RUF001 - the dash that tables show for a missing value
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000))


def escape_text(text: str, *, max_length: int | None = None) -> str:
    r"""Return text as one harmless, visible line.

    Control, format and unassigned characters become escapes such as `\u001b`, any space becomes an
    ASCII space, and a blank letter becomes U+FFFD. Combining marks after four in a row are removed.
    Text is cut after `max_length` characters, with an ellipsis.
    """
    if text.isascii() and text.isprintable() and len(text) <= (max_length or len(text)):
        return text  # faster; reports have thousands of texts
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


def format_size(number: int) -> str:
    """Format the size of a file in kilobytes of 1,000 bytes, rounded up: `412 KB`."""
    return f"{-(-number // 1000):,} KB"


def format_ordinal(number: int) -> str:
    """Format a rank: `1st`, `12th`, `2,123rd`."""
    is_teen = number // 10 % 10 == 1
    ending = "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def format_fallbacks(number: int) -> str:
    """Format the number of current counts that are fallbacks, with what a fallback is."""
    return (
        f"{format_count(number, 'current count')}, taken from the last observation (0 without one)"
    )


def format_completed(counts: Mapping[str, int]) -> str:
    """Format how many servers have completed fields: `cfxId, game of 3 servers`."""
    names: dict[int, list[str]] = {}
    for name, count in counts.items():
        names.setdefault(count, []).append(name)
    return "; ".join(
        f"{', '.join(each)} of {format_count(count, 'server')}" for count, each in names.items()
    )


def format_duration(milliseconds: int) -> str:
    """Format a duration in its largest fitting unit: `3 days`, `1 hour`, `90 minutes`."""
    for unit, length in _UNITS:
        if milliseconds == length or milliseconds >= 2 * length:
            return format_count(milliseconds // length, unit)
    return format_count(milliseconds // 1000, "second")


def format_exact_duration(milliseconds: int) -> str:
    """Format a duration in full: `1 day`, `12 days 4 hours`."""
    words = []
    rest = milliseconds
    for unit, length in (*_UNITS, ("second", 1000), ("millisecond", 1)):
        count, rest = divmod(rest, length)
        if count:
            words.append(format_count(count, unit))
    return " ".join(words) or "0 seconds"


def format_span_length(milliseconds: int) -> str:
    """Format a length of time in its two largest units, rounded: `12 days 4 hours`."""
    units = [*_UNITS, ("second", 1000), ("millisecond", 1)]
    at = next((at for at, (_, length) in enumerate(units) if milliseconds >= length), -1)
    smallest = units[at:][:2][-1][1]
    # Half a unit is rounded up. This can carry into the larger unit, even into the next larger one.
    return format_exact_duration((milliseconds + smallest // 2) // smallest * smallest)


def format_interval(seconds: float) -> str:
    """Format a distance in time briefly, with at most one decimal: `30 min`, `1.5 h`, `3 s`."""
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    fitting = (unit for unit in units if round(seconds / unit[1], 1) >= 1)
    name, length = next(fitting, ("ms", 0.001))
    return f"{seconds / length:,.1f}".removesuffix(".0") + f" {name}"


def format_share(share: float) -> str:
    """Format a share in percent with at most one decimal. Only a whole is `100%`."""
    percent = 100 * share
    shown = min(percent, 99.9) if share < 1 else percent
    return f"{shown:.1f}".removesuffix(".0") + "%"


def format_time(at: int) -> str:
    """Format an instant for people: `2026-08-22 17:30:00 UTC`."""
    return format_instant(at).replace("T", " ").replace(".000Z", "Z").replace("Z", " UTC")


def format_window(
    start: int | None, end: int, format_at: Callable[[int], str] = format_time
) -> str:
    """Format the interval `(start, end]`; None is before all observations."""
    first = "from the first observation" if start is None else f"after {format_at(start)}"
    return f"{first}, to {format_at(end)} inclusive"


def format_span(
    first: int | None, last: int | None, format_at: Callable[[int], str] = format_time
) -> str:
    """Format the instants of the first and the last observation; None means no observation."""
    if first is None or last is None:
        return "no observation"
    return f"{format_at(first)} to {format_at(last)}"


def format_date(at: int) -> str:
    """Format the UTC day of an instant: `2026-08-22`."""
    return format_instant(at)[:10]
