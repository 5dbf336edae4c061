"""Update a snapshot: add observations and servers to a copy, which then replaces the snapshot."""

import os
import sqlite3
from collections import deque
from contextlib import closing
from dataclasses import replace

from srvstat.contract.errors import SnapshotError, UsageError
from srvstat.contract.time import format_instant
from srvstat.documents.snapshot import UpdateSummary
from srvstat.files.paths import compute_identity
from srvstat.files.writing import atomic_write, copy_file, lock_file
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.snapshot.rows import (
    BLOCKS_PER_SERVER,
    FileRow,
    ServerRow,
    find_observed_span,
    read_block_ends,
)
from srvstat.snapshot.write import build
from srvstat.snapshot.write.intake import Inputs, Intake
from srvstat.snapshot.write.refusals import check_update, open_rejects
from srvstat.snapshot.write.roster import (
    NOT_IN_SNAPSHOT,
    NOT_LISTED,
    Roster,
    build_record,
    encode_texts,
    read_records,
)
from srvstat.sources.servers import check_identifiers, complete_record
from srvstat.sources.source import check_sources


def _check_base(old: SnapshotFile, as_of: int | None) -> None:
    """Check that a snapshot can be updated to an as-of time.

    Raises SnapshotError for a bundle, and UsageError if the time is before the snapshot's end.
    """
    if old.parent_root is not None:
        raise SnapshotError(
            f"{old.path}: a bundle, which must have what its parent had; update the parent, and"
            " bundle it again"
        )
    if as_of is not None and as_of < old.as_of:
        raise UsageError(
            f"--at: {old.path} ends at {format_instant(old.as_of)}; give that time or a later"
            " one, or leave it out"
        )


def _read_base(old: SnapshotFile, inputs: Inputs) -> tuple[dict[str, ServerRow], Roster]:
    """Return a snapshot's server rows by id, and a roster of the existing and new servers.

    A new record replaces the stored record of its server. If the new record has no sourceId, the
    stored sourceIds are kept. `inputs.game` replaces missing games.

    Raises SnapshotError if the snapshot is damaged, SourceError for an invalid record, and
    MissingLibraryError if a format's library is missing.
    """
    source = inputs.servers
    rows = {row.id: row for row in old.iter_servers()}
    with old.convert_decode_errors("the servers"):
        records = {server_id: build_record(row) for server_id, row in rows.items()}
        deque(map(read_block_ends, rows.values()), 0)  # a forged count of observations has no limit
    warnings = list[str]()
    how_to_add = "add the records with --servers FILE"
    if source is not None:
        how_to_add = f"add the records to {source.title}"
        given, warnings = read_records(source, inputs.game)
        for record in given:
            kept = record if record.source_ids else records.get(record.id, record)
            records[record.id] = replace(
                record, source_id=kept.source_id, other_source_ids=kept.other_source_ids
            )
        check_identifiers(f"{source.title} and {old.path}", records.values())
    roster = Roster(
        [
            record if record.game or not inputs.game else complete_record(record, inputs.game)
            for record in records.values()
        ],
        uses_slugs=inputs.uses_slugs,
        # A servers file may have withheld servers, which would otherwise become new servers.
        is_open=source is None and bool(old.file_row.is_open),
        game=inputs.game,
        keys={server_id: row.server for server_id, row in rows.items()},
        how_to_add=how_to_add,
        warnings=warnings,
    )
    roster.skip_reasons[NOT_LISTED] = NOT_IN_SNAPSHOT
    return rows, roster


_REMOVE_BLOCKS = "DELETE FROM blocks WHERE server_block BETWEEN ?1 AND ?1 + ?2"


def update(path: str, inputs: Inputs, *, rejects: str | None = None) -> UpdateSummary:
    """Add observations and servers to a snapshot, and return a summary of the new sources.

    - The snapshot's observations count as read before the new observations. A new record replaces
      the stored record of its server.
    - The result has the same root as a build from all sources with the same as-of time. By default,
      this is the later of the snapshot's as-of time and the latest observation.
    - `rejects`: a path, as in `build`.

    A changed copy replaces the file. If SQLite changed the file itself, a process that has it open
    would read old and new rows together, and a killed update would leave a journal.

    Raises SnapshotError if the snapshot can't be updated, SourceError if a source is refused,
    UsageError for an unusable path or time, and OutputError if a file can't be written.
    """
    build.check_names(path, rejects, inputs.sources, name="PATH")
    if os.path.isdir(path):
        raise SnapshotError(
            f"{path}: a directory, but only a snapshot file can be updated; write the shards again"
            " with `srvstat fleet --snapshots`"
        )
    with (  # the snapshot is renamed into place first, then the rejects
        open_rejects(rejects) as write_rejects,
        lock_file(path) as locked,
        closing(open_file(path)) as old,
    ):
        _check_base(old, inputs.as_of)
        identity = compute_identity(os.fstat(locked))
        with (
            atomic_write(path, overwrite=True, replaced=identity) as draft,
            build.open_draft(path, draft) as connection,
            closing(sqlite3.connect("")) as staging,
        ):
            check_sources(inputs.sources)
            before, roster = _read_base(old, inputs)
            intake = Intake(staging, roster, inputs)

            def store_rows() -> build.Stored:
                copy_file(path, locked, draft)
                build.apply_settings(connection)
                return build.store(connection, intake, old, before)

            stored = build.read_rows(intake, store_rows, write_rejects)
            check_update(intake, stored.servers, stored.kept)
            for server_id in before.keys() - roster.server_keys.keys():
                keys = (before[server_id].get_block_key(0), BLOCKS_PER_SERVER - 1)
                connection.execute(_REMOVE_BLOCKS, keys)
            file_row = _describe_update(old, intake, stored)
            summary, file_row = build.finish_draft(connection, intake, stored, file_row)
            connection.close()
            build.check_draft(path, draft, file_row, stored.first_blocks)
    names = {server.id: server.hostname for server in stored.servers}
    return UpdateSummary(
        rows=summary,
        added_ids={name: names[name] for name in sorted(names.keys() - before.keys())},
        removed=len(before.keys() - names.keys()),
        observations=file_row.observation_count,
        root=file_row.root.hex(),
        is_open=bool(file_row.is_open),
    )


def _describe_update(old: SnapshotFile, intake: Intake, stored: build.Stored) -> FileRow:
    """Return the row of an updated file, except what depends on its servers and new sources."""
    _, last = find_observed_span(stored.servers)
    as_of = intake.inputs.as_of
    return old.file_row._replace(
        sources=encode_texts(old.sources),  # a forged file can have any text
        as_of=max(old.as_of, last or 0) if as_of is None else as_of,
        # A withheld server must not become a server again.
        is_open=int(bool(old.file_row.is_open) and not intake.roster.withheld),
        reading=intake.inputs.reading or old.file_row.reading,
    )
