"""Read Parquet files with Spark itself."""

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pyarrow.parquet import ColumnChunkMetaData, FileMetaData
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sql

from srvstat.contract.instants import LATEST
from srvstat.files.reading import is_url
from srvstat.fleet.counts import ORDER_BITS
from srvstat.fleet.native import NativeColumns, find_native_columns, may_have_early_numbers
from srvstat.fleet.spark.frames import create_frame, quote_name
from srvstat.sources.batch import MAX_PLAYERS
from srvstat.sources.parquet import read_metadata
from srvstat.sources.source import Source

# Spark takes a name for a pattern. A backslash makes the next character mean itself.
_PATTERN = re.compile(r"([]*?{}\\[])")

_MAX_INTEGER = (1 << 63) - 1

_TYPES = ("STRING", "BIGINT", "BIGINT")
"""All plain types are read as these: times as the integers that they are stored as.

Of files at a URL, the unit of stored times is unknown: Spark converts timestamps to microseconds.
"""

_NUMBERS = pa.schema([("file", pa.string()), ("number", pa.int64())])


class ParquetFiles(NamedTuple):
    """Parquet files with equal columns, with their numbers in the job.

    Only the cluster reaches remote files, those at a URL.
    """

    columns: NativeColumns
    files: list[tuple[int, Source]]
    is_remote: bool = False

    def select_rows(
        self, session: SparkSession, first: int, last: int, *, has_place: bool
    ) -> DataFrame:
        """Return the well-formed rows from one instant to another.

        The columns are identifier, at and players, and with `has_place` file and place, of which
        `locate_rows` makes the position.
        """
        identifier, at, players = map(quote_name, self.columns[:3])
        unit = self.columns.unit
        instant = f"{at} div {unit.per_millisecond} * {unit.milliseconds}L"
        frame = self.read(session, (first, last))
        columns = [
            sql.col(identifier).alias("identifier"),
            sql.expr(instant).alias("at"),
            sql.col(players).alias("players"),
        ]
        if has_place:  # it takes more time
            columns += _list_place(frame)
        return frame.where(self._build_condition(first, last)).select(*columns)

    def select_malformed(self, session: SparkSession) -> DataFrame:
        """Return the rows that `select_rows` leaves out, as they are stored.

        The columns are identifier, at and players, and file and place.
        """
        is_kept = sql.coalesce(self._build_condition(0, LATEST), sql.lit(False))
        frame = self.read(session)
        columns = [
            sql.col(quote_name(name)).alias(alias)
            for name, alias in zip(self.columns[:3], ("identifier", "at", "players"), strict=True)
        ]
        return frame.where(~is_kept).select(*columns, *_list_place(frame))

    def count_rows(self, session: SparkSession) -> dict[int, int]:
        """Return the number of rows of each file that has any, by its number."""
        frame = self.read(session)
        path = frame.metadataColumn("_metadata").file_path.alias("file")
        counts = frame.select(path).groupBy("file").agg(sql.count("*").alias("rows")).toArrow()
        rows = dict(zip(*(counts[name].to_pylist() for name in ("file", "rows")), strict=True))
        found = {unquote(file): count for file, count in rows.items()}
        return {
            number: found[path]
            for number, source in self.files
            if (path := get_path(source)) in found
        }

    def select_undecodable(self, session: SparkSession) -> DataFrame:
        """Return the file and the place of each row whose identifier is not UTF-8."""
        frame = self.read(session)
        return frame.where(~sql.is_valid_utf8(quote_name(self.columns.id))).select(
            *_list_place(frame)
        )

    def read(self, session: SparkSession, bounds: tuple[int, int] | None = None) -> DataFrame:
        """Return all rows as they are stored, or at least those between two instants."""
        names = [quote_name(name) for name in self.columns[:3]]
        types = list(_TYPES)
        has_timestamps = self.is_remote and pa.types.is_timestamp(self.columns.at_type)
        if has_timestamps:
            types[1] = "TIMESTAMP_NTZ" if self.columns.at_type.tz is None else "TIMESTAMP"
        schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
        frame = open_parquet(session.read.schema(schema), [source for _, source in self.files])
        if not has_timestamps:
            return frame
        at = sql.col(names[1])
        if bounds:  # so that Spark leaves out row groups by their statistics
            ends = map(sql.lit, self.columns.unit.find_bounds(*bounds))
            frame = frame.where(at.between(*(sql.timestamp_micros(e).cast(types[1]) for e in ends)))
        return frame.withColumn(self.columns.at, sql.unix_micros(at.cast("TIMESTAMP")))

    def _build_condition(self, first: int, last: int) -> Column:
        """Return the condition of well-formed rows from one instant to another.

        It compares stored times, so that Spark leaves out row groups by their statistics.
        """
        unit = self.columns.unit
        identifier, at, players = (sql.col(quote_name(name)) for name in self.columns[:3])
        least, greatest = unit.find_bounds(first, last)
        if least > _MAX_INTEGER:  # no stored time is so late
            least, greatest = 1, 0
        condition = at.between(least, min(greatest, _MAX_INTEGER))
        condition &= players.between(0, MAX_PLAYERS)
        condition &= identifier.isNotNull() & sql.is_valid_utf8(identifier)
        return condition


