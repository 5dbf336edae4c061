"""Read observations from Parquet files, alone or in a folder with Hive partitions."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import BinaryIO
from urllib.parse import unquote

import pyarrow as pa
from pyarrow.parquet import ColumnChunkMetaData, FileMetaData, ParquetFile

from srvstat.contract.errors import SourceError, UsageError
from srvstat.files.paths import compute_identity, convert_errors, identify_file
from srvstat.files.reading import CHANGED, STDIN, is_url
from srvstat.sources.arrow_columns import (
    Columns,
    build_sample,
    choose_columns,
    describe_values,
    get_value_type,
    read_record_batches,
)
from srvstat.sources.batch import Batch
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.proposal import SAMPLE_ROWS, Sample
from srvstat.sources.source import Source

EXTENSION = ".parquet"
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a file, in the order of its rows.

    A column that the file lacks is taken from a folder `name=value` of its path.

    Raises SourceError if the file can't be read, is not Parquet, or has no column of the mapping.
    """
    with _open_file(source) as file:
        partitions = _find_partitions(source.name)
        columns = choose_columns(source, _add_partitions(file.schema_arrow, partitions))
        columns = _leave_out(columns, partitions)
        yield from read_record_batches(
            source, columns, _read_columns(source, file, columns, partitions)
        )


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
        return build_sample(schema.names, rows)


def read_metadata(source: Source) -> FileMetaData:
    """Return the metadata of a file: its columns, and the statistics of its row groups.

    Raises SourceError.
    """
    with _open_file(source) as file:
        return file.metadata


def list_files(source: Source) -> list[Source]:
    """Return the Parquet files of a folder and its subfolders as sources, in the order of names.

    Files and folders whose name begins with a dot or an underscore are left out.

    Raises SourceError if there is none.
    """
    paths: list[str] = []
    with convert_errors(source.title, SourceError):
        for folder, subfolders, names in os.walk(source.name, onerror=_raise_error):
            subfolders[:] = filter(_is_visible, subfolders)
            paths += [
                os.path.join(folder, name)
                for name in filter(_is_visible, names)
                if name.lower().endswith(EXTENSION)
            ]
    if not paths:
        raise SourceError(f"{source.title}: has no {EXTENSION} files; name other files one by one")
    return [replace(source, name=path, folder=source.name) for path in sorted(paths)]


def _raise_error(error: OSError) -> None:
    raise error


def _is_visible(name: str) -> bool:
    return not name.startswith((".", "_"))


def check_types(sources: Iterable[Source]) -> None:
    """Check that a column of the mapping has values of one kind in all files of a folder.

    Raises SourceError.
    """
    first: dict[str, str] = {}
    for source in sources:
        with _open_file(source) as file:
            schema = _add_partitions(file.schema_arrow, _find_partitions(source.name))
        for name in choose_columns(source, schema).names:
            values = describe_values(get_value_type(schema, name))
            expected = first.setdefault(name, values) if values else None
            if values != expected:
                raise SourceError(
                    f"{source.title}: column {name} has {values}, but the files before it have"
                    f" {expected}; name the files instead of their folder"
                )


@contextmanager
def _open_file(source: Source) -> Iterator[ParquetFile]:
    """Open a file.

    Raises UsageError for a URL; SourceError, also for errors in the block, and for a file that
    changed in the block.
    """
    if source.name == STDIN:
        raise SourceError("standard input: Parquet can't be read from it; name a file")
    if is_url(source.name):
        raise UsageError(
            f"{source.title}: only a cluster reads a URL; use `python -m srvstat.spark`,"
            " or name a path"
        )
    with convert_errors(source.title, SourceError):
        # Opening a FIFO must not wait for its writer.
        stored = open(source.name, "rb", opener=_open_at_once)  # noqa: SIM115 - closed below
    with stored:
        status = os.fstat(stored.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(f"{source.title}: Parquet can be read only from a regular file")
        before = compute_identity(status)
        try:
            yield _open_with_dictionary(stored, source.mapping)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if identify_file(source.name) != before:
                raise SourceError(f"{source.title}: {CHANGED}") from None
            reason = " ".join(str(error).split())
            raise SourceError(f"{source.title}: can't be read as Parquet: {reason}") from None
        if identify_file(source.name) != before:
            raise SourceError(f"{source.title}: {CHANGED}")


def _open_with_dictionary(stored: BinaryIO, mapping: ColumnMapping) -> ParquetFile:
    """Open a file so that identifiers which it stores as a dictionary are read as one."""
    # Without this option, Arrow would hold the whole file in memory.
    file = ParquetFile(stored, pre_buffer=False)
    paths = [file.schema.column(number).path for number in range(file.metadata.num_columns)]
    if mapping.is_wide or mapping.id not in paths:
        return file
    number = paths.index(mapping.id)
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    if any(_has_deltas(group.column(number)) for group in groups):
        return file
    return ParquetFile(
        stored, metadata=file.metadata, read_dictionary=[mapping.id], pre_buffer=False
    )


def _has_deltas(chunk: ColumnChunkMetaData) -> bool:
    """Return whether a part of a column has an encoding that can't be read as a dictionary."""
    return any(encoding.startswith("DELTA_") for encoding in chunk.encodings)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


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


def _leave_out(columns: Columns, partitions: dict[str, str | None]) -> Columns:
    """Return the columns; in a wide file, partitions are not servers."""
    if columns.id is not None:
        return columns
    return columns._replace(counts=[name for name in columns.counts if name not in partitions])


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
