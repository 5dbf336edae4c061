"""The files that the engines get, made once and kept."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cached_property
from importlib.metadata import version

import duckdb
import polars as pl

from benchmarks import fleet
from benchmarks.measure import environment, program, tell
from srvstat.snapshot.read.reader import open_file

_TABLE = """CREATE TABLE observations AS
SELECT server::USMALLINT AS server, observed_at, players::USMALLINT AS players
FROM read_parquet('{}') ORDER BY server, observed_at"""

_SERVER_YEAR = 105_000
"""About the observations of one server: a row group of Parquet then holds one or two servers."""

_PIPE = "import sys; from benchmarks import fleet; "
_PIPE += "sys.stdout.buffer.writelines(fleet.recorded(int(sys.argv[1])))"


class FleetFiles:
    """The files of one fleet, in their own directory below `root`; each is made when missing.

    A file has its name once it is complete. The snapshot is not kept: every run builds it anew.
    """

    def __init__(self, root: str, size: int) -> None:
        self.size = size
        self.directory = os.path.join(root, f"fleet-{size}-v{fleet.VERSION}")
        self.snapshot = os.path.join(self.directory, "snapshot.db")
        os.makedirs(self.directory, exist_ok=True)

    @cached_property
    def as_of(self) -> int:
        """The instant that the snapshot speaks for, in Unix milliseconds."""
        with closing(open_file(self.snapshot)) as snapshot:
            return snapshot.as_of

    @cached_property
    def observation_count(self) -> int:
        """How many observations the snapshot holds."""
        with closing(open_file(self.snapshot)) as snapshot:
            return snapshot.view().observations

    def servers(self) -> str:
        """Return the path of the servers file."""
        return self._kept(
            "servers.ndjson", lambda path: _write(path, [fleet.servers_ndjson(self.size)])
        )

    def recorded(self) -> str:
        """Return the path of the observations as CSV, in the order of their instants."""
        return self._kept("recorded.csv", lambda path: _write(path, fleet.recorded(self.size)))

    def shuffled(self) -> str:
        """Return the path of the observations as CSV, in no order."""
        return self._kept("shuffled.csv", lambda path: _write(path, fleet.shuffled(self.size)))

    def pipe(self) -> "subprocess.Popen[bytes]":
        """Start a process that writes the observations as CSV, in the order of their instants."""
        return subprocess.Popen(
            [sys.executable, "-c", _PIPE, str(self.size)],
            stdout=subprocess.PIPE,
            env=environment(),
            cwd=os.path.dirname(os.path.dirname(__file__)),
        )

    def parquet(self) -> str:
        """Return the path of the observations as Parquet, by server and instant."""
        return self._kept("observations.parquet", self._write_parquet)

    def duckdb(self) -> str:
        """Return the path of a native file of DuckDB's module."""
        source = self.parquet()
        return self._kept(
            f"duckdb-{duckdb.__version__}.db", lambda path: _fill_duckdb(path, source)
        )

    def duckdb_cli(self) -> str:
        """Return the path of a native file of DuckDB's CLI."""
        load = _TABLE.format(self.parquet())
        return self._kept(
            f"duckdb-cli-{version('duckdb-cli')}.db",
            lambda path: subprocess.run([program("duckdb"), path, "-c", load], check=True),
        )

    def read_through(self) -> None:
        """Read what engines read, so that the system holds it in memory, as far as it can."""
        for name in os.listdir(self.directory):
            if not name.endswith((".db", ".parquet")):
                continue
            with open(os.path.join(self.directory, name), "rb", buffering=0) as file:
                while file.read(1 << 24):
                    pass

    def _write_parquet(self, path: str) -> None:
        course = fleet.fleet_of(self.size)
        columns = {
            "server": pl.Series(course.servers + 1, dtype=pl.UInt16),
            "observed_at": course.instants,
            "players": pl.Series(course.players, dtype=pl.UInt16),
        }
        pl.DataFrame(columns).write_parquet(path, row_group_size=_SERVER_YEAR)

    def _kept(self, name: str, make: Callable[[str], object]) -> str:
        path = os.path.join(self.directory, name)
        if not os.path.exists(path):
            tell(f"making {name} of {self.size:,} servers")
            draft = f"{path}.draft"
            if os.path.exists(draft):
                os.unlink(draft)
            make(draft)
            os.replace(draft, path)
        return path


def _write(path: str, chunks: Iterable[bytes]) -> None:
    with open(path, "wb") as file:
        file.writelines(chunks)


def _fill_duckdb(path: str, parquet: str) -> None:
    with duckdb.connect(path) as connection:
        connection.execute(_TABLE.format(parquet))
