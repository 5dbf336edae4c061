"""Read observations from Parquet files, alone or in a folder with Hive partitions."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow.parquet import FileMetaData, ParquetFile

from srvstat.contract.arrays import Numbers
from srvstat.contract.errors import SourceError, UsageError
from srvstat.contract.time import LATEST, OUTSIDE_YEARS, YEAR_2001, InstantError
from srvstat.files.paths import convert_errors, identify_file
from srvstat.files.reading import CHANGED, is_url
from srvstat.sources import values
from srvstat.sources.columns import EMPTY_COUNT, MALFORMED
from srvstat.sources.mapping import (
    NO_ZONE,
    STRICT,
    ColumnMapping,
    describe_missing,
    describe_repeated,
)
from srvstat.sources.source import Batch, Reject, Source
from srvstat.sources.table import (
    SAMPLE_ROWS,
    Sample,
    Table,
    build_batch,
    convert_table,
    list_wanted,
)

_TypeCheck = Callable[[pa.DataType], bool]
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class Columns(NamedTuple):
    """The names of the columns to read.

    `id` is None without a column of identifiers, such as in a wide table, whose counts are many.
    `clock` is a second column of times, if any.
    """

    id: str | None
    at: str
    counts: Sequence[str]
    clock: str | None = None

    @property
    def names(self) -> list[str]:
        """All names, in the order in which `read_record_batches` needs the columns."""
        return [*filter(None, (self.id, self.at, self.clock)), *self.counts]

    @property
    def rows_per_batch(self) -> int:
        """The number of rows to read at a time, less for a table that is very wide."""
        return max(1, min(_ROWS_PER_BATCH, _CELLS_PER_BATCH // len(self.names)))


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a file, in the order of its rows.

    A column that the file lacks is taken from a folder `name=value` of its path.

    Raises SourceError if the file can't be read, is not Parquet, or has no column of the mapping.
    """
    with _open_file(source) as file:
        partitions = _find_partitions(source.name)
        columns = choose_columns(source, _add_partitions(file.schema_arrow, partitions))
        if source.mapping.is_wide:  # partitions are not servers
            servers = [name for name in columns.counts if name not in partitions]
            columns = columns._replace(counts=servers)
        record_batches = _read_columns(source, file, columns, partitions)
        yield from read_record_batches(source, columns, record_batches)


def read_sample(source: Source) -> Sample:
    """Return the first rows of a file, with the columns of the folders in its path.

    Raises SourceError.
    """
    with _open_file(source) as file:
        partitions = _find_partitions(source.name)
        schema = _add_partitions(file.schema_arrow, partitions)
        empty = pa.RecordBatch.from_pylist([], file.schema_arrow)
        rows = next(file.iter_batches(SAMPLE_ROWS), empty)
        for name in schema.names[len(rows.schema.names) :]:
            rows = rows.append_column(name, _repeat(partitions[name], rows.num_rows))
        return build_sample("Parquet", schema.names, rows)


def read_metadata(source: Source) -> FileMetaData:
    """Return the metadata of a file: its columns, and the statistics of its row groups.

    Raises SourceError.
    """
    with _open_file(source) as file:
        return file.metadata


@contextmanager
def _open_file(source: Source) -> Iterator[ParquetFile]:
    """Open a file.

    Raises UsageError for a URL; SourceError, also for errors in the block, and for a file that
    changed in the block.
    """
    if is_url(source.name):
        raise UsageError(
            f"{source.title}: only a cluster reads a URL; use `python -m srvstat.fleet.spark`,"
            " or name a path"
        )
    source.check_regular()
    before = identify_file(source.name)
    with convert_errors(source.title, SourceError):
        stored = open(source.name, "rb")  # noqa: SIM115 - closed below
    with stored:
        try:
            # With a buffer, Arrow would hold the whole file in memory.
            yield ParquetFile(stored, pre_buffer=False)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if identify_file(source.name) != before:
                raise SourceError(f"{source.title}: {CHANGED}") from None
            reason = " ".join(str(error).split())
            raise SourceError(f"{source.title}: can't be read as Parquet: {reason}") from None
        if identify_file(source.name) != before:
            raise SourceError(f"{source.title}: {CHANGED}")


