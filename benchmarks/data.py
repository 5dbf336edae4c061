"""Create the input files of the engines once and keep them."""

import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cached_property

import duckdb
import polars as pl

from benchmarks import fleet
from benchmarks.measure import print_progress
from srvstat.snapshot.read.reader import open_file

_SERVER_YEAR = 105_000
"""Approximate number of observations of a server: a Parquet row group has one or two servers."""


class FleetFiles:
    """The files of one fleet, in a directory below `root`; creates each on first use.

    A file gets its name when it is complete. Every run rebuilds the snapshot.
    """

    def __init__(self, root: str, size: int) -> None:
        self.size = size
        self.directory = os.path.join(root, f"fleet-{size}-v{fleet.VERSION}")
        self.snapshot = os.path.join(self.directory, "snapshot.db")
        os.makedirs(self.directory, exist_ok=True)

    @cached_property
    def as_of(self) -> int:
        """The snapshot's as of, in Unix milliseconds."""
        with closing(open_file(self.snapshot)) as snapshot:
            return snapshot.as_of

    @cached_property
    def observation_count(self) -> int:
        """Number of observations in the snapshot."""
        with closing(open_file(self.snapshot)) as snapshot:
            return snapshot.read_totals().observations

    def servers_path(self) -> str:
        """Return the path of the servers file."""
        return self._create_once(
            "servers.ndjson", lambda path: _write(path, [fleet.generate_servers_ndjson(self.size)])
        )

    def recorded_path(self) -> str:
        """Return the path of the observations as CSV, in order of time."""
        return self._create_once(
            "recorded.csv", lambda path: _write(path, fleet.generate_recorded_csv(self.size))
        )

    def recorded_parquet_path(self) -> str:
        """Return the path of the same rows as Parquet, in the same order."""
        return self._create_once(
            "recorded.parquet",
            lambda path: pl.scan_csv(self.recorded_path()).sink_parquet(path),
        )

    def parquet_path(self) -> str:
        """Return the path of the observations as Parquet, sorted by server and time."""
        return self._create_once("observations.parquet", self._write_parquet)

    def duckdb_path(self) -> str:
        """Return the path of a native file for DuckDB's Python module."""
        return self._create_once(f"duckdb-{duckdb.__version__}.db", self._fill_duckdb)

    def sqlite_path(self) -> str:
        """Return the path of a SQLite file with a table of observations by server and time."""
        return self._create_once("sqlite.db", lambda path: _fill_sqlite(path, self.size))

    def warm_cache(self) -> None:
        """Read the files of all engines into the page cache."""
        for name in os.listdir(self.directory):
            if not name.endswith((".db", ".parquet")):
                continue
            with open(os.path.join(self.directory, name), "rb", buffering=0) as file:
                while file.read(1 << 24):
                    pass

    def _write_parquet(self, path: str) -> None:
        course = fleet.generate_courses(range(self.size))
        columns = {
            "server": pl.Series(course.servers + 1, dtype=pl.UInt16),
            "observed_at": course.instants,
            "players": pl.Series(course.players, dtype=pl.UInt16),
        }
        pl.DataFrame(columns).write_parquet(path, row_group_size=_SERVER_YEAR)

    def _fill_duckdb(self, path: str) -> None:
        with duckdb.connect(path) as connection:
            connection.execute(
                f"CREATE TABLE observations AS FROM read_parquet('{self.parquet_path()}')"
            )

    def _create_once(self, name: str, make: Callable[[str], object]) -> str:
        path = os.path.join(self.directory, name)
        if not os.path.exists(path):
            print_progress(f"creating {name} of {self.size:,} servers")
            draft = f"{path}.draft"
            if os.path.exists(draft):
                os.unlink(draft)
            make(draft)
            os.replace(draft, path)
        return path


def _write(path: str, chunks: Iterable[bytes]) -> None:
    with open(path, "wb") as file:
        file.writelines(chunks)


def _fill_sqlite(path: str, size: int) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("PRAGMA page_size = 16384; PRAGMA journal_mode = OFF")
        connection.execute(
            "CREATE TABLE observations (server INTEGER, observed_at INTEGER, players INTEGER,"
            " PRIMARY KEY (server, observed_at)) STRICT, WITHOUT ROWID"
        )
        for number in range(size):
            course = fleet.generate_course(number)
            columns = (course.servers + 1, course.instants, course.players)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            connection.executemany("INSERT INTO observations VALUES (?, ?, ?)", rows)
