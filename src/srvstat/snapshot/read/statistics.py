"""Compute the statistics of servers in a window from the blocks at its two ends.

The statistics of an API window are the difference of two states of a server: just before the window
and at its end. The cost does not depend on the length of the window. Only one case needs numpy: a
median beyond the counted range of blocks.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from srvstat.contract import stats
from srvstat.contract.windows import Window
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.snapshot import rows
from srvstat.snapshot.read.file import SnapshotFile
from srvstat.snapshot.read.snapshot import Snapshot

_T = TypeVar("_T")

_SERVERS_AT_ONCE = 500
"""The number of servers per statement, which limits the memory of blocks."""


def compute_window_totals(
    snapshot: Snapshot, servers: Sequence[rows.ServerRow], window: Window
) -> list[tuple[int, int]]:
    """Return the number and the sum of each server's observations in a window.

    Raises SnapshotError if data are damaged.
    """
    return _compute(
        snapshot, servers, window, lambda _file, span: (span.size, span.total), nothing=(0, 0)
    )


def compute_window_statistics(
    snapshot: Snapshot, servers: Sequence[rows.ServerRow], window: Window
) -> list[stats.Statistics]:
    """Return the statistics of each server in a window.

    One statement per file reads at most two blocks of each server.

    Raises SnapshotError if data are damaged.
    """
    compute = partial(_compute_statistics, window=window)
    return _compute(snapshot, servers, window, compute, nothing=stats.compute_statistics(()))


class _Edge(NamedTuple):
    """The state of a server at a time, which is in one of its blocks.

    - `mark`: the nearest mark, numbered from 1; 0 is the start of the block.
    - `rest`: the players between the mark and the time.
    - `sign`: -1 if the mark is later than the time, otherwise 1.
    """

    block: rows.Block
    players: Sequence[int]
    position: int
    """The number of the block's observations up to the time."""
    mark: int
    rest: Sequence[int]
    sign: int
    count: int  # type: ignore[assignment] # a method of tuples
    """The number of the server's observations up to the time."""
    total: int
    """The sum of the players up to the time."""


