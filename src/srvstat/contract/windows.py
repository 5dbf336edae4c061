"""Define windows, which exclude their start and include their end, and the ranges (D1, D2).

Whatever reads observations of a window applies this rule itself: `bisect_right` at both ends of
sorted times, `start + 1` in SQL.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Range = Literal["24h", "7d", "30d", "90d", "1y"]

DEFAULT_RANGE: Range = "30d"

DAY_MS = 86_400_000

DAYS: Mapping[Range, int] = MappingProxyType({"24h": 1, "7d": 7, "30d": 30, "90d": 90, "1y": 365})
"""The length of each range in days of 24 hours, independent of calendar and time zone."""

BEFORE_ALL = -1
"""The exclusive start of a window of all observations; the first possible one is at 0."""


class Window(NamedTuple):
    """The interval `(start, end]` in Unix milliseconds: open at its start, closed at its end."""

    start: int
    end: int


def find_window(range: Range, as_of: int) -> Window:
    """Return the window of a range that ends at `as_of` (Unix milliseconds)."""
    return Window(as_of - DAYS[range] * DAY_MS, as_of)
