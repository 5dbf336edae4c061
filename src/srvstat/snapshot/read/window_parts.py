"""Divide a window of a server into whole summary days and the observations around them."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import mul, sub
from typing import NamedTuple

from srvstat.contract.ranges import DAY_MS, Window
from srvstat.snapshot.format.days import read_day_observations
from srvstat.snapshot.format.rows import DAYS_PER_SERVER, Day
from srvstat.snapshot.format.summaries import Blocks, find_summary_day
from srvstat.snapshot.read.summary_rows import ServerSummaries


class Observed(NamedTuple):
    """Successive observations."""

    instants: list[int]
    players: list[int]

    def list_intervals(self) -> list[int]:
        """Return the intervals between them."""
        return list(map(sub, islice(self.instants, 1, None), self.instants))

    def find(self, value: int) -> list[int]:
        """Return the first and the last instant at which a value was observed, if any."""
        if value not in self.players:
            return []
        last = len(self.players) - 1 - self.players[::-1].index(value)
        return [self.instants[self.players.index(value)], self.instants[last]]

    def join(self, later: "Observed") -> "Observed":
        """Return these observations and later ones."""
        return Observed(self.instants + later.instants, self.players + later.players)

    def compute_weighted_sum(self) -> int:
        """Return the sum of their intervals times the players at the starts of them."""
        return sum(map(mul, self.list_intervals(), self.players))


class WindowParts(NamedTuple):
    """A window of a server: its whole summary days, and the observations before and after them.

    The days are at the positions from `first` up to, but not including, `end`; there is at least
    one.
    """

    summaries: ServerSummaries
    first: int
    end: int
    head: Observed
    tail: Observed

    @property
    def blocks(self) -> Blocks:
        """The blocks of the days."""
        return self.summaries.blocks

    def get_start(self) -> Observed:
        """Return the observations whose intervals the counts before the whole days have or lack.

        These are those of the head. Without any, they are the last one before the window, if any,
        and the first one of the window, because the interval between them is not in the window.
        """
        if self.head.instants:
            return self.head
        first = self.get_first()
        return _get_last(self.blocks, self.first - 1).join(first) if self.first else first

    def get_end(self) -> Observed:
        """Return the observations from the last one of the whole days to the end of the window."""
        return _get_last(self.blocks, self.end - 1).join(self.tail)

    def get_first(self) -> Observed:
        """Return the first observation of the window."""
        if self.head.instants:
            return Observed(self.head.instants[:1], self.head.players[:1])
        return Observed(
            [self.blocks.get_instant("first_times", self.first)],
            [self.blocks.get_value("first_players", self.first)],
        )

    def get_last(self) -> Observed:
        """Return the last observation of the window."""
        end = self.get_end()
        return Observed(end.instants[-1:], end.players[-1:])

    def compute_weighted_sum(self) -> int:
        """Return the sum of the intervals of the window times the players at the starts of them."""
        at_start = self.get_start().compute_weighted_sum()
        whole = sum(self.blocks.read_column("weighted_sums")[self.first : self.end])
        whole += self.get_end().compute_weighted_sum()
        return whole + at_start if self.head.instants else whole - at_start

    def find_extreme(self, name: str, value: int) -> tuple[int, int]:
        """Return the first and the last instant of the `peak` or the `lowest` of the window.

        Raises ValueError if it was not observed.
        """
        days = self.blocks.read_column(f"{name}s")[self.first : self.end]
        found = [*self.head.find(value)]
        if value in days:
            first, last = days.index(value), len(days) - 1 - days[::-1].index(value)
            found += [
                self.blocks.get_instant(f"first_{name}_times", self.first + first),
                self.blocks.get_instant(f"last_{name}_times", self.first + last),
            ]
        found += self.tail.find(value)
        if not found:
            raise ValueError("not an observed value")
        return found[0], found[-1]


def divide_window(
    summaries: ServerSummaries, ends: Sequence[Day], window: Window
) -> WindowParts | None:
    """Return the parts of a window; None without a whole day.

    `ends` are the days that `find_ends` finds: one if the window ends after all observations.

    Raises ValueError, TypeError and LookupError for rows that no build writes.
    """
    blocks = summaries.blocks
    start_day = find_summary_day(window.start)
    end_day = find_summary_day(window.end) if len(ends) == 1 else window.end // DAY_MS
    first, end = bisect_right(blocks.days, start_day), bisect_right(blocks.days, end_day)
    if first >= end:
        return None
    if not first and blocks.first:
        raise ValueError("a block that begins after its edge")
    midnight = start_day * DAY_MS
    head = _read_day(ends[:1], Window(window.start, midnight))
    if window.start < midnight and first and blocks.days[first - 1] == start_day:
        last = _get_last(blocks, first - 1)
        if last.instants == [midnight]:
            head = head.join(last)
    tail = _read_day(ends[1:], Window(window.end // DAY_MS * DAY_MS, window.end))
    return WindowParts(summaries, first, end, head, tail)


def _read_day(days: Sequence[Day], window: Window) -> Observed:
    """Return the observations in a part of a UTC day, if it is among the days."""
    number = window.start // DAY_MS
    of_day = [day for day in days if day.server_day % DAYS_PER_SERVER == number]
    return Observed(*read_day_observations(of_day, window))


def _get_last(blocks: Blocks, position: int) -> Observed:
    """Return the last observation of a day."""
    return Observed(
        [blocks.get_instant("last_times", position)], [blocks.get_value("last_players", position)]
    )
