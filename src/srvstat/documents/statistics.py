"""Exact statistics of any number of servers in any window: the documents `stats` and `top`."""

from typing import Any, Literal

from srvstat.contract import wire
from srvstat.documents.document import (
    ChangePart,
    GrowthPart,
    Instant,
    Part,
    SnapshotDocument,
    WindowPart,
)
from srvstat.documents.rows import Column, Kind, RowDocument, Rows

TopKey = Literal["average", "median", "peak", "lowest", "change", "growth", "samples", "current"]
"""The figures by which servers can be ranked; `change` and `growth` in players."""


class QuantilePart(Part):
    """A quantile after Hyndman and Fan's definition 2; `quantile` is in [0, 1]."""

    quantile: float
    players: float | None


class AbovePart(Part):
    """How long observations with strictly more than `players` last, in hours."""

    players: int
    hours: float | None


class FiguresPart(Part):
    """The figures of one server in a window; those that need an observation are None without one.

    In `time_weighted_average`, `above` and `coverage`, an observation lasts until the next one, the
    last one until the end of the window, and each at most three usual intervals. The usual interval
    is None for fewer than two observations. `coverage` is the share of the window in which an
    observation lasts; a window of all observations begins with the first one. `above` is None
    unless asked for.
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
    first_players: int | None
    last_players: int | None


class _IdentityPart(Part):
    """A server: the current count of its record, and its last observation in the snapshot.

    `last_observed_at` is None without one. It can be after the window.
    """

    server_id: str
    cfx_id: str
    hostname: str
    current_players: int
    last_observed_at: Instant | None


class ServerStatistics(FiguresPart, _IdentityPart):
    """One server; `previous` has its figures in the window of equal length before, if asked for.

    `change` is the average minus that of the window before. It is None if there is none, or if
    observations cover less than 80 % of either window. `previous_coverage` is the share of the
    window before, and None if there is none.
    """

    change: ChangePart | None
    previous_coverage: float | None
    previous: FiguresPart | None


class _Statistics(SnapshotDocument, RowDocument):
    """`previous_window` is None unless its figures were asked for.

    `time_zone` is that of the question. Tables show their times in it.
    """

    version: Literal[1] = 1
    time_zone: str
    window: WindowPart
    previous_window: WindowPart | None
    servers: tuple[ServerStatistics, ...]

    def to_rows(self) -> Rows:
        """Return a row for each server, with columns for what was asked for."""
        columns = [Column(name, _KINDS[name]) for name in _IDENTITY]
        # With its other figures, the window before has its coverage among them.
        has_previous = self.previous_window is not None
        columns += [Column(name, _KINDS[name]) for name in _CHANGE[: -1 if has_previous else None]]
        columns += self._list_columns("")
        if has_previous:
            columns += self._list_columns("previous")
        return Rows(tuple(columns), map(self._build_row, self.servers))

    def _list_columns(self, prefix: str) -> list[Column]:
        """Return the columns of the figures of one window."""
        named = {*_IDENTITY, *_CHANGE}
        columns = [Column(name, kind) for name, kind in _KINDS.items() if name not in named]
        first = self.servers[0] if self.servers else None
        if first is not None:
            texts = (wire.format_number(one.quantile) for one in first.quantiles)
            columns += [Column(f"quantile{text}", "number") for text in texts]
        if first is not None and first.above is not None:
            columns += [Column("abovePlayers", "integer"), Column("aboveHours", "number")]
        if prefix:
            columns = [Column(prefix + name[0].upper() + name[1:], kind) for name, kind in columns]
        return columns

    def _build_row(self, server: ServerStatistics) -> tuple[Any, ...]:
        identity = tuple(getattr(server, name) for name in _IdentityPart.model_fields)
        change = server.change
        changes = (change and change.players, change and change.percentage)
        if server.previous is None:
            return (*identity, *changes, server.previous_coverage, *_list_values(server))
        return identity + changes + _list_values(server) + _list_values(server.previous)


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


_IDENTITY = ("serverId", "cfxId", "hostname", "currentPlayers", "lastObservedAt")
_CHANGE = ("changePlayers", "changePercentage", "previousCoverage")

_KINDS: dict[str, Kind] = {
    "serverId": "text",
    "cfxId": "text",
    "hostname": "text",
    "currentPlayers": "integer",
    "lastObservedAt": "instant",
    "changePlayers": "number",
    "changePercentage": "number",
    "previousCoverage": "number",
    "averagePlayers": "number",
    "medianPlayers": "number",
    "peakPlayers": "integer",
    "lowestPlayers": "integer",
    "growthPlayers": "integer",
    "growthPercentage": "number",
    "sampleCount": "integer",
    "peakFirstAt": "instant",
    "peakLastAt": "instant",
    "lowestFirstAt": "instant",
    "lowestLastAt": "instant",
    "timeWeightedAverage": "number",
    "usualIntervalSeconds": "number",
    "coverage": "number",
    "firstPlayers": "integer",
    "lastPlayers": "integer",
}
"""The columns without those of quantiles and `above`, in the order of `_list_values`."""


def _list_values(figures: FiguresPart) -> tuple[Any, ...]:
    above = figures.above
    return (
        figures.average_players,
        figures.median_players,
        figures.peak_players,
        figures.lowest_players,
        figures.growth.players,
        figures.growth.percentage,
        figures.sample_count,
        figures.peak_first_at,
        figures.peak_last_at,
        figures.lowest_first_at,
        figures.lowest_last_at,
        figures.time_weighted_average,
        figures.usual_interval_seconds,
        figures.coverage,
        figures.first_players,
        figures.last_players,
        *(one.players for one in figures.quantiles),
        *(() if above is None else (above.players, above.hours)),
    )
