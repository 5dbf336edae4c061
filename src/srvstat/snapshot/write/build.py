"""Build a snapshot or a shard: read sources, store and derive rows, and read the file back."""

import json  # noqa: F401 - the import on first use could swallow an interruption
import os
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from srvstat.contract.errors import SourceError, UsageError
from srvstat.documents.snapshot import BuildSummary
from srvstat.files.atomic import atomic_write, check_name
from srvstat.files.paths import convert_write_errors
from srvstat.files.reading import STDIN
from srvstat.snapshot.read.verified_rows import read_texts
from srvstat.snapshot.rows import FileRow, find_observed_span
from srvstat.snapshot.write.database import (
    check_draft,
    check_journal,
    create_tables,
    open_draft,
    put_block,
    store_servers,
)
from srvstat.snapshot.write.intake import Intake, Progress
from srvstat.snapshot.write.roster import Roster, read_roster
from srvstat.snapshot.write.rules import (
    RejectLimit,
    RejectsFile,
    Rules,
    check_rows,
    check_servers,
    find_remedy,
    list_reasons,
    open_rejects,
    write_rejects,
)
from srvstat.snapshot.write.server_rows import encode_texts, fill_fallbacks
from srvstat.snapshot.write.store import Stored, store
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.servers import ServerRecord, count_completed
from srvstat.sources.source import (
    Source,
    check_sources,
    check_stdin_once,
    list_stored_names,
    split_folder,
)


def check_names(
    output: str, rejects: str | None, sources: Sequence[Source], *, name: str = "OUTPUT"
) -> None:
    """Refuse a snapshot that is a source, or that is also the file of the rejects.

    `name` is that of the snapshot's argument.

    Raises UsageError, OutputError.
    """
    check_stdin_once(source.name for source in sources)
    written = [check_name(name, output)]
    if rejects is not None:
        written.append(check_name("--rejects", rejects))
    for path, location in zip((output, rejects), written, strict=False):
        check_is_no_source(path, location, sources)
    if len(set(written)) < len(written):
        raise UsageError(f"{rejects}: is also the snapshot; name another file for the rejects")
    check_journal(output)


def check_is_no_source(path: str | None, location: str, sources: Sequence[Source]) -> None:
    """Refuse a file to write, with a real path, that is also a source.

    Raises UsageError.
    """
    if location in set(map(_locate, sources)):
        raise UsageError(f"{path}: is also a source; name another file")


def _locate(source: Source) -> str | None:
    """Return the real path of a source; None for standard input and for names that can't open."""
    if source.name == STDIN:
        return None
    try:
        return os.path.realpath(source.name)
    except (OSError, ValueError):  # such as a relative path in a directory that was removed
        return None


def build(  # noqa: PLR0913 - each is an option of the command
    output: str,
    *,
    servers_source: Source | None,
    observation_sources: Sequence[Source],
    uses_slugs: bool = False,
    game: str | None = None,
    as_of: int | None = None,
    rejects: str | None = None,
    strict: bool = False,
    max_rejected: RejectLimit | None = None,
    allow_empty: bool = False,
    overwrite: bool = False,
    progress: Progress = lambda _step, _bytes, _rows: None,
) -> BuildSummary:
    """Build a snapshot at a path, and return a summary of its sources.

    Without a source of servers, each identifier in the observations becomes a server. `game` is
    that of servers whose record has none. With `uses_slugs`, an identifier can be that of a server
    by its slug. `as_of`, in Unix milliseconds, defaults to the latest observation kept. `rejects`
    is the path of a file for malformed and conflicting rows. With `strict`, the first such row
    refuses its source instead; `max_rejected` limits the malformed ones. Without `allow_empty`, a
    snapshot needs at least one server and one observation. An existing file is replaced only after
    the new one is complete and was read back.

    Raises SourceError, UsageError, OutputError.
    """
    sources = [*([] if servers_source is None else [servers_source]), *observation_sources]
    check_names(output, rejects, sources)
    rules = Rules(strict, max_rejected, allow_empty)
    # The snapshot is renamed into place first, then the rejects.
    with (
        open_rejects(rejects) as rejects_file,
        atomic_write(output, overwrite=overwrite) as draft,
    ):
        check_sources(sources)
        warnings: list[str] = []
        roster = read_roster(servers_source, uses_slugs=uses_slugs, game=game, warn=warnings.append)
        check_servers(servers_source, roster, rules)
        with open_draft(output, draft) as connection:
            intake = Intake(connection, roster, observation_sources, as_of)
            intake.warnings.extend(warnings)
            summary, file_row = fill_draft(
                connection, intake, rules, rejects_file=rejects_file, progress=progress
            )
        check_draft(output, draft, file_row)
    return summary


