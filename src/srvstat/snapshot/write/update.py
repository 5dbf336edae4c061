"""Update a snapshot: add observations and servers to a copy of it, which then replaces it."""

import os
import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np

from srvstat.contract.errors import SnapshotError, SourceError, UsageError
from srvstat.contract.instants import format_instant
from srvstat.documents.snapshot import BuildSummary, UpdateSummary
from srvstat.files.atomic import atomic_write
from srvstat.files.copying import copy_in_background, lock_file
from srvstat.files.identity import compute_identity
from srvstat.snapshot.format.blocks import Observations, decode, derive, join, keep_blocks
from srvstat.snapshot.format.digest import build_directory, digest_directory, seal
from srvstat.snapshot.format.packing import read_block_ends
from srvstat.snapshot.format.rows import (
    BLOCKS_PER_SERVER,
    Block,
    Bucket,
    DerivedColumns,
    FileRow,
    ServerRow,
    Value,
    find_observed_span,
)
from srvstat.snapshot.read.reader import SnapshotFile, open_file
from srvstat.snapshot.write.build import check_names
from srvstat.snapshot.write.database import check_changes, check_journal, open_draft, open_temporary
from srvstat.snapshot.write.intake import Intake, Progress
from srvstat.snapshot.write.roster import NOT_IN_SNAPSHOT, NOT_LISTED, Roster
from srvstat.snapshot.write.rules import (
    RejectLimit,
    RejectsFile,
    check_update,
    open_rejects,
    write_rejects,
)
from srvstat.snapshot.write.server_rows import (
    build_record,
    build_server_rows,
    encode_texts,
    get_derived,
    summarize,
)
from srvstat.snapshot.write.store import Stored, count_repeats
from srvstat.sources.batch import check_sources
from srvstat.sources.registry import load_record_reader
from srvstat.sources.server_records import (
    GAMES,
    ServerRecord,
    SlugError,
    check_identifiers,
    complete_records,
    make_slug,
)
from srvstat.sources.source import Source, list_stored_names

_MAX_BLOCKS = 2_000
"""Blocks in memory after which they are stored."""

# The draft is deleted on any error and flushed before it is renamed.
_SETTINGS = """
    PRAGMA trusted_schema = 0;
    PRAGMA cell_size_check = 1;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
"""


