"""Update a snapshot: add observations and servers to a copy of it, which then replaces it."""

import os
import sqlite3
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace

from srvstat.contract.errors import SnapshotError, SourceError, UsageError
from srvstat.contract.instants import LATEST, format_instant
from srvstat.contract.windows import DAY_MS, Window
from srvstat.documents.snapshot import BuildSummary, UpdateSummary
from srvstat.files.atomic import atomic_write
from srvstat.files.copying import copy_in_background, lock_file
from srvstat.files.identity import compute_identity
from srvstat.snapshot.format.append import append
from srvstat.snapshot.format.bands import Members
from srvstat.snapshot.format.calendar import read_calendar
from srvstat.snapshot.format.derive import (
    DerivedColumns,
    find_observed_span,
    has_valid_observations,
)
from srvstat.snapshot.format.digest import build_directory, digest_directory, digest_row, seal
from srvstat.snapshot.format.rows import (
    BLOCKS_PER_SERVER,
    ROWS_PER_SERVER,
    Bucket,
    Day,
    FileRow,
    IntervalCounts,
    ServerRow,
    Summaries,
    SummaryIndex,
    Value,
)
from srvstat.snapshot.format.summaries import Index, read_index
from srvstat.snapshot.read.figures import read_blocks, read_count_rows, read_index_rows
from srvstat.snapshot.read.reader import SnapshotFile, open_file
from srvstat.snapshot.read.verified_rows import VerifiedRows
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
from srvstat.snapshot.write.store import (
    Stored,
    check_day,
    count_repeats,
    derive_within_limits,
)
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

_MAX_BYTES = 1 << 26
"""Bytes of rows after which those in memory are stored."""

_BYTES_PER_ROW = 500
"""The approximate memory of a row without its blobs."""

