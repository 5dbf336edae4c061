"""How the players of servers change from step to step: the document `growth`."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from srvstat.contract.instants import format_instant
from srvstat.documents.document import (
    ChangePart,
    GrowthPart,
    Instant,
    Part,
    SmallParts,
    SnapshotDocument,
    WindowPart,
)
from srvstat.documents.rows import Column, RowDocument, Rows

GrowthStepName = Literal["day", "week", "month"]
"""Calendar days, ISO weeks and months of a time zone."""


class GrowthStepPart(Part):
    """The interval `[from, to)`; the last step of a window includes its end.

    `observed_share` is the part of the step's calendar length that observations cover, and
    `is_partial` whether that is less than 0.9. The average is None without observations. `change`
    is the average minus that of the step before; it is None if one of the two is partial or has no
    observations. `growth` is the last observation in the step minus the first.
    """

    from_: Annotated[Instant, Field(serialization_alias="from")]
    to: Instant
    is_partial: bool
    observed_share: float
    sample_count: int
    average_players: float | None
    change: ChangePart | None
    growth: GrowthPart


class GrowthStep(NamedTuple):
    """The values of a GrowthStepPart."""

    from_: int
    to: int
    is_partial: bool
    observed_share: float
    sample_count: int
    average_players: float | None
    change_players: float | None
    change_percentage: float | None
    growth_players: int | None
    growth_percentage: float | None

    @property
    def change(self) -> ChangePart | None:
        """The average minus that of the step before, if both are whole."""
        if self.change_players is None:
            return None
        return ChangePart(players=self.change_players, percentage=self.change_percentage)

    def to_members(self) -> dict[str, Any]:
        """Return the members of its JSON."""
        return {
            "from": format_instant(self.from_),
            "to": format_instant(self.to),
            "isPartial": self.is_partial,
            "observedShare": self.observed_share,
            "sampleCount": self.sample_count,
            "averagePlayers": self.average_players,
            "change": None
            if self.change_players is None
            else {"players": self.change_players, "percentage": self.change_percentage},
            "growth": {"players": self.growth_players, "percentage": self.growth_percentage},
        }


class ServerGrowth(Part):
    """One server; `growth` is that over the window, `previous_growth` that in the window before.

    `change`, the coverages, and the first and the last count are those of the document `stats`.
    `players_per_week` is the median of the slopes between all pairs of whole days (Theil and Sen),
    each at its midpoint with its average, whatever the step of the document; None for fewer than
    three.
    """

    server_id: str
    cfx_id: str
    hostname: str
    sample_count: int
    average_players: float | None
    change: ChangePart | None
    coverage: float | None
    previous_coverage: float | None
    first_players: int | None
    last_players: int | None
    growth: GrowthPart
    previous_growth: GrowthPart | None
    players_per_week: float | None
    steps: Annotated[tuple[GrowthStep, ...], SmallParts(GrowthStepPart)]


class GrowthDocument(SnapshotDocument, RowDocument):
    """The growth of servers by step.

    `previous_window` is the window of equal length before. It is None, and so is each
    `previous_growth`, if the window has no beginning, or if a bundle does not cover it.
    """

    document: Literal["growth"] = "growth"
    version: Literal[1] = 1
    step: GrowthStepName
    time_zone: str
    window: WindowPart
    previous_window: WindowPart | None
    servers: tuple[ServerGrowth, ...]

    def iter_json(self) -> Iterator[bytes]:
        """Yield the document as JSON in pieces, without a newline."""
        return self._iter_json_with("servers")

    def to_rows(self) -> Rows:
        """Return a row for each step of each server."""
        return Rows(
            _COLUMNS,
            ((server.server_id, *step) for server in self.servers for step in server.steps),
        )


_COLUMNS = (
    Column("serverId", "text"),
    Column("from", "instant"),
    Column("to", "instant"),
    Column("isPartial", "boolean"),
    Column("observedShare", "number"),
    Column("sampleCount", "integer"),
    Column("averagePlayers", "number"),
    Column("changePlayers", "number"),
    Column("changePercentage", "number"),
    Column("growthPlayers", "integer"),
    Column("growthPercentage", "number"),
)
