"""Exact statistics of any number of servers in any window: the documents `stats` and `top`."""

from typing import Literal

from srvstat.documents.document import GrowthPart, Instant, Part, SnapshotDocument, WindowPart
from srvstat.documents.rows import Column, RowDocument, Rows

TopKey = Literal["average", "median", "peak", "lowest", "growth", "samples", "current"]
"""The figures by which servers can be ranked."""


class QuantilePart(Part):
    """A quantile after Hyndman and Fan's definition 2; `quantile` is in [0, 1]."""

    quantile: float
    players: float | None


class AbovePart(Part):
    """How long observations with strictly more than `players` lasted, in hours."""

    players: int
    hours: float | None


class FiguresPart(Part):
    """The figures of one server in a window; those that need an observation are None without one.

    In `time_weighted_average`, `above` and `coverage`, an observation lasts until the next one, the
    last one until the end of the window, and each at most three usual intervals. `coverage` is None
    for a window without a beginning.
    """

    average_players: float | None
    median_players: float | None
    peak_players: int | None
    lowest_players: int | None
    growth: GrowthPart
    sample_count: int
    peak_first_at: Instant | None
    peak_last_at: Instant | None
    lowest_first_at: Instant | None
    lowest_last_at: Instant | None
    quantiles: tuple[QuantilePart, ...]
    time_weighted_average: float | None
    above: AbovePart | None
    usual_interval_seconds: float | None
    coverage: float | None


class ServerStatistics(FiguresPart):
    """One server; `previous` has its figures in the window of equal length before."""

    server_id: str
    cfx_id: str
    hostname: str
    current_players: int
    previous: FiguresPart | None


class _Statistics(SnapshotDocument, RowDocument):
    """`previous_window` is None unless it was asked for."""

    version: Literal[1] = 1
    window: WindowPart
    previous_window: WindowPart | None
    servers: tuple[ServerStatistics, ...]

    def to_rows(self) -> Rows:
        """Return a row for each server."""
        return Rows((Column("serverId", "text"),), [(one.server_id,) for one in self.servers])


class Stats(_Statistics):
    """The figures of servers, in the order in which they were asked for."""

    document: Literal["stats"] = "stats"


class Top(_Statistics):
    """The servers with the greatest values of one figure, `by`, of all `server_count` compared.

    Equal servers are ordered by id. Those without the figure are last.
    """

    document: Literal["top"] = "top"
    by: TopKey
    server_count: int
