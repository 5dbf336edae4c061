"""Check displayed text: no dangerous characters, and an intact table layout."""

import re
import sys
import unicodedata
from itertools import groupby

from rich.cells import cell_len

from srvstat.render.screen import Screen

_DANGEROUS = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_ALL = [(chr(code), unicodedata.category(chr(code))) for code in range(sys.maxunicode + 1)]
HARMLESS = frozenset(character for character, category in _ALL if category not in _DANGEROUS)
"""All characters that can only be displayed."""
# Displayed text has U+0020 as its only space, and no blank letters.
_SPACES = frozenset(character for character, category in _ALL if category == "Zs")
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_ON_SCREEN = HARMLESS - (_SPACES - {" "}) - _BLANK
_MARKS = frozenset(character for character, category in _ALL if category in {"Mn", "Me"})
_MAX_MARKS = 4

_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_WIDE_ENOUGH = 140


def find_text_fault(text: str, *, ascii_only: bool = False) -> str | None:
    """Return a fault in lines that display foreign text; None if there is none."""
    characters = set(text) - {"\n"}
    if not characters <= _ON_SCREEN:
        return f"it has {''.join(sorted(characters - _ON_SCREEN))!a}"
    if ascii_only and not text.isascii():
        return "it is not ASCII"
    if characters & _MARKS and _count_most_marks(text) > _MAX_MARKS:
        return f"it has more than {_MAX_MARKS} marks in a row"
    return None


def _count_most_marks(text: str) -> int:
    return max(len(list(heap)) for is_mark, heap in groupby(text, _MARKS.__contains__) if is_mark)


def remove_gaps(text: str) -> str:
    """Return text as it is displayed, without white space and marks."""
    return "".join(map(_display, text))


def _display(character: str) -> str:
    if character in _MARKS or character in _SPACES:
        return ""
    if character in HARMLESS:
        return "\ufffd" if character in _BLANK else character
    return f"\\u{ord(character):04x}" if character <= "\uffff" else f"\\U{ord(character):08x}"


def remove_colors(text: str) -> str:
    """Remove the sequences with which srvstat styles tables."""
    return _COLORS.sub("", text)


def find_layout_fault(text: str, screen: Screen, rows: int, column: re.Pattern[str]) -> str | None:
    """Return a fault in the layout of a table; None if there is none.

    The same column follows the foreign text in each row and must be aligned. A narrow screen may
    wrap it.
    """
    lines = text.split("\n")
    if screen.width and (widest := max(map(cell_len, lines))) > screen.width:
        return f"it is {widest} columns wide"
    starts = [cell_len(line[: found.start()]) for line in lines if (found := column.search(line))]
    if len(set(starts)) > 1:
        return f"the column starts at different places: {starts}"
    if len(starts) != rows and (starts or (screen.width or _WIDE_ENOUGH) >= _WIDE_ENOUGH):
        return f"it has {len(starts)} of {rows} rows"
    return None