def _list_place(frame: DataFrame) -> list[Column]:
    """Return the columns file and place of stored rows."""
    metadata = frame.metadataColumn("_metadata")
    return [metadata.file_path.alias("file"), (metadata.row_index + 1).alias("place")]


def locate_rows(
    session: SparkSession, rows: DataFrame, files: Iterable[tuple[int, Source]]
) -> DataFrame:
    """Return rows with their position in place of their file and their place in it.

    If they have no file, their place is their position.
    """
    numbers: dict[str, int] = {}
    for number, source in files:
        numbers.setdefault(get_path(source), number)
    table = pa.table([list(numbers), list(numbers.values())], schema=_NUMBERS)
    # The file is a URI, in which a plus sign stands for itself.
    path = sql.url_decode(sql.replace("file", sql.lit("+"), sql.lit("%2B")))
    position = sql.shiftleft("number", ORDER_BITS).bitwiseOR(sql.col("place"))
    position = sql.when(sql.isnull("file"), sql.col("place")).otherwise(position)
    unknown = sql.raise_error(sql.concat(sql.lit("a file that was not listed: "), "file"))
    located = rows.withColumn("file", path).join(
        sql.broadcast(create_frame(session, table)), "file", "left"
    )
    return located.withColumn("position", sql.coalesce(position, unknown)).drop(
        "file", "place", "number"
    )


def open_parquet(reader: DataFrameReader, files: Iterable[Source]) -> DataFrame:
    """Return the rows of files."""
    # Folders such as month=1 are no columns here.
    paths = (escape_path(get_path(source)) for source in files)
    return reader.option("recursiveFileLookup", "true").parquet(*paths)


def escape_path(path: str) -> str:
    """Return a path in which no character is a pattern."""
    return _PATTERN.sub(r"\\\1", path)


def get_path(source: Source) -> str:
    """Return the name of a file that Spark understands, whatever its default file system is."""
    if is_url(source.name):
        return re.sub("^file:///", "file:/", source.name)
    return f"file:{os.path.abspath(source.name)}"


def find_columns(source: Source) -> tuple[NativeColumns | None, FileMetaData]:
    """Return the columns of a file if Spark can read all of them, and its metadata.

    Raises SourceError if the file is not Parquet, or if a column can't be read at all.
    """
    metadata = read_metadata(source)
    columns = find_native_columns(source, metadata.schema.to_arrow_schema())
    if columns is None or not _is_plain(source, metadata, columns):
        return None, metadata
    if may_have_early_numbers(columns, metadata):
        return None, metadata
    return columns, metadata


def _is_plain(source: Source, metadata: FileMetaData, columns: NativeColumns) -> bool:
    """Return whether Spark reads a file with this name, and its columns as 64-bit integers."""
    physical = {
        column.path: column.physical_type
        for column in map(metadata.schema.column, range(metadata.num_columns))
    }
    has_integers = {physical[columns.at], physical[columns.players]} <= {"INT32", "INT64"}
    is_unsigned = pa.uint64() in {columns.at_type, columns.players_type}
    is_readable = not any(map(_is_foreign, _iter_chunks(metadata, columns)))
    return has_integers and not is_unsigned and is_readable and _can_be_named(source)


def _can_be_named(source: Source) -> bool:
    """Return whether Spark finds a file by its path."""
    path = os.path.abspath(source.name)
    name = os.path.basename(path)
    # Hadoop fails on a colon in the name of a file, or anywhere in a pattern.
    has_colon = ":" in (path if _PATTERN.search(path) else name)
    is_hidden = name.startswith((".", "_")) or name.endswith("._COPYING_")
    return not has_colon and not is_hidden


def _iter_chunks(metadata: FileMetaData, columns: NativeColumns) -> Iterator[ColumnChunkMetaData]:
    """Yield the parts of the three columns in each row group."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunks = map(group.column, range(group.num_columns))
        yield from (chunk for chunk in chunks if chunk.path_in_schema in columns[:3])


def _is_foreign(chunk: ColumnChunkMetaData) -> bool:
    """Return whether Spark may lack the compression or the encoding of a part of a column."""
    return chunk.compression == "BROTLI" or "BYTE_STREAM_SPLIT" in chunk.encodings
