"""Count the observations of a fleet with an embedded DuckDB."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa
from pyarrow import compute as pc

from srvstat.contract.errors import EngineError, SourceError, SrvstatError
from srvstat.contract.ranges import Window
from srvstat.files.identity import Identity, identify_file
from srvstat.files.reading import CHANGED
from srvstat.fleet.counts import (
    FIGURES,
    ROWS,
    SURVEY,
    Count,
    Job,
    Progress,
    Resolved,
    Servers,
    Survey,
)
from srvstat.fleet.duckdb_counter import Counter, build_order
from srvstat.fleet.duckdb_rows import (
    STAGED,
    Run,
    can_be_named,
    group_runs,
    select_malformed,
    select_rows,
)
from srvstat.fleet.duckdb_session import Session, describe_error, open_session
from srvstat.fleet.finish import finish_counts
from srvstat.fleet.native import NativeColumns, find_native_columns
from srvstat.fleet.reader_rows import Remarks, read_rows
from srvstat.sources.arrow_columns import Columns, read_record_batches
from srvstat.sources.observations import read_batches
from srvstat.sources.parquet import read_metadata
from srvstat.sources.source import Source

_ROWS_PER_INSERT = 1 << 18

_SURVEY = """
CREATE OR REPLACE TEMP TABLE surveyed AS
SELECT
    identifier,
    count(*) AS rows,
    count(*) FILTER (NOT ({limit})) AS late,
    max("at") FILTER ({limit}) AS last_at
FROM ({rows})
GROUP BY identifier"""

_LAST_ROWS = """
WITH last_rows AS (
    SELECT identifier, min({order}) AS standing
    FROM ({rows}) AS rows JOIN surveyed USING (identifier)
    WHERE "at" = last_at
    GROUP BY identifier
)
SELECT
    identifier, rows, late, last_at,
    standing.position AS last_position, standing.players AS last_players
FROM surveyed LEFT JOIN last_rows USING (identifier)"""


@contextmanager
def open_duckdb(
    job: Job, *, memory: str | None, threads: int | None, progress: Progress
) -> Iterator["DuckDbEngine"]:
    """Open the embedded engine; it reads all sources that are not Parquet now.

    `memory` is a limit such as `4GiB`; both limits default to those of DuckDB.

    Raises SourceError if a source can't be read, EngineError if DuckDB fails, MissingLibraryError.
    """
    with open_session(memory=memory, threads=threads, progress=progress) as session:
        engine = DuckDbEngine(session, job)
        with engine.convert_errors():
            engine.prepare(progress)
        yield engine


class DuckDbEngine:
    """An engine over DuckDB; see `srvstat.fleet.counts.Engine`."""

    def __init__(self, session: Session, job: Job) -> None:
        self._session = session
        self._job = job
        self._runs: list[Run] = []
        self._rows_of_runs = 0
        self._identities: dict[str, Identity] = {}
        self._remarks = Remarks()

    def prepare(self, progress: Progress) -> None:
        """Find the files that DuckDB can read, and read all other sources into a table."""
        self._session.create_table(STAGED, ROWS.empty_table())
        native: list[tuple[int, Source, NativeColumns]] = []
        others: list[tuple[int, Source]] = []
        for number, source in enumerate(self._job.sources):
            columns = self._find_columns(source)
            if columns is None:
                others.append((number, source))
            else:
                native.append((number, source, columns))
        self._runs = group_runs(native)
        for done, (number, source) in enumerate(others):
            progress("reading", done / len(others), source.title)
            self._stage(number, source)

    def _find_columns(self, source: Source) -> NativeColumns | None:
        """Return the columns of a file that DuckDB can read."""
        if source.kind != "parquet" or not can_be_named(source.name):
            return None
        identity = identify_file(source.name)
        metadata = read_metadata(source)
        columns = find_native_columns(source, metadata.schema.to_arrow_schema())
        if columns is not None:
            self._identities[source.name] = identity
            self._rows_of_runs += metadata.num_rows
        return columns

    def _stage(self, number: int, source: Source) -> None:
        """Read a source with our own reader, and store its rows."""
        batches: list[pa.RecordBatch] = []
        rows = 0
        for batch in read_rows(source, number, self._remarks):
            batches.append(batch)
            rows += batch.num_rows
            if rows >= _ROWS_PER_INSERT:
                self._session.insert(STAGED, pa.Table.from_batches(batches))
                batches, rows = [], 0
        if batches:
            self._session.insert(STAGED, pa.Table.from_batches(batches))

    def survey(self) -> Survey:
        """Read all rows, and return their identifiers."""
        with self.convert_errors():
            limit = "true" if self._job.as_of is None else f'"at" <= {self._job.as_of}'
            self._session.execute(
                "survey", _SURVEY.format(rows=select_rows(self._runs), limit=limit)
            )
            identifiers = self._session.fetch(
                "survey",
                _LAST_ROWS.format(rows=select_rows(self._runs), order=build_order(self._job)),
            )
            self._count_malformed(pc.sum(identifiers["rows"]).as_py() or 0)
        remarks = self._remarks
        return Survey(identifiers.cast(SURVEY), remarks.rejected, remarks.skipped, remarks.warnings)

    def _count_malformed(self, rows: int) -> None:
        """Count the rows that the queries leave out, by the reason of our own converter."""
        staged = self._session.fetch("survey", f"SELECT count(*) AS rows FROM {STAGED}")
        if rows - staged["rows"][0].as_py() == self._rows_of_runs:
            return
        for run in self._runs:
            columns = Columns(run.columns.id, run.columns.at, [run.columns.players])
            batches = self._session.stream("survey", select_malformed(run))
            for batch in read_record_batches(run.sources[0], columns, batches):
                assert not batch.instants, "rows that the condition must not leave out"  # noqa: S101 - see select_malformed
                self._remarks.add_batch(batch)

    def count(self, servers: Servers, window: Window) -> Count:
        """Count the observations of servers in a window, and finish them to figures."""
        with self.convert_errors():
            counter = Counter(self._session, self._job, servers, window)
            resolved = counter.resolve(
                select_rows(self._runs, max(window.start + 1, 0), window.end)
            )
            figures = pa.Table.from_batches(map(finish_counts, counter.read_counts()), FIGURES)
        return Count(figures, resolved)

    def write_rows(self, servers: Servers, until: int, folder: str) -> Resolved:
        """Write the resolved observations up to an instant as Parquet files, by shard."""
        raise NotImplementedError

    @contextmanager
    def convert_errors(self) -> Iterator[None]:
        """Convert the errors of DuckDB in a block, and check that no file has changed."""
        try:
            yield
        except (duckdb.Error, pa.ArrowException) as error:
            self._check_files()
            raise self._explain(error) from None
        self._check_files()

    def _check_files(self) -> None:
        for source in self._job.sources:
            identity = self._identities.get(source.name)
            if identity is not None and identify_file(source.name) != identity:
                raise SourceError(f"{source.title}: {CHANGED}")

    def _explain(self, error: Exception) -> SrvstatError:
        """Return our error for one of DuckDB: that of the file that can't be read, if any."""
        reason = describe_error(error)
        if isinstance(error, duckdb.OutOfMemoryException):
            return EngineError(f"DuckDB: {reason}; raise --memory or free disk space")
        for source in self._job.sources:
            if source.name in self._identities:
                for _ in read_batches(source):
                    pass
        return EngineError(f"DuckDB: {reason}")
