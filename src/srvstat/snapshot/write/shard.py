"""Build one shard of a snapshot from rows that were resolved already."""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from srvstat.files.errors import convert_write_errors
from srvstat.snapshot.format.rows import FileRow
from srvstat.snapshot.write.build import fill_draft
from srvstat.snapshot.write.database import check_draft, open_draft
from srvstat.snapshot.write.ingest import Intake
from srvstat.snapshot.write.rejects_file import RejectsFile
from srvstat.snapshot.write.roster import Roster
from srvstat.snapshot.write.rules import Rules
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.observations import split_folder
from srvstat.sources.server_records import ServerRecord
from srvstat.sources.source import Source

_ROWS_PER_REPORT = 100_000

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
            summary, row = fill_draft(
                connection,
                intake,
                Rules(strict=True, max_rejected=None, allow_empty=True),
                rejects_file=RejectsFile("", None),
                progress=_Counter(report).add,
                names=shard.sources,
            )
        check_draft(shard.title, shard.path, summary.kept)
        os.fsync(file.fileno())
    return row


class _Counter:
    """Collects the rows of many small steps, to report them at once."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report = report
        self._rows = 0

    def add(self, _step: str, _bytes: int, rows: int) -> None:
        """Count the rows of a step."""
        self._rows += rows
        if self._rows >= _ROWS_PER_REPORT:
            self._report(self._rows)
            self._rows = 0
