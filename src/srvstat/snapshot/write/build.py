"""Build a snapshot from sources: read, judge, store, derive, read back, publish."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from urllib.parse import quote

import sqlite_utils

from srvstat.contract import wire
from srvstat.contract.errors import OutputError, SourceError, UsageError
from srvstat.documents.views import BuildSummary
from srvstat.files.atomic_write import atomic_write, convert_write_errors, is_stream, open_stream
from srvstat.files.reading import STDIN
from srvstat.snapshot.format.derive import find_observed_span
from srvstat.snapshot.format.digest import bucket_digests, build_directory, seal
from srvstat.snapshot.format.rows import FileRow, ServerRow
from srvstat.snapshot.format.schema import APPLICATION_ID, FORMAT_VERSION, schema
from srvstat.snapshot.read.connection import find_journal, format_journal_remedy
from srvstat.snapshot.read.verify import check_draft
from srvstat.snapshot.write.ingest import Intake, Progress
from srvstat.snapshot.write.rejects import Rejects
from srvstat.snapshot.write.rules import (
    RejectLimit,
    RowsRejectedError,
    Rules,
    check_rows,
    check_servers,
)
from srvstat.snapshot.write.store import Stored, store
from srvstat.sources import servers
from srvstat.sources.servers import ServerRecord
from srvstat.sources.source import Source, check_stdin_once

# The draft is thrown away on any error and flushed before it gets its name, so SQLite need neither
# journal nor flush. Rows of `days` take a few kilobytes each; on larger pages they leave less of
# the space unused.
_BUILDING = """
    PRAGMA page_size = 16384;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
"""


def build(  # noqa: PLR0913 - each is an option of the command
    output: str,
    *,
    servers_source: Source,
    observation_sources: Sequence[Source],
    as_of: int | None = None,
    rejects: str | None = None,
    strict: bool = False,
    max_rejected: RejectLimit | None = None,
    allow_empty: bool = False,
    overwrite: bool = False,
    progress: Progress = lambda _step, _bytes, _rows: None,
) -> BuildSummary:
    """Build the snapshot of some sources at a path, and return what became of them.

    `as_of`, in Unix milliseconds, defaults to the latest observation kept. `rejects` names a file
    for the rows that are no observation; `strict` refuses the source of the first one instead, and
    `max_rejected` refuses to build when there are more. Without `allow_empty` a snapshot has at
    least one server and one observation. Nothing is replaced before the new file is complete and
    has been read back.

    Raises SourceError, UsageError, OutputError.
    """
    _check_names(output, rejects, [servers_source, *observation_sources])
    rules = Rules(strict, max_rejected, allow_empty)
    refusal: SourceError
    # What is entered last is published first: the snapshot, and then what it rejected.
    with _rejects(rejects) as write_reject:
        try:
            with atomic_write(output, overwrite=overwrite) as draft:
                warnings: list[str] = []
                records = servers.read(servers_source, warnings.append)
                check_servers(servers_source, records, rules)
                with _storing(output), closing(_connect(draft)) as connection:
                    intake = Intake(connection, records, observation_sources, as_of)
                    intake.warnings.extend(warnings)
                    summary = _fill(
                        connection,
                        intake,
                        records,
                        rules,
                        write_reject=write_reject,
                        progress=progress,
                    )
                check_draft(output, draft, summary.kept)
                _check_journal(output)
        except RowsRejectedError as error:
            refusal = error
        else:
            return summary
    # Here the rejects are in their file, which shows what is wrong with the rows.
    raise refusal


def _fill(  # noqa: PLR0913 - each is a part of the build
    connection: sqlite3.Connection,
    intake: Intake,
    records: Sequence[ServerRecord],
    rules: Rules,
    *,
    write_reject: Callable[[bytes | None], None],
    progress: Progress,
) -> BuildSummary:
    """Fill a new database file from the sources."""
    connection.executescript(_BUILDING)
    database = sqlite_utils.Database(connection, execute_plugins=False)
    database.executescript(schema())
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    with database.atomic():
        unread = _read(intake, progress, strict=rules.strict)
        stored = store(connection, intake, progress)
        first_reject = _report(intake.rejects, write_reject, strict=rules.strict)
        write_reject(None)
        if unread:
            raise unread
        as_of = check_rows(intake, stored, rules, first_reject)
        rows = sorted(
            _build_server_row(record, intake.keys[record.id], stored, as_of)
            for record in records
            if record.publishable
        )
        summary = _summarize(intake, stored, rows, as_of, first_reject)
        _store_servers(database, intake.sources, rows, summary)
    return summary


def _connect(draft: str) -> sqlite3.Connection:
    # The draft is locked as a whole. SQLite's own locks would wait for that one on macOS and NFS.
    uri = f"file:{quote(os.fsencode(draft), safe='/')}?mode=rw&nolock=1"
    return sqlite3.connect(uri, uri=True)


def _read(intake: Intake, progress: Progress, *, strict: bool) -> SourceError | None:
    """Read all sources, and return what refused one where `strict` may have to name an earlier row.

    Conflicts are found once all that was read is in order.
    """
    try:
        intake.read(progress, strict=strict)
    except SourceError as error:
        if not strict:
            raise
        return error
    return None


def _report(rejects: Rejects, write: Callable[[bytes | None], None], *, strict: bool) -> str | None:
    """Write the rejects and return where and why the first one is; `strict` refuses it instead."""
    first = None
    for reject in rejects:
        if strict:
            raise reject.source.refuse(reject.line, reject.reason)
        if first is None:
            first = f"{reject.source.title}, line {reject.line}: {reject.reason}"
        fields = {
            "file": reject.source.title,
            "line": reject.line,
            "reason": reject.reason,
            "text": reject.text,
        }
        write(wire.encode(fields) + b"\n")
    return first


def _summarize(
    intake: Intake, stored: Stored, rows: Sequence[ServerRow], as_of: int, first_reject: str | None
) -> BuildSummary:
    """Count what became of the sources."""
    first, last = find_observed_span(stored.derived.values())
    return BuildSummary(
        read=intake.rows,
        kept=stored.kept,
        repeated=stored.repeated,
        conflicting=intake.rejects.conflicting,
        rejected=intake.rejects.malformed,
        skipped=intake.skipped,
        first_reject=first_reject,
        servers=len(rows),
        withheld=len(intake.withheld),
        fallbacks=sum(row.current_is_fallback for row in rows),
        as_of=as_of,
        first_observed_at=first,
        last_observed_at=last,
        warnings=tuple(intake.warnings),
    )


def _store_servers(
    database: sqlite_utils.Database,
    sources: Sequence[Source],
    rows: Sequence[ServerRow],
    summary: BuildSummary,
) -> None:
    """Store the servers, their directory, and the file's own row."""
    directory = build_directory(rows)
    own = FileRow(
        as_of=summary.as_of,
        server_count=summary.servers,
        observation_count=summary.kept,
        first_observed_at=summary.first_observed_at,
        last_observed_at=summary.last_observed_at,
        sources=_json([source.stored_name for source in sources]),
        repeated=summary.repeated,
        conflicting=summary.conflicting,
        rejected=summary.rejected,
        bucket_digests=bucket_digests(directory),
        root=b"",
        digest=b"",
    )
    database.table("servers").insert_all(row._asdict() for row in rows)
    database.table("directory").insert_all(
        {"bucket": bucket, "entries": entries} for bucket, entries in directory
    )
    database.table("snapshot").insert(seal(own)._asdict())