def _find_edge(block: rows.Block, instant: int) -> _Edge:
    times = rows.unpack(block.times, rows.find_width(block.times, block.observation_count))
    players = rows.unpack(block.players, rows.find_width(block.players, block.observation_count))
    if block.time_unit < 1:
        raise rows.ForgedRowError("not a unit of time")
    position = bisect_right(times, (instant - block.first_observed_at) // block.time_unit)
    mark = min(
        (position + rows.MARK_STEP // 2) // rows.MARK_STEP, len(block.mark_sums) // rows.SUM_WIDTH
    )
    at, sign = mark * rows.MARK_STEP, 1
    total = int.from_bytes(block.sum_before, "little")
    if mark:
        total += rows.unpack(block.mark_sums, rows.SUM_WIDTH)[mark - 1]
    rest = players[at:position]
    if at > position:
        rest, sign = players[position:at], -1
    count = block.number * rows.BLOCK_SIZE + position
    return _Edge(block, players, position, mark, rest, sign, count, total + sign * sum(rest))


class _Span(NamedTuple):
    """A server's observations between two edges. If `end` is None, up to the last observation."""

    server: rows.ServerRow
    start: _Edge
    end: _Edge | None
    size: int
    """The number of observations."""
    total: int
    """The sum of the players."""

    def compute_growth(self) -> stats.Growth:
        """Return the growth from the first to the last of at least two observations."""
        first, end = self.start.players[self.start.position], self.end
        if end is None:
            last = self.server.last_players
        else:
            last = end.players[end.position - 1] if end.position else end.block.players_before
        if last is None:
            raise rows.ForgedRowError("no last observation")
        return stats.compute_growth(first, last)

    def find_peaks(self) -> tuple[int, int]:
        """Return the peak of the blocks between the edges, without and with the edge blocks."""
        peaks = rows.read_block_peaks(self.server)
        first = self.start.block.number
        last = len(peaks) - 1 if self.end is None else self.end.block.number
        inner = max(peaks[first + 1 : last + (self.end is None)], default=0)
        return inner, max(inner, peaks[first], peaks[last])

    def find_wide_peak(self) -> int:
        """Return the exact peak, for peaks beyond the counted range."""
        start, end = self.start, self.end
        of_end = end.players[: end.position] if end else ()
        return max((self.find_peaks()[0], *start.players[start.position :], *of_end))


def _compute(
    snapshot: Snapshot,
    servers: Sequence[rows.ServerRow],
    window: Window,
    compute: Callable[[SnapshotFile, _Span], _T],
    *,
    nothing: _T,
) -> list[_T]:
    """Return the result of `compute` for each server, or `nothing` if it has no observations."""
    values = [nothing] * len(servers)
    by_file: defaultdict[SnapshotFile, list[int]] = defaultdict(list)
    for position, server in enumerate(servers):
        by_file[snapshot.get_file(server)].append(position)
    for file, positions in by_file.items():
        for at in range(0, len(positions), _SERVERS_AT_ONCE):
            some = positions[at : at + _SERVERS_AT_ONCE]
            with file.convert_decode_errors("the observations"):
                spans = _find_spans(file, [servers[position] for position in some], window)
                for position, span in zip(some, spans, strict=True):
                    if span:
                        values[position] = compute(file, span)
    return values


def _find_spans(
    file: SnapshotFile, servers: Sequence[rows.ServerRow], window: Window
) -> list[_Span | None]:
    """Return each server's observations in a window, or None if it has none."""
    wanted: list[tuple[rows.ServerRow, Sequence[int]]] = []
    for server in servers:
        ends = rows.read_block_ends(server)
        found = window.locate(ends)
        numbers = [one for one in dict.fromkeys((found.start, found.stop)) if one < len(ends)]
        wanted.append((server, numbers))
    spans: list[_Span | None] = []
    for server, blocks in zip(servers, file.read_blocks(wanted), strict=True):
        if not blocks:
            spans.append(None)
            continue
        start, end = _find_edge(blocks[0], window.start), None
        size, total = server.observation_count, int.from_bytes(server.player_sum, "little")
        if window.end < (server.last_observed_at or 0):
            end = _find_edge(blocks[-1], window.end)
            size, total = end.count, end.total
        size, total = size - start.count, total - start.total
        if not 0 <= total <= size * MAX_SAFE_INTEGER:
            raise rows.ForgedRowError("not the sum of observations")
        spans.append(_Span(server, start, end, size, total) if size else None)
    return spans


def _compute_statistics(file: SnapshotFile, span: _Span, window: Window) -> stats.Statistics:
    start, end = span.start, span.end
    players = start.players[start.position : end.position if end else None]
    if len(players) == span.size:  # the window is in one block
        return stats.compute_statistics(players)
    lowest, median, peak = _rank(file, span, window)
    mean = span.total / span.size
    growth = span.compute_growth() if span.size > 1 else stats.Growth(None, None)
    return stats.Statistics(span.size, mean, median, peak, lowest, growth)


_Counts = tuple[Sequence[int], Sequence[int], Sequence[int], int]
"""Describes how many observations up to a time have at most `v` players, for `v` below COUNTED.

For a tuple `(before, mark, rest, sign)`, the number is `before[v] + mark[v] + sign * sum(p <= v for
p in rest)`. For `v` beyond the end of `before` or `mark`, use its last number. Only `rest` can be
empty.
"""


def _read_counts(server: rows.ServerRow, edge: _Edge | None) -> _Counts:
    """Return the counts up to an edge, or the counts of all of a server's observations."""
    if edge is None:
        width = rows.choose_width(server.observation_count)
        return rows.unpack(server.counts, width) or (0,), (0,), (), 1
    block, number = edge.block, edge.mark
    before = rows.unpack(block.counts_before, rows.choose_width(edge.count - edge.position))
    mark: Sequence[int] = ()
    if number:
        marks = rows.unpack(block.marks, rows.MARK_WIDTH)
        length = len(marks) // (len(block.mark_sums) // rows.SUM_WIDTH)
        mark = marks[(number - 1) * length : number * length]
    return before or (0,), mark or (0,), sorted(edge.rest), edge.sign


def _rank(file: SnapshotFile, span: _Span, window: Window) -> tuple[int, float, int]:
    """Return the lowest, the median and the highest number of players."""
    server, count = span.server, span.size
    for edge in filter(None, (span.start, span.end)):
        file.check_counts(server, edge.block)
    before, mark, rest, sign = _read_counts(server, span.start)
    before_end, mark_end, rest_end, sign_end = _read_counts(server, span.end)
    lasts = [len(numbers) - 1 for numbers in (before, mark, before_end, mark_end)]
    last_before, last_mark, last_before_end, last_mark_end = lasts

    def count_up_to(value: int) -> int:
        """Return the number of observations with at most `value` players."""
        return (  # min() would take most of the time
            before_end[value if value < last_before_end else last_before_end]  # noqa: FURB136
            + mark_end[value if value < last_mark_end else last_mark_end]  # noqa: FURB136
            + sign_end * bisect_right(rest_end, value)
            - before[value if value < last_before else last_before]  # noqa: FURB136
            - mark[value if value < last_mark else last_mark]  # noqa: FURB136
            - sign * bisect_right(rest, value)
        )

    def find(rank: int, low: int, high: int) -> int:
        """Return the player count at a rank. The result is known to be from `low` to `high`."""
        return bisect_right(range(high), rank, low, key=count_up_to)

    lower_rank, upper_rank = stats.find_middle_ranks(count)
    least_peak, greatest_peak = span.find_peaks()
    top = min(greatest_peak, rows.COUNTED - 1)
    is_counted = greatest_peak < rows.COUNTED
    if not is_counted and upper_rank >= count_up_to(top):
        # Importing numpy takes longer than computing most responses.
        from srvstat.contract.arrays import find_ranks  # noqa: PLC0415
        from srvstat.snapshot.read.observations import read_observations  # noqa: PLC0415

        players = read_observations(file, server, window).players
        median = sum(find_ranks(players, lower_rank, upper_rank)) / 2
        return int(players.min()), median, int(players.max())
    lower = find(lower_rank, 0, top)
    upper = lower if count_up_to(lower) > upper_rank else find(upper_rank, lower, top)
    peak = find(count - 1, max(upper, least_peak), top) if is_counted else span.find_wide_peak()
    lowest = 0 if count_up_to(0) else find(0, 1, lower)  # most servers were empty at some time
    return lowest, (lower + upper) / 2, peak
