"""What the table of a comparison shows besides the API's answer. It has no JSON."""

from dataclasses import dataclass

from srvstat.contract.ranges import Window
from srvstat.contract.responses import CompareResponse, ServerResult


@dataclass(frozen=True, slots=True)
class ComparedServer:
    """One server of a comparison.

    `averages` has the average of each cell of the window, oldest first; None if it is empty.
    `observed_spans` counts the spans of the window that have an observation. `first_players` is the
    first count in the window, the base of growth. `last_observed_at` can be before the window.
    """

    result: ServerResult
    hostname: str
    averages: tuple[float | None, ...]
    observed_spans: int
    first_players: int | None
    last_observed_at: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """An answer of Compare Servers and its context; instants are Unix milliseconds.

    A span is an hour of a 24h window and a day of any other. `covered_from` is the first instant
    that a bundle covers, None for a whole snapshot.
    """

    response: CompareResponse
    servers: tuple[ComparedServer, ...]
    window: Window
    snapshot_as_of: int
    span_ms: int
    covered_from: int | None

    @property
    def span_count(self) -> int:
        """The number of spans in the window."""
        return (self.window.end - self.window.start) // self.span_ms

    @property
    def cell_ms(self) -> int:
        """The length of a cell of `ComparedServer.averages`, in milliseconds."""
        return (self.window.end - self.window.start) // len(self.servers[0].averages)
