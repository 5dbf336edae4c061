"""Read a snapshot of an old format, and verify all that its format can verify.

Formats 3 to 7 have digests of all rows. Format 2 has each observation twice, and format 1 once.
"""

from array import array
from collections.abc import Mapping
from contextlib import AbstractContextManager
from itertools import chain as join
from typing import NamedTuple

from srvstat.contract.errors import SnapshotError
from srvstat.contract.ranges import DAY_MS
from srvstat.snapshot.format.derive import has_valid_observations
from srvstat.snapshot.format.lanes import pack_offsets
from srvstat.snapshot.format.packing import pack_values
from srvstat.snapshot.format.rows import DAYS_PER_SERVER, format_server
from srvstat.snapshot.old_formats.digests import CHAINS, Chain, Row
from srvstat.snapshot.old_formats.rows import OldRows
from srvstat.snapshot.old_formats.tables import list_tables
from srvstat.snapshot.read.connection import (
    SnapshotConnection,
    build_damage_error,
    convert_decode_errors,
)
from srvstat.snapshot.read.header import FILE_ROW
from srvstat.snapshot.read.verified_rows import DIRECTORY, format_day

SERVERS = "the servers"


class OldServer(NamedTuple):
    """A row of `servers`, and the observations of the server in ascending order."""

    row: Row
    instants: "array[int]"
    players: "array[int]"

    @property
    def title(self) -> str:
        """How messages name the server."""
        return format_server(self.row["id"])


class OldFile:
    """An open snapshot of an old format.

    Rows are verified before they are returned. Only `check_counts`, at the end, shows that no table
    has others. Every method raises SnapshotError for a damaged file.
    """

    def __init__(self, connection: SnapshotConnection) -> None:
        self.path = connection.path
        self.version = connection.version
        self._rows = OldRows(connection)
        self._chain = CHAINS.get(self.version)
        # The first check: pages that point to each other could yield endless rows.
        if not connection.is_sound():
            raise self.build_damage_error("the structure of the SQLite file")
        self.row = self._read_file_row()
        self.servers = self._rows.read("servers", "ORDER BY id", part=SERVERS)
        if self._chain:
            self._check_directory(self._chain)

    @property
    def is_bundle(self) -> bool:
        """Whether the file has only some servers and observations of another one."""
        return self.row.get("parent_root") is not None

    def read_server(self, row: Row) -> OldServer:
        """Return a server with its observations."""
        part = f"the observations of {format_server(row['id'])}"
        query = "SELECT observed_at, players FROM observations WHERE server = ?"
        interleaved = array("q")
        with self.convert_decode_errors(part):
            for rows in self._rows.connection.stream_small_rows(query, row["server"], part=part):
                interleaved.extend(join.from_iterable(rows))
        server = OldServer(row, interleaved[::2], interleaved[1::2])
        if not has_valid_observations(server.instants, server.players, self.row["as_of"]):
            raise self.build_damage_error(part)
        self._rows.count("observations", len(server.instants))
        if self._chain:
            self._compare_days(server, self._verify_rows(self._chain, server))
        elif "days" in list_tables(self.version):
            self._compare_days(server, self._read_days(server))
        return server

    def check_counts(self) -> None:
        """Check that no table has rows besides those that were read."""
        self._rows.check_counts()

    def build_damage_error(self, part: str) -> SnapshotError:
        """Return the error that reports a damaged part of the file."""
        return build_damage_error(self.path, part)

    def convert_decode_errors(self, part: str) -> AbstractContextManager[None]:
        """Report values that can't be decoded as damage of a part of the file."""
        return convert_decode_errors(self.path, part)

    def _read_file_row(self) -> Row:
        rows = self._rows.read("snapshot", "LIMIT 2", part=FILE_ROW)
        if len(rows) != 1:
            raise self.build_damage_error(FILE_ROW)
        (row,) = rows
        if self._chain:
            with self.convert_decode_errors(FILE_ROW):
                found = self._chain.compute_root(row), self._chain.digest_file_row(row)
            if found != (row["root"], row["digest"]):
                raise self.build_damage_error(FILE_ROW)
        return row

    def _check_directory(self, chain: Chain) -> None:
        """Verify the directory, and the servers by the digests in it."""
        rows = self._rows.read("directory", "ORDER BY bucket", part=DIRECTORY)
        stored = [(row["bucket"], row["entries"]) for row in rows]
        digests = b"".join(chain.digest_row("directory", row) for row in rows)
        if digests != self.row["bucket_digests"]:
            raise self.build_damage_error(DIRECTORY)
        with self.convert_decode_errors(SERVERS):
            built = chain.build_directory(self.servers)
        if built != stored:
            raise self.build_damage_error(SERVERS)

    def _verify_rows(self, chain: Chain, server: OldServer) -> Mapping[int, Row]:
        """Verify all rows of a server by their digests, and return those of its days."""
        found: dict[str, Mapping[int, Row]] = {"servers": {0: server.row}}
        for link in chain.links:
            part = f"{link.part} of {server.title}"
            rows = self._rows.read_of_server(
                link.table, server.row["server"], link.per_server, part
            )
            with self.convert_decode_errors(part):
                digests = link.list_digests(found)
                numbers = sorted(rows.keys() | digests.keys())
            for number in numbers:
                row = rows.get(number)
                if row is None or chain.digest_linked_row(link, row) != digests.get(number):
                    is_day = link.table == "days"
                    name = format_day(server.title, number) if is_day else part
                    raise self.build_damage_error(name)
            found[link.table] = rows
        return found["days"]

    def _read_days(self, server: OldServer) -> Mapping[int, Row]:
        """Return the days of a server in format 2, which has no digests of them."""
        part = f"the days of {server.title}"
        return self._rows.read_of_server("days", server.row["server"], DAYS_PER_SERVER, part)

    def _compare_days(self, server: OldServer, days: Mapping[int, Row]) -> None:
        """Compare the observations of a server with those in its days."""
        at = 0
        for day, row in days.items():
            end = at + row["observation_count"]
            if not _is_day(day, row, server.instants[at:end], server.players[at:end]):
                part = format_day(server.title, day)
                raise self.build_damage_error(f"the observations of {part}")
            at = end
        if at != len(server.instants):
            raise self.build_damage_error(f"the observations of {server.title}")


def _is_day(day: int, row: Row, instants: "array[int]", players: "array[int]") -> bool:
    """Check that a row of `days` has these observations, and no others."""
    midnight = day * DAY_MS
    return (
        0 < len(instants) == row["observation_count"]
        and midnight <= instants[0]
        # Packing would cut off the upper half of other instants.
        and instants[-1] < midnight + DAY_MS
        and pack_offsets(instants, midnight) == row["times"]
        and pack_values(players.tolist()) == row["players"]
    )
