"""Build a snapshot or a shard: store rows in a draft, read it back, and rename it into place."""

import json  # noqa: F401 - the import on first use could swallow an interruption
import os
import sqlite3
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from srvstat.contract.errors import OutputError, SnapshotError, SourceError, UsageError
from srvstat.documents.snapshot import BuildSummary
from srvstat.files.paths import convert_write_errors
from srvstat.files.reading import STDIN
from srvstat.files.writing import atomic_write, check_name
from srvstat.snapshot import blocks, rows
from srvstat.snapshot.read.connection import find_journal, format_journal_remedy
from srvstat.snapshot.read.file import SnapshotFile, open_file, read_texts
from srvstat.snapshot.read.verify import check_chain, check_written
from srvstat.snapshot.write import refusals
from srvstat.snapshot.write.intake import Inputs, Intake
from srvstat.snapshot.write.roster import (
    Roster,
    build_server_row,
    copy_derived,
    encode_texts,
    fill_fallbacks,
    read_roster,
)
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.servers import ServerRecord, count_completed
from srvstat.sources.source import (
    Source,
    check_sources,
    check_stdin_once,
    expand_name,
    list_stored_names,
)

# sqlite-utils imports pandas if it is installed, which takes a second and 60 MiB. For Python, a
# module that is None does not exist.
_modules: dict[str, Any] = sys.modules
_modules.setdefault("pandas", None)
import sqlite_utils  # noqa: E402

if _modules["pandas"] is None:  # pragma: no branch - it may be imported already
    del _modules["pandas"]


class Stored(NamedTuple):
    """The rows of servers, and the number of new observations.

    `first_blocks`: server id → the number of the first block that was stored.
    """

    servers: Sequence[rows.ServerRow]
    first_blocks: Mapping[str, int]
    kept: int


def build(
    output: str, inputs: Inputs, *, rejects: str | None = None, overwrite: bool = False
) -> BuildSummary:
    """Build a snapshot at a path, and return a summary of its sources.

    `rejects`: the path of a file for malformed and conflicting rows. An existing snapshot is
    replaced only after the new file is complete and was read back.

    Raises SourceError if a source is refused, UsageError for an unusable path, and OutputError if a
    file can't be written.
    """
    check_names(output, rejects, inputs.sources)
    # The snapshot is renamed into place first, then the rejects.
    with (
        refusals.open_rejects(rejects) as write_rejects,
        atomic_write(output, overwrite=overwrite) as draft,
    ):
        check_sources(inputs.sources)
        roster = read_roster(inputs.servers, uses_slugs=inputs.uses_slugs, game=inputs.game)
        refusals.check_servers(inputs, roster)
        with open_draft(output, draft) as connection:
            intake = Intake(connection, roster, inputs)
            summary, file_row = _fill_draft(connection, intake, write_rejects)
        check_draft(output, draft, file_row)
    return summary


def _fill_draft(
    connection: sqlite3.Connection,
    intake: Intake,
    write_rejects: refusals.WriteRejects,
    names: Sequence[str] | None = None,
) -> tuple[BuildSummary, rows.FileRow]:
    """Fill a new database file from the sources. Return a summary and the file's row.

    `names`: the source names to store. Default: the names of the sources.

    Raises SourceError if a source is refused.
    """
    create_tables(connection)
    stored = read_rows(intake, partial(store, connection, intake), write_rejects)
    _, last = rows.find_observed_span(stored.servers)
    file_row = rows.FileRow(
        as_of=refusals.check_rows(intake, last),
        is_open=int(intake.roster.is_open),
        reading=intake.inputs.reading or "{}",
    )
    return finish_draft(connection, intake, stored, file_row, names)


