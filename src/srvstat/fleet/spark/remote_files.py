"""List Parquet files that only the cluster reaches, and find their columns, with Spark.

The driver never opens such a file: Hadoop's file systems list them, and tasks read them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from srvstat.contract.errors import SourceError, UsageError
from srvstat.files.reading import CHANGED
from srvstat.fleet.native import NativeColumns, find_native_columns
from srvstat.fleet.spark.frames import quote_name
from srvstat.fleet.spark.parquet_rows import escape_path, get_path, open_parquet
from srvstat.sources.arrow_columns import choose_columns, is_text
from srvstat.sources.parquet import EXTENSION
from srvstat.sources.source import Source

Version = tuple[object, ...]
"""The time of the last modification of a file, and its length."""

_TYPES = {
    "string": pa.string(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""The plain types, by their names in Spark."""

_PLAIN = "text as identifiers, integers or timestamps in UTC as times, and integers as counts"
_HIDDEN = re.compile("(?:^|/)[._]")
_STRUCT = re.compile('"STRUCT<(.*)>"')
_ILLEGAL = re.compile(r"Parquet type(?: is| not supported)?: (.+?)\. SQLSTATE")


def read_versions(session: SparkSession, source: Source) -> dict[str, Version]:
    """Return the version of each file at a URL, by its path, in the order of names.

    Files and folders whose name begins with a dot or an underscore are left out.

    Raises UsageError for a URL with a password, SourceError if there is no Parquet file.
    """
    _check_no_password(source)
    reader = session.read.format("binaryFile").option("recursiveFileLookup", "true")
    found = reader.load(escape_path(get_path(source)))
    # Tasks read no content of the files for these columns.
    rows = found.select("path", "modificationTime", "length").toArrow().to_pylist()
    versions = {row["path"]: tuple(row.values())[1:] for row in rows}
    root = re.sub("/+", "/", source.name.partition("://")[2]).partition("/")[2].rstrip("/")
    if [path.endswith(f"/{root}") for path in versions] == [True]:
        return versions  # a file, with any extension
    names = sorted(
        path
        for path in versions
        if path.lower().endswith(EXTENSION) and not _HIDDEN.search(path.partition(f"/{root}/")[2])
    )
    if not names:
        raise SourceError(f"{source.title}: has no {EXTENSION} files; name other files one by one")
    return {name: versions[name] for name in names}


def check_versions(session: SparkSession, source: Source, versions: Mapping[str, Version]) -> None:
    """Check that the files at a URL have not changed.

    Raises SourceError.
    """
    if read_versions(session, source) != versions:
        raise SourceError(f"{source.title}: {CHANGED}")


def list_files(source: Source, paths: Sequence[str]) -> list[Source]:
    """Return files at a URL as sources."""
    names = (re.sub("^file:/(?!/)", "file:///", path) for path in paths)
    return [replace(source, name=name, folder=source.name) for name in names]


def find_columns(session: SparkSession, source: Source, files: Sequence[Source]) -> NativeColumns:
    """Return the columns of all files at a URL.

    Raises SourceError if Spark can't read them, if a column is missing, or if types differ.
    """
    # Each footer is read, because Spark would read times of another type as wrong numbers.
    reader = session.read.option("mergeSchema", "true")
    try:
        found = open_parquet(reader, files).schema
    except Exception as error:
        if refusal := _explain_types(source, str(error)):
            raise refusal from None
        raise
    if source.mapping.is_wide:
        raise SourceError(f"{source.title}: a wide table can't be read from a URL; name a path")
    types = ((each.name, each.dataType.simpleString()) for each in found)
    schema = pa.schema([(name, _TYPES.get(kind, pa.null())) for name, kind in types])
    choose_columns(source, schema)
    return find_native_columns(source, schema) or _refuse_type(source, schema, found)


def check_columns(rows: DataFrame, source: Source, columns: NativeColumns) -> None:
    """Check that no file lacks a column that others have, of which Spark would read nulls.

    Raises SourceError.
    """
    names = columns[:3]
    file = rows.metadataColumn("_metadata").file_path.alias("file")
    counts = [sql.count(quote_name(name)).alias(name) for name in names]
    found = rows.groupBy(file).agg(*counts)
    empty = [sql.col(quote_name(name)) == 0 for name in names]
    for path, *with_value in found.where(empty[0] | empty[1] | empty[2]).limit(1).collect():
        title = list_files(source, [path])[0].title
        raise SourceError(f"{title}: column {names[with_value.index(0)]} is missing or empty")


def _check_no_password(source: Source) -> None:
    try:
        parts = urlsplit(source.name)
        has_password = parts.password is not None or (parts.port or 0) < 0
    except ValueError:  # part of a password is taken for a port
        has_password = True
    if has_password:
        raise UsageError(
            f"{source.title}: the URL has a password, or its port is invalid; passwords belong in"
            " Spark's configuration"
        )


def _explain_types(source: Source, text: str) -> SourceError | None:
    """Return the error for files of which Spark finds no common schema."""
    if illegal := _ILLEGAL.search(text):
        return SourceError(
            f"{source.title}: a column is of type {illegal[1]}, which Spark can't read; from a URL,"
            f" it reads {_PLAIN}"
        )
    if "CANNOT_MERGE" not in text:
        return None
    first, other = ([*_STRUCT.findall(text), "", ""])[:2]
    pairs = zip(first.split(", "), other.split(", "), strict=False)
    differ = next((f", such as {one} and {two}" for one, two in pairs if one != two), "")
    return SourceError(
        f"{source.title}: the files have columns of different types{differ}; convert them to one"
        " type"
    )


def _refuse_type(source: Source, schema: pa.Schema, found: StructType) -> NativeColumns:
    mapping = source.mapping
    name = mapping.at
    if not is_text(schema.field(mapping.id).type):
        name = mapping.id
    elif not pa.types.is_integer(schema.field(mapping.players).type):
        name = mapping.players
    raise SourceError(
        f"{source.title}: column {name} is of type {found[name].dataType.simpleString()}; from a"
        f" URL, Spark reads {_PLAIN}: convert the files, or name a path that all machines share"
    )
