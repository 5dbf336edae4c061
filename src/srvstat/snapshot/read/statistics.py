"""Compute the statistics of servers in a window from the rows at its two ends."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from srvstat.contract.windows import Window
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.snapshot.format.bands import Bands, Members
from srvstat.snapshot.format.days import build_ranking, read_last_state, read_state, read_totals
from srvstat.snapshot.format.rows import Day, ForgedRowError, ServerRow
from srvstat.snapshot.read.verified_rows import VerifiedRows
from srvstat.stats import (
    Growth,
    Ranking,
    Statistics,
    compute_ranking_statistics,
    compute_statistics,
    find_middle_ranks,
)


class RankedValues:
    """Finds the values of ranks in a window, once the members of bands of several values are read.

    The values are players of observations, or intervals.
    """

    def __init__(self, ranking: Ranking, bands: Bands) -> None:
        self.ranking = ranking
        self.bands = bands
        self._members: dict[int, Sequence[int]] = {}
        self._bands_of_ranks: dict[int, int] = {}

    def find_band(self, rank: int) -> int:
        """Return the band that contains the value of a rank."""
        band = self._bands_of_ranks.get(rank)
        if band is None:
            band = self._bands_of_ranks[rank] = self.ranking.find_band(rank)
        return band

    def find_wide_bands(self, ranks: Iterable[int]) -> set[int]:
        """Return the bands of several values that contain values with these ranks."""
        if not self.bands.digests or not self.ranking.count:
            return set()
        return {band for band in map(self.find_band, ranks) if self.bands.get_digest(band)}

    def add_members(self, band: int, members: Members) -> None:
        """Take the members of a band, which are those of all windows."""
        self._members[band] = members.slice(*self.ranking.find_members(band))

    def find_value(self, rank: int) -> int:
        """Return the value of a rank."""
        band = self.find_band(rank)
        start = self.bands.starts[band]
        if band not in self._members:
            return start
        rank_in_band = rank - self.ranking.count_below(band)
        members = self._members[band]
        if rank_in_band == 0:
            return start + min(members)
        if rank_in_band == len(members) - 1:
            return start + max(members)
        # The two middle ranks often share a band; sorting a sorted list again is cheap.
        self._members[band] = members = sorted(members)
        return start + members[rank_in_band]


@dataclass(frozen=True)
class RankedWindow:
    """The values of a server in a window, and the days at its ends that they come from."""

    server: ServerRow
    days: Sequence[Day]
    values: RankedValues
    growth: Growth

    @property
    def count(self) -> int:
        """The number of observations."""
        return self.values.ranking.count

    def compute_statistics(self) -> Statistics:
        """Return the statistics; the members of their bands were added before."""
        ranking = self.values.ranking
        return compute_ranking_statistics(
            ranking.count, ranking.total, self.values.find_value, self.growth
        )


def compute_window_statistics(
    rows: VerifiedRows, servers: Sequence[ServerRow], window: Window
) -> list[Statistics]:
    """Return the statistics of each server in a window.

    Three statements read all rows: blocks of calendars, days, and bands of several values. The
    number of rows does not depend on the length of the window.

    Raises SnapshotError.
    """
    ranked = rank_windows(rows, servers, window)
    add_members(
        rows, "bands", [(one.server, one.values, find_ranks(one.count)) for one in ranked if one]
    )
    return [one.compute_statistics() if one else compute_statistics(()) for one in ranked]


def compute_window_totals(
    rows: VerifiedRows, servers: Sequence[ServerRow], window: Window
) -> list[tuple[int, int]]:
    """Return the number of observations of each server in a window, and their sum.

    Raises SnapshotError.
    """
    totals: list[tuple[int, int]] = []
    for some in divide_servers(servers, 500):
        ends = rows.find_ends(some, window)
        days = rows.read_days_of(list(zip(some, ends, strict=True)))
        totals += [
            _compute_totals(*of_server, window) for of_server in zip(some, days, strict=True)
        ]
    return totals


def _compute_totals(server: ServerRow, ends: Sequence[Day], window: Window) -> tuple[int, int]:
    if not ends:
        return 0, 0
    count, total = read_totals(ends[0], window.start)
    if len(ends) == 1:
        last = server.observation_count, int.from_bytes(server.player_sum, "little")
    else:
        last = read_totals(ends[1], window.end)
    totals = last[0] - count, last[1] - total
    check_total(*totals)
    return totals


def divide_servers(servers: Sequence[ServerRow], most: int) -> Iterator[Sequence[ServerRow]]:
    """Yield the servers in parts that fit in memory with their rows."""
    for at in range(0, len(servers), most):
        yield servers[at : at + most]


def find_ranks(count: int) -> set[int]:
    """Return the ranks of the values that the statistics of a window need."""
    return {0, *find_middle_ranks(count), count - 1}


def rank_windows(
    rows: VerifiedRows, servers: Sequence[ServerRow], window: Window
) -> list[RankedWindow | None]:
    """Return the ranked values of each server in a window; None where it can't have any."""
    ends = rows.find_ends(servers, window)
    days = rows.read_days_of(list(zip(servers, ends, strict=True)))
    return [
        _rank_window(server, server_days, window, rows.get_bands(server)) if server_days else None
        for server, server_days in zip(servers, days, strict=True)
    ]


def _rank_window(
    server: ServerRow, ends: Sequence[Day], window: Window, bands: Bands
) -> RankedWindow:
    """Return the ranked values of a window from the days at its ends, or its first day alone."""
    start = read_state(ends[0], window.start, bands.starts)
    if len(ends) == 1:
        end = read_last_state(server, bands.starts)
    else:
        end = read_state(ends[1], window.end, bands.starts)
    ranking, growth = build_ranking(start, end, bands.starts)
    return RankedWindow(server, ends, RankedValues(ranking, bands), growth)


def add_members(
    rows: VerifiedRows,
    table: str,
    wanted: Iterable[tuple[ServerRow, RankedValues, Iterable[int]]],
) -> None:
    """Read the members of the bands that some ranks need, with one statement, and add them."""
    chosen = [(server, values, values.find_wide_bands(ranks)) for server, values, ranks in wanted]
    found = rows.read_members(
        table, [(server, values.bands, band) for server, values, bands in chosen for band in bands]
    )
    for server, values, bands in chosen:
        for band in bands:
            values.add_members(band, found[server.server, band])


def check_total(observations: int, total: int) -> None:
    """Check that observations can have a sum, as a forged file may have any."""
    if not 0 <= total <= observations * MAX_SAFE_INTEGER:
        raise ForgedRowError("not the sum of observations")
