"""Count the observations of a fleet with an embedded DuckDB."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa
from pyarrow import compute as pc

from srvstat.contract.errors import EngineError, SourceError, SrvstatError
from srvstat.contract.ranges import BEFORE_ALL, Window
from srvstat.files.identity import Identity, identify_file
from srvstat.files.reading import CHANGED
from srvstat.fleet.counts import (
    FIGURES,
    LOCATED,
    ORDER_BITS,
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
    NativeFile,
    can_be_named,
    select_malformed,
    select_rows,
)
from srvstat.fleet.duckdb_session import Session, describe_error, open_session
from srvstat.fleet.finish import finish_counts
from srvstat.fleet.native import (
    WRONG_STATISTICS,
    find_native_columns,
    may_have_early_numbers,
    read_spans,
)
from srvstat.fleet.reader_rows import Remarks, judge_rows, read_rows
from srvstat.fleet.slices import Span
from srvstat.sources.arrow_columns import Columns
from srvstat.sources.batch import read_batches
from srvstat.sources.parquet import read_metadata
from srvstat.sources.source import Source

_ROWS_PER_INSERT = 1 << 18

_SURVEY = """
CREATE OR REPLACE TEMP TABLE surveyed AS
SELECT
    identifier,
    count(*) AS rows,
    count(*) FILTER (NOT ({limit})) AS late,
    max("at") FILTER ({limit}) AS last_at,
    max(players) AS most
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
    standing.position AS last_position, standing.players AS last_players, most
FROM surveyed LEFT JOIN last_rows USING (identifier)"""

_LOCATE = """
SELECT
    position >> {bits} AS source, count(*) AS rows, min(position) AS first,
    arg_min(identifier, position) AS identifier
FROM ({rows}) SEMI JOIN named USING (identifier)
GROUP BY source"""

_NAMED = pa.schema([("identifier", pa.string())])


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
        self._files: list[NativeFile] = []
        self._spans: list[Span] = []  # of all rows, also of staged ones
        self._identities: dict[str, Identity] = {}
        self._remarks = Remarks()
        self._most: int | None = None  # players of a row

    def prepare(self, progress: Progress) -> None:
        """Find the files that DuckDB can read, and read all other sources into a table."""
        self._session.create_table(STAGED, ROWS.empty_table())
        others: list[tuple[int, Source]] = []
        for number, source in enumerate(self._job.sources):
            file = self._open_native(number, source)
            if file is None:
                others.append((number, source))
            else:
                self._files.append(file)
                self._spans += file.spans
                self._remarks.rows[number] += sum(span.rows for span in file.spans)
        for done, (number, source) in enumerate(others):
            progress("reading", done / len(others), source.title)
            self._stage(number, source)

    def _open_native(self, number: int, source: Source) -> NativeFile | None:
        """Return a file that DuckDB can read, otherwise None."""
        if source.kind != "parquet" or not can_be_named(source.name):
            return None
        identity = identify_file(source.name)
        metadata = read_metadata(source)
        columns = find_native_columns(source, metadata.schema.to_arrow_schema())
        spans = columns and read_spans(columns, metadata)
        if columns is None or spans is None or may_have_early_numbers(columns, metadata):
            return None
        self._identities[source.name] = identity
        return NativeFile(number, source, columns, spans)

    def _stage(self, number: int, source: Source) -> None:
        """Read a source with our own reader, and store its rows."""
        batches: list[pa.RecordBatch] = []
        rows = 0
        for batch in read_rows(source, number, self._remarks):
            batches.append(batch)
            rows += batch.num_rows
            if rows >= _ROWS_PER_INSERT:
                self._insert(batches)
                batches, rows = [], 0
        if batches:
            self._insert(batches)

    def _insert(self, batches: list[pa.RecordBatch]) -> None:
        rows = pa.Table.from_batches(batches)
        ends = pc.min_max(rows["at"]).as_py()
        self._spans.append(Span(ends["min"], ends["max"], len(rows)))
        self._session.insert(STAGED, rows)

    def survey(self) -> Survey:
        """Read all rows, and return their identifiers."""
        with self.convert_errors():
            limit = "true" if self._job.as_of is None else f'"at" <= {self._job.as_of}'
            self._session.execute(
                "survey", _SURVEY.format(rows=select_rows(self._files), limit=limit)
            )
            identifiers = self._session.fetch(
                "survey",
                _LAST_ROWS.format(rows=select_rows(self._files), order=build_order(self._job)),
            )
            if identifiers["last_at"].null_count < identifiers["last_position"].null_count:
                raise SourceError(f"the last row of a server was not found: {WRONG_STATISTICS}")
            self._most = pc.max(identifiers["most"]).as_py()
            self._count_malformed(pc.sum(identifiers["rows"]).as_py() or 0)
        remarks = self._remarks
        return Survey(
            self._job.sources,
            identifiers.drop_columns("most").cast(SURVEY),
            remarks.rows,
            [*remarks.rejects.values()],
            remarks.skipped,
            remarks.warnings,
        )

    def _count_malformed(self, rows: int) -> None:
        """Count the rows that the queries leave out, by the reason of our own converter."""
        missing = sum(span.rows for span in self._spans) - rows
        if not missing:
            return
        before = self._remarks.count_rows()
        for file, query in select_malformed(self._files):
            columns = Columns(file.columns.id, file.columns.at, [file.columns.players])
            batches = self._session.stream("survey", query)
            judge_rows(file.source, columns, batches, self._remarks)
        missing -= self._remarks.count_rows() - before
        if missing:
            raise SourceError(f"{missing:,} rows were not found: {WRONG_STATISTICS}")

    def locate(self, identifiers: Sequence[str]) -> pa.Table:
        """Return the rows of some identifiers by source."""
        with self.convert_errors():
            self._session.create_table("named", pa.table({"identifier": identifiers}, _NAMED))
            query = _LOCATE.format(rows=select_rows(self._files), bits=ORDER_BITS)
            return self._session.fetch("survey", query).cast(LOCATED)

    def count(self, servers: Servers, window: Window) -> Count:
        """Count the observations of servers in a window, and finish them to figures."""
        with self.convert_errors():
            counter = Counter(self._session, self._job, servers, window, self._most)
            resolved = counter.resolve(self._files, self._spans)
            figures = pa.Table.from_batches(map(finish_counts, counter.read_counts()), FIGURES)
        return Count(figures, resolved)

    def write_rows(self, servers: Servers, until: int, folder: str) -> Resolved:
        """Write the resolved observations up to an instant as Parquet files, by shard."""
        with self.convert_errors():
            window = Window(BEFORE_ALL, until)
            counter = Counter(self._session, self._job, servers, window, self._most)
            resolved = counter.resolve(self._files, self._spans, is_stored=True)
            counter.write_rows(folder)
        return resolved

    @contextmanager
    def convert_errors(self) -> Iterator[None]:
        """Convert the errors of DuckDB in a block, and check first whether a file has changed."""
        try:
            yield
        except (duckdb.Error, pa.ArrowException) as error:
            self._check_files()
            raise self._explain(error) from None
        except SourceError:
            self._check_files()
            raise
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