def fill_draft(  # noqa: PLR0913 - each is a part of the build
    connection: sqlite3.Connection,
    intake: Intake,
    rules: Rules,
    *,
    rejects_file: RejectsFile,
    progress: Progress,
    names: Sequence[str] | None = None,
) -> tuple[BuildSummary, FileRow]:
    """Fill a new database file from the sources; return a summary and the row of the file.

    `names` are those that the file stores, by default the names of the sources.

    Raises SourceError.
    """
    create_tables(connection)
    stored, first_reject = read_rows(
        intake,
        partial(store, partial(put_block, connection), intake, progress),
        rejects_file,
        progress,
        strict=rules.strict,
    )
    as_of = check_rows(intake, stored, rules, first_reject)
    file_row = FileRow(as_of=as_of, is_open=int(intake.roster.is_open))
    return finish_draft(connection, intake, stored, first_reject, file_row, names=names)


def read_rows(
    intake: Intake,
    store_rows: Callable[[], Stored],
    rejects_file: RejectsFile,
    progress: Progress,
    *,
    strict: bool,
) -> tuple[Stored, str | None]:
    """Read all sources, store their observations, and write the rejects.

    Also returns the place and reason of the first reject.

    Raises SourceError, OutputError, and what `store_rows` raises.
    """
    try:
        intake.read(progress, strict=strict)
    except SourceError:
        if strict:
            # Storing finds conflicts; one in an earlier row is the first error.
            store_rows()
            write_rejects(intake.rejects, rejects_file, strict=True)
        raise
    stored = store_rows()
    return stored, write_rejects(intake.rejects, rejects_file, strict=strict)


def finish_draft(  # noqa: PLR0913 - each is a part of the file
    connection: sqlite3.Connection,
    intake: Intake,
    stored: Stored,
    first_reject: str | None,
    file_row: FileRow,
    *,
    names: Sequence[str] | None = None,
) -> tuple[BuildSummary, FileRow]:
    """Store the servers and the row of the file; return a summary and that row.

    `file_row` has the as-of time, and what the file says about earlier sources.
    """
    names = list_stored_names(intake.sources) if names is None else names
    earlier = read_texts(file_row.sources)
    summary = _summarize(intake, stored, file_row.as_of, first_reject)
    file_row = file_row._replace(
        sources=encode_texts([*earlier, *(name for name in names if name not in earlier)]),
        repeated=file_row.repeated + summary.repeated,
        conflicting=file_row.conflicting + summary.conflicting,
        rejected=file_row.rejected + summary.rejected,
    )
    servers = [fill_fallbacks(server, file_row.as_of) for server in stored.servers]
    return summary, store_servers(connection, servers, file_row)


def _summarize(
    intake: Intake, stored: Stored, as_of: int, first_reject: str | None
) -> BuildSummary:
    """Return the counts of rows and servers."""
    first, last = find_observed_span(stored.servers)
    remedy = find_remedy(list_reasons(intake.rejects, {}, {}))
    return BuildSummary(
        read=intake.rows,
        kept=stored.kept,
        repeated=stored.repeated,
        conflicting=intake.rejects.conflicting,
        rejected=intake.rejects.malformed,
        skipped=intake.skipped,
        first_reject=first_reject,
        remedy=remedy and remedy.text,
        servers=len(stored.servers),
        withheld=len(intake.roster.withheld),
        completed=count_completed(intake.roster.get_record(row.id) for row in stored.servers),
        fallbacks=sum(row.current_is_fallback for row in stored.servers),
        as_of=as_of,
        first_observed_at=first,
        last_observed_at=last,
        warnings=tuple(intake.warnings),
    )


# An engine has read these times, so that a year before 2001 is no mistake.
_MILLISECONDS = ColumnMapping(time_unit="ms", is_strict=True)


class Shard(NamedTuple):
    """A shard to build: its number and file, its servers, and the folder of their observations.

    `title` is the name of the file for messages. The folder is missing if there are none.
    """

    number: int
    path: str
    title: str
    records: Sequence[ServerRecord]
    rows: str
    as_of: int
    sources: Sequence[str]


def build_shard(shard: Shard, report: Callable[[int], None]) -> FileRow:
    """Build a shard like a snapshot of its servers, and return the row of the file.

    `report` is called with numbers of rows just processed; each is read, then stored.

    Raises SourceError, OutputError.
    """
    sources: list[Source] = []
    if os.path.isdir(shard.rows):
        sources = split_folder(Source(shard.rows, "parquet", _MILLISECONDS))
    with convert_write_errors(shard.title), open(shard.path, "xb") as file:
        with open_draft(shard.title, shard.path) as connection:
            intake = Intake(connection, Roster(shard.records), sources, shard.as_of)
            _, row = fill_draft(
                connection,
                intake,
                Rules(strict=True, max_rejected=None, allow_empty=True),
                rejects_file=RejectsFile(),
                progress=lambda _step, _bytes, rows: report(rows),
                names=shard.sources,
            )
        check_draft(shard.title, shard.path, row)
        os.fsync(file.fileno())
    return row
