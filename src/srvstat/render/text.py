"""Text from outside, made safe to show; durations and numbers in words.

Hostnames are chosen by strangers. Shown raw they could move the cursor, recolour the screen, set
the clipboard, reverse a line, or hide; Rich passes all of that through.
"""

import unicodedata

from srvstat.contract.instants import format_instant
from srvstat.contract.wire import UNSAFE_CATEGORIES

_MARKS = frozenset({"Mn", "Me"})
_MOST_MARKS = 4
# Letters and symbols by category that show nothing at all.
_INVISIBLE = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def safe_text(text: str, *, longest: int | None = None) -> str:
    r"""Return text as one line that shows what it holds and does nothing else.

    Controls, format characters and characters nobody knows appear as `\u001b`, white space of any
    kind as a space, invisible letters as U+FFFD; of a heap of combining marks four stay. Text
    beyond `longest` characters is cut, and says so.
    """
    shown: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in _MARKS else 0
        if marks > _MOST_MARKS:
            continue
        if len(shown) == longest:
            shown.append("…")
            break
        shown.append(_shown(character, category))
    return "".join(shown)


def _shown(character: str, category: str) -> str:
    if category in UNSAFE_CATEGORIES:
        return _escape(character)
    if category == "Zs":
        return " "
    return "\ufffd" if character in _INVISIBLE else character


def ascii_text(text: str) -> str:
    """Return text for a terminal that shows ASCII only."""
    return "".join(
        character if character.isascii() else _escape(character)
        for character in text.replace("…", "...")
    )


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the last of 4 digits


def format_count(number: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun: `1 server`, `2 servers`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def duration(milliseconds: int) -> str:
    """Write a length of time in its largest fitting unit: `3 days`, `1 hour`, `90 minutes`."""
    for unit, length in _UNITS:
        if milliseconds == length or milliseconds >= 2 * length:
            return format_count(milliseconds // length, unit)
    return format_count(milliseconds // 1000, "second")


def exact_duration(milliseconds: int) -> str:
    """Write a length of time with nothing left out: `1 day`, `12 days 4 hours`."""
    words = []
    rest = milliseconds
    for unit, length in (*_UNITS, ("second", 1000), ("millisecond", 1)):
        count, rest = divmod(rest, length)
        if count:
            words.append(format_count(count, unit))
    return " ".join(words) or "0 seconds"


_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000))


def instant_text(at: int) -> str:
    """Write an instant for reading: `2026-08-22 17:30:00 UTC`."""
    return format_instant(at).replace("T", " ").replace(".000Z", "Z").replace("Z", " UTC")


def date_text(at: int) -> str:
    """Write the day of an instant for reading, in UTC: `2026-08-22`."""
    return format_instant(at)[:10]
