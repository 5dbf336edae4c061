"""Compute the analyzer's figures of windows and steps."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice, pairwise, repeat
from operator import mul, sub
from typing import Any, NamedTuple

from srvstat.contract.windows import BEFORE_ALL, DAY_MS, Window
from srvstat.snapshot.format.days import read_day_observations
from srvstat.snapshot.format.digest import DIGEST_BYTES, has_digest
from srvstat.snapshot.format.intervals import read_interval_counts
from srvstat.snapshot.format.rows import (
    BLOCKS_PER_SERVER,
    DAYS_PER_BLOCK,
    DAYS_PER_SERVER,
    Day,
    ForgedRowError,
    IntervalCounts,
    ServerRow,
    Summaries,
    SummaryIndex,
)
from srvstat.snapshot.format.summaries import (
    Blocks,
    Index,
    find_summary_day,
    has_all_long_intervals,
    read_index,
    read_long_intervals,
)
from srvstat.snapshot.read.statistics import (
    RankedValues,
    RankedWindow,
    add_members,
    check_total,
    find_ranks,
    rank_windows,
)
from srvstat.snapshot.read.verified_rows import VerifiedRows
from srvstat.stats import (
    Prefix,
    Ranking,
    Statistics,
    compute_coverage,
    compute_durations,
    compute_statistics,
    compute_usual_interval,
    compute_weighted_mean,
    find_middle_ranks,
    find_quantile_ranks,
)


class Span(NamedTuple):
    """The first and the last instant at which a value was observed."""

    first: int
    last: int


class WindowFigures(NamedTuple):
    """The figures of one server in one window; None where there are too few observations."""

    statistics: Statistics
    total: int
    """The sum of the players of all observations."""
    quantiles: tuple[float, ...]
    """In the order asked; empty without observations."""
    peak: Span | None
    lowest: Span | None
    usual_interval: float | None
    """In milliseconds, exact: may be a half. None for fewer than two observations."""
    weighted_mean: float | None
    coverage: float | None
    """A window of all observations begins with the first one. None if it has no length."""
    first: int | None
    """The players of the first observation."""
    last: int | None


class StepTotals(NamedTuple):
    """The totals of successive steps, in columns: creating a tuple for each step takes longer.

    `counts` are the numbers of observations, and `sums` the sums of their players. `firsts` and
    `lasts` are the players of the first and the last observation, None without one.
    """

    counts: list[int]
    sums: list[int]
    firsts: list[int | None]
    lasts: list[int | None]


def compute_observed_figures(
    instants: Sequence[int], players: Sequence[int], window: Window, quantiles: Sequence[Fraction]
) -> WindowFigures:
    """Return the figures of the observations in a window, given in ascending order of instants."""
    statistics = compute_statistics(players)
    if not players:
        return build_empty_figures(window, statistics)
    ascending = sorted(players)
    durations = compute_durations(instants, window.end)
    length = find_length(window, instants[0])
    return WindowFigures(
        statistics=statistics,
        total=sum(players),
        quantiles=compute_quantiles(len(players), ascending.__getitem__, quantiles),
        peak=_find_span(instants, players, ascending[-1]),
        lowest=_find_span(instants, players, ascending[0]),
        usual_interval=compute_usual_interval(instants),
        weighted_mean=compute_weighted_mean(players, durations),
        coverage=compute_coverage(durations, length) if length else None,
        first=players[0],
        last=players[-1],
    )


def build_empty_figures(window: Window, statistics: Statistics) -> WindowFigures:
    """Return the figures of a window without observations."""
    coverage = 0.0 if find_length(window, window.end) else None
    return WindowFigures(statistics, 0, (), None, None, None, None, coverage, None, None)


def compute_quantiles(
    count: int, find_value: Callable[[int], int], quantiles: Sequence[Fraction]
) -> tuple[float, ...]:
    """Return quantiles of `count` values; `find_value` returns the one with a rank."""
    ranks = [find_quantile_ranks(count, quantile) for quantile in quantiles]
    return tuple((find_value(lower) + find_value(upper)) / 2 for lower, upper in ranks)


def find_length(window: Window, first: int) -> int:
    """Return the length of a window; one of all observations begins with the first of them."""
    return window.end - (first if window.start == BEFORE_ALL else window.start)


def _find_span(instants: Sequence[int], players: Sequence[int], value: int) -> Span:
    last = len(players) - 1 - players[::-1].index(value)
    return Span(instants[players.index(value)], instants[last])


def compute_observed_steps(
    instants: Sequence[int], players: Sequence[int], edges: Sequence[int]
) -> StepTotals:
    """Return the totals of the steps between successive edges; each excludes its start.

    The observations are in ascending order of instants, and so are the edges.
    """
    positions = [bisect_right(instants, edge) for edge in edges]
    steps = [players[first:last] for first, last in pairwise(positions)]
    return StepTotals(
        [*map(len, steps)],
        [*map(sum, steps)],
        [step[0] if step else None for step in steps],
        [step[-1] if step else None for step in steps],
    )


def build_empty_steps(count: int) -> StepTotals:
    """Return the totals of a number of steps without observations."""
    return StepTotals([0] * count, [0] * count, [None] * count, [None] * count)


SUMMARIES = "the summaries"


@dataclass(frozen=True)
class ServerSummaries:
    """The index of a server, and the blocks of its days that a window needs."""

    server: ServerRow
    index: Index
    blocks: Blocks


def read_indexes(rows: VerifiedRows, servers: Sequence[ServerRow]) -> list[Index]:
    """Return the index of each server, which must have summaries; runs one statement.

    Raises SnapshotError.
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

    Raises SnapshotError.
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

    Raises SnapshotError.
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

    Raises SnapshotError.
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


