"""Documents about a snapshot's servers and totals, and summaries of builds and verification."""

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
    """The number of rows with each outcome.

    - `unit`: `cell` for wide tables, otherwise `row`.
    - `read`: all rows except empty rows; each was kept, repeated, conflicting, rejected or skipped.
    - `withheld`: the number of servers that are not public.
    - `completed`: for each field, the number of servers whose records lacked it.
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
    """The result of a build. Times are Unix milliseconds.

    - `skipped`: the number of rows by reason.
    - `first_reject`: the place and reason of the first rejected or conflicting row, or None.
    - `remedy`: how to keep rejected rows, or None.
    - `fallbacks`: the number of servers whose current count was filled in.
    - `converted`: id → identifier, for each new server whose id differs from its identifier.
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
    """The result of an update: its rows, and the changes to the snapshot.

    - `rows`: the counts of the new rows. Its `servers`, `fallbacks` and times describe the whole
      snapshot.
    - `added_ids`: id → hostname, for each added server.
    - `removed`: the number of removed servers.
    - `observations`: the number of all observations in the snapshot.
    - `is_open`: whether the snapshot accepts new servers.
    """

    rows: BuildSummary
    added_ids: Mapping[str, str]
    removed: int
    observations: int
    root: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class UnderstoodRow:
    """An observation as interpreted. `server_id` is None if it would not be kept."""

    source_id: str
    server_id: str | None
    observed_at: int
    players: int


@dataclass(frozen=True, slots=True)
class DroppedRows:
    """The rows that would not be kept for one reason: their number, examples, and the remedy.

    An example is the place of a row and its text, which is empty if unknown.
    """

    reason: str
    rows: int
    is_rejected: bool
    examples: Sequence[tuple[str, str]]
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun(RowCounts):
    """The result of a dry run. Times are Unix milliseconds.

    - `rows`: the first rows, as interpreted.
    - `intervals`: pairs of a polling interval in milliseconds and its number of servers, the most
      frequent first.
    - `dropped`: the reasons for dropped rows, the most frequent first.
    - `advice`: remedies, as sentences.
    - `refusal`: why the build would be refused although rows would be kept, or None.
    - `max_rejected`: a value of `--max-rejected` with which the build would succeed, or None.
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
    """The content of a bundle. Times are Unix milliseconds, and `size` is in bytes.

    - `ids`: the ids of its servers, in order.
    - `range`: the longest range that it supports.
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
    """The content of an export. `as_of` is in Unix milliseconds, and `size` in bytes.

    - `servers_path`, `observations_path`: the files, as sources of a build.
    - `covered_from`: the start of a bundle's observations, or None.
    - `root`: the root of a snapshot built from the files. None if the export is only a part of a
      snapshot, or if the snapshot has shards, because a single file has another root.
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
    """The result of a fleet job. Times are Unix milliseconds.

    - `reject_reasons`, `skipped`: the number of rows by reason.
    - `early`: the number of known servers' rows before the window.
    - `conflict`: a description of one of the conflicts, or None.
    - `remedy`: how to keep rejected rows, or None.
    - `servers`: the number of results.
    - `observed`: the number of servers with an observation in the window, `(start, as_of]`.
    - `start`: None if only a snapshot was written.
    - `manifest`: describes the snapshot, if it was written.
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

    `root` has 64 hexadecimal digits. The other fields count rows; `days` counts each day of each
    server.
    """

    document: Literal["verification"] = "verification"
    servers: int
    observations: int
    days: int


_LABEL = b"srvstat manifest\0"


class ManifestShard(Part):
    """A shard: its file beside the manifest, its root, its numbers of servers and observations."""

    file: str
    root: Sha256
    servers: WholeNumber
    observations: WholeNumber


class Manifest(SnapshotDocument):
    """The shards of a snapshot and their totals.

    - `shards`: in the order of their numbers.
    - `root`: covers `as_of` and the roots of the shards, and so the whole content.
    - `first_observed_at`, `last_observed_at`: None if there are no observations.
    - `repeated`, `conflicting`, `rejected`: count rows of the `sources`, as in a single file.
    - `digest`: covers all other members; see `seal_manifest`.
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
"""The fields by which servers can be sorted."""


@dataclass(frozen=True, slots=True)
class ListedServer:
    """A server in a list.

    - `first_observed_at`, `last_observed_at`: None if there are no observations.
    - `usual_interval_seconds`: the polling interval: the median interval between successive
      observations.
    - `coverage`: the observed share of the time from the first observation to the end of the
      snapshot. An observation lasts until the next one, the last one until the end of the snapshot,
      and each at most three polling intervals.
    - `source_id`: the source's identifier, if it differs from the id.
    - `completed`: the fields that its record lacked.

    `usual_interval_seconds` and `coverage` are None for fewer than two observations.
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

    `matched` is the number of servers found; `servers` are all or the first of them.
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
    """A server in the list. Its times are None if there are no observations.

    `usual_interval_seconds` and the following fields are as in the document `servers`.
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

    - `parent_root`, `covered_from`: a bundle's parent and start; None for a whole snapshot.
    - `first_observed_at`, `last_observed_at`: None if there are no observations.
    - `games`: the number of servers by game.
    - `fallbacks`: the number of servers whose current count was filled in.
    - `completed`: for each field, the number of servers whose records lacked it.
    - `reading`: the reading options of the sources, by name.
    - `case`: for the bundle of a recording, an object with `verdict`, `command` (reproduces the
      verdict) and `explanation` (a command that explains the response without the recording).
      Otherwise None.
    - `shards`: None for a snapshot in one file.
    - `matched`, `identifiers`: the number of servers that match the filter, and all or the first of
      them. The other fields do not depend on the filter.
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
    """A response of Get Server, with times in Unix milliseconds for its table.

    - `last_observed_at`: the last observation up to and including `as_of`.
    - `last_in_snapshot_at`: the last observation in the snapshot.
    - `covered_from`: the first time that a bundle covers, or None for a whole snapshot.
    - `source_id`: the source's identifier, if it differs from the id.
    - `completed`: the fields that its record lacked.
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
