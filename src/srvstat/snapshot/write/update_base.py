"""Read what an update starts from: the servers of a snapshot, and new records."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from srvstat.contract.errors import SnapshotError, UsageError
from srvstat.contract.instants import format_instant
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.snapshot.write.roster import NOT_IN_SNAPSHOT, NOT_LISTED, Roster
from srvstat.snapshot.write.server_rows import build_record
from srvstat.sources.registry import load_record_reader
from srvstat.sources.server_records import (
    GAMES,
    ServerRecord,
    SlugError,
    check_identifiers,
    complete_records,
    make_slug,
)
from srvstat.sources.source import Source


class NewServers(NamedTuple):
    """The options that add servers: the source of records, slugs, and the game of new servers."""

    source: Source | None
    uses_slugs: bool
    game: str | None


class Base(NamedTuple):
    """The rows of the servers of a snapshot by id, and a roster of these and of new servers."""

    rows: Mapping[str, ServerRow]
    roster: Roster


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


def read_base(old: SnapshotFile, new: NewServers, warn: Callable[[str], None]) -> Base:
    """Read the servers of a snapshot and the new records, which replace those of their servers.

    A new record without a sourceId keeps the one of its server.

    Raises SnapshotError, SourceError, UsageError, MissingLibraryError.
    """
    rows = {row.id: row for row in old.iter_servers()}
    with old.convert_decode_errors("the servers"):
        records = {server_id: build_record(row) for server_id, row in rows.items()}
    found_by_slug = {row.id for row in rows.values() if _is_found_by_slug(row)}
    new_game = None
    how_to_add = "add the records with --servers FILE"
    if new.source is None:
        # A servers file may have withheld servers, which would otherwise become new ones.
        if old.file_row.is_open:
            new_game = new.game
            games = sorted({row.game for row in rows.values()}) or GAMES
            how_to_add = f"add the servers with --game {' or --game '.join(games)}"
    else:
        how_to_add = f"add the records to {new.source.title}"
        source = replace(new.source, on_warning=warn)
        partial_records = load_record_reader(source.kind).read_records(source)
        given = complete_records(source.title, partial_records, new.game)
        found_by_slug -= {record.id for record in given if record.source_id is not None}
        records |= {record.id: _keep_source_id(record, records.get(record.id)) for record in given}
        check_identifiers(f"{source.title} and {old.path}", records.values())
    roster = Roster(
        list(records.values()),
        uses_slugs=new.uses_slugs,
        new_game=new_game,
        keys={server_id: row.server for server_id, row in rows.items()},
        found_by_slug=found_by_slug,
        how_to_add=how_to_add,
    )
    roster.skip_reasons[NOT_LISTED] = NOT_IN_SNAPSHOT
    roster.note_identifiers(
        row.id for row in rows.values() if row.observation_count and row.source_id is None
    )
    return Base(rows, roster)


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
