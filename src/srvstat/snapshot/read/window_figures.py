"""Compute the analyzer's figures of windows from summaries of days.

Where they are not enough, the figures come from observations (figures.py).
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from srvstat.contract.ranges import Window
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.format.summaries import has_all_long_intervals
from srvstat.snapshot.read.figures import (
    Span,
    WindowFigures,
    compute_observed_figures,
    compute_quantiles,
    find_length,
)
from srvstat.snapshot.read.statistics import (
    RankedValues,
    RankedWindow,
    add_members,
    find_ranks,
    rank_windows,
)
from srvstat.snapshot.read.summary_rows import read_counts, read_summaries
from srvstat.snapshot.read.verified_rows import VerifiedRows
from srvstat.snapshot.read.window_parts import WindowParts, divide_window
from srvstat.stats import Prefix, Ranking, find_middle_ranks, find_quantile_ranks

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

    Raises SnapshotError; ValueError, TypeError and LookupError for rows that no build writes.
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
    """Check values against limits, as a forged file may have any.

    Raises ValueError.
    """
    if not all(value is None or least <= value <= most for value in values):
        raise ValueError("not the figures of observations")


def _find_usual_interval(ranked: RankedWindow, intervals: RankedValues) -> int | None:
    """Return the median of the intervals of a window, in half milliseconds.

    None if the intervals in its band are not stored.
    """
    if intervals.ranking.count != ranked.count - 1:
        raise ValueError("not the intervals of the observations")
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
        raise ValueError("observations without intervals")
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
        raise ValueError("observations without durations")
    return weighted_sum, weight
