"""What a person is shown beside an answer. The API never sends it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from srvstat.contract.ranges import Window
from srvstat.contract.responses import CompareResponse, ServerDetail, ServerResult


@dataclass(frozen=True, slots=True)
class ServerView:
    """One server of a comparison.

    `averages` cuts the window into equal cells, oldest first: the average of each, None where
    nothing was observed. `observed_spans` counts the spans (hours of a 24h window, days of any
    other) that have an observation. `first_players` is the first count in the window, from which
    growth is computed. `last_observed_at` may lie before the window.
    """

    result: ServerResult
    hostname: str
    averages: tuple[float | None, ...]
    observed_spans: int
    first_players: int | None
    last_observed_at: int | None


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """An answer of Compare Servers and what surrounds it; instants are Unix milliseconds."""

    response: CompareResponse
    servers: tuple[ServerView, ...]
    window: Window
    snapshot_as_of: int
    span_ms: int

    @property
    def span_count(self) -> int:
        """How many spans the window has."""
        return (self.window.end - self.window.start) // self.span_ms

    @property
    def cell_ms(self) -> int:
        """The length of a cell of `ServerView.averages`."""
        return (self.window.end - self.window.start) // len(self.servers[0].averages)


@dataclass(frozen=True, slots=True)
class ServerDetailView:
    """An answer of Get Server and the instants around it, in Unix milliseconds.

    `last_observed_at` is the last observation up to and including `as_of`.
    """

    server: ServerDetail
    as_of: int
    snapshot_as_of: int
    last_observed_at: int | None
    first_seen_at: int
    updated_at: int
    current_is_fallback: bool


class ListedServer(NamedTuple):
    """A server as a list names it; instants are Unix milliseconds, None without observations."""

    id: str
    cfx_id: str
    game: str
    hostname: str
    observations: int
    first_observed_at: int | None
    last_observed_at: int | None


@dataclass(frozen=True, slots=True)
class SnapshotView:
    """What is in a snapshot, and the first of its servers, in the order of their ids.

    `games` counts the servers of each game. Instants are Unix milliseconds, None without
    observations.
    """

    as_of: int
    first_observed_at: int | None
    last_observed_at: int | None
    observations: int
    root: str
    server_count: int
    games: Mapping[str, int]
    servers: tuple[ListedServer, ...]
    fallbacks: int
    sources: tuple[str, ...]
    repeated: int
    conflicting: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Verification:
    """A snapshot found sound: its root, as 64 hexadecimal digits, and how much was checked."""

    root: str
    as_of: int
    servers: int
    observations: int
    days: int


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a build made of its sources.

    `read` counts the rows that hold something; every one of them was kept, repeated, conflicting,
    rejected or skipped. `skipped` gives the count for each reason, `first_reject` the place and
    the reason of the first row that went to the rejects.
    """

    read: int
    kept: int
    repeated: int
    conflicting: int
    rejected: int
    skipped: Mapping[str, int]
    first_reject: str | None
    servers: int
    withheld: int
    fallbacks: int
    as_of: int
    first_observed_at: int | None
    last_observed_at: int | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanView:
    """What a plan may do, and how many keys it has; no limit of requests where it is None."""

    name: str
    operations: tuple[str, ...]
    ranges: tuple[str, ...]
    raw_history_days: int
    requests_per_minute: int | None
    keys: int


@dataclass(frozen=True, slots=True)
class AccessView:
    """What an access file says, in its order."""

    plans: tuple[PlanView, ...]
