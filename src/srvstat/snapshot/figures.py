"""The statistics of some servers in a window, from the rows at its ends."""

from collections.abc import Sequence

from srvstat.contract.ranges import DAY_MS, Window
from srvstat.snapshot.bands import Members
from srvstat.snapshot.days import rank_window
from srvstat.snapshot.proved import ProvedRows
from srvstat.snapshot.rows import ServerRow
from srvstat.stats import (
    Growth,
    Ranking,
    Statistics,
    middle_ranks,
    statistics_of,
    statistics_of_ranking,
)


def compute_statistics(
    rows: ProvedRows, servers: Sequence[ServerRow], window: Window
) -> list[Statistics]:
    """Return the statistics of some servers in a window.

    All that is read comes with three statements: blocks of calendars, days, and bands of several
    values. What is read does not grow with the length of the window.

    Raises SnapshotError; ValueError, TypeError and LookupError for rows that no build wrote.
    """
    ends = rows.ends(servers, window.start // DAY_MS, window.end // DAY_MS)
    days = iter(
        rows.days_at([(one, both) for one, both in zip(servers, ends, strict=True) if both])
    )
    rankings: list[tuple[Ranking, Growth] | None] = []
    for server, both in zip(servers, ends, strict=True):
        if both:
            first, last = next(days)
            rankings.append(rank_window(first, last, window, rows.bands(server).starts))
        else:
            rankings.append(None)
    members = rows.members(
        (server, band)
        for server, ranked in zip(servers, rankings, strict=True)
        if ranked
        for band in _wide_bands(rows, server, ranked[0])
    )
    return [
        _statistics(rows, server, *ranked, members) if ranked else statistics_of(())
        for server, ranked in zip(servers, rankings, strict=True)
    ]


def _wide_bands(rows: ProvedRows, server: ServerRow, ranking: Ranking) -> set[int]:
    """Return the bands of several values in which some figure of a ranking lies."""
    bands = rows.bands(server)
    if not bands.digests or not ranking.count:
        return set()
    ranks = {0, *middle_ranks(ranking.count), ranking.count - 1}
    return {band for band in map(ranking.find_band, ranks) if bands.digest(band)}


def _statistics(
    rows: ProvedRows,
    server: ServerRow,
    ranking: Ranking,
    growth: Growth,
    members: dict[tuple[int, int], Members],
) -> Statistics:
    starts = rows.bands(server).starts

    def value_at(rank: int) -> int:
        band = ranking.find_band(rank)
        if (server.server, band) not in members:
            return starts[band]
        within = rank - ranking.count_below(band)
        return members[server.server, band].value_at(within, *ranking.find_members(band))

    return statistics_of_ranking(ranking, value_at, growth)
