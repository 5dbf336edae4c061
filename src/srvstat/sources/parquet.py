"""Read observations from Parquet files, single or in a folder with Hive partitions.

Arrow tables become columns of text, as all other tables do.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow.parquet import FileMetaData, ParquetFile

from srvstat.contract.errors import SourceError, UsageError
from srvstat.files.paths import convert_errors, identify_file
from srvstat.files.reading import CHANGED, is_url
from srvstat.sources.columns import MARGIN, Column, Data
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.source import Batch, Source
from srvstat.sources.tables import SAMPLE_ROWS, Sample, Table, check_columns, convert_table

_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_ROWS_PER_BATCH = 1 << 16
_CELLS_PER_BATCH = 1 << 20
# pandas assigns this name to an unnamed index.
_NO_NAME = re.compile("__index_level_[0-9]+__")


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a file, in the order of its rows.

    A column that the file lacks is taken from a folder `name=value` in its path.

    Raises SourceError if the file can't be read, is not Parquet, or lacks a column of the mapping.
    """
    with _open_file(source) as file:
        stored = file.schema_arrow.names
        # Partitions are not servers.
        partitions = {} if source.mapping.is_wide else _find_partitions(source.name, stored)
        wanted = check_columns(source, [*list_names(stored), *partitions])
        chosen = [name for name in stored if name in wanted]
        most = count_rows_per_batch(len(wanted))
        batches = file.iter_batches(most, columns=chosen, use_threads=False)
        rows = (_add_partitions(batch, partitions) for batch in batches)
        done = 0
        for batch in convert_batches(source, rows):
            yield batch
            source.report_rows(done, batch.count_rows(), file.metadata.num_rows)
            done += batch.count_rows()


def read_sample(source: Source) -> Sample:
    """Return the first rows of a file, with the columns of the folders in its path.

    Raises SourceError if the file can't be read or is not Parquet.
    """
    with _open_file(source) as file:
        partitions = _find_partitions(source.name, file.schema_arrow.names)
        empty = pa.RecordBatch.from_pylist([], file.schema_arrow)
        rows = next(file.iter_batches(SAMPLE_ROWS, use_threads=False), empty)
        rows = _add_partitions(rows, partitions)
        return build_sample(source, "Parquet", pa.Table.from_batches([rows]))


def read_metadata(source: Source) -> FileMetaData:
    """Return the metadata of a file: its columns, and the statistics of its row groups.

    Raises SourceError if the file can't be read or is not Parquet.
    """
    with _open_file(source) as file:
        return file.metadata


def count_rows_per_batch(columns: int) -> int:
    """Return how many rows to read at a time; fewer if the table is very wide."""
    return max(1, min(_ROWS_PER_BATCH, _CELLS_PER_BATCH // columns))


def convert_batches(source: Source, record_batches: Iterable[pa.RecordBatch]) -> Iterator[Batch]:
    """Convert record batches to observations. Places are row numbers, counted from 1.

    Raises SourceError if text is not UTF-8.
    """
    first = 1
    for rows in record_batches:
        end = first + rows.num_rows
        try:
            yield convert_table(source, _build_table(source, rows, range(first, end)))
        except UnicodeDecodeError:
            reason = f"rows {first} to {end - 1} have text that is not UTF-8"
            raise SourceError(f"{source.title}: {reason}") from None
        first = end


def build_sample(source: Source, form: str, rows: pa.Table) -> Sample:
    """Return a sample of the given rows."""
    columns = [_convert_column(each.combine_chunks(), source.mapping) for each in rows.columns]
    table = Table(list_names(rows.schema.names), columns, range(1, rows.num_rows + 1))
    return Sample(form, table, is_whole=rows.num_rows < SAMPLE_ROWS)


@contextmanager
def _open_file(source: Source) -> Iterator[ParquetFile]:
    """Open a file.

    Raises UsageError for a URL. Raises SourceError if the file can't be read or is not Parquet,
    also for errors within the block, and if the file changed meanwhile.
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


def _find_partitions(path: str, stored: Sequence[str]) -> dict[str, str | None]:
    """Return the values of the `name=value` folders in a path whose names the file lacks."""
    folders = [part.partition("=") for part in os.path.dirname(path).split(os.sep) if "=" in part]
    return {
        unquote(name): None if value == _NULL_PARTITION else unquote(value)
        for name, _, value in folders
        if unquote(name) not in stored
    }


def _add_partitions(rows: pa.RecordBatch, partitions: Mapping[str, str | None]) -> pa.RecordBatch:
    for name, value in partitions.items():
        column = pa.repeat(pa.scalar(value, pa.string()), rows.num_rows)
        rows = rows.append_column(name, column)
    return rows


def list_names(stored: Sequence[str]) -> list[str]:
    """Return the column names; the name of an unnamed index becomes empty."""
    return [_NO_NAME.sub("", name) for name in stored]


def _build_table(source: Source, rows: pa.RecordBatch, places: range) -> Table:
    columns = [_convert_column(column, source.mapping) for column in rows.columns]
    return Table(list_names(rows.schema.names), columns, places)


def _convert_column(column: pa.Array, mapping: ColumnMapping) -> Column:
    """Return the values of a column as text. Null and NaN become empty."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        column = _format_times(column)
    elif pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if _may_have_fractions(column):
        with suppress(pa.ArrowException):
            column = column.cast(pa.int64())
    if _may_have_fractions(column) or pa.types.is_nested(column.type):
        column = pa.array([_format_value(value, mapping) for value in column.to_pylist()])
    return _read_buffers(column.cast(pa.large_string()).fill_null(""))


def _may_have_fractions(column: pa.Array) -> bool:
    return bool(pa.types.is_floating(column.type) or pa.types.is_decimal(column.type))


def _format_times(column: pa.Array) -> pa.Array:
    """Format times with as many digits as needed. Times with a zone are converted to UTC."""
    unit, zone = column.type.unit, column.type.tz
    if zone is not None:
        column = column.cast(pa.timestamp(unit, "UTC"))
    # Arrow formats times without a zone much faster.
    column = column.cast(pa.timestamp(unit))
    for shorter in ("ms", "s"):
        with suppress(pa.ArrowInvalid):  # digits would be lost
            column = column.cast(pa.timestamp(shorter))
    texts = column.cast(pa.string())
    return texts if zone is None else pc.binary_join_element_wise(texts, "Z", "")


def _format_value(value: Any, mapping: ColumnMapping) -> str | None:
    """Return the text of a value. Numbers have no exponent."""
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        return mapping.write_number(f"{value:f}")
    return None if value is None else str(value)


def _read_buffers(texts: pa.Array) -> Column:
    """Return a column over the bytes of an Arrow text array."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    ends = ends + len(MARGIN)
    return Column(Data(data or b""), ends[:-1], ends[1:])
