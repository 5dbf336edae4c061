"""The contents of a snapshot: totals, and a list of its servers that can be long."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from srvstat.documents.document import Instant, Part, SnapshotDocument
from srvstat.documents.manifest import ManifestShard
from srvstat.documents.rows import Column, Rows
from srvstat.documents.server_list import ListedServer, ServerList, describe_array, iter_array


class DescribedServer(Part):
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


_COLUMNS = (
    Column("id", "text"),
    Column("cfxId", "text"),
    Column("game", "text"),
    Column("hostname", "text"),
    Column("observations", "integer"),
    Column("firstObservedAt", "instant"),
    Column("lastObservedAt", "instant"),
    Column("usualIntervalSeconds", "number"),
    Column("coverage", "number"),
    Column("sourceId", "text"),
    Column("completed", "texts"),
)


_FIRST_INSTANT = ListedServer._fields.index("first_observed_at")


def _describe_list(schema: dict[str, Any]) -> None:
    describe_array(schema, "identifiers", DescribedServer)


class SnapshotInfo(SnapshotDocument):
    """Totals of a snapshot, and the list of the `matched` servers, or of the first of them.

    Only `matched` and the list depend on a filter. `games` counts the servers of each game, and
    `completed` those with each field that records lacked. Without observations, the first and the
    last instant are None. `parent_root` and `covered_from` are those of a bundle, and None for a
    whole snapshot. `shards` is None for a snapshot of one file.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, json_schema_extra=_describe_list)

    document: Literal["snapshotInfo"] = "snapshotInfo"
    version: Literal[1] = 1
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
    identifiers: Annotated[ServerList, Field(exclude=True)]

    def to_json(self) -> bytes:
        """Return the document as JSON, without a newline."""
        return b"".join(self.iter_json())

    def iter_json(self) -> Iterator[bytes]:
        """Yield the document as JSON in pieces, without a newline."""
        yield super().to_json().removesuffix(b"}") + b',"identifiers":'
        rows = (
            (one.id, one.cfx_id, one.game, one.hostname, one.sample_count, *one[_FIRST_INSTANT:])
            for one in self.identifiers
        )
        yield from iter_array(Rows(_COLUMNS, rows))
        yield b"}"
