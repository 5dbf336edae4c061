"""Derive the rows that summarize the days and the intervals of a server."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from srvstat.snapshot.format.digest import digest_row
from srvstat.snapshot.format.intervals import (
    DividedIntervals,
    build_interval_rows,
    count_intervals,
    divide_intervals,
    number_intervals,
)
from srvstat.snapshot.format.lanes import subtract_neighbors
from srvstat.snapshot.format.packing import pack
from srvstat.snapshot.format.rows import BLOCKS_PER_SERVER, SummaryIndex, Value
from srvstat.snapshot.format.summaries import (
    DAYS_PER_BLOCK,
    SummaryDay,
    find_summary_days,
    has_all_long_intervals,
)
from srvstat.snapshot.format.summary_blocks import Series, build_block
from srvstat.stats import compute_durations, compute_usual_interval

if TYPE_CHECKING:
    from array import array

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
