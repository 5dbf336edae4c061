"""What must be true of text on a terminal, whoever wrote the names in it."""

import re
import sys
import unicodedata
from itertools import groupby

from rich.cells import cell_len

from srvstat.render.screen import Screen

_DANGEROUS = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_ALL = [(chr(code), unicodedata.category(chr(code))) for code in range(sys.maxunicode + 1)]
HARMLESS = frozenset(character for character, category in _ALL if category not in _DANGEROUS)
"""Every character that does no more than to show itself."""
# Of the spaces only the one that everybody knows, and no letter that shows nothing.
_SPACES = frozenset(character for character, category in _ALL if category == "Zs")
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_ON_SCREEN = HARMLESS - (_SPACES - {" "}) - _BLANK
_MARKS = frozenset(character for character, category in _ALL if category in {"Mn", "Me"})
_MOST_MARKS = 4

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_WIDE_ENOUGH = 140


def fault_of_text(text: str, *, ascii_only: bool = False) -> str | None:
    """Say what is wrong with lines that show foreign text, if something is."""
    characters = set(text) - {"\n"}
    if not characters <= _ON_SCREEN:
        return f"it has {''.join(sorted(characters - _ON_SCREEN))!a}"
    if ascii_only and not text.isascii():
        return "it is not ASCII"
    if characters & _MARKS and _longest_heap(text) > _MOST_MARKS:
        return "it has a heap of marks"
    return None


def _longest_heap(text: str) -> int:
    return max(len(list(heap)) for is_mark, heap in groupby(text, _MARKS.__contains__) if is_mark)


def without_gaps(text: str) -> str:
    """Return text as it is shown, but without white space and marks."""
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character in _MARKS or character in _SPACES:
        return ""
    if character in HARMLESS:
        return "\ufffd" if character in _BLANK else character
    return f"\\u{ord(character):04x}" if character <= "\uffff" else f"\\U{ord(character):08x}"


def without_colours(text: str) -> str:
    """Return text without the sequences that srvstat styles tables with."""
    return _COLOURS.sub("", text)


def fault_of_layout(text: str, screen: Screen, rows: int, column: re.Pattern[str]) -> str | None:
    """Say what is wrong with the layout of a table, if something is.

    After the foreign text of each of its rows comes the same column, one below the other. A narrow
    screen may break it.
    """
    lines = text.split("\n")
    if screen.width and (widest := max(map(cell_len, lines))) > screen.width:
        return f"it is {widest} wide"
    starts = [cell_len(line[: found.start()]) for line in lines if (found := column.search(line))]
    if len(set(starts)) > 1:
        return f"its rows begin at {starts}"
    if len(starts) != rows and (starts or (screen.width or _WIDE_ENOUGH) >= _WIDE_ENOUGH):
        return f"it has {len(starts)} of {rows} rows"
    return None
