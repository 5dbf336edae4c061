"""Read observations from a SQLite database: a table, a view or the rows of a query.

A database may be untrusted. It is opened read-only and read in one transaction, so all rows come
from one state even while a program writes to the database. Views can run forever and virtual tables
run module code, so both are read only when named.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import quote

from srvstat.contract import wire
from srvstat.contract.errors import SourceError
from srvstat.files.paths import convert_errors, identify_file
from srvstat.sources import flatten
from srvstat.sources.mapping import ColumnMapping, list_names
from srvstat.sources.source import Batch, Source, build_query, quote_identifier, quote_text
from srvstat.sources.tables import SAMPLE_ROWS, Sample, Table, check_columns, convert_table

_MAX_VALUE_BYTES = 1 << 20
_MAGIC = b"SQLite format 3\x00"
_WAL_MODE = b"\x02\x02"
_PROBE = 100
_LABELS = {"name", "title", "hostname", "label", "entity_id"}


def read(source: Source) -> Iterator[Batch]:
    """Read the rows of a query, or of a table in its own order.

    Raises SourceError if the source can't be read, is damaged or is not a SQLite database, if the
    table to read is ambiguous, or if a column is missing.
    """
    with _open_database(source) as connection:
        rows = _choose_rows(source, connection)
        _check_pages(source, connection, rows.table)
        names = check_columns(source, [*rows.columns])
        wanted = {name: rows.columns[name] for name in names}
        done = 0
        for table in _read_tables(source, connection, rows._replace(columns=wanted)):
            yield convert_table(source, table)
            source.report_rows(done, len(table.places), rows.total)
            done += len(table.places)


def read_sample(source: Source) -> Sample:
    """Return the first rows of a query, or of the table that has times and counts.

    Raises the errors of `read`, but does not detect a damaged database.
    """
    with _open_database(source) as connection:
        rows = _choose_rows(source, connection)
        table = next(_read_tables(source, connection, rows), None)
        if table is None:
            raise SourceError(f"{source.title}: {rows.title} has no rows")
        options = {} if rows.table is None or rows.is_only else {"input-table": rows.table}
        is_whole = len(table.places) < SAMPLE_ROWS
        return Sample(f"SQLite, {rows.title}", table, is_whole, options)


@contextmanager
def _open_database(source: Source) -> Iterator[sqlite3.Connection]:
    """Open a database for reading.

    Raises SourceError if the database can't be opened, and for SQLite errors within the block.
    """
    uri = f"file:{quote(os.fsencode(source.name), safe='/')}?mode=ro"
    identity = identify_file(source.name)
    is_idle = _is_idle_log(source)
    if is_idle:
        # Opening such a database normally would create the log files.
        uri += "&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = 0")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            connection.execute("BEGIN")
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise SourceError(
            f"{source.title}: can't be read as a SQLite database: {error}; if a program writes to"
            " it, read a copy"
        ) from None
    if is_idle and identify_file(source.name) != identity:
        raise SourceError(f"{source.title}: changed while it was read; read a copy")


def _is_idle_log(source: Source) -> bool:
    """Check that a file is a SQLite database. Return whether it is in WAL mode and has no log file.

    Raises SourceError if the file can't be read or is not a SQLite database.
    """
    source.check_regular()
    with convert_errors(source.title, SourceError), open(source.name, "rb") as file:
        header = file.read(100)
    if not header.startswith(_MAGIC):
        raise SourceError(f"{source.title}: not a SQLite database")
    # SQLite keeps the log beside the target of a symbolic link.
    log = f"{os.path.realpath(source.name)}-wal"
    return header[18:20] == _WAL_MODE and not os.path.exists(log)


class _Rows(NamedTuple):
    """What is read: the FROM clause, and the SQL expressions of the columns by name.

    `table` is None for a query. `is_only` says whether the database has no other table. `total`
    estimates the number of rows.
    """

    source: str
    columns: Mapping[str, str]
    table: str | None = None
    is_only: bool = False
    total: int = 0

    @property
    def title(self) -> str:
        """What is read, for messages."""
        return "the query" if self.table is None else f"table {wire.quote_value(self.table)}"


def _choose_rows(source: Source, connection: sqlite3.Connection) -> _Rows:
    """Return the rows of the query or named table, or else of the only table that fits.

    Raises SourceError if the table is missing or ambiguous.
    """
    if source.query is not None:
        query = f"({build_query(source)}\n)"
        return _Rows(query, _list_columns(connection, query))
    kinds = dict(
        connection.execute(
            "SELECT name, type FROM pragma_table_list"
            " WHERE schema = 'main' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
        )
    )
    tables = [name for name, kind in kinds.items() if kind == "table"]
    name = source.mapping.table
    if name is None:
        fitting = [each for each in tables if len(tables) == 1 or _has_counts(connection, each)]
        if len(fitting) != 1:
            listed = list_names(fitting or [*kinds]) or "none"
            raise SourceError(
                f"{source.title}: the tables{' with times and counts' if fitting else ''} are"
                f" {listed}; choose one with --input-table, or rows with --query"
            )
        (name,) = fitting
    elif name not in (kinds if source.kind == "sqlite" else tables):
        listed = list_names(tables) or "none"
        raise SourceError(
            f"{source.title}: no table {wire.quote_value(name)}; the tables are {listed}"
        )
    quoted = quote_identifier(name)
    columns = _list_columns(connection, quoted)
    if kinds[name] != "table":
        return _Rows(quoted, columns, name)
    columns |= _find_names(connection, name, [*columns], tables)
    # Exact unless rows were deleted, and found without reading all rows.
    total = 0
    with suppress(sqlite3.OperationalError):  # a table WITHOUT ROWID
        ((total,),) = connection.execute(f"SELECT max(rowid) FROM {quoted}")  # noqa: S608 - quoted
    # NOT INDEXED keeps the table's order.
    return _Rows(f"{quoted} NOT INDEXED", columns, name, len(tables) == 1, total or 0)


def _list_columns(connection: sqlite3.Connection, rows: str) -> dict[str, str]:
    cursor = connection.execute(f"SELECT * FROM {rows} LIMIT 0")  # noqa: S608 - quoted, or the user's
    return {name: quote_identifier(name) for name, *_ in cursor.description}


def _has_counts(connection: sqlite3.Connection, table: str) -> bool:
    """Return whether the first rows of a table contain times and other numbers."""
    query = f"SELECT * FROM {quote_identifier(table)} LIMIT {_PROBE}"  # noqa: S608 - quoted
    found = [
        set(map(_classify, column)) - {None}
        for column in zip(*connection.execute(query), strict=True)
    ]
    return {"time"} in found and {"number"} in found


def _classify(value: Any) -> str | None:
    if value is None:
        return None
    text = str(value)
    return "time" if flatten.is_time(text) else "number" if flatten.is_number(text) else "text"


def _find_names(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], tables: Sequence[str]
) -> dict[str, str]:
    """Return SQL expressions that look up the names to which columns such as `server_id` refer."""
    keys = {
        column: other
        for column in columns
        for stem in [column.lower().removesuffix("_id")]
        for other in tables
        if stem != column.lower() and other.lower() in (stem, f"{stem}s")
    }
    declared = connection.execute(f"PRAGMA foreign_key_list({quote_text(table)})")
    keys |= {column: other for _, _, other, column, *_ in declared if other in tables}
    found = {}
    for column, other in keys.items():
        infos = [*connection.execute(f"PRAGMA table_info({quote_text(other)})")]
        primary = [name for _, name, *_, is_key in infos if is_key]
        labels = [name for _, name, *_ in infos if name.lower() in _LABELS]
        if len(primary) == len(labels) == 1 and other != table:
            outer = f"{quote_identifier(table)}.{quote_identifier(column)}"
            found[f"{other}.{labels[0]}"] = (
                f"(SELECT {quote_identifier(labels[0])} FROM {quote_identifier(other)} AS named"  # noqa: S608 - quoted
                f" WHERE named.{quote_identifier(primary[0])} = {outer})"
            )
    return found


def _check_pages(source: Source, connection: sqlite3.Connection, table: str | None) -> None:
    """Check the pages of a database. Rows on a damaged page would be missing silently.

    Raises SourceError if a page is damaged.
    """
    part = "1" if table is None else quote_text(table)
    ((state,), *_) = connection.execute(f"PRAGMA quick_check({part})").fetchmany(1)
    if state != "ok":
        raise SourceError(
            f"{source.title}: damaged: {' '.join(state.split())}; read a copy that sqlite3's"
            " .recover made"
        )


def _read_tables(source: Source, connection: sqlite3.Connection, rows: _Rows) -> Iterator[Table]:
    """Read the rows as text.

    Raises SourceError if a column contains binary values.
    """
    query = f"SELECT {', '.join(rows.columns.values())} FROM {rows.source}"  # noqa: S608 - quoted
    cursor = connection.execute(query)
    names = [*rows.columns]
    first = 1
    while found := cursor.fetchmany(SAMPLE_ROWS):
        columns = []
        for name, values in zip(names, zip(*found, strict=True), strict=True):
            kinds = {*map(type, values)}
            if bytes in kinds:
                raise SourceError(
                    f"{source.title}: the column {wire.quote_value(name)} has binary values;"
                    " convert them with --query"
                )
            columns.append(
                values if kinds == {str} else [_format(value, source.mapping) for value in values]
            )
        yield Table(names, columns, range(first, first + len(found)))
        first += len(found)


def _format(value: Any, mapping: ColumnMapping) -> str:
    if isinstance(value, float):
        return mapping.write_number(str(value))
    return "" if value is None else str(value)
