"""Update a snapshot: add observations and servers to a copy of it, which then replaces it."""

import os
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

from srvstat.contract.errors import SnapshotError, SourceError
from srvstat.documents.snapshot import BuildSummary, UpdateSummary
from srvstat.files.atomic import atomic_write
from srvstat.files.copying import copy_in_background
from srvstat.files.identity import compute_identity, lock_file
from srvstat.snapshot.format.derive import find_observed_span
from srvstat.snapshot.format.digest import build_directory, digest_directory, seal
from srvstat.snapshot.format.rows import FileRow, ServerRow
from srvstat.snapshot.read.reader import SnapshotFile, open_file
from srvstat.snapshot.write.changes import Changes
from srvstat.snapshot.write.database import (
    check_changes,
    check_journal,
    open_draft,
    open_temporary,
)
from srvstat.snapshot.write.ingest import Intake, Progress
from srvstat.snapshot.write.merge import Merge
from srvstat.snapshot.write.names import check_names
from srvstat.snapshot.write.processes import SecondProcess
from srvstat.snapshot.write.rejects_file import RejectsFile, open_rejects, write_rejects
from srvstat.snapshot.write.rules import RejectLimit, check_update
from srvstat.snapshot.write.server_rows import encode_texts
from srvstat.snapshot.write.store import Stored
from srvstat.snapshot.write.summary import build_server_rows, summarize
from srvstat.snapshot.write.update_base import Base, NewServers, check_base, read_base
from srvstat.sources.observations import check_sources
from srvstat.sources.source import Source, list_stored_names


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
    new = NewServers(servers_source, uses_slugs, game)
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
            SecondProcess() as second,
        ):
            check_sources(sources)
            warnings: list[str] = []
            base = read_base(old, new, warnings.append)
            intake = Intake(staging, base.roster, observation_sources, as_of, second)
            intake.warnings.extend(warnings)
            changes = Changes(connection, wait)
            update = _Update(old, base, intake, changes)
            update.read(rejects_file, progress, strict=strict)
            first_reject = write_rejects(intake.rejects, rejects_file, strict=strict)
            check_update(intake, update.stored, max_rejected, first_reject)
            result = update.finish(first_reject)
            connection.close()
            check_changes(path, draft, changes.digests, result.file_row)
            check_journal(path)
    return result.summary


class _Result(NamedTuple):
    summary: UpdateSummary
    file_row: FileRow


class _Update:
    """The steps of an update."""

    def __init__(self, old: SnapshotFile, base: Base, intake: Intake, changes: Changes) -> None:
        self._old = old
        self._base = base
        self._intake = intake
        self._changes = changes
        self._merge = Merge(old, base.rows, intake, changes)

    @property
    def stored(self) -> Stored:
        """The derived columns of all servers, and the counts of the rows that were read."""
        return Stored(self._merge.derived, self._merge.kept, self._merge.repeated)

    def read(self, rejects_file: RejectsFile, progress: Progress, *, strict: bool) -> None:
        """Read all sources, and put the rows that change.

        Raises SourceError, SnapshotError.
        """
        try:
            self._intake.read(progress, strict=strict)
        except SourceError:
            if strict:
                # Merging finds conflicts; one in an earlier row is the first error.
                self._merge.merge_servers(progress)
                write_rejects(self._intake.rejects, rejects_file, strict=True)
            raise
        self._merge.merge_servers(progress)

    def finish(self, first_reject: str | None) -> _Result:
        """Store all changes in the draft; return the summary and the row of the file."""
        old = self._old.file_row
        _, last = find_observed_span(self._merge.derived.values())
        as_of = self._intake.as_of
        as_of = max(old.as_of, last or 0) if as_of is None else as_of
        rows = build_server_rows(self._intake.roster, self.stored, as_of)
        summary = summarize(self._intake, self.stored, rows, as_of, first_reject)
        directory = build_directory(rows)
        file_row = self._build_file_row(summary, rows)
        file_row = seal(file_row._replace(bucket_digests=digest_directory(directory)))
        before = self._base.rows
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
        return _Result(counts, file_row)

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
