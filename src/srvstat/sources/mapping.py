"""How the columns of a source become observations: their names, and the form of times."""

from dataclasses import dataclass
from typing import Literal

TimeUnit = Literal["s", "ms"]


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The columns of a source and the form of its times.

    A wide source has a column of times, and one column for each server, whose name is the server's
    identifier. `time_zone` is the zone of times without an offset, and `time_unit` the unit of
    integer times; None means that neither was declared, and nothing is guessed (D18). A strict
    mapping is that of our own input files: other columns and other forms of values are refused.
    With a unit, a strict mapping is that of our own numbers, which are right in any year.
    """

    id: str = "serverId"
    at: str = "observedAt"
    players: str = "players"
    is_wide: bool = False
    time_zone: str | None = None
    time_unit: TimeUnit | None = None
    is_strict: bool = False


STRICT = ColumnMapping(is_strict=True)
"""The mapping without any option."""