class Observed(NamedTuple):
    """Successive observations."""

    instants: list[int]
    players: list[int]

    def list_intervals(self) -> list[int]:
        """Return the intervals between them."""
        return list(map(sub, islice(self.instants, 1, None), self.instants))

    def find(self, value: int) -> list[int]:
        """Return the first and the last instant at which a value was observed, if any."""
        if value not in self.players:
            return []
        last = len(self.players) - 1 - self.players[::-1].index(value)
        return [self.instants[self.players.index(value)], self.instants[last]]

    def join(self, later: "Observed") -> "Observed":
        """Return these observations and later ones."""
        return Observed(self.instants + later.instants, self.players + later.players)

    def compute_weighted_sum(self) -> int:
        """Return the sum of their intervals times the players at the starts of them."""
        return sum(map(mul, self.list_intervals(), self.players))


class WindowParts(NamedTuple):
    """A window of a server: its whole summary days, and the observations before and after them.

    The days are at the positions from `first` up to, but not including, `end`; there is at least
    one.
    """

    summaries: ServerSummaries
    first: int
    end: int
    head: Observed
    tail: Observed

    @property
    def blocks(self) -> Blocks:
        """The blocks of the days."""
        return self.summaries.blocks

    def get_start(self) -> Observed:
        """Return the observations whose intervals the counts before the whole days have or lack.

        These are those of the head. Without any, they are the last one before the window, if any,
        and the first one of the window, because the interval between them is not in the window.
        """
        if self.head.instants:
            return self.head
        first = self.get_first()
        return _get_last(self.blocks, self.first - 1).join(first) if self.first else first

    def get_end(self) -> Observed:
        """Return the observations from the last one of the whole days to the end of the window."""
        return _get_last(self.blocks, self.end - 1).join(self.tail)

    def get_first(self) -> Observed:
        """Return the first observation of the window."""
        if self.head.instants:
            return Observed(self.head.instants[:1], self.head.players[:1])
        return Observed(
            [self.blocks.get_instant("first_times", self.first)],
            [self.blocks.get_value("first_players", self.first)],
        )

    def get_last(self) -> Observed:
        """Return the last observation of the window."""
        end = self.get_end()
        return Observed(end.instants[-1:], end.players[-1:])

    def compute_weighted_sum(self) -> int:
        """Return the sum of the intervals of the window times the players at the starts of them."""
        at_start = self.get_start().compute_weighted_sum()
        whole = sum(self.blocks.read_column("weighted_sums")[self.first : self.end])
        whole += self.get_end().compute_weighted_sum()
        return whole + at_start if self.head.instants else whole - at_start

    def find_extreme(self, name: str, value: int) -> tuple[int, int]:
        """Return the first and the last instant of the `peak` or the `lowest` of the window."""
        days = self.blocks.read_column(f"{name}s")[self.first : self.end]
        found = [*self.head.find(value)]
        if value in days:
            first, last = days.index(value), len(days) - 1 - days[::-1].index(value)
            found += [
                self.blocks.get_instant(f"first_{name}_times", self.first + first),
                self.blocks.get_instant(f"last_{name}_times", self.first + last),
            ]
        found += self.tail.find(value)
        if not found:
            raise ForgedRowError("not an observed value")
        return found[0], found[-1]


