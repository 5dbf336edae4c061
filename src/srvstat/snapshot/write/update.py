"""Update a snapshot: add observations and servers to a copy of it, which then replaces it."""

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial

from srvstat.contract.errors import SnapshotError, UsageError
from srvstat.contract.responses import GAMES
from srvstat.contract.time import format_instant
from srvstat.documents.snapshot import UpdateSummary
from srvstat.files.atomic import atomic_write, copy_in_background, lock_file
from srvstat.files.paths import compute_identity
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.snapshot.rows import (
    BLOCKS_PER_SERVER,
    Block,
    ServerRow,
    find_observed_span,
    read_block_ends,
)
from srvstat.snapshot.write.build import (
    check_draft,
    check_names,
    finish_draft,
    open_draft,
    put_blocks,
    read_rows,
    store,
)
from srvstat.snapshot.write.intake import Intake, Progress
from srvstat.snapshot.write.refusals import RejectLimit, check_update, open_rejects
from srvstat.snapshot.write.roster import (
    NOT_IN_SNAPSHOT,
    NOT_LISTED,
    Roster,
    build_record,
    encode_texts,
)
from srvstat.sources.registry import load_record_reader
from srvstat.sources.servers import SlugError, check_identifiers, complete_records, make_slug
from srvstat.sources.source import Source, check_sources

_MAX_WAITING = 2_000
"""Blocks in memory while the file is copied: about 40 MB."""


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
        deque(map(read_block_ends, rows.values()), 0)  # a forged count of observations has no limit
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
        read_records = load_record_reader(source.kind)
        partial_records = read_records(replace(source, on_warning=warn))
        given = complete_records(source.title, partial_records, game)
        found_by_slug -= {record.id for record in given if record.source_id is not None}
        for record in given:
            source_id = record.source_id
            if source_id is None and record.id in records:
                source_id = records[record.id].source_id
            records[record.id] = replace(record, source_id=source_id)
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
            closing(sqlite3.connect("")) as staging,
        ):
            check_sources(sources)
            warnings: list[str] = []
            before, roster = read_base(
                old, servers_source, uses_slugs=uses_slugs, game=game, warn=warnings.append
            )
            intake = Intake(staging, roster, observation_sources, as_of)
            intake.warnings.extend(warnings)

            waiting: list[Block] = []

            def put(block: Block) -> None:
                waiting.append(block)
                if len(waiting) == _MAX_WAITING:
                    put_waiting()

            def put_waiting() -> None:
                wait()
                put_blocks(connection, waiting)
                waiting.clear()

            stored, first_reject = read_rows(
                intake,
                partial(store, put, intake, progress, old, before),
                rejects_file,
                progress,
                strict=strict,
            )
            check_update(intake, stored.servers, stored.kept, max_rejected, first_reject)
            _, last = find_observed_span(stored.servers)
            file_row = old.file_row._replace(
                sources=encode_texts(old.sources),  # a forged file can have any text
                as_of=max(old.as_of, last or 0) if as_of is None else as_of,
                # A server that was withheld must not become one again.
                is_open=int(bool(old.file_row.is_open) and not roster.withheld),
            )
            put_waiting()
            for removed in before.keys() - roster.server_keys.keys():
                start = before[removed].server * BLOCKS_PER_SERVER
                connection.execute(
                    "DELETE FROM blocks WHERE server_block BETWEEN ? AND ?",
                    (start, start + BLOCKS_PER_SERVER - 1),
                )
            summary, file_row = finish_draft(connection, intake, stored, first_reject, file_row)
            connection.close()
            check_draft(path, draft, file_row, stored.first_blocks)
    ids = {server.id for server in stored.servers}
    return UpdateSummary(
        rows=summary,
        added=len(ids - before.keys()),
        removed=len(before.keys() - ids),
        observations=file_row.observation_count,
        root=file_row.root.hex(),
    )
