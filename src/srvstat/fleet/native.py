"""Choose the Parquet files that an engine can read itself, and how their values become integers.

An engine reads columns of plain types only. All other sources are read by our own readers.
"""

from typing import NamedTuple

import pyarrow as pa
from pyarrow.parquet import FileMetaData, Statistics

from srvstat.contract.instants import YEAR_2001
from srvstat.fleet.slices import Span
from srvstat.sources.arrow_columns import choose_columns, get_value_type, has_no_zone, is_text
from srvstat.sources.source import Source
from srvstat.sources.values import SECONDS

_PER_MILLISECOND = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_MAX_INTEGER = (1 << 63) - 1
_LATEST = {"ms": _MAX_INTEGER // 1_000, "us": _MAX_INTEGER, "ns": _MAX_INTEGER // 1_000_000 - 1}
"""The last milliseconds that engines can read from each type of timestamp.

They convert milliseconds to microseconds, and the largest number is an infinite time.
"""

WRONG_STATISTICS = (
    "the statistics in a Parquet file, by which rows are found, do not fit its rows; write the file"
    " again"
)
"""The reason to refuse sources of which an engine found fewer rows than they have."""


class NativeColumns(NamedTuple):
    """The columns of a file that an engine reads itself, and the types of their values.

    Files with equal columns can be read together.
    """

    id: str
    at: str
    players: str
    at_type: pa.DataType
    players_type: pa.DataType
    unit: "InstantUnit"


class InstantUnit(NamedTuple):
    """How the stored times of a column become Unix milliseconds.

    A time is divided by `per_millisecond`, rounded down, and multiplied by `milliseconds`. A number
    before `first` can be a date, or look like seconds.
    """

    per_millisecond: int
    milliseconds: int
    first: int = 0

    def find_bounds(self, first: int, last: int) -> tuple[int, int]:
        """Return the least and the greatest stored time of the instants from first to last."""
        first = max(first, self.first)
        if self.milliseconds > 1:
            return -(-first // self.milliseconds), last // self.milliseconds
        return first * self.per_millisecond, (last + 1) * self.per_millisecond - 1


def find_native_columns(source: Source, schema: pa.Schema) -> NativeColumns | None:
    """Return the columns of a Parquet file if an engine can read all of them, otherwise None.

    Raises SourceError if a column can't be read at all.
    """
    mapping = source.mapping
    wanted = (mapping.id, mapping.at, mapping.players)
    folded = [name.lower() for name in schema.names]
    # Engines ignore capitals. A column that the file lacks may be a folder of its path.
    if mapping.is_wide or any(folded.count(name.lower()) != 1 for name in wanted):
        return None
    if not set(wanted) <= set(schema.names):
        return None
    choose_columns(source, schema)
    id_type, at_type, players_type = (get_value_type(schema, name) for name in wanted)
    unit = _find_unit(source, at_type)
    if unit is None or not is_text(id_type) or not pa.types.is_integer(players_type):
        return None
    return NativeColumns(*wanted, at_type, players_type, unit)


def _find_unit(source: Source, kind: pa.DataType) -> InstantUnit | None:
    mapping = source.mapping
    if pa.types.is_integer(kind):
        if mapping.time_unit == "s":
            return InstantUnit(1, 1000)
        return InstantUnit(1, 1, SECONDS.stop if mapping.time_unit else YEAR_2001)
    if not pa.types.is_timestamp(kind) or kind.unit not in _PER_MILLISECOND:
        return None
    if has_no_zone(kind) and mapping.time_zone != "UTC":
        return None
    return InstantUnit(_PER_MILLISECOND[kind.unit], 1)


def read_spans(columns: NativeColumns, metadata: FileMetaData) -> list[Span] | None:
    """Return the spans of the row groups of a file, from their statistics.

    Returns None if an engine could not represent all of its times.
    """
    stored = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    at = [column.path for column in stored].index(columns.at)
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    spans = [_read_span(columns, group.column(at).statistics, group.num_rows) for group in groups]
    if pa.types.is_timestamp(columns.at_type):
        latest = _LATEST[columns.at_type.unit]
        is_wide = any(max(span.last, -span.first) > latest for span in spans)
        # INT96 has more times than a timestamp, into which pyarrow and engines read it.
        if is_wide or stored[at].physical_type == "INT96":
            return None
    return spans


def may_have_early_numbers(columns: NativeColumns, metadata: FileMetaData) -> bool:
    """Return whether a number in a file may be one that only our own reader judges."""
    if not columns.unit.first:
        return False
    spans = read_spans(columns, metadata) or ()
    return any(span.rows and span.first < columns.unit.first for span in spans)


def _read_span(columns: NativeColumns, statistics: Statistics | None, rows: int) -> Span:
    # Any time is possible without statistics; those of unsigned integers are given as signed ones.
    is_unsigned = pa.types.is_unsigned_integer(columns.at_type)
    if statistics is None or not statistics.has_min_max or is_unsigned:
        return Span(-_MAX_INTEGER, _MAX_INTEGER, rows)
    unit = columns.unit
    least, greatest = (
        each // unit.per_millisecond * unit.milliseconds
        for each in (statistics.min_raw, statistics.max_raw)
    )
    return Span(least, greatest, rows)
