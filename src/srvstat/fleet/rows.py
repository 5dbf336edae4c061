"""Represent the rows of sources, read either by DuckDB itself or by our own readers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import pyarrow as pa
from pyarrow.parquet import FileMetaData

from srvstat.contract.time import LATEST, YEAR_2001
from srvstat.snapshot.write.intake import PLACES_PER_SOURCE, Intake
from srvstat.sources.parquet import convert_batches
from srvstat.sources.registry import KINDS
from srvstat.sources.source import Batch, Source, quote_identifier, read_batches
from srvstat.sources.values import SECONDS

Conflicts = Literal["first", "lowest"]
"""How to resolve conflicting observations, which have the same server and time (D16).

`first` keeps the first observation by source, then by row; `lowest` the observation with the fewest
players.
"""

ROWS = pa.schema(
    [
        ("identifier", pa.string()),  # as the source writes it
        ("at", pa.int64()),  # Unix milliseconds
        ("players", pa.int64()),
        ("position", pa.int64()),
    ]
)
"""The rows to count. A position is a place in the build, as in `Rejects`.

All rows of a source without an order, such as a database, have place 0.
"""

_MAX_INTEGER = (1 << 63) - 1
_FIRST_COMPACT = 19 * 10**12
"""The lowest integer that can be a time such as 20260105120000. As milliseconds, it is in 2572."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def has_order(source: Source) -> bool:
    """Return whether the rows of a source have an order; true except for databases."""
    return not KINDS[source.kind].takes_query


class NativeColumns(NamedTuple):
    """The columns of a Parquet file that DuckDB can read itself.

    Files with equal columns can be read together.

    - `at_type`: integers or timestamps.
    - `milliseconds`: the number of milliseconds in a unit of integer times.
    - `first`: the lowest valid integer time. Smaller integers may be dates or seconds.
    """

    id: str
    at: str
    players: str
    at_type: pa.DataType
    milliseconds: int = 1
    first: int = 0

    def build_instant(self) -> str:
        """Return an SQL expression for the times in Unix milliseconds."""
        stored, per_millisecond = self._build_stored()
        return f"{stored} // {per_millisecond} * {self.milliseconds}"

    def build_condition(self) -> str:
        """Return an SQL condition for valid times, as stored."""
        stored, per_millisecond = self._build_stored()
        last = (LATEST + 1) * per_millisecond // self.milliseconds - 1
        return f"{stored} BETWEEN {self.first} AND {last}"

    def _build_stored(self) -> tuple[str, int]:
        """Return an SQL expression for stored times as integers, and their units per ms."""
        at = quote_identifier(self.at)
        if pa.types.is_integer(self.at_type):
            return f"{at}::HUGEINT" if self.at_type == pa.uint64() else f"{at}::BIGINT", 1
        # DuckDB reads milliseconds as microseconds.
        nanoseconds = self.at_type.unit == "ns"
        return (f"epoch_ns({at})", 1_000_000) if nanoseconds else (f"epoch_us({at})", 1_000)


def find_native_columns(source: Source, metadata: FileMetaData) -> NativeColumns | None:
    """Return the columns of a Parquet file if DuckDB can read all of them, otherwise None.

    Raises SourceError if a column can't be read at all.
    """
    schema, mapping = metadata.schema.to_arrow_schema(), source.mapping
    if (
        mapping.id is None
        or mapping.is_wide
        or mapping.time_format
        or mapping.time_unit in {"us", "ns"}
    ):
        return None
    wanted = (mapping.id, mapping.at, mapping.players)
    folded = [name.lower() for name in schema.names]
    # DuckDB ignores case. It may take a column that the file lacks from a folder name in the path.
    is_found = all(folded.count(name.lower()) == 1 and name in schema.names for name in wanted)
    if not is_found:
        return None
    id_type, at_type, players_type = (_get_value_type(schema, name) for name in wanted)
    is_text = id_type in (pa.string(), pa.large_string(), pa.string_view())
    is_plain = is_text and pa.types.is_integer(players_type)
    columns = NativeColumns(*wanted, at_type)
    if is_plain and pa.types.is_integer(at_type):
        if mapping.time_unit == "s":
            return columns._replace(milliseconds=1000)
        columns = columns._replace(first=SECONDS.stop if mapping.time_unit else YEAR_2001)
        least, greatest = _find_ends(metadata, mapping.at)
        is_plain = mapping.time_unit or mapping.is_strict or greatest < _FIRST_COMPACT
        return columns if least >= columns.first and is_plain else None
    is_instant = pa.types.is_timestamp(at_type) and at_type.unit in {"ms", "us", "ns"}
    has_zone = is_instant and (at_type.tz is not None or mapping.time_zone == "UTC")
    if is_plain and has_zone and _can_represent(metadata, columns):
        return columns
    return None