class Changes:
    """The rows to change in a draft, which may still be incomplete when they are collected.

    `wait` is called once, before the first change: it returns when the draft is a complete copy.
    The methods may raise sqlite3.Error, and what `wait` raises.
    """

    def __init__(self, connection: sqlite3.Connection, wait: Callable[[], None]) -> None:
        self._connection = connection
        self._wait: Callable[[], None] | None = wait
        self._removed: list[tuple[int, int]] = []
        self._blocks: list[Block] = []
        self.first_blocks: dict[str, int] = {}
        """The number of the first block written by the id of its server."""

    def put(self, block: Block) -> None:
        """Add or replace a block."""
        self._blocks.append(block)
        if len(self._blocks) > _MAX_BLOCKS:
            self._store_blocks()

    def remove_blocks(self, server: int, first: int) -> None:
        """Remove the blocks of a server from a number on, before any of these is put."""
        start = server * BLOCKS_PER_SERVER
        self._removed.append((start + first, start + BLOCKS_PER_SERVER - 1))

    def finish(
        self,
        removed: Sequence[ServerRow],
        added: Sequence[ServerRow],
        directory: Sequence[Bucket],
        file_row: FileRow,
    ) -> None:
        """Store the collected rows, the rows of servers, the directory, and the row of the file.

        Servers are removed first, so that one can get an identifier that another one had.
        """
        self._store_blocks()
        self._connection.executemany(
            "DELETE FROM servers WHERE server = ?", [(row.server,) for row in removed]
        )
        self._insert("servers", added)
        rows: tuple[tuple[str, Sequence[Sequence[Value]]], ...] = (
            ("directory", directory),
            ("snapshot", [file_row]),
        )
        for table, new in rows:
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            self._insert(table, new)
        self._connection.commit()

    def _store_blocks(self) -> None:
        if self._wait:
            self._wait()
            self._wait = None
            self._connection.executescript(_SETTINGS)
        self._connection.executemany(
            "DELETE FROM blocks WHERE server_block BETWEEN ? AND ?", self._removed
        )
        self._insert("blocks", self._blocks)
        self._removed.clear()
        self._blocks.clear()

    def _insert(self, table: str, rows: Sequence[Sequence[Value]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - our own names


def check_base(old: SnapshotFile, as_of: int | None) -> None:
    """Check that a snapshot can be updated up to an instant.

    Raises SnapshotError, UsageError.
    """
    if old.parent_root is not None:
        raise SnapshotError(
            f"{old.path}: a bundle, which must have what its parent had; update the parent, and"
            " bundle it again"
        )
    if as_of is not None and as_of < old.as_of:
        raise UsageError(
            f"--as-of: {old.path} ends at {format_instant(old.as_of)}; give that instant or a later"
            " one, or leave it out"
        )


def read_base(
    old: SnapshotFile,
    source: Source | None,
    *,
    uses_slugs: bool,
    game: str | None,
    warn: Callable[[str], None],
) -> tuple[dict[str, ServerRow], Roster]:
    """Return the rows of a snapshot's servers by id, and a roster of these and of new servers.

    The records of the source replace those of their servers. One without a sourceId keeps the one
    of its server.

    Raises SnapshotError, SourceError, UsageError, MissingLibraryError.
    """
    rows = {row.id: row for row in old.iter_servers()}
    with old.convert_decode_errors("the servers"):
        records = {server_id: build_record(row) for server_id, row in rows.items()}
    found_by_slug = {row.id for row in rows.values() if _is_found_by_slug(row)}
    new_game = None
    how_to_add = "add the records with --servers FILE"
    if source is None:
        # A servers file may have withheld servers, which would otherwise become new ones.
        if old.file_row.is_open:
            new_game = game
            games = sorted({row.game for row in rows.values()}) or GAMES
            how_to_add = f"add the servers with --game {' or --game '.join(games)}"
    else:
        how_to_add = f"add the records to {source.title}"
        read_records = load_record_reader(source.kind).read_records
        partial_records = read_records(replace(source, on_warning=warn))
        given = complete_records(source.title, partial_records, game)
        found_by_slug -= {record.id for record in given if record.source_id is not None}
        records |= {record.id: _keep_source_id(record, records.get(record.id)) for record in given}
        check_identifiers(f"{source.title} and {old.path}", records.values())
    roster = Roster(
        list(records.values()),
        uses_slugs=uses_slugs,
        new_game=new_game,
        keys={server_id: row.server for server_id, row in rows.items()},
        found_by_slug=found_by_slug,
        how_to_add=how_to_add,
    )
    roster.skip_reasons[NOT_LISTED] = NOT_IN_SNAPSHOT
    roster.note_identifiers(
        row.id for row in rows.values() if row.observation_count and row.source_id is None
    )
    return rows, roster


def _keep_source_id(record: ServerRecord, earlier: ServerRecord | None) -> ServerRecord:
    """Return a record with the sourceId of the one that it replaces, unless it has one."""
    if earlier is None or record.source_id is not None:
        return record
    return replace(record, source_id=earlier.source_id)


def _is_found_by_slug(row: ServerRow) -> bool:
    """Check whether the slug of a server's sourceId is its id, as `--ids slug` makes it."""
    with suppress(SlugError):
        return row.source_id is not None and make_slug(row.source_id) == row.id
    return False


def update(  # noqa: PLR0913 - each is an option of the command
    path: str,
    *,
    servers_source: Source | None,
    observation_sources: Sequence[Source],
    uses_slugs: bool = False,
    game: str | None = None,
    as_of: int | None = None,
    rejects: str | None = None,
    strict: bool = False,
    max_rejected: RejectLimit | None = None,
    progress: Progress = lambda _step, _bytes, _rows: None,
) -> UpdateSummary:
    """Add observations and servers to a snapshot, and return a summary of the new sources.

    The observations of the snapshot count as read before the new ones. A new record replaces that
    of its server. The result has the root that a build from all sources would have with its as_of,
    which is by default the later one of the snapshot's and of the latest observation. The file is
    replaced at the end, by a complete one. The other options are those of `build`.

    Raises SnapshotError, SourceError, UsageError, OutputError.
    """
    sources = [*([] if servers_source is None else [servers_source]), *observation_sources]
    check_names(path, rejects, sources, name="PATH")
    if os.path.isdir(path):
        raise SnapshotError(
            f"{path}: a directory, but only a snapshot file can be updated; write the shards again"
            " with `srvstat fleet --snapshots`"
        )
    # The snapshot is renamed into place first, then the rejects.
    with (
        open_rejects(rejects) as rejects_file,
        lock_file(path) as locked,
        closing(open_file(path)) as old,
    ):
        check_base(old, as_of)
        identity = compute_identity(os.fstat(locked))
        with (
            atomic_write(path, overwrite=True, replaced=identity) as draft,
            copy_in_background(path, locked, draft) as wait,
            open_draft(path, draft) as connection,
            open_temporary(path) as staging,
        ):
            check_sources(sources)
            warnings: list[str] = []
            before, roster = read_base(
                old, servers_source, uses_slugs=uses_slugs, game=game, warn=warnings.append
            )
            intake = Intake(staging, roster, observation_sources, as_of)
            intake.warnings.extend(warnings)
            changes = Changes(connection, wait)
            update = _Update(old, before, intake, changes)
            update.read(rejects_file, progress, strict=strict)
            first_reject = write_rejects(intake.rejects, rejects_file, strict=strict)
            check_update(intake, update.stored, max_rejected, first_reject)
            summary, file_row = update.finish(first_reject)
            connection.close()
            check_changes(path, draft, changes.first_blocks, file_row)
            check_journal(path)
    return summary


class _Update:
    """The steps of an update.

    The observations of the snapshot count as read before the staged ones.
    """

    def __init__(
        self,
        old: SnapshotFile,
        before: Mapping[str, ServerRow],
        intake: Intake,
        changes: Changes,
    ) -> None:
        self._old = old
        self._before = before
        self._intake = intake
        self._changes = changes
        self._derived: dict[int, DerivedColumns] = {}
        self._kept = self._repeated = 0

    @property
    def stored(self) -> Stored:
        """The derived columns of all servers, and the counts of the rows that were read."""
        return Stored(self._derived, self._kept, self._repeated)

    def read(self, rejects_file: RejectsFile, progress: Progress, *, strict: bool) -> None:
        """Read all sources, and put the rows that change.

        Raises SourceError, SnapshotError.
        """
        try:
            self._intake.read(progress, strict=strict)
        except SourceError:
            if strict:
                # Merging finds conflicts; one in an earlier row is the first error.
                self._merge_servers(progress)
                write_rejects(self._intake.rejects, rejects_file, strict=True)
            raise
        self._merge_servers(progress)

    def _merge_servers(self, progress: Progress) -> None:
        """Put the rows that change.

        Raises SnapshotError for damaged rows, SourceError for more observations than a snapshot
        holds.
        """
        server_keys = self._intake.roster.server_keys
        # Before all new rows, as a new server can't have the number of a removed one.
        for removed in self._before.keys() - server_keys.keys():
            self._changes.remove_blocks(self._before[removed].server, 0)
        for server_id, number in server_keys.items():
            before = self._kept
            self._derived[number] = self._merge_server(server_id, number)
            progress("storing", 0, self._kept - before)

    def _merge_server(self, server_id: str, number: int) -> DerivedColumns:
        """Put the blocks of a server that change, and return its derived columns."""
        row = self._before.get(server_id)
        earlier: list[Observations] = []
        kept = None
        first = 0

        def read_earlier(instant: int) -> tuple[Sequence[int], Sequence[int]]:
            nonlocal first, kept
            if row is not None and row.observation_count:
                with self._old.convert_decode_errors(f"the observations of {row.title}"):
                    ends = read_block_ends(row)
                    first = min(bisect_left(ends, instant), len(ends) - 1)
                    blocks = list(self._old.iter_blocks(row, first, has_counts=True))
                    kept = keep_blocks(row, blocks[0])
                    earlier.extend(map(decode, blocks, ends[first:]))
            instants, players = join(earlier)
            return array("q", instants.tobytes()), array("q", players.tobytes())

        instants, players, _ = series = self._intake.staging.take_series(number, read_earlier)
        self._repeated += count_repeats(self._intake, server_id, series)
        added = len(instants) - sum(len(part.instants) for part in earlier)
        self._kept += added
        if row is not None and not added:
            return get_derived(row)
        self._changes.remove_blocks(number, first)
        self._changes.first_blocks[server_id] = first
        observations = Observations(np.asarray(instants), np.asarray(players))
        return derive(number, observations, self._changes.put, kept)

    def finish(self, first_reject: str | None) -> tuple[UpdateSummary, FileRow]:
        """Store all changes in the draft; return the summary and the row of the file."""
        old = self._old.file_row
        _, last = find_observed_span(self._derived.values())
        as_of = self._intake.as_of
        as_of = max(old.as_of, last or 0) if as_of is None else as_of
        rows = build_server_rows(self._intake.roster, self.stored, as_of)
        summary = summarize(self._intake, self.stored, rows, as_of, first_reject)
        directory = build_directory(rows)
        file_row = self._build_file_row(summary, rows)
        file_row = seal(file_row._replace(bucket_digests=digest_directory(directory)))
        before = self._before
        added = [row for row in rows if before.get(row.id) != row]
        removed = before.keys() - {row.id for row in rows}
        changed = [before[row.id] for row in added if row.id in before]
        self._changes.finish(
            [*changed, *(before[server_id] for server_id in removed)], added, directory, file_row
        )
        counts = UpdateSummary(
            rows=summary,
            added=len(added) - len(changed),
            removed=len(removed),
            observations=file_row.observation_count,
            root=file_row.root.hex(),
        )
        return counts, file_row

    def _build_file_row(self, summary: BuildSummary, rows: Sequence[ServerRow]) -> FileRow:
        """Return the row of the file without digests; the counts of the new sources are added."""
        old = self._old.file_row
        names = list_stored_names(self._intake.sources)
        sources = dict.fromkeys((*self._old.read_totals().sources, *names))
        return old._replace(
            as_of=summary.as_of,
            server_count=len(rows),
            observation_count=sum(row.observation_count for row in rows),
            first_observed_at=summary.first_observed_at,
            last_observed_at=summary.last_observed_at,
            sources=encode_texts(list(sources)),
            repeated=old.repeated + summary.repeated,
            conflicting=old.conflicting + summary.conflicting,
            rejected=old.rejected + summary.rejected,
            # A server that was withheld must not become one again.
            is_open=int(bool(old.is_open) and not self._intake.roster.withheld),
        )
