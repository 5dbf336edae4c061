"""Build the rows of `summaries`, and extend them by newer days and observations."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from srvstat.contract.ranges import DAY_MS
from srvstat.snapshot.format.packing import pack, pack_sums, unpack, unpack_sums
from srvstat.snapshot.format.rows import Summaries
from srvstat.snapshot.format.summaries import DAYS_PER_BLOCK, MAX_LONG, SummaryDay

if TYPE_CHECKING:
    from array import array

_COLUMNS = Summaries._fields[2:-4]
"""The columns of figures."""


class Series(NamedTuple):
    """Successive observations of a server, and the intervals between them.

    The interval at a position begins with the observation at the same position.
    """

    instants: "array[int]"
    players: "array[int]"
    intervals: "array[int]"


class DayFigures(NamedTuple):
    """The figures of a summary day, in the order of the columns."""

    day: int
    observation_count: int
    player_sum: int
    first_players: int
    last_players: int
    peak: int
    lowest: int
    first_time: int
    last_time: int
    first_peak_time: int
    last_peak_time: int
    first_lowest_time: int
    last_lowest_time: int
    weighted_sum: int

    def join(self, later: "DayFigures") -> "DayFigures":
        """Return the figures of these observations and later ones of the same day."""
        return DayFigures(
            day=self.day,
            observation_count=self.observation_count + later.observation_count,
            player_sum=self.player_sum + later.player_sum,
            first_players=self.first_players,
            last_players=later.last_players,
            peak=max(self.peak, later.peak),
            lowest=min(self.lowest, later.lowest),
            first_time=self.first_time,
            last_time=later.last_time,
            first_peak_time=(self if self.peak >= later.peak else later).first_peak_time,
            last_peak_time=(later if later.peak >= self.peak else self).last_peak_time,
            first_lowest_time=(self if self.lowest <= later.lowest else later).first_lowest_time,
            last_lowest_time=(later if later.lowest <= self.lowest else self).last_lowest_time,
            weighted_sum=self.weighted_sum + later.weighted_sum,
        )


def summarize_day(day: SummaryDay, series: Series) -> DayFigures:
    """Return the figures of a day of a series."""
    instants, players, intervals = series
    values = players[day.first : day.end].tolist()
    peak, lowest = max(values), min(values)
    backwards = values[::-1]
    start = (day.number - 1) * DAY_MS
    last = day.end - 1
    # Each interval ends with an observation of the day, and has the players at its start.
    at_starts = [*players[day.intervals.start : day.first], *values[:-1]]
    return DayFigures(
        day.number,
        len(values),
        sum(values),
        values[0],
        values[-1],
        peak,
        lowest,
        instants[day.first] - start,
        instants[last] - start,
        instants[day.first + values.index(peak)] - start,
        instants[last - backwards.index(peak)] - start,
        instants[day.first + values.index(lowest)] - start,
        instants[last - backwards.index(lowest)] - start,
        sum(map(mul, intervals[day.intervals].tolist(), at_starts)),
    )


class LongInterval(NamedTuple):
    """The end of a long interval, its length, and the players at its start."""

    end: int
    length: int
    players: int


class SummaryBlock(NamedTuple):
    """The days of a row of `summaries`, and its long intervals; None if they are too many."""

    days: list[DayFigures]
    long: list[LongInterval] | None

    def build_row(self, key: int) -> Summaries:
        """Return the row of `summaries`."""
        packed = map(pack_sums, zip(*self.days, strict=True))
        return Summaries._make((key, len(self.days), *packed, *self._pack_long()))

    def _pack_long(self) -> tuple[int | None, bytes, bytes, bytes]:
        if self.long is None:
            return None, b"", b"", b""
        if not self.long:
            return 0, b"", b"", b""
        start = (self.days[0].day - 1) * DAY_MS
        ends, lengths, players = zip(*self.long, strict=True)
        return (
            len(self.long),
            pack([end - start for end in ends], ends[-1] - start),
            pack(lengths, max(lengths)),
            pack(players, max(players)),
        )


def build_block(days: Sequence[SummaryDay], series: Series, long: Sequence[int]) -> SummaryBlock:
    """Return the block of days of a series; `long` has the positions of its long intervals."""
    first = bisect_left(long, days[0].intervals.start)
    end = bisect_left(long, days[-1].intervals.stop)
    figures = [summarize_day(day, series) for day in days]
    if end - first > MAX_LONG:
        return SummaryBlock(figures, None)
    return SummaryBlock(figures, list_long_intervals(series, long[first:end]))


def list_long_intervals(series: Series, positions: Iterable[int]) -> list[LongInterval]:
    """Return the intervals at some positions of a series."""
    instants, players, intervals = series
    return [LongInterval(instants[at + 1], intervals[at], players[at]) for at in positions]


def read_block(row: Summaries) -> SummaryBlock:
    """Return the block in a row.

    Raises ValueError for values that no build writes.
    """
    count = row.day_count
    if not 0 < count <= DAYS_PER_BLOCK:
        raise ValueError("not the days of a block")
    columns = (unpack_sums(getattr(row, name), count) for name in _COLUMNS)
    days = list(map(DayFigures._make, zip(*columns, strict=True)))
    return SummaryBlock(days, read_long_intervals(row))


def read_long_intervals(row: Summaries) -> list[LongInterval] | None:
    """Return the long intervals in a row; None if they are too many.

    Raises ValueError for values that no build writes.
    """
    count = row.long_count
    if not count:
        return [] if count == 0 else None
    if not 0 < count <= MAX_LONG:
        raise ValueError("not a number of long intervals")
    start = (unpack(row.days, row.day_count)[0] - 1) * DAY_MS
    ends = [start + end for end in unpack(row.long_ends, count)]
    rest = (unpack(column, count) for column in (row.long_intervals, row.long_players))
    return list(map(LongInterval._make, zip(ends, *rest, strict=True)))


def extend_blocks(last: SummaryBlock, later: Sequence[SummaryBlock]) -> list[SummaryBlock]:
    """Return the last block of a server with later days, and the blocks that follow it.

    Each of the later blocks is one day, which may be the last day of `last`.
    """
    blocks = [last]
    for day in later:
        days, long = blocks[-1]
        (figures,) = day.days
        if figures.day == days[-1].day:
            days = [*days[:-1], days[-1].join(figures)]
        elif len(days) == DAYS_PER_BLOCK:
            blocks.append(day)
            continue
        else:
            days = [*days, figures]
        blocks[-1] = SummaryBlock(days, _join_long_intervals(long, day.long))
    return blocks


def _join_long_intervals(
    earlier: list[LongInterval] | None, later: list[LongInterval] | None
) -> list[LongInterval] | None:
    if earlier is None or later is None or len(earlier) + len(later) > MAX_LONG:
        return None
    return earlier + later
