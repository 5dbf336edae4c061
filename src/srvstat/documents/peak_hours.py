"""How many players servers have in each hour of the week: the document `peakHours`."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from srvstat.documents.document import (
    LEAST_COVERAGE,
    Part,
    SmallParts,
    SnapshotDocument,
    WindowPart,
)
from srvstat.documents.rows import Column, RowDocument, Rows


class HourPart(Part):
    """An hour of the week on a local clock; `weekday` is 1 for Monday to 7, `hour` 0 to 23."""

    weekday: int
    hour: int


class HourCellPart(HourPart):
    """The observations of an hour of the week. With fewer than 4, the figures are None."""

    sample_count: int
    average_players: float | None
    median_players: float | None


class HourCell(NamedTuple):
    """The values of an HourCellPart."""

    weekday: int
    hour: int
    sample_count: int
    average_players: float | None
    median_players: float | None

    def to_members(self) -> dict[str, Any]:
        """Return the members of its JSON."""
        return {
            "weekday": self.weekday,
            "hour": self.hour,
            "sampleCount": self.sample_count,
            "averagePlayers": self.average_players,
            "medianPlayers": self.median_players,
        }


class ServerPeakHours(Part):
    """One server; `cells` are the 168 hours of the week from Monday 0:00.

    `busiest` and `quietest` have the greatest and the least average, the earliest of equal ones;
    None if no cell has an average.
    """

    server_id: str
    cfx_id: str
    hostname: str
    sample_count: int
    busiest: HourPart | None
    quietest: HourPart | None
    cells: Annotated[tuple[HourCell, ...], SmallParts(HourCellPart)]

    @property
    def has_hours(self) -> bool:
        """Whether the hours can be compared: at least 80 % of them have an average."""
        known = sum(cell.average_players is not None for cell in self.cells)
        return known >= LEAST_COVERAGE * len(self.cells)

    def get_cell(self, hour: HourPart) -> HourCell:
        """Return the cell of an hour, such as the busiest."""
        return self.cells[24 * (hour.weekday - 1) + hour.hour]


class PeakHours(SnapshotDocument, RowDocument):
    """The players of servers in each hour of the week, on the clock of a time zone."""

    document: Literal["peakHours"] = "peakHours"
    version: Literal[1] = 1
    time_zone: str
    window: WindowPart
    servers: tuple[ServerPeakHours, ...]

    def iter_json(self) -> Iterator[bytes]:
        """Yield the document as JSON in pieces, without a newline."""
        return self._iter_json_with("servers")

    def to_rows(self) -> Rows:
        """Return a row for each hour of the week of each server."""
        return Rows(
            _COLUMNS,
            ((server.server_id, *cell) for server in self.servers for cell in server.cells),
        )


_COLUMNS = (
    Column("serverId", "text"),
    Column("weekday", "integer"),
    Column("hour", "integer"),
    Column("sampleCount", "integer"),
    Column("averagePlayers", "number"),
    Column("medianPlayers", "number"),
)
