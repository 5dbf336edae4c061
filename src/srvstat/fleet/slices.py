"""Cut a window into slices, so that each is counted with little memory."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from srvstat.contract.ranges import Window

_MAX_READS = 2
"""How often a row may be read on average, because its span lies in several slices."""


class Span(NamedTuple):
    """A number of rows, whose instants are from `first` to `last`; all are stored together."""

    first: int
    last: int
    rows: int

    def overlaps(self, window: Window) -> bool:
        """Return whether a row of the span may be in a window."""
        return self.first <= window.end and self.last > window.start


def cut_window(spans: Sequence[Span], window: Window, rows_per_slice: int) -> list[Window]:
    """Return adjacent windows that cover a window and have about the given number of rows each.

    They have more rows if the spans are so long that smaller slices would read most rows often.
    """
    inside = sorted(span for span in spans if span.overlaps(window))
    total = sum(span.rows for span in inside)
    while True:
        cuts = _find_cuts(inside, window, rows_per_slice)
        reads = sum(
            span.rows * (1 + bisect_left(cuts, span.last) - bisect_left(cuts, span.first))
            for span in inside
        )
        if not cuts or reads <= _MAX_READS * total:
            return [
                Window(*ends)
                for ends in zip((window.start, *cuts), (*cuts, window.end), strict=True)
            ]
        rows_per_slice *= 2


def _find_cuts(spans: Sequence[Span], window: Window, rows_per_slice: int) -> list[int]:
    """Return the ends of all slices but the last one, in ascending order."""
    cuts: list[int] = []
    rows = 0
    for span in spans:
        end = span.first - 1
        if rows >= rows_per_slice and end > (cuts[-1] if cuts else window.start):
            cuts.append(end)
            rows = 0
        rows += span.rows
    return cuts
