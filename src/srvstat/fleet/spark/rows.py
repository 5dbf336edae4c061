"""Read the observations of all sources as one DataFrame."""

import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from srvstat.contract.errors import EngineError, SourceError, UsageError
from srvstat.contract.instants import LATEST
from srvstat.files.errors import convert_errors
from srvstat.files.identity import Identity, identify_file
from srvstat.files.reading import CHANGED, STDIN, is_url
from srvstat.fleet.counts import ORDER_BITS, Job
from srvstat.fleet.reader_rows import Remarks
from srvstat.fleet.spark.frames import create_frame, format_schema
from srvstat.fleet.spark.parquet_rows import ParquetFiles, find_columns, get_path, locate_rows
from srvstat.fleet.spark.remote_files import (
    check_columns,
    check_versions,
    list_files,
    read_versions,
)
from srvstat.fleet.spark.remote_files import find_columns as find_columns_at_url
from srvstat.fleet.spark.tasks import READ, REMARKS, add_remarks, build_judge, build_reader
from srvstat.sources.source import Source
from srvstat.sources.sql import is_utf8

if TYPE_CHECKING:
    from collections.abc import Mapping

    from srvstat.fleet.spark.remote_files import Version


class FleetRows:
    """The observations of a job's sources.

    Spark reads Parquet files of plain types itself. Each other source is read once, by a task with
    our own reader, and its rows are kept on the disks of executors.

    `sources` are those of the job, with the files at a URL as sources of their own. `remarks` has
    the rows that are no observations, after `read_others` and `judge_malformed`.
    """

    def __init__(self, session: SparkSession, job: Job) -> None:
        self._session = session
        self.sources: list[Source] = []
        self._versions: list[tuple[Source, Mapping[str, Version]]] = []
        self._native: dict[tuple[object, ...], ParquetFiles] = {}
        self._others: list[tuple[int, Source]] = []
        self._native_rows = 0
        self._identities: dict[str, Identity] = {}
        self._paths: set[str] = set()
        self._staged: DataFrame | None = None
        self.remarks = Remarks()
        for source in job.sources:
            if source.kind == "parquet" and is_url(source.name):
                self._add_url(source)
            else:
                self._add_source(len(self.sources), source)
                self.sources.append(source)

    def _add_url(self, source: Source) -> None:
        versions = read_versions(self._session, source)
        files = list_files(source, [*versions])
        for file in files:
            if get_path(file) in self._paths:
                raise UsageError(f"{file.title}: is a source already; name it once")
            self._paths.add(get_path(file))
        columns = find_columns_at_url(self._session, source, files)
        numbered = list(enumerate(files, len(self.sources)))
        group = ParquetFiles(columns, numbered, is_remote=True)
        self._native[(*columns, source.name)] = group
        rows = group.count_rows(self._session)
        self.remarks.rows.update(rows)
        self._native_rows += sum(rows.values())
        self._versions.append((source, versions))
        self.sources += files

    def _add_source(self, number: int, source: Source) -> None:
        columns = None
        # Spark would read a file that is named twice only once.
        is_repeated = get_path(source) in self._paths
        self._paths.add(get_path(source))
        self._identities[source.name] = identify_file(source.name)
        if source.kind == "parquet" and is_utf8(source.name) and not is_repeated:
            columns, metadata = find_columns(source)
        if columns is None:
            # Executors of a cluster run in folders of their own.
            path = os.path.abspath(source.name) if os.path.exists(source.name) else source.name
            self._others.append((number, replace(source, name=path)))
        else:
            self._native.setdefault(columns, ParquetFiles(columns, [])).files.append(
                (number, source)
            )
            self._native_rows += metadata.num_rows
            self.remarks.rows[number] += metadata.num_rows

    def read_others(self) -> int:
        """Read the sources that Spark can't read itself, and return the number of their rows.

        Raises SourceError.
        """
        if not self._others:
            return 0
        count = len(self._others)
        tasks = self._session.range(0, count, 1, count)
        read = tasks.mapInArrow(build_reader(self._others), format_schema(READ))
        self._staged = read.persist(StorageLevel.DISK_ONLY)
        is_remark = self._staged[REMARKS].isNotNull()
        texts = self._staged.where(is_remark).select(REMARKS).toArrow()
        add_remarks(self.remarks, texts[REMARKS].to_pylist())
        return int(self._staged.where(~is_remark).count())

    def judge_malformed(self, rows: int) -> None:
        """Count the stored rows that are no observations by reason; `rows` are observations.

        Raises SourceError if a file changed, EngineError if Spark did not read each row once.
        """
        if rows == self._native_rows:
            return
        before = self.remarks.count_rows()
        for files in self._native.values():
            if files.is_remote:
                check_columns(files.read(self._session), files.files[0][1], files.columns)
            judge = build_judge(files.files[0][1], files.columns)
            malformed = self.locate(files.select_malformed(self._session))
            ordered = malformed.select("identifier", "at", "players", "position")
            judged = ordered.mapInArrow(judge, format_schema(READ))
            try:
                texts = judged.select(REMARKS).toArrow()
            except Exception:
                self._check_identifiers(files)
                raise
            add_remarks(self.remarks, texts[REMARKS].to_pylist())
        found = rows + self.remarks.count_rows() - before
        if found != self._native_rows:
            self.check_unchanged()
            raise EngineError(
                f"Spark read {found:,} of {self._native_rows:,} rows of Parquet files; do its"
                " settings ignore files?"
            )

    def _check_identifiers(self, files: ParquetFiles) -> None:
        """Raise SourceError for the first row whose identifier is not UTF-8."""
        rows = self.locate(files.select_undecodable(self._session))
        first = rows.agg(sql.min("position").alias("first")).toArrow()["first"][0].as_py()
        if first is not None:
            number, place = divmod(first, 1 << ORDER_BITS)
            raise self.sources[number].build_error(place, "not UTF-8")

    def select(
        self, first: int = 0, last: int = LATEST, *, has_position: bool = False
    ) -> DataFrame:
        """Return the observations from one instant to another.

        The columns are identifier, at and players. With `has_position`, there are also file and
        place; once there are few rows, `locate` makes the position of them.
        """
        parts = [
            files.select_rows(self._session, first, last, has_place=has_position)
            for files in self._native.values()
        ]
        if self._staged is not None or not parts:
            parts.append(self._select_staged(first, last, has_place=has_position))
        rows, *others = parts
        for other in others:
            rows = rows.unionAll(other)
        return rows

    def _select_staged(self, first: int, last: int, *, has_place: bool) -> DataFrame:
        staged = self._staged
        if staged is None:
            staged = create_frame(self._session, READ.empty_table())
        rows = staged.where(staged[REMARKS].isNull() & staged["at"].between(first, last))
        columns = ["identifier", "at", "players"]
        if not has_place:
            return rows.select(*columns)
        no_file = sql.lit(None).cast("string").alias("file")
        return rows.select(*columns, no_file, sql.col("position").alias("place"))

    def locate(self, rows: DataFrame) -> DataFrame:
        """Replace the columns file and place by the position of each row."""
        files = [file for group in self._native.values() for file in group.files]
        return locate_rows(self._session, rows, files)

    def check_unchanged(self) -> None:
        """Check that no file has changed since the start.

        Raises SourceError.
        """
        for source, versions in self._versions:
            check_versions(self._session, source, versions)
        for source in self.sources:
            identity = self._identities.get(source.name)
            if identity is not None and identify_file(source.name) != identity:
                raise SourceError(f"{source.title}: {CHANGED}")

    def close(self) -> None:
        """Free the disks of executors."""
        if self._staged is not None:
            self._staged.unpersist()


def check_files(sources: Iterable[Source]) -> None:
    """Check that sources which are files exist, and that several processes can read them.

    Raises SourceError, and UsageError for an input that only one process can read, and only once.
    """
    for source in sources:
        if source.is_in_memory or is_url(source.name):
            continue
        is_file = False
        if source.name != STDIN:
            with convert_errors(source.title, SourceError):
                mode = os.stat(source.name).st_mode
            is_file = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
        if not is_file:
            raise UsageError(f"{source.title}: Spark can't read it; name a file")
