"""Create the input files once and keep them."""

import os
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cached_property
from typing import Literal

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import csv
from pyarrow.parquet import ParquetWriter

from benchmarks import fleet
from benchmarks.measure import print_progress
from srvstat.snapshot.read.file import open_file

EARLIER = range(fleet.POLLS - fleet.POLLS_PER_DAY)
LAST_DAY = range(EARLIER.stop, fleet.POLLS)
QUARTER = range(fleet.POLLS // 4)
HOURLY = range(0, fleet.POLLS, fleet.POLLS_PER_DAY // 24)
"""Polls of a fleet."""

WIDE_SERVERS, WIDE_POLLS, WIDE_PLAYERS = 5, 600_000, 100_000

_POLLS_PER_BATCH = 10 * fleet.POLLS_PER_DAY

Kind = Literal["csv", "parquet"]


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
        return count_observations(self.snapshot)

    def servers_path(self) -> str:
        """Return the path of the servers file."""

        def write(path: str) -> None:
            with open(path, "wb") as file:
                file.write(fleet.generate_servers_ndjson(self.size))

        return self._create_once("servers.ndjson", write)

    def recorded_path(self, kind: Kind, polls: range) -> str:
        """Return the path of the observations of some polls, in order of time."""
        name = f"polls-{polls.start}-{polls.stop}-{polls.step}.{kind}"
        batches = (
            fleet.generate_recorded(self.size, polls[start : start + _POLLS_PER_BATCH])
            for start in range(0, len(polls), _POLLS_PER_BATCH)
        )
        return self._create_once(name, lambda path: _write(path, kind, batches))

    def recorded_paths(self, kind: Kind) -> list[str]:
        """Return the paths of all observations."""
        return [self.recorded_path(kind, polls) for polls in (EARLIER, LAST_DAY)]

    def wide_path(self) -> str:
        """Return the path of observations of five servers with many values, as Parquet."""
        return self._create_once(
            "wide.parquet", lambda path: _write(path, "parquet", [generate_wide()])
        )

    def duckdb_path(self) -> str:
        """Return the path of a native file for DuckDB's Python module."""

        def fill(path: str) -> None:
            with duckdb.connect(path) as connection:
                connection.execute(
                    "CREATE TABLE observations AS"
                    ' SELECT substr("serverId", 5)::USMALLINT AS server,'
                    ' "observedAt" AS observed_at, players::USMALLINT AS players'
                    f" FROM read_csv({self.recorded_paths('csv')}) ORDER BY server, observed_at"
                )

        return self._create_once(f"duckdb-{duckdb.__version__}.db", fill)

    def warm_cache(self) -> None:
        """Read the snapshot and the file of DuckDB into the page cache."""
        for path in (self.snapshot, self.duckdb_path()):
            with open(path, "rb", buffering=0) as file:
                while file.read(1 << 24):
                    pass

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


def count_observations(path: str) -> int:
    """Return the number of observations of a snapshot."""
    with closing(open_file(path)) as snapshot:
        return snapshot.file_row.observation_count


def generate_wide() -> fleet.Course:
    """Return observations of a year with evenly distributed values, by server and time."""
    poll_ms = 365 * 86_400_000 // WIDE_POLLS
    servers, polls = np.divmod(np.arange(WIDE_SERVERS * WIDE_POLLS), WIDE_POLLS)
    late, high, low = fleet.draw_noise(fleet.NoiseKind.OBSERVATION, servers, polls)
    players = (high << 20 | low) % (WIDE_PLAYERS + 1)
    return fleet.Course(servers, fleet.START_MS + polls * poll_ms + late % 1_000, players)


def _write(path: str, kind: Kind, courses: Iterable[fleet.Course]) -> None:
    schema = pa.schema({"serverId": pa.string(), "observedAt": pa.int64(), "players": pa.int64()})
    ids = pa.array([fleet.build_server_id(number) for number in range(1_000)])
    with open(path, "wb") as file:
        if kind == "csv":
            file.write(",".join(schema.names).encode() + b"\n")
            plain = csv.WriteOptions(include_header=False, quoting_style="none")
            writer = csv.CSVWriter(file, schema, write_options=plain)
        else:
            writer = ParquetWriter(file, schema)
        with writer:
            for course in courses:
                columns = [ids.take(pa.array(course.servers)), course.instants, course.players]
                writer.write_table(pa.table(columns, schema=schema))
