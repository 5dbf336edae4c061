"""Append newer observations of a server to its summaries and intervals."""

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from srvstat.snapshot.format.append_members import append_members, take_members
from srvstat.snapshot.format.bands import Bands, Members
from srvstat.snapshot.format.derive_summaries import SummaryColumns, Take, compute_excess
from srvstat.snapshot.format.digest import DIGEST_BYTES, digest_row
from srvstat.snapshot.format.intervals import (
    CountBlock,
    extend_counts,
    find_bands,
    read_count_block,
)
from srvstat.snapshot.format.lanes import subtract_neighbors
from srvstat.snapshot.format.packing import pack
from srvstat.snapshot.format.rows import BLOCKS_PER_SERVER, ServerRow, SummaryIndex
from srvstat.snapshot.format.stored_rows import StoredRows
from srvstat.snapshot.format.summaries import (
    Index,
    SummaryDay,
    find_summary_days,
    has_all_long_intervals,
    read_index,
)
from srvstat.snapshot.format.summary_blocks import (
    Series,
    SummaryBlock,
    build_block,
    extend_blocks,
    read_block,
    read_long_intervals,
)
from srvstat.stats import find_middle_ranks


class _LaterDays(NamedTuple):
    """The summary days of newer observations.

    Their series begins with the last stored observation.
    """

    series: Series
    days: Sequence[SummaryDay]
    numbers: bytes
    """The band of each interval."""

    def list_blocks(self, longest_usual: int) -> list[SummaryBlock]:
        """Return a block for each day."""
        intervals = enumerate(self.series.intervals)
        long = [at for at, interval in intervals if interval > longest_usual]
        return [build_block([day], self.series, long) for day in self.days]


def append_summaries(
    stored: StoredRows, instants: "array[int]", players: "array[int]", take: Take
) -> SummaryColumns | None:
    """Append observations to the summaries of a server.

    Calls `take` with the table and the values of each new or changed row. Returns None if the usual
    interval or the excess of long intervals does not follow from the rows that are read.
    """
    server, index_row = stored.server, stored.read_index()
    index = read_index(index_row)
    first = index.last_block
    block = read_block(stored.read_summaries(range(first, first + 1))[0])
    later = _list_later(server, index, instants, players)
    blocks = extend_blocks(block, later.list_blocks(index.longest_usual))
    starts = index.bands.starts
    counts = read_count_block(stored.read_interval_counts(first), len(block.days), len(starts))
    count_blocks = extend_counts(
        counts,
        [later.numbers[day.intervals] for day in later.days],
        joins_last_day=later.days[0].number == block.days[-1].day,
    )
    extended = append_members(
        stored,
        "intervals",
        index.bands,
        counts.after,
        zip(later.numbers, later.series.intervals, strict=True),
    )
    usual = _find_usual_interval(stored, index.bands, extended.members, count_blocks[-1].after)
    covered = usual and _compute_covered(stored, index, blocks, later.series, usual)
    if usual is None or covered is None:
        return None
    take_members(take, "intervals", server.server, extended.members)
    row = _append_rows(index_row, index, blocks, count_blocks, take)
    row = row._replace(band_digests=extended.band_digests)
    take("summary_index", row)
    return SummaryColumns(usual, covered, digest_row("summary_index", row))


def _list_later(
    server: ServerRow, index: Index, instants: "array[int]", players: "array[int]"
) -> _LaterDays:
    if server.last_observed_at is None or server.last_players is None:
        raise ValueError("summaries without observations")
    days = [
        SummaryDay(number, first + 1, end + 1) for number, first, end in find_summary_days(instants)
    ]
    instants = array("q", [server.last_observed_at]) + instants
    players = array("q", [server.last_players]) + players
    intervals = subtract_neighbors(instants)
    numbers = find_bands(intervals, index.bands.starts)
    return _LaterDays(Series(instants, players, intervals), days, numbers)


def _find_usual_interval(
    stored: StoredRows,
    bands: Bands,
    changed: Mapping[int, Members],
    cumulative: Sequence[int],
) -> int | None:
    """Return the median of the intervals, in half milliseconds; None if it is not stored.

    `changed` has the new rows of bands, and `cumulative` counts all intervals.
    """
    members = {**changed}
    total = 0
    for rank in find_middle_ranks(cumulative[-1]):
        band = bisect_right(cumulative, rank)
        if not bands.is_known(band):
            return None
        if band not in members and bands.get_digest(band):
            members |= stored.read_members("intervals", [band])
        total += bands.starts[band]
        if band in members:
            size = members[band].size
            total += sorted(members[band].slice(0, size))[rank - cumulative[band] + size]
    return total


def _compute_covered(
    stored: StoredRows,
    index: Index,
    blocks: Sequence[SummaryBlock],
    later: Series,
    usual: int,
) -> int | None:
    """Return the sum of all intervals, each at most three usual ones, in half milliseconds.

    None if some long intervals are not listed.
    """
    server = stored.server
    if usual == server.usual_interval:
        length = later.instants[-1] - later.instants[0]
        return (server.covered or 0) + 2 * length - compute_excess(later.intervals, usual)
    if not has_all_long_intervals(usual, index.longest_usual):
        return None
    earlier = map(read_long_intervals, stored.read_summaries(range(index.last_block)))
    listed = [*earlier, *(block.long for block in blocks)]
    if None in listed:
        return None
    lengths = (each.length for each in chain.from_iterable(long or () for long in listed))
    length = later.instants[-1] - (server.first_observed_at or 0)
    return 2 * length - compute_excess(lengths, usual)


def _append_rows(
    row: SummaryIndex,
    index: Index,
    blocks: Sequence[SummaryBlock],
    counts: Sequence[CountBlock],
    take: Take,
) -> SummaryIndex:
    """Call `take` with the rows of blocks, the first of which replaces the last stored block.

    Returns the index with their days and digests.
    """
    first = index.last_block
    edges = [*index.edges[: 2 * first]]
    kept = first * DIGEST_BYTES
    digests, count_digests = [index.digests[:kept]], [index.count_digests[:kept]]
    for key, block in enumerate(blocks, row.server * BLOCKS_PER_SERVER + first):
        edges += (block.days[0].day, block.days[-1].day)
        summaries = block.build_row(key)
        take("summaries", summaries)
        digests.append(digest_row("summaries", summaries))
    for key, count_block in enumerate(counts, row.server * BLOCKS_PER_SERVER + first):
        interval_counts = count_block.build_row(key)
        take("interval_counts", interval_counts)
        count_digests.append(digest_row("interval_counts", interval_counts))
    return row._replace(
        blocks=pack(edges, edges[-1]),
        digests=b"".join(digests),
        count_digests=b"".join(count_digests),
    )
