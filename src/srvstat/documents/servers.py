"""The servers of a snapshot that match a filter."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from srvstat.contract.ranges import DAY_MS
from srvstat.documents.document import Instant, Part, SnapshotDocument
from srvstat.documents.rows import Column, RowDocument, Rows
from srvstat.documents.server_list import ServerList, describe_array, iter_array

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


class FoundServer(Part):
    """A server. Its instants are None without observations.

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


_COLUMNS = (
    Column("id", "text"),
    Column("cfxId", "text"),
    Column("hostname", "text"),
    Column("game", "text"),
    Column("region", "text"),
    Column("offline", "boolean"),
    Column("currentPlayers", "integer"),
    Column("sampleCount", "integer"),
    Column("firstObservedAt", "instant"),
    Column("lastObservedAt", "instant"),
    Column("usualIntervalSeconds", "number"),
    Column("coverage", "number"),
    Column("sourceId", "text"),
    Column("completed", "texts"),
)


def _describe_list(schema: dict[str, Any]) -> None:
    describe_array(schema, "servers", FoundServer)


class Servers(SnapshotDocument, RowDocument):
    """The `matched` servers, or the first of them."""

    model_config = ConfigDict(arbitrary_types_allowed=True, json_schema_extra=_describe_list)

    document: Literal["servers"] = "servers"
    version: Literal[1] = 1
    matched: int
    servers: Annotated[ServerList, Field(exclude=True)]

    def to_json(self) -> bytes:
        """Return the document as JSON, without a newline."""
        return b"".join(self.iter_json())

    def iter_json(self) -> Iterator[bytes]:
        """Yield the document as JSON in pieces, without a newline."""
        yield super().to_json().removesuffix(b"}") + b',"servers":'
        yield from iter_array(self.to_rows())
        yield b"}"

    def to_rows(self) -> Rows:
        """Return a row for each server."""
        return Rows(_COLUMNS, self.servers)
