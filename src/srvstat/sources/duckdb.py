"""Read observations from a DuckDB database, or from a query over any DuckDB reader.

A database may be untrusted, and its views can read any file, so it is opened without access to
other files. A query without a database comes from the user and may read files.
"""

import tempfile
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import duckdb
import pyarrow as pa

from srvstat.contract.errors import SourceError
from srvstat.files.paths import convert_errors
from srvstat.sources import parquet
from srvstat.sources.source import Batch, Source, build_query, describe_no_table, quote_identifier
from srvstat.sources.tables import SAMPLE_ROWS, Sample, build_own_sample, check_columns, fold_names
from srvstat.sources.values import is_utf8

_MEMORY_LIMIT = "512MB"
"""Sorts that exceed this limit use temporary files."""

_ISOLATION = ("SET enable_external_access = false", "SET lock_configuration = true")

_NO_FILES = (
    "a view or the query reads another file, but a database has no access to other files; copy the"
    " rows into a table of the database"
)


def read(source: Source) -> Iterator[Batch]:
    """Read the rows of a query, or of the table `observations`, in DuckDB's order.

    Nothing is written, and no DuckDB extension is installed.

    Raises SourceError if the database can't be read, or if the query fails.
    """
    with _open_database(source) as connection:
        query = _check_query(source, connection)
        names = fold_names(source.mapping, connection.sql(query).columns)
        wanted = check_columns(source, names)
        # DuckDB matches names case-insensitively, but returns them as the table spells them.
        quoted = map(quote_identifier, wanted)
        chosen = ", ".join(f"{name} AS {name}" for name in quoted)
        rows = connection.sql(f"SELECT {chosen} FROM ({query}\n) AS rows")  # noqa: S608 - the user's own query
        most = parquet.count_rows_per_batch(len(wanted))
        with closing(_fetch(source, connection, rows, most)) as record_batches:
            yield from parquet.convert_batches(source, record_batches)


def read_sample(source: Source) -> Sample:
    """Return the first rows of a query or table.

    Raises SourceError if the database can't be read, or if the query fails.
    """
    with _open_database(source) as connection:
        rows = connection.sql(f"FROM ({_check_query(source, connection)}\n) LIMIT {SAMPLE_ROWS}")
        if own := build_own_sample(source, "DuckDB", rows.columns):
            return own
        return parquet.build_sample(source, "DuckDB", rows.to_arrow_table())


@contextmanager
def _open_database(source: Source) -> Iterator["duckdb.DuckDBPyConnection"]:
    with convert_errors(source.title, SourceError), tempfile.TemporaryDirectory() as folder:
        try:
            with closing(_connect(source, folder)) as connection:
                yield connection
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            # While rows are fetched, Arrow raises its own errors with DuckDB's messages.
            raise SourceError(f"{source.title}: {_explain(source, error)}") from None


def _connect(source: Source, folder: str) -> "duckdb.DuckDBPyConnection":
    """Connect to a source's database, with a folder for temporary files."""
    if not source.is_in_memory:
        source.check_regular()
        if not is_utf8(source.name):
            raise SourceError(f"{source.title}: DuckDB needs a name in UTF-8; rename the file")
    config = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": str(source.is_in_memory).lower(),
        "memory_limit": _MEMORY_LIMIT,
        "temp_directory": folder,
    }
    connection = duckdb.connect(source.name, read_only=not source.is_in_memory, config=config)
    connection.execute("SET enable_progress_bar = false")
    # These are set after connecting, because DuckDB applies a config in any order, and without
    # external access it can't use the temporary folder.
    for option in () if source.is_in_memory else _ISOLATION:
        connection.execute(option)
    return connection


def _check_query(source: Source, connection: "duckdb.DuckDBPyConnection") -> str:
    """Return the query of a source, which must be a single SELECT statement.

    Raises SourceError if it is not, and if it is not UTF-8.
    """
    query = build_query(source)
    # Reports syntax errors here, without the query that we wrap around it.
    statements = connection.extract_statements(query)
    if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
        raise SourceError(f"{source.title}: must be one SELECT statement")
    return query


def _fetch(
    source: Source,
    connection: "duckdb.DuckDBPyConnection",
    rows: "duckdb.DuckDBPyRelation",
    rows_per_batch: int,
) -> Generator[pa.RecordBatch]:
    """Fetch the rows of a query in a thread, so that a signal can interrupt it."""
    with ThreadPoolExecutor(1) as executor:
        try:
            reader = executor.submit(rows.to_arrow_reader, rows_per_batch).result()
            following = executor.submit(next, reader, None)
            while (batch := following.result()) is not None:
                following = executor.submit(next, reader, None)
                if source.on_bytes:
                    source.on_bytes(batch.nbytes)
                yield batch
        except BaseException:
            connection.interrupt()
            raise


def _explain(source: Source, error: Exception) -> str:
    """Return the reason of an error in one line, without the query excerpt."""
    if isinstance(error, duckdb.PermissionException) and not source.is_in_memory:
        return _NO_FILES
    if isinstance(error, duckdb.CatalogException) and source.query is None:
        return describe_no_table(source)
    text = str(error).split("\n\nLINE ")[0]
    return " ".join(text.split())