def read_rows(
    intake: Intake, store_rows: Callable[[], Stored], write_rejects: refusals.WriteRejects
) -> Stored:
    """Read all sources, store their observations, and write the rejects.

    Raises SourceError if a source is refused, OutputError if the rejects can't be written, and the
    errors of `store_rows`.
    """
    try:
        intake.read()
    except SourceError:
        if intake.inputs.strict:
            # Store the rows first: this finds conflicts, and a conflict may precede the malformed
            # row.
            store_rows()
            _refuse_first_reject(intake)
        raise
    stored = store_rows()
    if intake.inputs.strict:
        _refuse_first_reject(intake)
    write_rejects(intake.rejects)
    return stored


def _refuse_first_reject(intake: Intake) -> None:
    if first := intake.rejects.find_first():
        raise first.source.build_error(first.line, first.reason)


_ROWS_PER_REPORT = 10_000
"""The minimum number of rows per progress report. Reporting each small server would take longer
than storing it.
"""


def store(
    connection: sqlite3.Connection,
    intake: Intake,
    old: SnapshotFile | None = None,
    before: Mapping[str, rows.ServerRow] = MappingProxyType({}),
) -> Stored:
    """Store each block that the staged observations change, server by server.

    - `old`: a snapshot whose observations count as read before the staged ones.
    - `before`: its servers by id.

    A server without a record needs an observation.

    Raises SnapshotError if `old` is damaged.
    """
    intake.name_servers()
    put = partial(put_block, connection)
    servers: list[rows.ServerRow] = []
    first_blocks: dict[str, int] = {}
    kept = reported = 0
    for server_id, number in intake.roster.server_keys.items():
        known = before.get(server_id)
        first = intake.staging.find_first(number)
        earlier, unchanged = blocks.NOTHING, blocks.KEPT_NOTHING
        if old and known and known.observation_count and first is not None:
            earlier, unchanged = _read_changed_blocks(old, known, first)
        observations = intake.take_series(server_id, earlier).observations
        added = len(observations.instants) - len(earlier.instants)
        row = build_server_row(intake.roster.get_record(server_id), number)
        if added:
            first_blocks[server_id] = len(unchanged.ends)
            row = blocks.derive(row, observations, put, unchanged)
        elif known:
            row = copy_derived(known, row)
        servers.append(row)
        kept += added
        if kept - reported >= _ROWS_PER_REPORT:
            intake.inputs.progress("storing", 0, kept - reported)
            reported = kept
    return Stored(servers, first_blocks, kept)


def _read_changed_blocks(
    old: SnapshotFile, server: rows.ServerRow, first: int
) -> tuple[blocks.Observations, blocks.Kept]:
    """Return a server's observations, starting with the block that contains an instant.

    Also returns the running totals of the earlier blocks.
    """
    with old.convert_decode_errors(f"the observations of {server.title}"):
        ends = rows.read_block_ends(server)
        number = min(bisect_left(ends, first), len(ends) - 1)
        changed = [*old.iter_blocks(server, number, has_counts=True)]
        observations = blocks.join([*blocks.decode_blocks(server, changed)])
        return observations, blocks.keep_blocks(server, changed[0])


def finish_draft(
    connection: sqlite3.Connection,
    intake: Intake,
    stored: Stored,
    file_row: rows.FileRow,
    names: Sequence[str] | None = None,
) -> tuple[BuildSummary, rows.FileRow]:
    """Store the servers and the file's row. Return a summary and the row as stored.

    `file_row`: the as-of time, and the columns about earlier sources.
    """
    names = list_stored_names(intake.inputs.observations) if names is None else names
    earlier = read_texts(file_row.sources)
    file_row = file_row._replace(
        sources=encode_texts([*earlier, *(name for name in names if name not in earlier)]),
        repeated=file_row.repeated + intake.repeated,
        conflicting=file_row.conflicting + intake.rejects.conflicting,
        rejected=file_row.rejected + intake.rejects.malformed,
    )
    servers = [fill_fallbacks(server, file_row.as_of) for server in stored.servers]
    file_row = store_servers(connection, servers, file_row)
    remedy = refusals.find_remedy(intake.rejects.list_reasons())
    summary = BuildSummary(
        read=intake.rows,
        kept=stored.kept,
        repeated=intake.repeated,
        conflicting=intake.rejects.conflicting,
        rejected=intake.rejects.malformed,
        skipped=intake.skipped,
        first_reject=intake.rejects.describe_first(),
        remedy=remedy,
        servers=file_row.server_count,
        withheld=len(intake.roster.withheld),
        completed=count_completed(intake.roster.get_record(row.id) for row in stored.servers),
        fallbacks=sum(row.current_is_fallback for row in stored.servers),
        as_of=file_row.as_of,
        first_observed_at=file_row.first_observed_at,
        last_observed_at=file_row.last_observed_at,
        converted=_list_converted(intake.roster, stored.servers),
        warnings=tuple(intake.warnings),
        unit=intake.inputs.unit,
    )
    return summary, file_row