def _find_partitions(path: str) -> dict[str, str | None]:
    """Return the values of the folders `name=value` of a path."""
    folders = [part.partition("=") for part in os.path.dirname(path).split(os.sep) if "=" in part]
    return {
        unquote(name): None if value == _NULL_PARTITION else unquote(value)
        for name, _, value in folders
    }


def _add_partitions(schema: pa.Schema, partitions: dict[str, str | None]) -> pa.Schema:
    """Return a schema with a column of text for each partition whose name it lacks."""
    for name in partitions:
        if name not in schema.names:
            schema = schema.append(pa.field(name, pa.string()))
    return schema


def _read_columns(
    source: Source, file: ParquetFile, columns: Columns, partitions: dict[str, str | None]
) -> Iterator[pa.RecordBatch]:
    """Read the columns, a part of a row group at a time."""
    in_file = set(file.schema_arrow.names)
    stored = [name for name in columns.names if name in in_file]
    done = 0
    for batch in file.iter_batches(columns.rows_per_batch, columns=stored, use_threads=False):
        arrays = [
            batch.column(name) if name in in_file else _repeat(partitions[name], batch.num_rows)
            for name in columns.names
        ]
        yield pa.RecordBatch.from_arrays(arrays, columns.names)
        source.report_rows(done, batch.num_rows, file.metadata.num_rows)
        done += batch.num_rows


def _repeat(value: str | None, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), count)


_MAX_INTEGER = (1 << 63) - 1
FIRST_COMPACT = 19 * 10**12
"""The least integer that can be a time such as 20260105120000; as milliseconds, it is in 2572."""

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


_ROWS_PER_BATCH = 1 << 16
_CELLS_PER_BATCH = 1 << 20
# pandas gives a name to an index that has none.
_NO_NAME = re.compile("(?:__index_level_[0-9]+__)?")


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is one of text."""
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type is one of integers, decimals or floating-point numbers."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)
    )


def is_calendar(kind: pa.DataType) -> bool:
    """Return whether a type is one of timestamps or dates."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def has_no_zone(kind: pa.DataType) -> bool:
    """Return whether a type is one of local times."""
    return bool(is_calendar(kind) and (pa.types.is_date(kind) or kind.tz is None))


def _convert_instants(column: pa.Array, mapping: ColumnMapping) -> pa.Array:
    """Convert times to Unix milliseconds, null if malformed; digits beyond milliseconds are cut."""
    if is_calendar(column.type):
        local, zone = _scale_calendar(column), mapping.time_zone
        if zone not in {None, "UTC"} and has_no_zone(column.type):
            local = _map_distinct(local, lambda at: values.convert_local_time(at, zone))
        return local

    def parse(value: Any) -> int:
        return values.parse_time(_format_number(value), mapping)

    if not pa.types.is_integer(column.type) or mapping.time_format:
        return _map_distinct(column, parse)
    unit = mapping.time_unit
    written = column.cast(pa.int64(), safe=False)
    instants = _scale(written, unit or "ms")
    is_odd = pc.less(instants, YEAR_2001)
    if unit is None and not mapping.is_strict:
        is_odd = pc.or_(is_odd, pc.greater_equal(instants, FIRST_COMPACT))
    is_own = mapping.is_strict and unit is not None
    if unit != "s" and not is_own and pc.any(is_odd).as_py():
        instants = pc.if_else(is_odd, _map_distinct(_keep_if(is_odd, written), parse), instants)
    return instants


def _convert_counts(column: pa.Array, mapping: ColumnMapping) -> pa.Array:
    """Convert counts to integers; null if malformed, and EMPTY_COUNT if empty."""

    def parse(value: Any) -> int:
        count = _parse_count(value, mapping)
        return EMPTY_COUNT if count is None else count

    if pa.types.is_integer(column.type):
        counts = _keep_between(column.cast(pa.int64(), safe=False), values.MAX_PLAYERS)
    else:
        counts = _map_distinct(column, parse)
    empty = pa.scalar(EMPTY_COUNT, pa.int64())
    return pc.if_else(column.is_null(), empty, counts) if column.null_count else counts


