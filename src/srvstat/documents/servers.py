"""The servers of a snapshot: lists of them, its totals, and the table of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Literal

from pydantic import PlainSerializer

from srvstat.contract.responses import ServerDetail
from srvstat.contract.time import DAY_MS
from srvstat.documents.document import (
    Instant,
    RowDocument,
    Rows,
    SnapshotDocument,
    build_rows,
    derive_columns,
)
from srvstat.documents.snapshot import ManifestShard

SortKey = Literal[
    "id", "hostname", "game", "region", "observations", "last-seen", "coverage", "current"
]
"""What servers can be sorted by."""


def is_silent(last_observed_at: int | None, as_of: int) -> bool:
    """Return whether a server has no observation in the last day of a snapshot.

    The current count of its record is then as old as its last observation, or older: a person who
    reads it among the counts of other servers would take it for one of today.
    """
    return last_observed_at is None or as_of - last_observed_at > DAY_MS


@dataclass(frozen=True, slots=True)
class ListedServer:
    """A server in a list. Its instants are None without observations.

    `usual_interval_seconds` is the median distance between successive observations, and `coverage`
    the share of the time from the first observation to the end of the snapshot in which an
    observation lasts: until the next one, the last one until the end of the snapshot, and each at
    most three usual intervals. Both are None for fewer than two observations. `source_id` is the
    identifier that its source uses, if it is not the id. `completed` are the fields that its record
    lacked.
    """

    id: str
    cfx_id: str
    hostname: str
    game: str
    region: str
    offline: bool
    current_players: int
    sample_count: int
    first_observed_at: Instant | None
    last_observed_at: Instant | None
    usual_interval_seconds: float | None
    coverage: float | None
    source_id: str | None
    completed: tuple[str, ...]


class Servers(SnapshotDocument, RowDocument):
    """The `matched` servers, or the first of them."""

    long_field = "servers"

    document: Literal["servers"] = "servers"
    matched: int
    servers: tuple[ListedServer, ...]

    def to_rows(self) -> Rows:
        """Return a row for each server."""
        return build_rows(derive_columns(ListedServer), self.servers)


@dataclass(frozen=True, slots=True)
class DescribedServer:
    """A server in the list; its instants are None without observations.

    `usual_interval_seconds` and the fields after it are those of the document `servers`.
    """

    id: str
    cfx_id: str
    game: str
    hostname: str
    observations: int
    first_observed_at: Instant | None
    last_observed_at: Instant | None
    usual_interval_seconds: float | None
    coverage: float | None
    source_id: str | None
    completed: tuple[str, ...]


_read_described = attrgetter(
    *("id", "cfx_id", "game", "hostname", "sample_count", "first_observed_at", "last_observed_at"),
    *("usual_interval_seconds", "coverage", "source_id", "completed"),
)


def _describe(servers: Sequence[ListedServer]) -> list[DescribedServer]:
    return [DescribedServer(*_read_described(server)) for server in servers]


class SnapshotInfo(SnapshotDocument):
    """Totals of a snapshot, and the list of the `matched` servers, or of the first of them.

    Only `matched` and the list depend on a filter. `games` counts the servers of each game, and
    `completed` those with each field that records lacked. Without observations, the first and the
    last instant are None. `parent_root` and `covered_from` are those of a bundle, and None for a
    whole snapshot. `shards` is None for a snapshot of one file.
    """

    long_field = "identifiers"

    document: Literal["snapshotInfo"] = "snapshotInfo"
    parent_root: str | None
    covered_from: Instant | None
    first_observed_at: Instant | None
    last_observed_at: Instant | None
    servers: int
    observations: int
    games: dict[str, int]
    fallbacks: int
    completed: dict[str, int]
    sources: tuple[str, ...]
    repeated: int
    conflicting: int
    rejected: int
    shards: tuple[ManifestShard, ...] | None
    matched: int
    identifiers: Annotated[
        tuple[ListedServer, ...], PlainSerializer(_describe, return_type=list[DescribedServer])
    ]


@dataclass(frozen=True, slots=True)
class ServerTable:
    """An answer of Get Server, with the instants for its table in Unix milliseconds.

    `last_observed_at` is the last observation up to and including `as_of`, and
    `last_in_snapshot_at` that of the snapshot. `covered_from` is the
    first instant that a bundle covers, None for a whole snapshot. `source_id` is the identifier
    that the source uses, if it is not the id, and `completed` the fields that its record lacked.
    """

    server: ServerDetail
    as_of: int
    snapshot_as_of: int
    last_observed_at: int | None
    last_in_snapshot_at: int | None
    first_seen_at: int
    updated_at: int
    current_is_fallback: bool
    covered_from: int | None
    source_id: str | None
    completed: tuple[str, ...]
