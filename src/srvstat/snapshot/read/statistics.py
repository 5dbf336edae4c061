"""Compute the statistics of servers in a window from the rows at its two ends."""

from collections.abc import Sequence

from srvstat.contract.ranges import Window
from srvstat.snapshot.format.bands import Members
from srvstat.snapshot.format.days import build_ranking, read_last_state, read_state
from srvstat.snapshot.format.rows import Day, ServerRow
from srvstat.snapshot.read.verified_rows import VerifiedRows
from srvstat.stats import (
    Growth,
    Ranking,
    Statistics,
    compute_ranking_statistics,
    compute_statistics,
    find_middle_ranks,
)


def compute_window_statistics(
    rows: VerifiedRows, servers: Sequence[ServerRow], window: Window
) -> list[Statistics]:
    """Return the statistics of each server in a window.

    Three statements read all rows: blocks of calendars, days, and bands of several values. The
    number of rows does not depend on the length of the window.

    Raises SnapshotError; ValueError, TypeError and LookupError for rows that no build writes.
    """
    ends = rows.find_ends(servers, window)
    days = rows.read_days(list(zip(servers, ends, strict=True)))
    rankings = [
        _compute_ranking(server, server_days, window, rows.get_bands(server).starts)
        if server_days
        else None
        for server, server_days in zip(servers, days, strict=True)
    ]
    members = rows.read_members(
        (server, band)
        for server, ranking_growth in zip(servers, rankings, strict=True)
        if ranking_growth
        for band in _find_wide_bands(rows, server, ranking_growth[0])
    )
    return [
        _compute_statistics(rows, server, *ranking_growth, members)
        if ranking_growth
        else compute_statistics(())
        for server, ranking_growth in zip(servers, rankings, strict=True)
    ]


def _compute_ranking(
    server: ServerRow, ends: Sequence[Day], window: Window, starts: Sequence[int]
) -> tuple[Ranking, Growth]:
    """Return the ranking of a window from the days at its ends, or from its first day alone."""
    start = read_state(ends[0], window.start, starts)
    if len(ends) == 1:
        return build_ranking(start, read_last_state(server, starts), starts)
    return build_ranking(start, read_state(ends[1], window.end, starts), starts)


def _find_wide_bands(rows: VerifiedRows, server: ServerRow, ranking: Ranking) -> set[int]:
    """Return the bands of several values that contain a figure of a ranking."""
    bands = rows.get_bands(server)
    if not bands.digests or not ranking.count:
        return set()
    ranks = {0, *find_middle_ranks(ranking.count), ranking.count - 1}
    return {band for band in map(ranking.find_band, ranks) if bands.get_digest(band)}


def _compute_statistics(
    rows: VerifiedRows,
    server: ServerRow,
    ranking: Ranking,
    growth: Growth,
    members: dict[tuple[int, int], Members],
) -> Statistics:
    starts = rows.get_bands(server).starts
    window_members: dict[int, Sequence[int]] = {}

    def find_value(rank: int) -> int:
        band = ranking.find_band(rank)
        if (server.server, band) not in members:
            return starts[band]
        if band not in window_members:
            band_members = members[server.server, band]
            window_members[band] = band_members.slice(*ranking.find_members(band))
        rank_in_band = rank - ranking.count_below(band)
        if rank_in_band == 0:
            return starts[band] + min(window_members[band])
        if rank_in_band == len(window_members[band]) - 1:
            return starts[band] + max(window_members[band])
        # The two middle ranks often share a band; sorting a sorted list again is cheap.
        window_members[band] = sorted(window_members[band])
        return starts[band] + window_members[band][rank_in_band]

    return compute_ranking_statistics(ranking.count, ranking.total, find_value, growth)