def _parse_count(value: Any, mapping: ColumnMapping) -> int | None:
    """Return a count from a number, which has no thousands, or from text."""
    forms = mapping if isinstance(value, str) else values.Forms(rounds=mapping.rounds)
    return values.parse_count(_format_number(value), forms)


def _explain_count(value: pa.Scalar, mapping: ColumnMapping) -> str:
    """Return why a value is not a count."""
    try:
        _parse_count(value.as_py(), mapping)
    except values.RowError as error:
        return str(error)
    return f"players: {values.COUNT_RULE}"


def _explain_instant(column: pa.Array, row: int, mapping: ColumnMapping) -> str:
    """Return why a value of a column is not an instant."""
    cell = column.slice(row, 1)
    value, zone = cell[0], mapping.time_zone
    if not value.is_valid:
        return "observedAt: missing"
    try:
        if has_no_zone(cell.type):
            # Local times outside the years are found first, so the zone is not needed.
            local = _scale_calendar(cell)[0].as_py()
            if local is not None and zone is not None:
                values.convert_local_time(local, zone)
        elif not is_calendar(cell.type):
            values.parse_time(_format_number(value.as_py()), mapping)
    except InstantError as error:
        return f"observedAt: {error}"
    return f"observedAt: {OUTSIDE_YEARS}"


