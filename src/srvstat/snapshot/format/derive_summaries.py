"""Derive the rows that summarize the days and the intervals of a server."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from srvstat.snapshot.format.digest import digest_row
from srvstat.snapshot.format.intervals import (
    DividedIntervals,
    build_interval_counts,
    build_interval_rows,
    divide_intervals,
    list_intervals,
    number_intervals,
)
from srvstat.snapshot.format.packing import pack
from srvstat.snapshot.format.rows import BLOCKS_PER_SERVER, SummaryIndex, Value
from srvstat.snapshot.format.summaries import (
    DAYS_PER_BLOCK,
    Series,
    SummaryDay,
    build_summaries,
    find_summary_days,
    has_all_long_intervals,
)
from srvstat.stats import compute_durations, compute_usual_interval

if TYPE_CHECKING:
    from array import array

_MIN_OBSERVATIONS = 64
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
    if len(instants) < _MIN_OBSERVATIONS:
        return _compute_columns(instants)
    days = list(find_summary_days(instants))
    first = server * BLOCKS_PER_SERVER
    blocks = {
        first + at // DAYS_PER_BLOCK: days[at : at + DAYS_PER_BLOCK]
        for at in range(0, len(days), DAYS_PER_BLOCK)
    }
    intervals = list_intervals(instants)
    bands = divide_intervals(intervals[: epoch - 1], sum(1 for day in days if day.first < epoch))
    divided = number_intervals(intervals, bands)
    usual, columns = _derive_intervals(server, divided, blocks, take)
    series = Series(instants, players, intervals, divided.find_longer(bands.longest_usual))
    summaries = [build_summaries(key, block, series) for key, block in blocks.items()]
    for row in summaries:
        take("summaries", row)
    edges = [day.number for block in blocks.values() for day in (block[0], block[-1])]
    digests = b"".join(digest_row("summaries", row) for row in summaries)
    index = SummaryIndex(server, pack(edges, edges[-1]), digests, *columns, bands.longest_usual)
    take("summary_index", index)
    covered = _compute_covered(series, usual, bands.longest_usual)
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
    server: int, divided: DividedIntervals, blocks: Mapping[int, Sequence[SummaryDay]], take: Take
) -> tuple[int, tuple[bytes, int, bytes, bytes]]:
    """Derive the rows of intervals.

    Returns the usual interval and the columns of the index.
    """
    members, starts = divided.list_members(), divided.bands.starts
    before = [0] * len(starts)
    count_digests = []
    for key, block in blocks.items():
        counts, before = build_interval_counts(key, block, divided.numbers, before)
        take("interval_counts", counts)
        count_digests.append(digest_row("interval_counts", counts))
    rows = list(build_interval_rows(server, members))
    for row in rows:
        take("intervals", row)
    digests = divided.bands.join_digests(rows)
    columns = b"".join(count_digests), len(starts), pack(starts, starts[-1]), digests
    return divided.compute_usual_interval(members, before), columns


def _compute_covered(series: Series, usual_interval: int, longest_usual: int) -> int:
    """Return the sum of all intervals, each at most three usual ones, in half milliseconds."""
    intervals: Iterable[int] = series.intervals
    if has_all_long_intervals(usual_interval, longest_usual):
        intervals = (series.intervals[at] for at in series.long)
    excess = sum(max(2 * interval - 3 * usual_interval, 0) for interval in intervals)
    return 2 * (series.instants[-1] - series.instants[0]) - excess