def divide_window(
    summaries: ServerSummaries, ends: Sequence[Day], window: Window
) -> WindowParts | None:
    """Return the parts of a window; None without a whole day.

    `ends` are the days that `find_ends` finds: one if the window ends after all observations.
    """
    blocks = summaries.blocks
    start_day = find_summary_day(window.start)
    end_day = find_summary_day(window.end) if len(ends) == 1 else window.end // DAY_MS
    first, end = bisect_right(blocks.days, start_day), bisect_right(blocks.days, end_day)
    if first >= end:
        return None
    if not first and blocks.first:
        raise ForgedRowError("a block that begins after its edge")
    midnight = start_day * DAY_MS
    head = _read_day(ends[:1], Window(window.start, midnight))
    if window.start < midnight and first and blocks.days[first - 1] == start_day:
        last = _get_last(blocks, first - 1)
        if last.instants == [midnight]:
            head = head.join(last)
    tail = _read_day(ends[1:], Window(window.end // DAY_MS * DAY_MS, window.end))
    return WindowParts(summaries, first, end, head, tail)


def _read_day(days: Sequence[Day], window: Window) -> Observed:
    """Return the observations in a part of a UTC day, if it is among the days."""
    number = window.start // DAY_MS
    of_day = [day for day in days if day.server_day % DAYS_PER_SERVER == number]
    return Observed(*read_day_observations(of_day, window))


def _get_last(blocks: Blocks, position: int) -> Observed:
    """Return the last observation of a day."""
    return Observed(
        [blocks.get_instant("last_times", position)], [blocks.get_value("last_players", position)]
    )


_SERVERS_AT_ONCE = 50
"""Limits memory; more servers at once are not faster."""

ReadObservations = Callable[[ServerRow, Window], tuple[list[int], list[int]]]


def compute_window_figures(
    rows: VerifiedRows,
    read_observations: ReadObservations,
    servers: Sequence[ServerRow],
    window: Window,
    quantiles: Sequence[Fraction],
) -> list[WindowFigures]:
    """Return the figures of each server in a window.

    Up to eight statements read the rows of 50 servers, whatever the length of the window.

    Raises SnapshotError.
    """
    figures: list[WindowFigures] = []
    for at in range(0, len(servers), _SERVERS_AT_ONCE):
        some = servers[at : at + _SERVERS_AT_ONCE]
        for server, found in zip(
            some, _summarize_windows(rows, some, window, quantiles), strict=True
        ):
            figures.append(
                found
                or compute_observed_figures(*read_observations(server, window), window, quantiles)
            )
    return figures


def _summarize_windows(
    rows: VerifiedRows, servers: Sequence[ServerRow], window: Window, quantiles: Sequence[Fraction]
) -> list[WindowFigures | None]:
    """Return the figures that follow from summaries; None where these are not enough."""
    ranked = {
        number: one
        for number, one in enumerate(rank_windows(rows, servers, window))
        # A single observation has no interval, and takes one row without summaries.
        if one and one.count > 1 and one.server.summary_digest
    }
    summaries = read_summaries(rows, [one.server for one in ranked.values()], window)
    parts = {
        number: of_server
        for (number, one), of_days in zip(ranked.items(), summaries, strict=True)
        if (of_server := divide_window(of_days, one.days, window))
    }
    intervals = _rank_intervals(rows, parts)
    add_members(
        rows,
        "bands",
        [
            (ranked[at].server, ranked[at].values, _find_ranks(ranked[at], quantiles))
            for at in parts
        ],
    )
    add_members(
        rows,
        "intervals",
        [
            (ranked[at].server, values, find_middle_ranks(values.ranking.count))
            for at, values in intervals.items()
        ],
    )
    return [
        _compute_figures(ranked[at], parts[at], intervals[at], window, quantiles)
        if at in parts
        else None
        for at in range(len(servers))
    ]


def _find_ranks(ranked: RankedWindow, quantiles: Sequence[Fraction]) -> set[int]:
    """Return the ranks of the values that the figures of a window need."""
    count = ranked.count
    asked = (find_quantile_ranks(count, quantile) for quantile in quantiles)
    return find_ranks(count).union(*asked)


def _rank_intervals(
    rows: VerifiedRows, parts: Mapping[int, WindowParts]
) -> dict[int, RankedValues]:
    """Return the ranked intervals between the observations of windows."""
    positions = [
        (of_server.summaries, position)
        for of_server in parts.values()
        for position in (of_server.first - 1, of_server.end - 1)
    ]
    counts = iter(read_counts(rows, positions))
    return {
        number: _rank_intervals_of(of_server, next(counts), next(counts))
        for number, of_server in parts.items()
    }


def _rank_intervals_of(
    parts: WindowParts, before: Sequence[int], after: Sequence[int]
) -> RankedValues:
    """Return the ranked intervals of a window from the cumulative counts around its whole days."""
    at_start, at_end = parts.get_start().list_intervals(), parts.get_end().list_intervals()
    # The counts before the first whole day include the intervals of the head, which are in the
    # window. Without a head, the interval that ends with the first observation is not.
    added, removed = ([], at_start) if parts.head.instants else (at_start, [])
    start = Prefix(before[-1] + len(added) - len(removed), 0, before, added, removed)
    end = Prefix(after[-1] + len(at_end), 0, after, at_end, ())
    bands = parts.summaries.index.bands
    return RankedValues(Ranking(start, end, bands.starts), bands)


def _compute_figures(
    ranked: RankedWindow,
    parts: WindowParts,
    intervals: RankedValues,
    window: Window,
    quantiles: Sequence[Fraction],
) -> WindowFigures | None:
    """Return the figures of a window; None if its summaries lack some of its intervals."""
    statistics = ranked.compute_statistics()
    usual = _find_usual_interval(ranked, intervals)
    weights = None if usual is None else _weigh(parts, window, usual)
    if usual is None or weights is None:
        return None
    weighted_sum, weight = weights
    (first,), _ = parts.get_first()
    length = find_length(window, first)
    highest, lowest = map(ranked.values.find_value, (ranked.count - 1, 0))
    figures = WindowFigures(
        statistics=statistics,
        total=ranked.values.ranking.total,
        quantiles=compute_quantiles(ranked.count, ranked.values.find_value, quantiles),
        peak=Span(*parts.find_extreme("peak", highest)),
        lowest=Span(*parts.find_extreme("lowest", lowest)),
        usual_interval=usual / 2,
        weighted_mean=weighted_sum / weight,
        coverage=weight / (2 * length),
        first=parts.get_first().players[0],
        last=parts.get_last().players[0],
    )
    _check_values(lowest, highest, figures.first, figures.last, figures.weighted_mean)
    _check_values(window.start + 1, window.end, *figures.peak or (), *figures.lowest or ())
    _check_values(0, 1, figures.coverage)
    return figures


def _check_values(least: int, most: int, *values: float | None) -> None:
    """Check values against limits, as a forged file may have any."""
    if not all(value is None or least <= value <= most for value in values):
        raise ForgedRowError("not the figures of observations")


def _find_usual_interval(ranked: RankedWindow, intervals: RankedValues) -> int | None:
    """Return the median of the intervals of a window, in half milliseconds.

    None if the intervals in its band are not stored.
    """
    if intervals.ranking.count != ranked.count - 1:
        raise ForgedRowError("not the intervals of the observations")
    ranks = find_middle_ranks(ranked.count - 1)
    if not all(intervals.bands.is_known(intervals.find_band(rank)) for rank in ranks):
        return None
    return sum(map(intervals.find_value, ranks))


def _weigh(parts: WindowParts, window: Window, usual: int) -> tuple[int, int] | None:
    """Return the sum of the players of a window times their durations, and that of the durations.

    An observation lasts until the next one, the last one until the end of the window, but at most
    three usual intervals. Durations and `usual` are in half milliseconds. None if the summaries
    lack some intervals that are longer.
    """
    if usual < 1:
        raise ForgedRowError("observations without intervals")
    (first,), _ = parts.get_first()
    (last,), (last_players,) = parts.get_last()
    long = parts.blocks.list_long_intervals(Window(first, window.end))
    if long is None or not has_all_long_intervals(usual, parts.summaries.index.longest_usual):
        return None
    longest = 3 * usual
    excesses = [(2 * length - longest, players) for length, players in long]
    excesses = [(excess, players) for excess, players in excesses if excess > 0]
    last_duration = min(2 * (window.end - last), longest)
    weight = 2 * (last - first) - sum(excess for excess, _ in excesses) + last_duration
    weighted_sum = (
        2 * parts.compute_weighted_sum()
        - sum(excess * players for excess, players in excesses)
        + last_duration * last_players
    )
    if weight < 1:
        raise ForgedRowError("observations without durations")
    return weighted_sum, weight


def compute_steps(
    rows: VerifiedRows, read_observations: ReadObservations, server: ServerRow, edges: Sequence[int]
) -> StepTotals:
    """Return the totals of the steps of a server between successive ascending edges.

    For the fast way, all edges but the first and the last must be the last millisecond of a day,
    and the server must have no observation at the midnights after them: a summary day includes
    its end.

    Raises SnapshotError.
    """
    window = Window(edges[0], edges[-1])
    midnights = [edge + 1 for edge in edges[1:-1]]
    if server.summary_digest and not any(map(DAY_MS.__rmod__, midnights)):
        (ends,) = rows.find_ends([server], window)
        if not ends:
            return build_empty_steps(len(edges) - 1)
        (days,) = rows.read_days_of([(server, ends)])
        (summaries,) = read_summaries(rows, [server], window)
        parts = divide_window(summaries, days, window)
        if parts and not _has_observation_at(parts, midnights):
            return _compute_whole_steps(parts, midnights)
    return compute_observed_steps(*read_observations(server, window), edges)


def find_long_intervals(
    rows: VerifiedRows, server: ServerRow, window: Window, usual: int
) -> list[tuple[int, int]] | None:
    """Return the intervals that end in a window and are longer than three usual ones.

    Each is a pair of successive observations, of which the first may be before the window. `usual`
    is in half milliseconds. None if the summaries do not list all of these intervals.

    Raises SnapshotError.
    """
    if not server.summary_digest:
        return None
    (summaries,) = read_summaries(rows, [server], window)
    blocks = [read_long_intervals(row) for row in summaries.blocks.rows]
    if None in blocks or not has_all_long_intervals(usual, summaries.index.longest_usual):
        return None
    return [
        (end - length, end)
        for block in blocks
        for end, length, _ in block or ()
        if window.start < end <= window.end and 2 * length > 3 * usual
    ]


def _has_observation_at(parts: WindowParts, midnights: Sequence[int]) -> bool:
    """Check whether a summary day ends with an observation at one of some midnights."""
    ends = {
        day
        for day, time in zip(parts.blocks.days, parts.blocks.read_column("last_times"), strict=True)
        if time == DAY_MS
    }
    return any(midnight // DAY_MS in ends for midnight in midnights)


def _compute_whole_steps(parts: WindowParts, midnights: Sequence[int]) -> StepTotals:
    """Return the totals of the steps of a window that midnights divide."""
    blocks, days = parts.blocks, parts.blocks.days
    inner = map(bisect_right, repeat(days), map(DAY_MS.__rfloordiv__, midnights))
    bounds = [parts.first, *inner, parts.end]
    firsts: list[int | None] = [*blocks.read_column("first_players"), None]
    lasts: list[int | None] = [None, *blocks.read_column("last_players")]
    steps = StepTotals(
        _add_between(bounds, blocks.read_column("observation_counts")),
        _add_between(bounds, blocks.read_column("player_sums")),
        [*map(firsts.__getitem__, bounds[:-1])],
        [*map(lasts.__getitem__, bounds[1:])],
    )
    if not all(steps.counts):
        for step in (step for step, count in enumerate(steps.counts) if not count):
            steps.firsts[step] = steps.lasts[step] = None
    for step, players in ((0, parts.head.players), (-1, parts.tail.players)):
        if players:
            _add(steps, step, players)
    for count, total in zip(steps.counts, steps.sums, strict=True):
        check_total(count, total)
    return steps


def _add_between(bounds: Sequence[int], values: Sequence[int]) -> list[int]:
    """Return the sums of the values from each bound to the next."""
    before = [*map([*accumulate(values, initial=0)].__getitem__, bounds)]
    return [*map(sub, before[1:], before)]


def _add(steps: StepTotals, step: int, players: Sequence[int]) -> None:
    """Add the observations before the first step, or after the last one, to it."""
    steps.counts[step] += len(players)
    steps.sums[step] += sum(players)
    if step == 0 or steps.firsts[step] is None:
        steps.firsts[step] = players[0]
    if step != 0 or steps.lasts[step] is None:
        steps.lasts[step] = players[-1]