def _get_value_type(schema: pa.Schema, name: str) -> pa.DataType:
    """Return the type of a column's values; for a dictionary column, the type of the dictionary."""
    kind = schema.field(name).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _can_represent(metadata: FileMetaData, columns: NativeColumns) -> bool:
    """Return whether DuckDB can represent all times of a column.

    It converts milliseconds to microseconds, and its largest time means infinity.
    """
    stored = map(metadata.schema.column, range(metadata.num_columns))
    if any(each.path == columns.at and each.physical_type == "INT96" for each in stored):
        return False
    least, greatest = _find_ends(metadata, columns.at)
    limit = {"ms": _MAX_INTEGER // 1000, "us": _MAX_INTEGER, "ns": _MAX_INTEGER - 1}
    return max(-least, greatest) <= limit[columns.at_type.unit]


def _find_ends(metadata: FileMetaData, name: str) -> tuple[int, int]:
    """Return the first and the last stored time. Without statistics, assume any time."""
    stored = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    found = [group.column(stored.index(name)).statistics for group in groups if group.num_rows]
    if not all(each is not None and each.has_min_max for each in found):
        return -_MAX_INTEGER, _MAX_INTEGER
    ends = [(each.min_raw, each.max_raw) for each in found] or [(YEAR_2001, YEAR_2001)]
    return min(least for least, _ in ends), max(greatest for _, greatest in ends)


def read_rows(source: Source, number: int, intake: Intake) -> Iterator[pa.RecordBatch]:
    """Read the observations of a source as batches with the columns of ROWS.

    `number`: the position of the source in the job. The intake counts the other rows.

    Raises SourceError if the source can't be read, and MissingLibraryError if a library is missing.
    """
    for batch in read_batches(replace(source, on_warning=intake.warnings.append)):
        intake.count_batch(number, batch)
        if len(batch.instants):
            yield _convert_batch(batch, number * PLACES_PER_SOURCE, is_ordered=has_order(source))


def judge_rows(
    source: Source, columns: NativeColumns, stored: Iterable[pa.RecordBatch], intake: Intake
) -> None:
    """Record why stored rows are not observations.

    - `source`: any source with the columns of the rows.
    - `stored`: batches with identifiers, times, players and positions. Their rows are already
      counted.
    """
    names = [columns.id, columns.at, columns.players]
    for batch in stored:
        positions = batch.column(3)
        for judged in convert_batches(source, [batch.select([0, 1, 2]).rename_columns(names)]):
            intake.skipped.update(judged.skipped)
            for reject in judged.rejects:
                intake.rejects.add(positions[reject.place - 1].as_py(), reject)


def _convert_batch(batch: Batch, start: int, *, is_ordered: bool) -> pa.RecordBatch:
    places = batch.places if is_ordered else 0 * batch.places
    columns = [
        _convert_texts(batch.names).take(pa.array(batch.codes)),
        pa.array(batch.instants),
        pa.array(batch.players),
        pa.array(places + start),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ROWS)


def _convert_texts(texts: Sequence[str]) -> pa.Array:
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        # JSON can contain lone surrogates. As with U+0000, no server has such an identifier.
        return pa.array([_SURROGATE.sub("\x00", text) for text in texts], pa.string())