_DERIVED = ROWS_PER_SERVER.keys() - {"servers"}

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
        self._removed: list[int] = []
        self._rows: defaultdict[str, list[Sequence[Value]]] = defaultdict(list)
        self._bytes = 0
        self.digests: defaultdict[str, dict[int, bytes]] = defaultdict(dict)
        """The digests of the rows that were put, by table and key, without those of `servers`."""

    def put(self, table: str, row: Sequence[Value]) -> None:
        """Add or replace a derived row of a server."""
        self._rows[table].append(row)
        self._bytes += _BYTES_PER_ROW + sum(len(each) for each in row if isinstance(each, bytes))
        if self._bytes > _MAX_BYTES:
            self._store_rows()

    def remove_derived(self, server: int) -> None:
        """Remove all derived rows of a server that the draft has before any row of it is put."""
        self._removed.append(server)

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
        self._store_rows()
        execute, insert = self._connection.execute, self._insert
        self._connection.executemany(
            "DELETE FROM servers WHERE server = ?", [(row.server,) for row in removed]
        )
        insert("servers", added)
        for table, rows in (("directory", directory), ("snapshot", [file_row])):
            execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            insert(table, rows)
        self._connection.commit()

    def _store_rows(self) -> None:
        if self._wait:
            self._wait()
            self._wait = None
            self._connection.executescript(_SETTINGS)
        for table in sorted(_DERIVED):
            per_server = ROWS_PER_SERVER[table]
            self._connection.executemany(
                f"DELETE FROM {table} WHERE rowid BETWEEN ? AND ?",  # noqa: S608 - our own names
                [(of * per_server, (of + 1) * per_server - 1) for of in self._removed],
            )
        for table, rows in self._rows.items():
            self._insert(table, rows)
            self.digests[table].update((int(row[0] or 0), digest_row(table, row)) for row in rows)
        self._removed.clear()
        self._rows.clear()
        self._bytes = 0

    def _insert(self, table: str, rows: Sequence[Sequence[Value]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608 - our own names


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


Columns = tuple["array[int]", "array[int]"]
"""Ascending instants, and the players of each."""


class _StoredServer:
    """Implements StoredRows; every method can raise SnapshotError."""

    def __init__(self, rows: VerifiedRows, server: ServerRow) -> None:
        self._rows = rows
        self.server = server
        self._index: Index | None = None

    def read_last_day(self) -> Day:
        """Return the row of the last day with observations."""
        recent = self._rows.get_calendar(self.server).recent
        last = recent.get_entry(len(recent.days) - 1)
        ((day,),) = self._rows.read_days_of([(self.server, [last])])
        return day

    def read_index(self) -> SummaryIndex:
        """Return the row of `summary_index`."""
        (row,) = read_index_rows(self._rows, [self.server])
        self._index = read_index(row)
        return row

    def read_summaries(self, blocks: range) -> list[Summaries]:
        """Return the rows of `summaries` of some blocks, in order."""
        (found,) = read_blocks(self._rows, [(self.server, self._get_index(), blocks)])
        return found

    def read_interval_counts(self, block: int) -> IntervalCounts:
        """Return the row of `interval_counts` of a block."""
        key = self.server.server * BLOCKS_PER_SERVER + block
        return read_count_rows(self._rows, {key: (self.server, self._get_index())})[key]

    def read_members(self, table: str, bands: Sequence[int]) -> dict[int, Members]:
        """Return the rows of `bands` or `intervals` of some bands, which have one."""
        of_server = (
            self._rows.get_bands(self.server) if table == "bands" else self._get_index().bands
        )
        found = self._rows.read_members(table, [(self.server, of_server, band) for band in bands])
        return {band: members for (_, band), members in found.items()}

    def _get_index(self) -> Index:
        return self._index or read_index(self.read_index())


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
            check_changes(path, draft, changes.digests, file_row)
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
            self._changes.remove_derived(self._before[removed].server)
        for server_id, number in server_keys.items():
            before = self._kept
            self._derived[number] = self._merge_server(server_id, number)
            progress("storing", 0, self._kept - before)

    def _merge_server(self, server_id: str, number: int) -> DerivedColumns:
        """Put the rows of a server that change, and return its derived columns."""
        row = self._before.get(server_id)
        last = -1 if row is None or row.last_observed_at is None else row.last_observed_at
        start, stored = LATEST + 1, 0

        def read_earlier(instant: int) -> Columns:
            nonlocal start, stored
            if row is None or instant > last:
                return array("q"), array("q")
            start = instant // DAY_MS * DAY_MS
            found = self._read(row, start)
            stored = len(found[0])
            return found

        instants, players, _ = series = self._intake.staging.take_series(number, read_earlier)
        self._repeated += count_repeats(self._intake, server_id, series)
        added = len(instants) - stored
        self._kept += added
        if row is not None:
            if not added:
                return get_derived(row)
            is_later = bisect_right(instants, last) == stored
            if is_later and (columns := self._append(row, instants[-added:], players[-added:])):
                return columns
            earlier_instants, earlier_players = self._read(row, 0, start - 1)
            instants = earlier_instants + array("q", instants)
            players = earlier_players + array("q", players)
        self._changes.remove_derived(number)
        return derive_within_limits(server_id, number, instants, players, self._changes.put)

    def _read(self, row: ServerRow, start: int, end: int = LATEST) -> Columns:
        """Return the observations of a server from `start` to `end`, both included."""
        instants, players = array("q"), array("q")
        window = Window(start - 1, end)
        for more_instants, more_players in self._old.iter_observations(row, window):
            instants.extend(more_instants)
            players.extend(more_players)
        # The digests of a forged file match, whatever its values are.
        if not has_valid_observations(instants, players, self._old.as_of):
            raise self._old.build_damage_error(f"the days of {row.title}")
        return instants, players

    def _append(
        self, row: ServerRow, instants: Sequence[int], players: Sequence[int]
    ) -> DerivedColumns | None:
        """Put the rows that later observations change; return None if that is not possible."""
        with self._old.convert_decode_errors(f"the rows of {row.title}"):
            appended = append(_StoredServer(self._old, row), instants, players)
        if appended is None:
            return None
        columns, rows = appended
        days = read_calendar(row._replace(**columns._asdict())).count_days()
        for table, values in rows:
            if isinstance(values, Day):
                check_day(row.id, values, days)
            self._changes.put(table, values)
        return columns

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