def _list_converted(roster: Roster, stored: Sequence[rows.ServerRow]) -> dict[str, str]:
    made = roster.converted
    return {server.id: made[server.id] for server in stored if server.id in made}


# The draft is deleted on any error and flushed before it is renamed, so SQLite needs neither a
# journal nor flushes. Smaller pages take longer to read, larger pages take more space.
_SETTINGS = """
    PRAGMA page_size = 8192;
    PRAGMA trusted_schema = 0;
    PRAGMA cell_size_check = 1;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
"""


_PUT_BLOCK = f"REPLACE INTO blocks VALUES ({', '.join('?' * len(rows.Block._fields))})"  # noqa: S608 - our own names


def apply_settings(connection: sqlite3.Connection) -> None:
    """Write without a journal, so an error leaves a broken file. The caller must discard it."""
    connection.executescript(_SETTINGS)


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of a snapshot in a new database."""
    apply_settings(connection)
    connection.executescript(rows.read_schema())
    connection.execute(f"PRAGMA application_id = {rows.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {rows.FORMAT_VERSION}")


def put_block(connection: sqlite3.Connection, block: rows.Block) -> None:
    """Add or replace a block of a snapshot."""
    connection.execute(_PUT_BLOCK, block)


def store_servers(
    connection: sqlite3.Connection, servers: Sequence[rows.ServerRow], file_row: rows.FileRow
) -> rows.FileRow:
    """Replace the servers, their directory and the file's row, and commit.

    `file_row`: the columns about the sources. Returns the row as stored.
    """
    sealed, directory = rows.describe_servers(file_row, servers)
    database = sqlite_utils.Database(connection, execute_plugins=False)
    stored: dict[str, Sequence[rows.ServerRow | rows.Bucket | rows.FileRow]] = {
        "servers": servers,
        "directory": directory,
        "snapshot": [sealed],
    }
    for name, of_table in stored.items():
        table = database.table(name)
        table.delete_where()
        table.insert_all(row._asdict() for row in of_table)
    connection.commit()
    return sealed


@contextmanager
def open_draft(output: str, draft: str) -> Iterator[sqlite3.Connection]:
    """Open an output's draft as a database without tables.

    Raises OutputError for SQLite errors in the block.
    """
    # The draft itself is locked, and SQLite's locks would wait for that lock on macOS and NFS.
    uri = f"file:{quote(os.fsencode(draft), safe='/')}?mode=rw&nolock=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise OutputError(f"{output}: {error}, here or in SQLite's temporary files") from None


def check_draft(
    output: str, draft: str, row: rows.FileRow, first_blocks: Mapping[str, int] | None = None
) -> None:
    """Read back a draft, because readers can use the output as soon as it is renamed.

    - `row`: the expected row of the file.
    - `first_blocks`: for an update, server id → the number of the first block written. `output`
      must still be the old file.

    Checks digests, but does not derive data again, because that could reveal only bugs in srvstat.

    Raises OutputError if a row differs or is missing, and UsageError if there is a journal.
    """
    try:
        with closing(open_file(draft)) as snapshot:
            is_complete = snapshot.file_row == row
            if first_blocks is None:
                check_chain(snapshot)
            else:
                check_written(snapshot, first_blocks)
        if first_blocks is not None:
            with convert_write_errors(output):
                is_complete &= _read_change_counter(draft) != _read_change_counter(output)
    except SnapshotError:
        is_complete = False
    if not is_complete:
        raise OutputError(
            f"{output}: verification after writing failed: the disk may be faulty, or another"
            " program has changed the file; try again"
        )
    check_journal(output)


def _read_change_counter(path: str) -> bytes:
    """Return the change counter in a database's first page, which each change rewrites."""
    with open(path, "rb") as file:
        return file.read(28)[24:]


