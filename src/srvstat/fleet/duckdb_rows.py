"""Make the SQL that selects the observations of a job's sources in DuckDB."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from srvstat.contract.instants import LATEST
from srvstat.contract.ranges import BEFORE_ALL, Window
from srvstat.fleet.counts import ORDER_BITS
from srvstat.fleet.native import NativeColumns
from srvstat.fleet.slices import Span
from srvstat.sources.batch import MAX_PLAYERS
from srvstat.sources.source import Source
from srvstat.sources.sql import is_utf8, quote_identifier, quote_text

STAGED = "staged"
"""The table of the rows that our own readers have read."""

ALL_TIME = Window(BEFORE_ALL, LATEST)

_GLOB_CHARACTERS = str.maketrans({each: f"[{each}]" for each in "*?["})


def can_be_named(path: str) -> bool:
    """Return whether DuckDB can open a file by its path, and not only a pattern like it."""
    is_pattern = path.translate(_GLOB_CHARACTERS) != path
    return is_utf8(path) and not (is_pattern and "\\" in path)  # patterns can't have backslashes


class NativeFile(NamedTuple):
    """A Parquet file that DuckDB reads, its number in the job, and its row groups."""

    number: int
    source: Source
    columns: NativeColumns
    spans: Sequence[Span]


class _Run(NamedTuple):
    """Successive files with equal columns, which one scan reads."""

    first_number: int
    files: list[NativeFile]
    columns: NativeColumns


def select_rows(files: Iterable[NativeFile], window: Window = ALL_TIME) -> str:
    """Return a query for all well-formed rows in a window, with the columns of ROWS."""
    chosen = [file for file in files if any(span.overlaps(window) for span in file.spans)]
    staged = f'SELECT * FROM {STAGED} WHERE "at" BETWEEN {window.start + 1} AND {window.end}'
    runs = (_select_run(run, window) for run in _group_files(chosen))
    return "\nUNION ALL\n".join([*runs, staged])


def select_malformed(files: Iterable[NativeFile]) -> Iterator[tuple[NativeFile, str]]:
    """Yield queries for all rows that are not well-formed, as they are stored, with positions.

    Each query is for some of the files, of which it has the first one.
    """
    for run in _group_files(files):
        names = ", ".join(map(quote_identifier, run.columns[:3]))
        condition = _build_condition(run.columns, ALL_TIME)
        query = (
            f"SELECT {names}, {_build_position(run)} AS position FROM {_build_table(run)}"
            f" WHERE ({condition}) IS NOT TRUE"
        )
        yield run.files[0], query


def count_rows(files: Iterable[NativeFile], window: Window, known: str) -> str:
    """Return a query for the number of well-formed rows in a window, of `known` identifiers.

    It does not use the statistics of files, because its conditions only choose what is counted.
    """
    counts = [
        f"SELECT count(*) FILTER ({_build_condition(run.columns, window)}"
        f" AND {quote_identifier(run.columns.id)} IN ({known})) AS inside FROM {_build_table(run)}"
        for run in _group_files(files)
    ]
    counts.append(
        f'SELECT count(*) FILTER ("at" BETWEEN {window.start + 1} AND {window.end}'
        f" AND identifier IN ({known})) AS inside FROM {STAGED}"
    )
    return "SELECT sum(inside)::BIGINT AS rows FROM ({})".format("\nUNION ALL\n".join(counts))


def _group_files(files: Iterable[NativeFile]) -> list[_Run]:
    runs: list[_Run] = []
    for file in files:
        last = runs[-1] if runs else None
        if last and last.columns == file.columns and last.files[-1].number + 1 == file.number:
            last.files.append(file)
        else:
            runs.append(_Run(file.number, [file], file.columns))
    return runs


def _select_run(run: _Run, window: Window) -> str:
    identifier, _, players = map(quote_identifier, run.columns[:3])
    return f"""
        SELECT
            {identifier} AS identifier,
            {_build_instant(run.columns)} AS "at",
            {players}::BIGINT AS players,
            {_build_position(run)} AS position
        FROM {_build_table(run)}
        WHERE {_build_condition(run.columns, window)}"""


def _build_position(run: _Run) -> str:
    return f"((file_index::BIGINT + {run.first_number}) << {ORDER_BITS}) + file_row_number + 1"


def _build_table(run: _Run) -> str:
    names = (quote_text(file.source.name.translate(_GLOB_CHARACTERS)) for file in run.files)
    return f"read_parquet([{', '.join(names)}], hive_partitioning = false)"


def _build_condition(columns: NativeColumns, window: Window) -> str:
    """Return the condition of well-formed rows in a window.

    The stored times are compared, so that DuckDB leaves out row groups by their statistics.
    """
    identifier, at, players = map(quote_identifier, columns[:3])
    bounds = columns.unit.find_bounds(window.start + 1, window.end)
    least, greatest = (_format_time(columns.at_type, bound) for bound in bounds)
    conditions = [
        f"{identifier} IS NOT NULL",
        f"{at} BETWEEN {least} AND {greatest}",
        f"{players} BETWEEN 0 AND {MAX_PLAYERS}",
    ]
    return " AND ".join(conditions)


def _build_instant(columns: NativeColumns) -> str:
    """Return an expression for the instants in Unix milliseconds."""
    at, kind, unit = quote_identifier(columns.at), columns.at_type, columns.unit
    if pa.types.is_integer(kind):
        return f"{at}::BIGINT * {unit.milliseconds}"
    if kind.unit == "ns":
        return f"epoch_ns({at}) // {unit.per_millisecond}"
    # DuckDB reads milliseconds as microseconds.
    return f"epoch_us({at}) // 1000"


def _format_time(kind: pa.DataType, stored: int) -> str:
    """Return a stored time as a literal of the type of its column."""
    if pa.types.is_integer(kind):
        return str(stored)
    zone = "" if kind.tz is None else "TZ"
    if kind.unit == "ns":
        return f"make_timestamp_ns({min(stored, _LATEST_NANOSECOND)})::TIMESTAMP{zone}_NS"
    time = f"make_timestamp({stored * 1000 if kind.unit == 'ms' else stored})"
    return f"{time}::TIMESTAMP{zone}"


_LATEST_NANOSECOND = (1 << 63) - 2
"""The largest integer is DuckDB's infinity."""
