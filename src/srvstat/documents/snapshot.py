"""The servers and the totals of a snapshot, and what writing and verifying one reports.

A dataclass has no JSON.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import PlainSerializer

from srvstat.contract import wire
from srvstat.contract.models import Members, Sha256, WholeNumber
from srvstat.contract.responses import ServerDetail
from srvstat.contract.windows import Range
from srvstat.documents.document import CountsDocument, GivenInstant, Instant, Part, SnapshotDocument
from srvstat.documents.rows import RowDocument, Rows, build_rows, derive_columns


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RowCounts:
    """What became of the rows of sources; their `unit` is the cell in wide tables.

    `read` counts all rows except empty ones; each was kept, repeated, conflicting, rejected or
    skipped. `withheld` counts the servers that are not publishable, and `completed` the servers
    whose records lacked a field, by field.
    """

    read: int
    kept: int
    repeated: int
    conflicting: int
    servers: int
    withheld: int
    completed: Mapping[str, int]
    warnings: Sequence[str]
    unit: Literal["row", "cell"] = "row"

    def __repr__(self) -> str:
        servers = f"{self.servers:,} server{'' if self.servers == 1 else 's'}"
        kept = f"{self.kept:,} of {self.read:,} {self.unit}s kept"
        return f"<{type(self).__name__} {kept}, {servers}>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BuildSummary(RowCounts):
    """What a build did with the rows of its sources; instants are Unix milliseconds.

    `skipped` has a count for each reason. `first_reject` is the place of the first row in the
    rejects, with the reason, and `remedy` a sentence on how to keep rejected rows, if anything
    helps. `converted` has the identifier of each new server whose id is another text.
    """

    rejected: int
    skipped: Mapping[str, int]
    first_reject: str | None
    remedy: str | None
    fallbacks: int
    as_of: int
    first_observed_at: int | None
    last_observed_at: int | None
    converted: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UpdateSummary:
    """What an update did: the rows of its sources, and the changes to the snapshot.

    `rows` describes the new rows, but its servers, fallbacks and instants describe the snapshot.
    `added_ids` has the hostname of each added server by its id, `removed` counts servers, and
    `observations` counts all of the snapshot. `is_open` says that it takes new servers.
    """

    rows: BuildSummary
    added_ids: Mapping[str, str]
    removed: int
    observations: int
    root: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class UnderstoodRow:
    """An observation as it was understood. `server_id` is None if it would not be kept."""

    source_id: str
    server_id: str | None
    observed_at: int
    players: int


@dataclass(frozen=True, slots=True)
class DroppedRows:
    """The rows that would not be kept for one reason: their number, examples, and what helps.

    An example is the place of a row and its text, which is empty if it is not known.
    """

    reason: str
    rows: int
    is_rejected: bool
    examples: Sequence[tuple[str, str]]
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun(RowCounts):
    """What a build would do; instants are Unix milliseconds.

    `rows` are the first ones. `intervals` has the number of servers for each usual interval in
    milliseconds, the most frequent first. `dropped` begins with the commonest reason. `refusal`
    says why the build would be refused although it would keep rows; the limit `max_rejected` would
    admit them. `advice` are sentences about what helps.
    """

    rows: Sequence[UnderstoodRow]
    rejected: int
    first_observed_at: int | None
    last_observed_at: int | None
    intervals: Sequence[tuple[int, int]]
    dropped: Sequence[DroppedRows]
    advice: Sequence[str] = ()
    refusal: str | None = None
    max_rejected: str | None = None


@dataclass(frozen=True, slots=True)
class BundleSummary:
    """What a bundle contains; instants are Unix milliseconds, and `size` is in bytes.

    `ids` identify its servers, in order. `range` is the longest one that it answers.
    """

    ids: tuple[str, ...]
    observations: int
    range: Range
    covered_from: int
    as_of: int
    size: int
    root: str
    parent_root: str


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What an export contains; `as_of` is in Unix milliseconds, and `size` in bytes.

    `servers_path` and `observations_path` are the sources of a build, whose snapshot has the root
    `root`. It is None if the export is only a part of a snapshot, or if the snapshot has shards,
    because a snapshot of one file has another root.
    `covered_from` is None unless the snapshot is a bundle, which has only some observations.
    """

    servers: int
    observations: int
    servers_path: str
    observations_path: str
    size: int
    as_of: int
    covered_from: int | None
    root: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary(RowCounts):
    """What became of the rows of a fleet; instants are Unix milliseconds.

    A row can also be an early one of a known server, before the window. `reject_reasons` and
    `skipped` have a count for each reason. `conflict` describes one of the conflicts, and `remedy`
    is a sentence on how to keep rejected rows, if anything helps. `servers` counts the results, and
    `observed` those with an observation in the window, which is `(start, as_of]`; it has no start
    if only a snapshot was written. `manifest` describes the snapshot, if one was written.
    """

    reject_reasons: Mapping[str, int]
    skipped: Mapping[str, int]
    early: int
    conflict: str | None
    remedy: str | None
    observed: int
    fallbacks: int
    start: int | None
    as_of: int
    manifest: "Manifest | None" = None

    @property
    def rejected(self) -> int:
        """The number of rejected rows."""
        return sum(self.reject_reasons.values())


