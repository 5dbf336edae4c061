"""Summarize the days and the intervals of a server."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from srvstat.contract.windows import DAY_MS, Window
from srvstat.snapshot.format.bands import Bands, read_bands
from srvstat.snapshot.format.digest import DIGEST_BYTES, digest_row
from srvstat.snapshot.format.intervals import (
    DividedIntervals,
    build_interval_rows,
    count_intervals,
    divide_intervals,
    number_intervals,
)
from srvstat.snapshot.format.packing import pack, pack_sums, subtract_neighbors, unpack, unpack_sums
from srvstat.snapshot.format.rows import (
    BLOCKS_PER_SERVER,
    DAYS_PER_BLOCK,
    ForgedRowError,
    Summaries,
    SummaryIndex,
    Value,
)
from srvstat.stats import compute_durations, compute_usual_interval

if TYPE_CHECKING:
    from array import array


MAX_LONG = 4_096
"""Keeps the rows of summaries small; windows of blocks with more are computed otherwise."""

MAX_INTERVAL_BANDS = 100
"""No server has more bands of intervals."""


class SummaryDay(NamedTuple):
    """The number of a summary day, and the positions of its observations.

    The number is that of the UTC day at whose start the summary day ends.
    """

    number: int
    first: int
    end: int

    @property
    def intervals(self) -> slice:
        """The positions of the intervals that end in the day."""
        return slice(max(self.first, 1) - 1, self.end - 1)


def find_summary_days(instants: Sequence[int]) -> Iterator[SummaryDay]:
    """Yield the summary days with observations."""
    first = 0
    while first < len(instants):
        number = find_summary_day(instants[first])
        end = bisect_right(instants, number * DAY_MS, first)
        yield SummaryDay(number, first, end)
        first = end


def find_summary_day(instant: int) -> int:
    """Return the number of the summary day of an instant."""
    return -(-instant // DAY_MS)


def has_all_long_intervals(usual_interval: int, longest_usual: int) -> bool:
    """Check that all intervals longer than three usual ones, in half milliseconds, are listed."""
    return 3 * usual_interval >= 2 * longest_usual


class Index(NamedTuple):
    """The rows of a server: the edges and digests of blocks, and the bands of its intervals.

    `edges` has the first and the last day of each block. Intervals longer than `longest_usual` are
    listed.
    """

    edges: Sequence[int]
    digests: bytes
    count_digests: bytes
    bands: Bands
    longest_usual: int

    @property
    def last_block(self) -> int:
        """The number of the last block."""
        return len(self.edges) // 2 - 1

    def find_block(self, day: int) -> int:
        """Return the block with the last day on or before `day`, or the first block without one."""
        return max((bisect_right(self.edges, day) - 1) // 2, 0)

    def get_digest(self, block: int) -> bytes:
        """Return the digest of a row of `summaries`."""
        return self.digests[block * DIGEST_BYTES : (block + 1) * DIGEST_BYTES]

    def get_count_digest(self, block: int) -> bytes:
        """Return the digest of a row of `interval_counts`."""
        return self.count_digests[block * DIGEST_BYTES : (block + 1) * DIGEST_BYTES]


def read_index(row: SummaryIndex) -> Index:
    """Return the index in a row."""
    blocks = len(row.digests) // DIGEST_BYTES
    if blocks >= BLOCKS_PER_SERVER or row.band_count > MAX_INTERVAL_BANDS:
        raise ForgedRowError("more blocks or bands than a server has")
    edges = unpack(row.blocks, 2 * blocks)
    return Index(edges, row.digests, row.count_digests, read_bands(row), row.longest_usual)


class Blocks:
    """The figures of successive days of a server, from one or more rows of `summaries`.

    A position is that of a day among all days of the rows.
    """

    def __init__(self, first: int, rows: Sequence[Summaries], *, has_last: bool) -> None:
        self.first = first
        """The number of the first block."""
        self.rows = rows
        counts = [row.day_count for row in rows]
        full = counts[:-1] if has_last else counts
        if any(count != DAYS_PER_BLOCK for count in full) or not 0 < counts[-1] <= DAYS_PER_BLOCK:
            raise ForgedRowError("not the days of a block")
        self.days = self.read_column("days")

    def read_column(self, name: str) -> Sequence[int]:
        """Return a column for all days."""
        found: list[int] = []
        for row in self.rows:
            found.extend(unpack_sums(getattr(row, name), row.day_count))
        return found

    def get_value(self, name: str, position: int) -> int:
        """Return a value of a day."""
        block, place = divmod(position, DAYS_PER_BLOCK)
        row = self.rows[block]
        return unpack_sums(getattr(row, name), row.day_count)[place]

    def get_instant(self, name: str, position: int) -> int:
        """Return the instant of a time of a day."""
        return (self.days[position] - 1) * DAY_MS + self.get_value(name, position)

    def list_long_intervals(self, window: Window) -> list[tuple[int, int]] | None:
        """Return the lengths of the long intervals that end in a window, and the players before.

        None if they are too many to be listed.
        """
        found: list[tuple[int, int]] = []
        for row in self.rows:
            if row.long_count is None:
                return None
            if not 0 <= row.long_count <= MAX_LONG:
                raise ForgedRowError("not a number of long intervals")
            if row.long_count:
                start = (unpack(row.days, row.day_count)[0] - 1) * DAY_MS
                ends = unpack(row.long_ends, row.long_count)
                chosen = slice(
                    bisect_right(ends, window.start - start), bisect_right(ends, window.end - start)
                )
                lengths = unpack(row.long_intervals, row.long_count)[chosen]
                found += zip(lengths, unpack(row.long_players, row.long_count)[chosen], strict=True)
        return found


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
    """Return the block in a row."""
    count = row.day_count
    if not 0 < count <= DAYS_PER_BLOCK:
        raise ForgedRowError("not the days of a block")
    columns = (unpack_sums(getattr(row, name), count) for name in _COLUMNS)
    days = list(map(DayFigures._make, zip(*columns, strict=True)))
    return SummaryBlock(days, read_long_intervals(row))


def read_long_intervals(row: Summaries) -> list[LongInterval] | None:
    """Return the long intervals in a row; None if they are too many."""
    count = row.long_count
    if not count:
        return [] if count == 0 else None
    if not 0 < count <= MAX_LONG:
        raise ForgedRowError("not a number of long intervals")
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


MIN_OBSERVATIONS = 64
"""A server with fewer has no summaries: reading its observations takes as long."""

Take = Callable[[str, tuple[Value, ...]], None]


class SummaryColumns(NamedTuple):
    """The columns of `servers` that belong to the summaries."""

    usual_interval: int | None
    covered: int | None
    summary_digest: bytes


def derive_summaries(
    server: int, instants: "array[int]", players: "array[int]", epoch: int, take: Take
) -> SummaryColumns:
    """Derive the rows of a server from its observations in ascending order.

    `epoch` is the number of observations that determine the bands of intervals. Calls `take` as
    `derive` does: the intervals and their counts, the summaries, then the index. There are none for
    few observations.
    """
    if len(instants) < MIN_OBSERVATIONS:
        return _compute_columns(instants)
    days = list(find_summary_days(instants))
    blocks = [days[at : at + DAYS_PER_BLOCK] for at in range(0, len(days), DAYS_PER_BLOCK)]
    intervals = subtract_neighbors(instants)
    bands = divide_intervals(intervals[: epoch - 1], sum(1 for day in days if day.first < epoch))
    divided = number_intervals(intervals, bands)
    usual, columns = _derive_intervals(server, divided, blocks, take)
    series, long = Series(instants, players, intervals), divided.find_longer(bands.longest_usual)
    digests = []
    for key, block in enumerate(blocks, server * BLOCKS_PER_SERVER):
        row = build_block(block, series, long).build_row(key)
        take("summaries", row)
        digests.append(digest_row("summaries", row))
    edges = [day.number for block in blocks for day in (block[0], block[-1])]
    index = SummaryIndex(
        server, pack(edges, edges[-1]), b"".join(digests), *columns, bands.longest_usual
    )
    take("summary_index", index)
    lengths: Iterable[int] = intervals
    if has_all_long_intervals(usual, bands.longest_usual):
        lengths = (intervals[at] for at in long)
    covered = 2 * (instants[-1] - instants[0]) - compute_excess(lengths, usual)
    return SummaryColumns(usual, covered, digest_row("summary_index", index))


def _compute_columns(instants: Sequence[int]) -> SummaryColumns:
    """Return the columns of a server without summaries."""
    interval = compute_usual_interval(instants)
    if interval is None:
        return SummaryColumns(None, None, b"")
    # The last observation lasts until itself.
    covered = sum(compute_durations(instants, instants[-1]))
    return SummaryColumns(int(2 * interval), covered, b"")


def _derive_intervals(
    server: int, divided: DividedIntervals, blocks: Sequence[Sequence[SummaryDay]], take: Take
) -> tuple[int, tuple[bytes, int, bytes, bytes]]:
    """Derive the rows of intervals.

    Returns the usual interval and the columns of the index.
    """
    starts = divided.bands.starts
    before = [0] * len(starts)
    digests = []
    for key, block in enumerate(blocks, server * BLOCKS_PER_SERVER):
        counts = count_intervals([divided.numbers[day.intervals] for day in block], before)
        before = counts.after
        row = counts.build_row(key)
        take("interval_counts", row)
        digests.append(digest_row("interval_counts", row))
    rows = list(build_interval_rows(server, divided.members))
    for of_band in rows:
        take("intervals", of_band)
    of_bands = divided.bands.pack_digests(rows)
    columns = b"".join(digests), len(starts), pack(starts, starts[-1]), of_bands
    return divided.compute_usual_interval(before), columns


def compute_excess(intervals: Iterable[int], usual_interval: int) -> int:
    """Return the sum of the time by which intervals exceed three usual ones.

    It is in half milliseconds, like the usual interval.
    """
    return sum(max(2 * interval - 3 * usual_interval, 0) for interval in intervals)
