"""Read observations from a table or query of a PostgreSQL database."""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from srvstat.contract.errors import SourceError
from srvstat.files.reading import is_url
from srvstat.sources import tables
from srvstat.sources.source import Batch, Source, build_query, describe_no_table

_CONNECT_SECONDS = 10
_ROWS_PER_TABLE = 10_000
_FORM = "use postgresql://USER@HOST:PORT/DATABASE"
_OPTIONS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO'",
    "SET LOCAL extra_float_digits = 1",
)

# If a password contains one of these, libpq takes a part of it for the host and shows it in the
# message.
_ESCAPED_URL = re.compile(r"[a-z]+://([^@/]*@)?[^@?]*(\?.*)?", re.IGNORECASE | re.DOTALL)


def read(source: Source) -> Iterator[Batch]:
    """Read the rows of a query, or of the table `observations`, in the server's order.

    All rows come from one state of the database, in a read-only transaction.

    Raises SourceError if the database can't be read. The message never contains a password.
    """
    with _open_cursor(source) as cursor:
        yield from _read_query(source, cursor)


def read_sample(source: Source) -> tables.Sample:
    """Return the first rows of a query or table.

    Raises the errors of `read`.
    """
    with _open_cursor(source) as cursor:
        query = sql.SQL("SELECT * FROM ({}\n) AS rows LIMIT {}")
        parts = sql.SQL(build_query(source))
        cursor.execute(query.format(parts, 0), binary=True)
        names = [column.name for column in cursor.description or ()]
        if own := tables.build_own_sample(source, "PostgreSQL", names):
            return own
        cursor.execute(query.format(parts, tables.SAMPLE_ROWS), binary=True)
        rows = [["" if value is None else str(value) for value in row] for row in cursor]
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        return tables.Sample(
            "PostgreSQL", tables.Table(names, columns, range(1, len(rows) + 1)), is_whole=False
        )


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
        reason = describe_no_table(source) if has_no_table else _describe(error, secrets)
        raise SourceError(f"{source.title}: {reason}") from None


def _connect(source: Source) -> "psycopg.Connection[Any]":
    parameters: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "srvstat",
        **conninfo_to_dict(source.name),
        "client_encoding": "UTF8",
    }
    return psycopg.connect(make_conninfo("", **parameters))


def _find_secrets(source: Source) -> list[str]:
    """Return the texts that no message may contain.

    Raises SourceError if the URL is malformed. libpq's own message would contain a part of the URL.
    """
    if not is_url(
        source.name
    ):  # another form of libpq's connection strings, which the title would show
        raise SourceError(f"--source postgresql: needs a URL; {_FORM}")
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
    """Return an error message in one line, without the query excerpt."""
    text = (error.diag.message_primary or str(error)).strip()
    for secret in secrets:
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "…", text)
    return (
        "; ".join(" ".join(line.split()) for line in text.splitlines()) or "the connection failed"
    )


def _read_query(source: Source, cursor: "psycopg.Cursor[Any]") -> Iterator[Batch]:
    query = sql.SQL(build_query(source))
    # LIMIT 0 finds the columns before the query is run.
    statement = sql.SQL("SELECT * FROM ({}\n) AS rows LIMIT 0").format(query)
    cursor.execute(statement, binary=True)  # the binary protocol rejects a second statement
    stored = [column.name for column in cursor.description or ()]
    names = tables.fold_names(source.mapping, stored)
    wanted = tables.check_columns(source, names)
    chosen = [sql.Identifier(stored[names.index(name)]) for name in wanted]
    statement = sql.SQL("COPY (SELECT {} FROM ({}\n) AS rows) TO STDOUT").format(
        sql.SQL(", ").join(chosen), query
    )
    first = 1
    with cursor.copy(statement) as copy:
        rows = copy.rows()
        while found := [*islice(rows, _ROWS_PER_TABLE)]:
            columns = [_read_column(column) for column in zip(*found, strict=True)]
            yield tables.convert_table(
                source, tables.Table(wanted, columns, range(first, first + len(found)))
            )
            first += len(found)


def _read_column(values: Sequence[Any]) -> list[str]:
    return ["" if value is None else value for value in values]
