"""Build a snapshot: read and validate sources, store and derive rows, read the file back."""

import sqlite3
from collections.abc import Sequence

from srvstat.contract.errors import SourceError, UsageError
from srvstat.documents.snapshot import BuildSummary
from srvstat.files.atomic import atomic_write
from srvstat.snapshot.format.rows import FileRow
from srvstat.snapshot.write.database import check_draft, check_journal, open_draft
from srvstat.snapshot.write.ingest import Intake, Progress
from srvstat.snapshot.write.names import check_names
from srvstat.snapshot.write.processes import SecondProcess
from srvstat.snapshot.write.rejects_file import RejectsFile, open_rejects, write_rejects
from srvstat.snapshot.write.roster import read_roster
from srvstat.snapshot.write.rules import RejectLimit, Rules, check_rows, check_servers
from srvstat.snapshot.write.server_rows import encode_texts
from srvstat.snapshot.write.store import store
from srvstat.snapshot.write.summary import build_server_rows, summarize
from srvstat.snapshot.write.tables import fill_tables, store_servers
from srvstat.sources.observations import check_sources
from srvstat.sources.source import Source, list_stored_names


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
    if not observation_sources:
        raise UsageError("--observations is required")
    sources = [*([] if servers_source is None else [servers_source]), *observation_sources]
    check_names(output, rejects, sources)
    rules = Rules(strict, max_rejected, allow_empty)
    # The snapshot is renamed into place first, then the rejects.
    with (
        open_rejects(rejects) as rejects_file,
        atomic_write(output, overwrite=overwrite) as draft,
        SecondProcess() as second,
    ):
        check_sources(sources)
        warnings: list[str] = []
        roster = read_roster(servers_source, uses_slugs=uses_slugs, game=game, warn=warnings.append)
        check_servers(servers_source, roster, rules)
        with open_draft(output, draft) as connection:
            intake = Intake(connection, roster, observation_sources, as_of, second)
            intake.warnings.extend(warnings)
            summary, _ = fill_draft(
                connection, intake, rules, rejects_file=rejects_file, progress=progress
            )
        check_draft(output, draft, summary.kept)
        check_journal(output)
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
    with fill_tables(connection) as database:
        try:
            intake.read(progress, strict=rules.strict)
        except SourceError:
            if rules.strict:
                # Storing finds conflicts; one in an earlier row is the first error.
                store(connection, intake, progress)
                write_rejects(intake.rejects, rejects_file, strict=True)
            raise
        stored = store(connection, intake, progress)
        first_reject = write_rejects(intake.rejects, rejects_file, strict=rules.strict)
        as_of = check_rows(intake, stored, rules, first_reject)
        rows = build_server_rows(intake.roster, stored, as_of)
        summary = summarize(intake, stored, rows, as_of, first_reject)
        texts = encode_texts(list_stored_names(intake.sources) if names is None else names)
        described = _build_file_row(summary, texts, is_open=intake.roster.is_open)
        file_row = store_servers(database, rows, described)
    return summary, file_row


def _build_file_row(summary: BuildSummary, sources: str, *, is_open: bool) -> FileRow:
    """Return the row of the file, without its digests."""
    return FileRow(
        as_of=summary.as_of,
        server_count=summary.servers,
        observation_count=summary.kept,
        first_observed_at=summary.first_observed_at,
        last_observed_at=summary.last_observed_at,
        sources=sources,
        repeated=summary.repeated,
        conflicting=summary.conflicting,
        rejected=summary.rejected,
        is_open=int(is_open),
        parent_root=None,
        covered_from=None,
        bucket_digests=b"",
        root=b"",
        digest=b"",
    )