def check_journal(output: str) -> None:
    """Refuse an output with a journal, which would make the snapshot unreadable.

    Raises UsageError if there is a journal, and OutputError if the file is inaccessible.
    """
    with convert_write_errors(output):
        journal = find_journal(output)
    if journal:
        raise UsageError(
            f"{output}: {journal} exists, and SQLite would apply it to the new snapshot;"
            f" {format_journal_remedy(journal)}"
        )


def check_names(
    output: str, rejects: str | None, sources: Sequence[Source], *, name: str = "OUTPUT"
) -> None:
    """Refuse a snapshot path that is also a source or the rejects file.

    `name`: the snapshot argument's name in messages.

    Raises UsageError for a conflict, and OutputError if a path is inaccessible.
    """
    check_stdin_once(source.name for source in sources)
    written = [check_name(name, output)]
    if rejects is not None:
        written.append(check_name("--rejects", rejects))
    for path, location in zip((output, rejects), written, strict=False):
        check_is_no_source(path, location, sources)
    if len(set(written)) < len(written):
        raise UsageError(f"{rejects}: same file as the snapshot; choose another for --rejects")
    check_journal(output)


def check_is_no_source(path: str | None, location: str, sources: Sequence[Source]) -> None:
    """Refuse an output file, given its real path, that is also a source. Raises UsageError."""
    if location in set(map(_locate, sources)):
        raise UsageError(f"{path}: same file as an input; choose another")


def _locate(source: Source) -> str | None:
    """Return the real path of a source, or None for standard input and for unusable names."""
    if source.name == STDIN:
        return None
    try:
        return os.path.realpath(source.name)
    except (OSError, ValueError):  # such as a relative path in a directory that was removed
        return None


# An engine has already interpreted these times, so a year before 2001 is not a mistake.
_MILLISECONDS = ColumnMapping(time_unit="ms", is_strict=True)


class Shard(NamedTuple):
    """A shard to build.

    - `title`: the file's name for messages.
    - `rows`: the folder of its observations, which is missing if there are none.
    """

    number: int
    path: str
    title: str
    records: Sequence[ServerRecord]
    rows: str
    as_of: int
    sources: Sequence[str]


def build_shard(shard: Shard, report: Callable[[int], None]) -> rows.FileRow:
    """Build a shard as a snapshot of its servers, and return the file's row.

    Calls `report` with a number of rows just processed: once when they are read, once when stored.

    Raises SourceError if the observations are refused, and OutputError if the file can't be
    written.
    """
    sources: list[Source] = []
    warnings: list[str] = []
    if os.path.isdir(shard.rows):
        sources = expand_name(
            shard.rows, lambda name: Source(name, "parquet", _MILLISECONDS), warnings.append
        )
    with convert_write_errors(shard.title), open(shard.path, "wb") as file:
        with open_draft(shard.title, shard.path) as connection:
            inputs = Inputs(
                None,
                sources,
                as_of=shard.as_of,
                strict=True,
                allow_empty=True,
                progress=lambda _step, _bytes, count: report(count),
            )
            intake = Intake(connection, Roster(shard.records), inputs)
            _, row = _fill_draft(connection, intake, refusals.discard_rejects, shard.sources)
        check_draft(shard.title, shard.path, row)
        os.fsync(file.fileno())
    return row