def _build_server_row(record: ServerRecord, key: int, stored: Stored, as_of: int) -> ServerRow:
    """Return a row of `servers`, with what the record leaves open taken from its observations."""
    derived = stored.derived[key]
    fields = asdict(record)
    del fields["publishable"]
    defaults = {
        "players_current": stored.last_players.get(key, 0),
        "first_seen_at": as_of if derived.first_observed_at is None else derived.first_observed_at,
        "updated_at": as_of if derived.last_observed_at is None else derived.last_observed_at,
    }
    fields |= {name: value for name, value in defaults.items() if fields[name] is None}
    fields |= {
        "tags": _json(record.tags),
        "flags": _json(record.flags),
        "offline": int(record.offline),
    }
    return ServerRow(
        **fields,
        server=key,
        current_is_fallback=int(record.players_current is None),
        **derived._asdict(),
    )


def _json(values: Sequence[str]) -> str:
    return wire.encode(values).decode("utf-8")


def _check_names(output: str, rejects: str | None, sources: Sequence[Source]) -> None:
    """Refuse to write over what is read, and to write two things to one name."""
    read = set(map(_locate, sources))
    check_stdin_once(source.name for source in sources)
    for what, path in (("OUTPUT", output), ("--rejects", rejects)):
        if path == "":
            raise UsageError(f"{what}: the name is empty; name a file to write")
        if path and path.endswith(os.sep):
            raise UsageError(f"{what} {path}: the name of a directory; name a file to write")
    if STDIN in (output, rejects):
        raise UsageError("OUTPUT and --rejects: - is not a file; name one")
    written = []
    for path in filter(None, (output, rejects)):
        with convert_write_errors(path):
            written.append(os.path.realpath(path))
        if written[-1] in read:
            raise UsageError(f"{path}: is a source of this build, and would be replaced")
    if len(set(written)) < len(written):
        raise UsageError(
            f"{rejects}: is the snapshot to build, and the rejects need their own file"
        )
    _check_journal(output)


def _locate(source: Source) -> str | None:
    """Return where a source lies; None for standard input and what opening it will refuse."""
    if source.name == STDIN:
        return None
    try:
        return os.path.realpath(source.name)
    except (OSError, ValueError):  # such as a relative path in a directory that was removed
        return None


def _check_journal(output: str) -> None:
    """Refuse to put a snapshot beside a journal, which would make it unreadable."""
    with convert_write_errors(output):
        journal = find_journal(output)
    if journal:
        raise UsageError(
            f"{output}: {journal} exists, and SQLite would apply it to the new snapshot;"
            f" {format_journal_remedy(journal)}"
        )


@contextmanager
def _rejects(path: str | None) -> Iterator[Callable[[bytes | None], None]]:
    """Hand out what writes a line of the rejects, and None for their end.

    Without a path they are not kept. A file is replaced, and a stream is written to. After the end
    nothing of them waits to be written any more, so that a full disk is noticed before the snapshot
    has its name.
    """
    if path is None:
        yield lambda _line: None
        return
    if is_stream(path):
        with open_stream(path) as write_line:
            yield write_line
        return
    with atomic_write(path, overwrite=True) as draft:
        with convert_write_errors(path):
            file = open(draft, "wb")  # noqa: SIM115 - closed below, where an error has its name

        def write(line: bytes | None) -> None:
            with convert_write_errors(path):
                if line is None:
                    file.close()
                else:
                    file.write(line)

        try:
            yield write
        finally:
            # Closed before, or no longer wanted.
            with suppress(OSError):
                file.close()


@contextmanager
def _storing(output: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise OutputError(f"{output}: {error}, here or in SQLite's temporary files") from None
