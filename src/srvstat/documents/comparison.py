"""What the table of a comparison shows besides the API's answer. It has no JSON."""

from dataclasses import dataclass

from srvstat.contract.ranges import Window
from srvstat.contract.responses import CompareResponse, ServerResult
from srvstat.documents.history import StepCell


@dataclass(frozen=True, slots=True)
class ComparedServer:
    """One server of a comparison.

    `cells` has the average of each step of the window, oldest first. `observed_spans` counts the
    spans of the window that have an observation. `first_players` is the first count in the window,
    the base of growth. `last_observed_at` is the last observation in the snapshot.
    """

    result: ServerResult
    hostname: str
    cells: tuple[StepCell, ...]
    observed_spans: int
    first_players: int | None
    last_observed_at: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """An answer of Compare Servers and its context; instants are Unix milliseconds.

    `cell_step` is the name of the steps of `ComparedServer.cells`, such as `6h`, in UTC. A span is
    an hour of a 24h window and a day of any other.
    """

    response: CompareResponse
    servers: tuple[ComparedServer, ...]
    window: Window
    snapshot_as_of: int
    cell_step: str
    span_ms: int

    @property
    def span_count(self) -> int:
        """The number of spans in the window."""
        return (self.window.end - self.window.start) // self.span_ms