class Verification(SnapshotDocument):
    """The root hash of a verified snapshot.

    `root` has 64 hexadecimal digits. Other fields count the rows.

    `days` counts each day of each server.
    """

    document: Literal["verification"] = "verification"
    servers: int
    observations: int
    days: int


_LABEL = b"srvstat manifest\0"


class ManifestShard(Part):
    """A shard: its file beside the manifest, the root of its content, and what it contains."""

    file: str
    root: Sha256
    servers: WholeNumber
    observations: WholeNumber


class Manifest(SnapshotDocument):
    """The shards of a snapshot.

    Shards are in the order of their numbers, with totals over all of them.

    `root` covers `as_of` and the roots of the shards, and so the whole content. `repeated`,
    `conflicting` and `rejected` count rows of the `sources`, as in a snapshot of one file. Without
    observations, the first and the last instant are None. `digest` covers all other members; see
    `seal_manifest`.
    """

    document: Literal["manifest"] = "manifest"
    as_of: GivenInstant
    root: Sha256
    servers: WholeNumber
    observations: WholeNumber
    first_observed_at: GivenInstant | None
    last_observed_at: GivenInstant | None
    sources: Members[str]
    repeated: WholeNumber
    conflicting: WholeNumber
    rejected: WholeNumber
    shards: Members[ManifestShard]
    digest: str = ""

    def compute_digest(self) -> str:
        """Return the SHA-256 of the JSON without `digest`, after a label and a zero byte."""
        return sha256(_LABEL + wire.encode(self.model_dump(exclude={"digest"}))).hexdigest()


def seal_manifest(manifest: Manifest) -> Manifest:
    """Return a manifest with its digest computed."""
    return manifest.model_copy(update={"digest": manifest.compute_digest()})


SortKey = Literal[
    "id", "hostname", "game", "region", "observations", "last-seen", "coverage", "current"
]
"""What servers can be sorted by."""


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
    game: str | None
    region: str
    offline: bool
    current_players: int
    sample_count: int
    first_observed_at: Instant | None
    last_observed_at: Instant | None
    usual_interval_seconds: float | None
    coverage: float | None
    source_id: str | None
    other_source_ids: tuple[str, ...]
    completed: tuple[str, ...]


class Servers(CountsDocument, RowDocument):
    """The servers found.

    They are the `matched` servers, or the first of them.
    """

    long_field = "servers"
    _details = "cfxId|usualInterval.*|.*ourceIds?|completed"

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
    game: str | None
    hostname: str
    observations: int
    first_observed_at: Instant | None
    last_observed_at: Instant | None
    usual_interval_seconds: float | None
    coverage: float | None
    source_id: str | None
    other_source_ids: tuple[str, ...]
    completed: tuple[str, ...]


_read_described = attrgetter(
    *("id", "cfx_id", "game", "hostname", "sample_count", "first_observed_at", "last_observed_at"),
    *("usual_interval_seconds", "coverage", "source_id", "other_source_ids", "completed"),
)


def _describe(servers: Sequence[ListedServer]) -> list[DescribedServer]:
    return [DescribedServer(*_read_described(server)) for server in servers]


class SnapshotInfo(SnapshotDocument):
    """Totals and servers of a snapshot.

    `servers` are the `matched` ones, or the first of them.

    Only `matched` and the list depend on a filter. `games` counts the servers of each game, and
    `completed` those with each field that records lacked. Without observations, the first and the
    last instant are None. `parent_root` and `covered_from` are those of a bundle, and None for a
    whole snapshot. `reading` has the options that said how to read the sources, by their names.
    `case` is None but for the bundle of a recording: the verdict, the command that gives it, and as
    `explanation` one that explains the answer without the recording.
    `shards` is None for a snapshot of one file.
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
    reading: dict[str, Any]
    case: dict[str, str] | None
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
    `last_in_snapshot_at` the last one of all. `covered_from` is the first instant that a bundle
    covers, and None for a whole snapshot. `source_id` is the identifier that the source uses, if it
    is not the id, and `completed` names the fields that its record lacked.
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
    other_source_ids: tuple[str, ...]
    completed: tuple[str, ...]
    hold: bool
