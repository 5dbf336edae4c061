"""Describe unequal observations of a server at one instant, and refuse those without an order."""

from collections.abc import Sequence
from typing import NamedTuple

from srvstat.contract.errors import SourceError
from srvstat.contract.instants import format_instant
from srvstat.fleet.counts import ORDER_BITS
from srvstat.sources.source import Source


class Conflict(NamedTuple):
    """An observation, and the unequal one of the same server and instant that stands instead."""

    server_id: str
    at: int
    position: int
    players: int
    first_position: int
    first_players: int

    def describe(self, sources: Sequence[Source]) -> str:
        """Return a description for messages."""
        place, first_place = (
            format_place(sources, position) for position in (self.position, self.first_position)
        )
        return (
            f"{place}: server {self.server_id} has {self.players} players at"
            f" {format_instant(self.at)}, but {self.first_players} in {first_place}"
        )

    def refuse(self, sources: Sequence[Source]) -> SourceError:
        """Return the error for observations of which none is the first."""
        return SourceError(
            f"{self.describe(sources)}; the rows of a database have no order in which one is the"
            " first: add --conflicts lowest, or remove one of them"
        )


def format_place(sources: Sequence[Source], position: int) -> str:
    """Return a position for messages; a row without a place has that of its source."""
    number, place = divmod(position, 1 << ORDER_BITS)
    source = sources[number]
    return source.format_place(place) if place else source.title
