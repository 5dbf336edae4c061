"""Check displayed text: no dangerous characters, and an intact table layout."""

import re
import unicodedata
from itertools import groupby

from rich.cells import cell_len

from srvstat.render.screen import Screen

_DANGEROUS = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_MAX_MARKS = 4

_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_WIDE_ENOUGH = 140


def is_harmless(character: str) -> bool:
    """Return whether a character can only be displayed."""
    return unicodedata.category(character) not in _DANGEROUS


def _is_space(character: str) -> bool:
    return unicodedata.category(character) == "Zs"


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in {"Mn", "Me"}


def _is_on_screen(character: str) -> bool:
    """Return whether displayed text may have a character: one space, and no blank letters."""
    if character == " ":
        return True
    return is_harmless(character) and not _is_space(character) and character not in _BLANK


def find_text_fault(text: str, *, ascii_only: bool = False) -> str | None:
    """Return a fault in lines that display foreign text; None if there is none."""
    characters = set(text) - {"\n"}
    if wrong := sorted(one for one in characters if not _is_on_screen(one)):
        return f"it has {''.join(wrong)!a}"
    if ascii_only and not text.isascii():
        return "it is not ASCII"
    if any(map(_is_mark, characters)) and _count_most_marks(text) > _MAX_MARKS:
        return f"it has more than {_MAX_MARKS} marks in a row"
    return None


def _count_most_marks(text: str) -> int:
    return max(len(list(heap)) for is_mark, heap in groupby(text, _is_mark) if is_mark)


def remove_gaps(text: str) -> str:
    """Return text as it is displayed, without white space and marks."""
    return "".join(map(_display, text))


def _display(character: str) -> str:
    if _is_mark(character) or _is_space(character):
        return ""
    if is_harmless(character):
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