def _scale_calendar(column: pa.Array) -> pa.Array:
    """Return the milliseconds of times on their own clock; null if outside the years."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s" if column.type == pa.date32() else "ms"))
    return _scale(column.cast(pa.int64()), column.type.unit)


def _scale(integers: pa.Array, unit: str) -> pa.Array:
    """Convert integers of a unit to milliseconds; those outside the years become null."""
    per_second = _PER_SECOND[unit]
    latest = (LATEST + 1) * per_second // 1000 - 1
    kept = _keep_between(integers, min(latest, _MAX_INTEGER))
    if per_second < _PER_SECOND["ms"]:
        return pc.multiply(kept, 1000)
    return kept if unit == "ms" else pc.divide(kept, per_second // 1000)


def _keep_between(integers: pa.Array, greatest: int) -> pa.Array:
    """Replace integers below 0 or above the greatest by null."""
    ends = pc.min_max(integers).as_py()  # much faster than the comparisons
    if ends["min"] is None or (ends["min"] >= 0 and ends["max"] <= greatest):
        return integers
    is_kept = pc.and_(pc.greater_equal(integers, 0), pc.less_equal(integers, greatest))
    return _keep_if(is_kept, integers)


def _keep_if(is_kept: pa.Array, integers: pa.Array) -> pa.Array:
    return pc.if_else(is_kept, integers, pa.scalar(None, pa.int64()))


def format_cell(value: pa.Scalar) -> str:
    """Return the text of a value, empty for null, for messages."""
    if not value.is_valid:
        return ""
    try:
        return str(value)
    except (ArithmeticError, LookupError, ValueError):
        # Python has no such date, no such zone, or no nanoseconds.
        return str(value.value)


def _map_distinct(column: pa.Array, convert: Callable[[Any], int]) -> pa.Array:
    """Convert each distinct value of a column once; null if it is null or malformed."""
    if pa.types.is_decimal32(column.type) or pa.types.is_decimal64(column.type):
        # These can't be encoded.
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    coded = column.dictionary_encode()
    integers: list[int | None] = []
    for value in coded.dictionary.to_pylist():
        try:
            integers.append(convert(value))
        except (InstantError, values.RowError):
            integers.append(None)
    return pa.array(integers, pa.int64()).take(coded.indices)


def _format_number(value: Any) -> str:
    """Return the decimal text of a number, without an exponent; other values as they are.

    Numbers have no zeros after the point, which could be read as thousands.
    """
    if isinstance(value, float):
        value = Decimal(repr(value + 0.0))  # without the sign of -0.0
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = value.to_integral_value()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def choose_columns(source: Source, schema: pa.Schema, *, any_case: bool = False) -> Columns:
    """Return the columns of a table that the mapping of a source names.

    With `any_case`, a name is also found in other capitals, because databases fold identifiers.

    Raises SourceError if a column is missing, repeated, or of a type that can't be read.
    """
    mapping = source.mapping
    times = mapping.find_times(schema.names)
    found = _find_columns(source, schema, list_wanted(mapping, schema.names), any_case=any_case)
    server_id = None if mapping.is_wide or mapping.id is None else found.pop(0)
    at, *others = found
    clock = others.pop(0) if len(times) > 1 else None
    counts = _list_servers(source, schema, found) if mapping.is_wide else others
    columns = Columns(server_id, at, counts, clock)
    if server_id is not None:
        _check_type(source, schema, server_id, "text or integers", pa.types.is_integer)
    for name, number in Counter(schema.names).items():
        if number > 1 and name in columns.names:
            raise SourceError(f"{source.title}: {describe_repeated(name)}")
    _check_type(source, schema, at, "times", is_calendar, is_number)
    if has_no_zone(get_value_type(schema, at)) and mapping.time_zone is None:
        raise SourceError(
            f"{source.title}: column {at} {NO_ZONE}; add --time-zone UTC, or their zone"
        )
    for name in columns.counts:
        _check_type(source, schema, name, "player counts", is_number)
    return columns


def _find_columns(
    source: Source, schema: pa.Schema, wanted: Sequence[str], *, any_case: bool
) -> list[str]:
    names = schema.names
    folded = {name.lower(): name for name in reversed(names)} if any_case else {}
    found = [name if name in names else folded.get(name.lower()) for name in wanted]
    missing = [name for name, column in zip(wanted, found, strict=True) if column is None]
    if missing or (source.mapping.is_wide and len(names) == 1):
        reason = describe_missing(source.mapping, missing or wanted, names)
        raise SourceError(f"{source.title}: {reason}")
    return [column for column in found if column is not None]


def _list_servers(source: Source, schema: pa.Schema, times: Sequence[str]) -> list[str]:
    """Return the columns of a wide table that are servers, and warn of those without a name."""
    names = [name for name in schema.names if name not in {*times, *source.mapping.others}]
    unnamed = [name for name in names if _NO_NAME.fullmatch(name)]
    if unnamed and source.on_warning:
        place = schema.names.index(unnamed[0]) + 1
        source.on_warning(f"{source.title}: column {place} has no name, so it is ignored")
    return [name for name in names if name not in unnamed]


def _check_type(
    source: Source, schema: pa.Schema, name: str, wanted: str, *are_read: _TypeCheck
) -> None:
    kind = get_value_type(schema, name)
    if not any(is_kind(kind) for is_kind in (*are_read, is_text, pa.types.is_null)):
        raise SourceError(f"{source.title}: column {name} is of type {kind}, not {wanted}")


def get_value_type(schema: pa.Schema, name: str) -> pa.DataType:
    """Return the type of the values of a column, also of one with a dictionary."""
    kind = schema.field(name).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def read_record_batches(
    source: Source, columns: Columns, record_batches: Iterable[pa.RecordBatch]
) -> Iterator[Batch]:
    """Convert record batches with the columns `columns.names`, in this order.

    Places are row numbers, counted from 1.
    """
    first_place = 1
    for record_batch in record_batches:
        cells = record_batch.columns
        try:
            if columns.clock or (columns.id is None and not source.mapping.is_wide):
                yield _convert_text(source, columns, first_place, cells)
            else:
                yield _convert_cells(source.mapping, columns, first_place, cells)
        except UnicodeDecodeError:
            end = first_place + record_batch.num_rows - 1
            raise SourceError(
                f"{source.title}: rows {first_place} to {end} have text that is not UTF-8"
            ) from None
        first_place += record_batch.num_rows


def build_own_sample(source: Source, form: str, names: Sequence[str]) -> Sample | None:
    """Return a sample without rows if a query has our own columns, since it may take long."""
    own = STRICT.names
    if source.mapping.is_strict and {*map(str.lower, own)} <= {*map(str.lower, names)}:
        return Sample(form, Table(own, [()] * len(own), ()), is_whole=False)
    return None


def build_sample(form: str, names: Sequence[str], rows: pa.RecordBatch | pa.Table) -> Sample:
    """Return the sample of some rows, whose columns may have other names in Arrow."""
    columns = [[*map(format_cell, column)] for column in rows.slice(0, SAMPLE_ROWS).columns]
    is_whole = rows.num_rows < SAMPLE_ROWS
    return Sample(form, Table(names, columns, range(1, rows.num_rows + 1)), is_whole)


def _convert_text(
    source: Source, columns: Columns, first_place: int, cells: Sequence[pa.Array]
) -> Batch:
    """Convert rows as text, under the names of the mapping, which may have other capitals."""
    mapping = source.mapping
    times = mapping.find_times(columns.names) if columns.clock else [mapping.at]
    names = [*([] if columns.id is None else [str(mapping.id)]), *times]
    names += columns.counts if mapping.is_wide else [mapping.players]
    texts = [[*map(format_cell, column)] for column in cells]
    for at, column in enumerate(cells):
        # In text, the point would separate thousands.
        if mapping.thousands == "." and is_number(column.type):
            texts[at] = [text.replace(".", ",") for text in texts[at]]
    return convert_table(
        source, Table(names, texts, range(first_place, first_place + len(cells[0])))
    )


def _convert_cells(
    mapping: ColumnMapping, columns: Columns, first_place: int, cells: Sequence[pa.Array]
) -> Batch:
    ids = None if columns.id is None else _encode(cells[0])
    at, *counted = map(_decode, cells if ids is None else cells[1:])
    instants = _to_numpy(_convert_instants(at, mapping))
    counts = np.empty((len(at), len(counted)), np.int64, order="F")
    for number, column in enumerate(counted):
        counts[:, number] = _to_numpy(_convert_counts(column, mapping))
    servers: tuple[Sequence[str], Numbers | None] = (columns.counts, None)
    if ids is not None:
        servers = ids.dictionary.to_pylist(), _to_numpy(ids.indices)

    def explain(row: int) -> Iterator[Reject]:
        """Yield why a row is malformed, with some of its values."""
        parts = [at[row], *(column[row] for column in counted)]
        row_cells = [at[row]] if ids is None else [ids[row], *parts]
        reject = Reject(first_place + row, "", ",".join(map(format_cell, row_cells)))
        if ids is not None and not ids[row].is_valid:
            yield reject._replace(reason="serverId: missing", value="")
        elif instants[row] < 0:
            lost = sum(part.is_valid for part in parts[1:]) or 1
            reason = _explain_instant(at, row, mapping)
            yield reject._replace(reason=reason, value=format_cell(at[row]), rows=lost)
        else:
            for name, part, count in zip(columns.counts, parts[1:], counts[row], strict=True):
                if count == MALFORMED:
                    written = format_cell(part)
                    found = reject._replace(reason=_explain_count(part, mapping), value=written)
                    if ids is None:
                        text = f"{name},{format_cell(at[row])},{written}"
                        found = found._replace(text=text, column=name)
                    yield found

    places = np.arange(len(at)) + first_place
    return build_batch(servers, instants, counts, places, explain)


def _encode(ids: pa.Array) -> pa.DictionaryArray:
    """Return identifiers as codes of distinct texts."""
    if not pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_encode()
    texts = ids.dictionary.cast(pa.string())
    if texts.null_count or len(texts.unique()) < len(texts):
        return ids.dictionary_decode().cast(pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(ids.indices, texts)


def _decode(column: pa.Array) -> pa.Array:
    """Return a column without a dictionary, and its text in the usual type."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()) if is_text(column.type) else column


def _to_numpy(integers: pa.Array) -> Numbers:
    """Return integers; nulls are MALFORMED."""
    return np.asarray(integers.cast(pa.int64()).fill_null(MALFORMED))
