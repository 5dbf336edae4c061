"""Read observations from a table or query of a PostgreSQL database."""

import io
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pyarrow import csv

from srvstat.contract.errors import SourceError
from srvstat.files.reading import is_url
from srvstat.sources.parquet import build_own_sample, choose_columns, read_record_batches
from srvstat.sources.source import Batch, Source, build_query, describe_missing_table
from srvstat.sources.table import SAMPLE_ROWS, Sample, Table

_CONNECT_SECONDS = 10
_BLOCK_BYTES = 1 << 20
_FORM = "use postgresql://USER@HOST:PORT/DATABASE"
_OPTIONS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO'",
    "SET LOCAL extra_float_digits = 1",
)

_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("int2", "int4", "int8"), pa.int64()),
    **dict.fromkeys(("float4", "float8"), pa.float64()),
    **dict.fromkeys(("timestamp", "date"), pa.timestamp("us")),
    "timestamptz": pa.timestamp("us", "UTC"),
}
"""How columns are read; other types are read as text."""

# libpq would take a part of a password with one of these for the host, and show it in its message.
_ESCAPED_URL = re.compile(r"[a-z]+://([^@/]*@)?[^@?]*(\?.*)?", re.IGNORECASE | re.DOTALL)


def read(source: Source) -> Iterator[Batch]:
    """Read the rows of a query, or of the table `observations`, in the order of the server.

    All rows are of one state of the database, in a transaction that can't write.

    Raises SourceError if the database can't be read; its message never contains a password.
    """
    with _open_cursor(source) as cursor:
        yield from _read_query(source, cursor)


def read_sample(source: Source) -> Sample:
    """Return the first rows of a query or table.

    Raises SourceError as `read` does.
    """
    with _open_cursor(source) as cursor:
        query = sql.SQL("SELECT * FROM ({}\n) AS rows LIMIT {}")
        parts = sql.SQL(build_query(source))
        cursor.execute(query.format(parts, 0), binary=True)
        names = [column.name for column in cursor.description or ()]
        if own := build_own_sample(source, "PostgreSQL", names):
            return own
        cursor.execute(query.format(parts, SAMPLE_ROWS), binary=True)
        rows = [["" if value is None else str(value) for value in row] for row in cursor]
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        return Sample("PostgreSQL", Table(names, columns, range(1, len(rows) + 1)), is_whole=False)


@contextmanager
def _open_cursor(source: Source) -> Iterator["psycopg.Cursor[Any]"]:
    secrets = _find_secrets(source)
    try:
        with closing(_connect(source)) as connection, connection.cursor() as cursor:
            for option in _OPTIONS:
                cursor.execute(option)
            yield cursor
    except psycopg.Error as error:
        has_no_table = source.query is None and isinstance(error, psycopg.errors.UndefinedTable)
        reason = describe_missing_table(source) if has_no_table else _describe(error, secrets)
        raise SourceError(f"{source.title}: {reason}") from None
    except pa.ArrowException as error:
        raise SourceError(f"{source.title}: {' '.join(str(error).split())}") from None


def _connect(source: Source) -> "psycopg.Connection[Any]":
    parameters: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "srvstat",
        **conninfo_to_dict(source.name),
        "client_encoding": "UTF8",
    }
    return psycopg.connect(make_conninfo("", **parameters))


def _find_secrets(source: Source) -> list[str]:
    """Return what no message may contain.

    Raises SourceError if the URL is malformed; libpq's message would contain a part of it.
    """
    if not is_url(source.name):  # it can be another form of libpq, which the title would show
        raise SourceError(f"--from postgresql: needs a URL; {_FORM}")
    if not _ESCAPED_URL.fullmatch(source.name):
        raise SourceError(
            f"{source.title}: malformed; in a user or password, write %40 for @, and %2F for /"
        )
    try:
        given = conninfo_to_dict(source.name)
    except (psycopg.Error, UnicodeEncodeError):
        raise SourceError(f"{source.title}: not a URL of PostgreSQL; {_FORM}") from None
    return [str(given[key]) for key in ("password", "sslpassword") if given.get(key)]


def _describe(error: psycopg.Error, secrets: list[str]) -> str:
    """Return the message of an error in one line, without the excerpt of the query."""
    text = (error.diag.message_primary or str(error)).strip()
    for secret in secrets:
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "…", text)
    return " ".join(text.split()) or "the connection failed"


def _read_query(source: Source, cursor: "psycopg.Cursor[Any]") -> Iterator[Batch]:
    query = sql.SQL(build_query(source))
    # Without rows, to find the columns before the query is run.
    statement = sql.SQL("SELECT * FROM ({}\n) AS rows LIMIT 0").format(query)
    cursor.execute(statement, binary=True)  # in this form, the server refuses a second statement
    types = _describe_columns(cursor)
    columns = choose_columns(source, pa.schema(list(types.items())), any_case=True)
    chosen = [_select(name, types[name]) for name in columns.names]
    statement = sql.SQL("COPY (SELECT {} FROM ({}\n) AS rows) TO STDOUT (FORMAT csv)").format(
        sql.SQL(", ").join(chosen), query
    )
    with cursor.copy(statement) as copy:
        schema = pa.schema([(name, types[name]) for name in columns.names])
        yield from read_record_batches(source, columns, _parse_blocks(source, copy, schema))


def _describe_columns(cursor: "psycopg.Cursor[Any]") -> dict[str, pa.DataType]:
    """Return the type in which each column of a result is read.

    Two columns of one name are not distinguished; PostgreSQL refuses to select one of them.
    """
    types = {}
    for column in cursor.description or ():
        known = cursor.connection.adapters.types.get(column.type_code)
        types[column.name] = _TYPES.get(known.name if known else "", pa.string())
    return types


def _select(name: str, kind: pa.DataType) -> sql.Composable:
    """Return the expression of a column; a time outside the years 1 to 9999 becomes the first one.

    It would have a form that is not ISO 8601: `infinity`, or a year before Christ.
    """
    column = sql.Identifier(name)
    if pa.types.is_string(kind):
        return sql.SQL("{}::text").format(column)
    if not pa.types.is_timestamp(kind):
        return column
    return sql.SQL(
        "CASE WHEN {0} BETWEEN '0001-01-01' AND '9999-12-31 23:59:59.999999' THEN {0}"
        " WHEN {0} IS NOT NULL THEN '0001-01-01' END"
    ).format(column)


def _parse_blocks(
    source: Source, copy: psycopg.Copy, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Parse the CSV of a copy, whole lines at a time."""
    for block in _read_lines(copy):
        if source.on_bytes:
            source.on_bytes(len(block))
        table = csv.read_csv(
            io.BytesIO(block),
            csv.ReadOptions(column_names=schema.names, use_threads=False, block_size=len(block)),
            csv.ParseOptions(newlines_in_values=True),
            csv.ConvertOptions(
                column_types=schema,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        yield from table.to_batches()


def _read_lines(copy: psycopg.Copy) -> Iterator[bytes]:
    """Read rows of CSV; the server sends each row as a message of its own."""
    rows = bytearray()
    for row in copy:
        rows += row
        if len(rows) >= _BLOCK_BYTES:
            yield bytes(rows)
            rows.clear()
    if rows:
        yield bytes(rows)
