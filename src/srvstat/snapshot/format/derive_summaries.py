"""Derive the rows that summarize the days and the intervals of a server."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from srvstat.snapshot.format.bands import join_digests
from srvstat.snapshot.format.digest import digest_row
from srvstat.snapshot.format.intervals import (
    build_interval_counts,
    build_interval_rows,
    divide_intervals,
    list_intervals,
)
from srvstat.snapshot.format.packing import pack
from srvstat.snapshot.format.rows import BLOCKS_PER_SERVER, SummaryIndex, Value
from srvstat.snapshot.format.summaries import (
    DAYS_PER_BLOCK,
    Series,
    SummaryDay,
    build_summaries,
    find_longest_usual,
    find_summary_days,
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
    server: int, instants: "array[int]", players: "array[int]", take: Take
) -> SummaryColumns:
    """Derive the rows of a server from its observations in ascending order.

    Calls `take` as `derive` does: the intervals and their counts, the summaries, then the index.
    There are none for few observations.
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
    usual, long, columns = _derive_intervals(server, intervals, blocks, take)
    series = Series(instants, players, intervals, long)
    summaries = [build_summaries(key, block, series) for key, block in blocks.items()]
    for row in summaries:
        take("summaries", row)
    edges = [day.number for block in blocks.values() for day in (block[0], block[-1])]
    digests = b"".join(digest_row("summaries", row) for row in summaries)
    index = SummaryIndex(server, pack(edges, edges[-1]), digests, *columns)
    take("summary_index", index)
    covered = _compute_covered(series, usual)
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
    server: int, intervals: "array[int]", blocks: Mapping[int, Sequence[SummaryDay]], take: Take
) -> tuple[int, list[int], tuple[bytes, int, bytes, bytes]]:
    """Derive the rows of intervals.

    Returns the usual interval, the positions of long ones, and the columns of the index.
    """
    divided = divide_intervals(intervals, sum(map(len, blocks.values())))
    members, starts = divided.list_members(), divided.starts
    before = [0] * len(starts)
    count_digests = []
    for key, block in blocks.items():
        counts, before = build_interval_counts(key, block, divided.bands, before)
        take("interval_counts", counts)
        count_digests.append(digest_row("interval_counts", counts))
    rows = list(build_interval_rows(server, members))
    for row in rows:
        take("intervals", row)
    digests = b"" if divided.is_single else join_digests("intervals", rows, len(starts))
    columns = b"".join(count_digests), len(starts), pack(starts, starts[-1]), digests
    usual = divided.compute_usual_interval(members, before)
    return usual, divided.find_longer(find_longest_usual(usual)), columns


def _compute_covered(series: Series, usual_interval: int) -> int:
    """Return the sum of all intervals, each at most three usual ones, in half milliseconds."""
    excess = sum(max(2 * series.intervals[at] - 3 * usual_interval, 0) for at in series.long)
    return 2 * (series.instants[-1] - series.instants[0]) - excess
