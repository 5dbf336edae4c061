"""Define ranges and windows (D1, D2)."""

from bisect import bisect_right
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, Self

Range = Literal["24h", "7d", "30d", "90d", "1y"]

DEFAULT_RANGE: Range = "30d"

DAY_MS = 86_400_000

DAYS: Mapping[Range, int] = MappingProxyType({"24h": 1, "7d": 7, "30d": 30, "90d": 90, "1y": 365})
"""The length of each range in days of 24 hours, independent of calendar and time zone."""

BEFORE_ALL = -1
"""The exclusive start of a window that includes all observations. The first possible time is 0."""


class Instants(Protocol):
    """Ascending Unix milliseconds: a list, a range or any array."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> int: ...


class Window(NamedTuple):
    """The interval `(start, end]` in Unix milliseconds: it excludes its start and includes its end.

    All readers use these methods to select observations.
    """

    start: int
    end: int

    @classmethod
    def from_first(cls, first: int, end: int) -> Self:
        """Return the window whose earliest time is `first`."""
        return cls(first - 1, end)

    @property
    def first(self) -> int:
        """The earliest time in the window."""
        return self.start + 1

    def includes(self, instant: int) -> bool:
        """Return whether a time is in the window."""
        return self.start < instant <= self.end

    def locate(self, instants: Instants) -> slice:
        """Return the slice of ascending times that are in the window."""
        return slice(bisect_right(instants, self.start), bisect_right(instants, self.end))


def find_window(range: Range, as_of: int) -> Window:
    """Return the window of a range that ends at `as_of` (Unix milliseconds)."""
    return Window(as_of - DAYS[range] * DAY_MS, as_of)
