"""Derive the rows that summarize the days and the intervals of a server."""

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from operator import sub
from typing import NamedTuple

from srvstat.snapshot.format.bands import build_band_rows, join_digests, number_values
from srvstat.snapshot.format.calendar import BLOCKS_PER_SERVER
from srvstat.snapshot.format.digest import digest_row
from srvstat.snapshot.format.intervals import build_interval_counts, divide_intervals
from srvstat.snapshot.format.packing import pack
from srvstat.snapshot.format.rows import SummaryIndex, Value
from srvstat.snapshot.format.summaries import (
    DAYS_PER_BLOCK,
    Series,
    SummaryDay,
    build_summaries,
    find_long_intervals,
    find_summary_days,
)
from srvstat.stats import compute_median

Take = Callable[[str, tuple[Value, ...]], None]


class SummaryColumns(NamedTuple):
    """The columns of `servers` that belong to the summaries."""

    usual_interval: int | None
    covered: int | None
    summary_digest: bytes


def derive_summaries(
    server: int, instants: Sequence[int], players: Sequence[int], take: Take
) -> SummaryColumns:
    """Derive the rows of a server from its observations in ascending order.

    Calls `take` as `derive` does: the summaries, then the counts, the intervals and the index.
    """
    if not instants:
        return SummaryColumns(None, None, b"")
    intervals = array("q", map(sub, islice(instants, 1, None), instants))
    found = Counter(intervals)
    # Sorted once: sorting again what is sorted takes little time.
    counts = {length: found[length] for length in sorted(found)}
    usual = int(2 * compute_median(counts)) if counts else None
    long = find_long_intervals(intervals, usual) if usual is not None else array("q")
    series = Series(instants, players, intervals, long)
    days = list(find_summary_days(instants))
    blocks = [days[at : at + DAYS_PER_BLOCK] for at in range(0, len(days), DAYS_PER_BLOCK)]
    digests: list[bytes] = []
    edges: list[int] = []
    for number, block in enumerate(blocks, server * BLOCKS_PER_SERVER):
        row = build_summaries(number, block, series)
        take("summaries", row)
        digests.append(digest_row("summaries", row))
        edges += (block[0].number, block[-1].number)
    index = SummaryIndex(
        server,
        pack(edges, edges[-1]),
        b"".join(digests),
        *_derive_intervals(server, series, blocks, counts, take),
    )
    take("summary_index", index)
    covered = _compute_covered(series, usual) if usual is not None else None
    return SummaryColumns(usual, covered, digest_row("summary_index", index))


def _derive_intervals(
    server: int,
    series: Series,
    blocks: Sequence[Sequence[SummaryDay]],
    counts: dict[int, int],
    take: Take,
) -> tuple[bytes, int, bytes, bytes]:
    """Derive the rows of intervals, and return the columns of their index."""
    if not counts:
        return b"", 0, b"", b""
    starts = divide_intervals(counts, sum(map(len, blocks)))
    bands = number_values(list(counts), starts)
    of_intervals = bytes(map(bands.__getitem__, series.intervals))
    before = [0] * len(starts)
    digests = []
    for number, block in enumerate(blocks, server * BLOCKS_PER_SERVER):
        row, before = build_interval_counts(number, block, of_intervals, before)
        take("interval_counts", row)
        digests.append(digest_row("interval_counts", row))
    rows = list(build_band_rows(server, series.intervals, starts, bands))
    for members in rows:
        take("intervals", members)
    return (
        b"".join(digests),
        len(starts),
        pack(starts, starts[-1]),
        join_digests("intervals", rows, len(starts)),
    )


def _compute_covered(series: Series, usual_interval: int) -> int:
    """Return the sum of all intervals, each at most three usual ones, in half milliseconds."""
    excess = sum(max(2 * series.intervals[at] - 3 * usual_interval, 0) for at in series.long)
    return 2 * (series.instants[-1] - series.instants[0]) - excess
