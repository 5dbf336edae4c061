"""Read rows of summaries and intervals, and verify each of them against its digest."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srvstat.contract.ranges import Window
from srvstat.snapshot.format.digest import DIGEST_BYTES, has_digest
from srvstat.snapshot.format.intervals import read_interval_counts
from srvstat.snapshot.format.rows import (
    BLOCKS_PER_SERVER,
    IntervalCounts,
    ServerRow,
    Summaries,
    SummaryIndex,
)
from srvstat.snapshot.format.summaries import (
    DAYS_PER_BLOCK,
    Blocks,
    Index,
    find_summary_day,
    read_index,
)
from srvstat.snapshot.read.verified_rows import VerifiedRows

SUMMARIES = "the summaries"


@dataclass(frozen=True)
class ServerSummaries:
    """The index of a server, and the blocks of its days that a window needs."""

    server: ServerRow
    index: Index
    blocks: Blocks


def read_indexes(rows: VerifiedRows, servers: Sequence[ServerRow]) -> list[Index]:
    """Return the index of each server, which must have summaries; runs one statement.

    Raises SnapshotError; ValueError for rows that no build writes.
    """
    return [read_index(row) for row in read_index_rows(rows, servers)]


def read_index_rows(rows: VerifiedRows, servers: Sequence[ServerRow]) -> list[SummaryIndex]:
    """Return the row of `summary_index` of each server, which must have one.

    Runs one statement.

    Raises SnapshotError.
    """
    keys = [server.server for server in servers]
    found = rows.read_by_key("summary_index", "server", keys, part=SUMMARIES)
    return [
        SummaryIndex._make(
            _check_row(
                rows, server, "summary_index", found.get(server.server), server.summary_digest
            )
        )
        for server in servers
    ]


def read_summaries(
    rows: VerifiedRows, servers: Sequence[ServerRow], window: Window
) -> list[ServerSummaries]:
    """Return the summaries for a window of each server, which must have some.

    They include the last day that ends before the window does, if any: it has what precedes the
    window. Runs two statements.

    Raises SnapshotError; ValueError, TypeError and LookupError for rows that no build writes.
    """
    first_day, last_day = map(find_summary_day, window)
    chosen = []
    for server, index in zip(servers, read_indexes(rows, servers), strict=True):
        first, last = index.find_block(first_day), index.find_block(last_day)
        chosen.append((server, index, range(first, last + 1)))
    found = read_blocks(rows, [(server, index, blocks) for server, index, blocks in chosen])
    return [
        ServerSummaries(
            server,
            index,
            Blocks(blocks.start, of_server, has_last=blocks.stop > index.last_block),
        )
        for (server, index, blocks), of_server in zip(chosen, found, strict=True)
    ]


def read_blocks(
    rows: VerifiedRows, wanted: Sequence[tuple[ServerRow, Index, range]]
) -> list[list[Summaries]]:
    """Return blocks of summaries of servers, read with one statement.

    Raises SnapshotError.
    """
    keys = [
        server.server * BLOCKS_PER_SERVER + block
        for server, _, blocks in wanted
        for block in blocks
    ]
    found = rows.read_by_key("summaries", "server_block", keys, part=SUMMARIES)
    read = []
    for server, index, blocks in wanted:
        of_server = []
        for block in blocks:
            key = server.server * BLOCKS_PER_SERVER + block
            digest = index.get_digest(block)
            row = _check_row(rows, server, "summaries", found.get(key), digest)
            of_server.append(Summaries._make(row))
        read.append(of_server)
    return read


def read_counts(
    rows: VerifiedRows, wanted: Iterable[tuple[ServerSummaries, int]]
) -> list[Sequence[int]]:
    """Return the cumulative counts of intervals of servers up to positions in their blocks.

    A count is up to the end of the day at the position; all are 0 at position -1, before the first
    day of a server. Runs one statement.

    Raises SnapshotError; ValueError and LookupError for rows that no build writes.
    """
    wanted = list(wanted)
    keys = {
        _find_count_key(summaries, position): (summaries.server, summaries.index)
        for summaries, position in wanted
        if position >= 0
    }
    found = read_count_rows(rows, keys)
    return [
        _read_count(summaries, position, found[_find_count_key(summaries, position)])
        if position >= 0
        else [0] * len(summaries.index.bands.starts)
        for summaries, position in wanted
    ]


def read_count_rows(
    rows: VerifiedRows, wanted: Mapping[int, tuple[ServerRow, Index]]
) -> dict[int, IntervalCounts]:
    """Return rows of `interval_counts` by key, read with one statement.

    Raises SnapshotError.
    """
    found = rows.read_by_key("interval_counts", "server_block", list(wanted), part=SUMMARIES)
    return {
        key: IntervalCounts._make(
            _check_row(
                rows,
                server,
                "interval_counts",
                found.get(key),
                index.get_count_digest(key % BLOCKS_PER_SERVER),
            )
        )
        for key, (server, index) in wanted.items()
    }


def _find_count_key(summaries: ServerSummaries, position: int) -> int:
    block = summaries.blocks.first + position // DAYS_PER_BLOCK
    return summaries.server.server * BLOCKS_PER_SERVER + block


def _read_count(summaries: ServerSummaries, position: int, row: IntervalCounts) -> Sequence[int]:
    block, place = divmod(position, DAYS_PER_BLOCK)
    days = summaries.blocks.rows[block].day_count
    return read_interval_counts(row, days, place, len(summaries.index.bands.starts))


def verify_summaries(rows: VerifiedRows, server: ServerRow) -> Counter[str]:
    """Verify all rows of summaries and intervals of a server, and return their numbers by table.

    Raises SnapshotError; ValueError, TypeError and LookupError for rows that no build writes.
    """
    if not server.summary_digest:
        return Counter()
    (index,) = read_indexes(rows, [server])
    for block in range(index.last_block + 1):
        ((row,),) = read_blocks(rows, [(server, index, range(block, block + 1))])
        blocks = Blocks(block, [row], has_last=block == index.last_block)
        read_counts(rows, [(ServerSummaries(server, index, blocks), 0)])
    return Counter(
        summary_index=1,
        summaries=index.last_block + 1,
        interval_counts=len(index.count_digests) // DIGEST_BYTES,
        intervals=rows.verify_members("intervals", server, index.bands),
    )


def _check_row(
    rows: VerifiedRows,
    server: ServerRow,
    table: str,
    row: tuple[Any, ...] | None,
    digest: bytes,
) -> tuple[Any, ...]:
    """Return a row with a digest.

    Raises SnapshotError for another row, or none.
    """
    if row is None or not has_digest(table, row, digest):
        raise rows.build_damage_error(f"{SUMMARIES} of {server.title}")
    return row
