"""Make the SQL that selects the observations of sources in DuckDB."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa

from srvstat.contract.instants import LATEST
from srvstat.fleet.counts import ORDER_BITS
from srvstat.fleet.native import NativeColumns
from srvstat.sources.batch import MAX_PLAYERS
from srvstat.sources.source import Source
from srvstat.sources.sql import is_utf8, quote_identifier, quote_text

STAGED = "staged"
"""The table of the rows that our own readers have read."""

_GLOB_CHARACTERS = str.maketrans({each: f"[{each}]" for each in "*?["})


def can_be_named(path: str) -> bool:
    """Return whether DuckDB can open a file by its path, and not only a pattern like it."""
    is_pattern = path.translate(_GLOB_CHARACTERS) != path
    return is_utf8(path) and not (is_pattern and "\\" in path)  # patterns can't have backslashes


class Run(NamedTuple):
    """Successive Parquet files with equal columns, and the number of the first one in the job."""

    first_number: int
    sources: list[Source]
    columns: NativeColumns

    def is_followed_by(self, number: int, columns: NativeColumns) -> bool:
        """Return whether a file is the next one of this run."""
        return self.first_number + len(self.sources) == number and self.columns == columns


def group_runs(files: Iterable[tuple[int, Source, NativeColumns]]) -> list[Run]:
    """Group files, given with their numbers in ascending order."""
    runs: list[Run] = []
    for number, source, columns in files:
        if runs and runs[-1].is_followed_by(number, columns):
            runs[-1].sources.append(source)
        else:
            runs.append(Run(number, [source], columns))
    return runs


def select_rows(runs: Sequence[Run], first: int = 0, last: int = LATEST) -> str:
    """Return a query for all well-formed rows from one instant to another.

    Its columns are those of ROWS.
    """
    staged = f'SELECT * FROM {STAGED} WHERE "at" BETWEEN {first} AND {last}'
    return "\nUNION ALL\n".join([*(_select_run(run, first, last) for run in runs), staged])


def select_malformed(run: Run) -> str:
    """Return a query for the rows of a run that `select_rows` leaves out, as they are stored."""
    names = ", ".join(map(quote_identifier, run.columns[:3]))
    condition = _build_condition(run.columns, 0, LATEST)
    return f"SELECT {names} FROM {_build_table(run)} WHERE ({condition}) IS NOT TRUE"


def _select_run(run: Run, first: int, last: int) -> str:
    identifier, _, players = map(quote_identifier, run.columns[:3])
    return f"""
        SELECT
            {identifier} AS identifier,
            {_build_instant(run.columns)} AS "at",
            {players}::BIGINT AS players,
            ((file_index::BIGINT + {run.first_number}) << {ORDER_BITS}) + file_row_number + 1
                AS position
        FROM {_build_table(run)}
        WHERE {_build_condition(run.columns, first, last)}"""


def _build_table(run: Run) -> str:
    names = ", ".join(quote_text(source.name.translate(_GLOB_CHARACTERS)) for source in run.sources)
    return f"read_parquet([{names}], hive_partitioning = false)"


def _build_condition(columns: NativeColumns, first: int, last: int) -> str:
    """Return the condition of well-formed rows from one instant to another.

    The stored times are compared, so that DuckDB leaves out row groups by their statistics.
    """
    identifier, at, players = map(quote_identifier, columns[:3])
    least, greatest = (
        _format_time(columns, bound) for bound in columns.unit.find_bounds(first, last)
    )
    conditions = [
        f"{identifier} IS NOT NULL",
        f"{at} BETWEEN {least} AND {greatest}",
        f"{players} BETWEEN 0 AND {MAX_PLAYERS}",
    ]
    if invalid := columns.unit.invalid:
        conditions.append(f"{at} NOT BETWEEN {invalid.start} AND {invalid.stop - 1}")
    return " AND ".join(conditions)


def _build_instant(columns: NativeColumns) -> str:
    """Return an expression for the instants in Unix milliseconds."""
    at, unit = quote_identifier(columns.at), columns.unit
    if pa.types.is_integer(columns.at_type):
        instant = f"{at}::BIGINT"
    elif columns.at_type.unit == "ns":
        instant = f"epoch_ns({at})"
    else:
        return f"epoch_us({at}) // 1000"
    if unit.per_millisecond > 1:
        return f"{instant} // {unit.per_millisecond}"
    return f"{instant} * {unit.milliseconds}" if unit.milliseconds > 1 else instant


def _format_time(columns: NativeColumns, stored: int) -> str:
    """Return a stored time as a literal of the column's type."""
    kind = columns.at_type
    if pa.types.is_integer(kind):
        return str(stored)
    if kind.unit == "ns":
        return f"make_timestamp_ns({min(stored, (1 << 63) - 2)})"
    # DuckDB reads milliseconds as microseconds.
    scaled = stored * 1000 + 999 * (stored > 0) if kind.unit == "ms" else stored
    time = f"make_timestamp({scaled})"
    return time if kind.tz is None else f"{time}::TIMESTAMPTZ"
