"""Compute the statistics of servers in a window from the blocks at its two ends.

A window of the contract is the difference of two states of a server: one just before it, one at its
end. The cost does not depend on its length, and nothing here needs numpy, except for a median among
counts that blocks do not count.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from srvstat.contract.windows import Window
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.snapshot.format.packing import (
    choose_width,
    find_width,
    read_block_ends,
    read_block_peaks,
    unpack,
)
from srvstat.snapshot.format.rows import (
    BLOCK_SIZE,
    BLOCKS_PER_SERVER,
    COUNTED,
    MARK_STEP,
    MARK_WIDTH,
    SUM_WIDTH,
    Block,
    ForgedRowError,
    ServerRow,
)
from srvstat.snapshot.read.verified_rows import VerifiedRows
from srvstat.stats import Growth, Statistics, compute_growth, compute_statistics, find_middle_ranks

_SERVERS_AT_ONCE = 500
"""Limits the memory of blocks."""

_FEW = 1024
"""Sorting so many observations takes less time than counting them."""


class _Edge(NamedTuple):
    """An end of a window in a block: the position of the first observation after it."""

    block: Block
    players: Sequence[int]
    position: int

    def count_before(self) -> int:
        """Return the number of the server's observations up to the edge."""
        return self.block.server_block % BLOCKS_PER_SERVER * BLOCK_SIZE + self.position

    def find_mark(self) -> int:
        """Return the number of the nearest mark, from 1; 0 is the start of the block."""
        nearest = (self.position + MARK_STEP // 2) // MARK_STEP
        return min(nearest, len(self.block.mark_sums) // SUM_WIDTH)

    def list_rest(self) -> Sequence[int]:
        """Return the players between the nearest mark and the edge, in order of time."""
        at = self.find_mark() * MARK_STEP
        return self.players[min(at, self.position) : max(at, self.position)]

    def add_players(self) -> int:
        """Return the sum of the players of the observations up to the edge."""
        mark, rest = self.find_mark(), sum(self.list_rest())
        total = int.from_bytes(self.block.sum_before, "little")
        if mark:
            total += unpack(self.block.mark_sums, SUM_WIDTH)[mark - 1]
        return total - rest if self.position < mark * MARK_STEP else total + rest


class _Counts(NamedTuple):
    """How many observations up to an instant have at most `v` players, for `v` below COUNTED.

    It is the sum of `before[v]` and `mark[v]`, each of which goes on with its last number, plus or
    minus (`sign`) the number of `rest` that are at most `v`. None is empty but `rest`, which
    ascends.
    """

    before: Sequence[int]
    mark: Sequence[int]
    rest: Sequence[int]
    sign: int


def _find_edge(block: Block, instant: int) -> _Edge:
    times = unpack(block.times, find_width(block.times, block.observation_count))
    players = unpack(block.players, find_width(block.players, block.observation_count))
    if block.time_unit < 1:
        raise ForgedRowError("not a unit of time")
    position = bisect_right(times, (instant - block.first_observed_at) // block.time_unit)
    return _Edge(block, players, position)


def _read_counts(rows: VerifiedRows, server: ServerRow, edge: _Edge | None) -> _Counts:
    """Return the counts up to an edge, or of all observations of a server."""
    if edge is None:
        width = choose_width(server.observation_count)
        return _Counts(unpack(server.counts, width) or (0,), (0,), (), 1)
    block = edge.block
    rows.check_counts(server, block)
    width = choose_width(edge.count_before() - edge.position)
    before = unpack(block.counts_before, width)
    number = edge.find_mark()
    mark: Sequence[int] = ()
    if number:
        marks = unpack(block.marks, MARK_WIDTH)
        length = len(marks) // (len(block.mark_sums) // SUM_WIDTH)
        mark = marks[(number - 1) * length : number * length]
    sign = -1 if edge.position < number * MARK_STEP else 1
    return _Counts(before or (0,), mark or (0,), sorted(edge.list_rest()), sign)


class _Span(NamedTuple):
    """The observations of a server between two edges; without `end`, up to its last one."""

    server: ServerRow
    start: _Edge
    end: _Edge | None
    size: int
    """The number of observations."""

    def add_players(self) -> int:
        """Return the sum of their players."""
        if self.end is None:
            total = int.from_bytes(self.server.player_sum, "little")
        else:
            total = self.end.add_players()
        total -= self.start.add_players()
        if not 0 <= total <= self.size * MAX_SAFE_INTEGER:
            raise ForgedRowError("not the sum of observations")
        return total

    def list_players(self) -> Sequence[int] | None:
        """Return the players of the observations, if they are few in the blocks at the edges."""
        start, end = self.start, self.end
        if self.size > _FEW:
            return None
        if end is None:
            players = start.players[start.position :]
        elif end.block.server_block == start.block.server_block:
            players = start.players[start.position : end.position]
        else:
            players = [*start.players[start.position :], *end.players[: end.position]]
        return players if len(players) == self.size else None

    def compute_growth(self) -> Growth:
        """Return the growth from the first observation, of at least two, to the last."""
        first, end = self.start.players[self.start.position], self.end
        if end is None:
            last = self.server.last_players
        else:
            last = end.players[end.position - 1] if end.position else end.block.players_before
        if last is None:
            raise ForgedRowError("no last observation")
        return compute_growth(first, last)

    def find_peak(self) -> int:
        """Return the most players: of the blocks between the edges, and of those at the edges."""
        start, end, server = self.start, self.end, self.server
        peaks = read_block_peaks(server)
        first = start.block.server_block % BLOCKS_PER_SERVER
        last = len(peaks) if end is None else end.block.server_block % BLOCKS_PER_SERVER
        if end is not None and first == last:
            return max(start.players[start.position : end.position])
        of_end = end.players[: end.position] if end else ()
        return max((*peaks[first + 1 : last], *start.players[start.position :], *of_end))


def _find_spans(
    rows: VerifiedRows, servers: Sequence[ServerRow], window: Window
) -> list[_Span | None]:
    """Return the observations of each server in a window; None where it can't have any."""
    wanted: list[tuple[ServerRow, Sequence[int]]] = []
    for server in servers:
        ends = read_block_ends(server)
        first, last = bisect_right(ends, window.start), bisect_right(ends, window.end)
        wanted.append((server, range(first, len(ends))[:1] or ()))
        if first < last < len(ends):
            wanted[-1] = server, (first, last)
    spans: list[_Span | None] = []
    for (server, _), blocks in zip(wanted, rows.read_blocks(wanted), strict=True):
        if not blocks:
            spans.append(None)
            continue
        start, end = _find_edge(blocks[0], window.start), None
        after = server.observation_count
        if window.end < (server.last_observed_at or 0):
            end = _find_edge(blocks[-1], window.end)
            after = end.count_before()
        spans.append(_Span(server, start, end, after - start.count_before()))
    return spans


def compute_window_totals(
    rows: VerifiedRows, servers: Sequence[ServerRow], window: Window
) -> list[tuple[int, int]]:
    """Return the number of observations of each server in a window, and their sum.

    Raises SnapshotError.
    """
    totals: list[tuple[int, int]] = []
    for at in range(0, len(servers), _SERVERS_AT_ONCE):
        spans = _find_spans(rows, servers[at : at + _SERVERS_AT_ONCE], window)
        totals += [(span.size, span.add_players()) if span else (0, 0) for span in spans]
    return totals


def compute_window_statistics(
    rows: VerifiedRows, servers: Sequence[ServerRow], window: Window
) -> list[Statistics]:
    """Return the statistics of each server in a window.

    One statement reads at most two blocks of each, whatever the length of the window.

    Raises SnapshotError.
    """
    return [
        _compute_statistics(rows, span, window) if span else compute_statistics(())
        for span in _find_spans(rows, servers, window)
    ]


def _compute_statistics(rows: VerifiedRows, span: _Span, window: Window) -> Statistics:
    players = span.list_players()
    if players is not None:
        return compute_statistics(players)
    count = span.size
    if count < 1:
        raise ForgedRowError("not the number of observations")
    lowest, median, peak = _rank(rows, span, window)
    return Statistics(
        count, span.add_players() / count, median, peak, lowest, span.compute_growth()
    )


def _rank(rows: VerifiedRows, span: _Span, window: Window) -> tuple[int, float, int]:
    """Return the lowest, the median and the highest number of players."""
    server, count = span.server, span.size
    before, mark, rest, sign = _read_counts(rows, server, span.start)
    before_end, mark_end, rest_end, sign_end = _read_counts(rows, server, span.end)
    lasts = [len(numbers) - 1 for numbers in (before, mark, before_end, mark_end)]
    last_before, last_mark, last_before_end, last_mark_end = lasts
    top = min(max(*lasts, *rest[-1:], *rest_end[-1:]), COUNTED - 1)

    def count_up_to(value: int) -> int:
        """Return the number of observations with at most `value` players."""
        return (
            before_end[min(last_before_end, value)]
            + mark_end[min(last_mark_end, value)]
            + sign_end * bisect_right(rest_end, value)
            - before[min(last_before, value)]
            - mark[min(last_mark, value)]
            - sign * bisect_right(rest, value)
        )

    def find(rank: int, low: int, high: int) -> int:
        """Return the number of players with a rank, which is from `low` to `high`."""
        return bisect_right(range(high), rank, low, key=count_up_to)

    lower_rank, upper_rank = find_middle_ranks(count)
    counted = count_up_to(top)
    if upper_rank >= counted:
        # Importing numpy takes longer than most answers.
        from srvstat.snapshot.read.observations import rank_players  # noqa: PLC0415

        ranks = (0, lower_rank, upper_rank, count - 1)
        lowest, lower, upper, peak = rank_players(rows, server, window, ranks)
        return lowest, (lower + upper) / 2, peak
    lower = find(lower_rank, 0, top)
    upper = lower if count_up_to(lower) > upper_rank else find(upper_rank, lower, top)
    peak = find(count - 1, upper, top) if counted == count else span.find_peak()
    return find(0, 0, lower), (lower + upper) / 2, peak
