"""Query an open snapshot; every row is verified against its digest first."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice, pairwise

from srvstat.contract.requests import NAMESPACES, Namespace, ServerReference
from srvstat.contract.windows import DAY_MS, Window
from srvstat.snapshot.format.calendar import Entry
from srvstat.snapshot.format.days import read_day_observations, read_day_steps
from srvstat.snapshot.format.rows import Bucket, Day, ServerRow
from srvstat.snapshot.read.connection import SnapshotConnection, open_connection
from srvstat.snapshot.read.figures import (
    StepTotals,
    WindowFigures,
    compute_steps,
    compute_window_figures,
    find_long_intervals,
    verify_summaries,
)
from srvstat.snapshot.read.header import (
    FILE_ROW,
    DetailWithInstants,
    SnapshotHeader,
    check_optional_instant,
    read_detail,
)
from srvstat.snapshot.read.statistics import compute_window_statistics, compute_window_totals
from srvstat.snapshot.read.verified_rows import DIRECTORY, VerifiedRows
from srvstat.stats import Statistics

_COLUMNS: dict[Namespace, str] = {"id": "id", "cfxId": "cfx_id"}

_MAX_SEARCHED_SERVERS = 50_000
"""Reading the sourceIds of this many takes about 0.1 s."""


class SnapshotFile(VerifiedRows, SnapshotHeader):
    """An open snapshot; `open_file` opens one.

    Instants are Unix milliseconds. Every method may raise SnapshotError, which names the damaged
    part of the file.
    """

    shards: None = None
    """A single file has none."""

    def __init__(self, connection: SnapshotConnection) -> None:
        VerifiedRows.__init__(self, connection)
        SnapshotHeader.__init__(self, connection.path, self.file_row)

    def close(self) -> None:
        """Close the file; later reads raise sqlite3.ProgrammingError."""
        self._connection.close()

    def reread(self) -> "SnapshotFile":
        """Return the same open file without anything in memory: queries read from the disk.

        Raises SnapshotError also if another snapshot was written over the file.
        """
        self._connection.forget_pages()
        again = SnapshotFile(self._connection)
        if not again.is_same_as(self):
            raise self.build_damage_error(FILE_ROW)
        return again

    def iter_files(self) -> "Iterator[SnapshotFile]":
        """Yield the files of the snapshot: this one."""
        yield self

    def find_servers(self, references: Iterable[ServerReference]) -> list[ServerRow | None]:
        """Return the server of each reference, compared exactly; None for an unknown one."""
        return self.find_rows([(one.by, one.identifier) for one in references])

    def has_identifier(self, by: Namespace, identifier: str) -> bool:
        """Check whether a server has an identifier."""
        return self.find_rows([(by, identifier)]) != [None]

    def has_server(self, server: ServerRow) -> bool:
        """Check whether all identifiers of a server lead to its row."""
        references = [(by, server.get_identifier(by)) for by in NAMESPACES]
        return self.find_rows(references) == [server] * len(references)

    def get_detail(self, server: ServerRow) -> DetailWithInstants:
        """Return a server's public record."""
        with self.convert_decode_errors(server.title):
            return read_detail(server)

    def iter_identifiers(
        self, by: Namespace, start: str = "", *, backwards: bool = False
    ) -> Iterator[str]:
        """Yield unverified identifiers of a namespace; `has_identifier` verifies one.

        They are in ascending order from `start` on, or with `backwards` in descending order before
        `start`.
        """
        column = _COLUMNS[by]
        operator, order = ("<", "DESC") if backwards else (">=", "ASC")
        rows = self._connection.stream(
            f"SELECT {column} FROM servers WHERE {column} {operator} ? ORDER BY {column} {order}",  # noqa: S608 - our own names
            start,
            part="the servers",
        )
        # Pages that point to each other could yield endless rows.
        limited = islice(rows, self.file_row.server_count)
        return (name for (name,) in limited if isinstance(name, str))

    def find_source_id(self, source_id: str) -> str | None:
        """Return the unverified id of the server with a sourceId, whose ASCII case does not matter.

        None without such a server, and for a file with more servers than can be searched quickly.
        """
        if self.file_row.server_count > _MAX_SEARCHED_SERVERS:
            return None
        rows = self._connection.stream(
            "SELECT id FROM servers WHERE source_id = ? COLLATE NOCASE ORDER BY id LIMIT 1",
            source_id,
            part="the servers",
        )
        return next((name for (name,) in rows if isinstance(name, str)), None)

    def compute_statistics(self, servers: Sequence[ServerRow], window: Window) -> list[Statistics]:
        """Return the statistics of each server in a window; the number of reads is constant."""
        with self.convert_decode_errors("the days"):
            return compute_window_statistics(self, servers, window)

    def compute_figures(
        self, servers: Sequence[ServerRow], window: Window, quantiles: Sequence[Fraction] = ()
    ) -> list[WindowFigures]:
        """Return the figures of each server in a window, which may start at BEFORE_ALL."""
        with self.convert_decode_errors("the days"):
            return compute_window_figures(self, self.read_observations, servers, window, quantiles)

    def compute_step_totals(self, server: ServerRow, edges: Sequence[int]) -> StepTotals:
        """Return the totals of the steps between successive ascending edges.

        A step excludes its start and includes its end. Steps between the ends of days (UTC) take
        few rows, others all observations.
        """
        with self.convert_decode_errors("the days"):
            return compute_steps(self, self.read_observations, server, edges)

    def compute_totals(self, servers: Sequence[ServerRow], window: Window) -> list[tuple[int, int]]:
        """Return the number of observations of each server in a window, and their sum."""
        with self.convert_decode_errors("the days"):
            return compute_window_totals(self, servers, window)

    def read_observations(self, server: ServerRow, window: Window) -> tuple[list[int], list[int]]:
        """Return the ascending instants of a server's observations in a window, and the players."""
        days = self.iter_days(server, window.start // DAY_MS, window.end // DAY_MS)
        with self.convert_decode_errors(f"the days of {server.title}"):
            return read_day_observations(days, window)

    def iter_observations(
        self, server: ServerRow, window: Window
    ) -> Iterator[tuple[list[int], list[int]]]:
        """Yield, day by day, what `read_observations` returns at once."""
        days = self.iter_days(server, window.start // DAY_MS, window.end // DAY_MS)
        with self.convert_decode_errors(f"the days of {server.title}"):
            for day in days:
                yield read_day_observations([day], window)

    def read_steps(self, server: ServerRow, edges: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return positions and players: `players[positions[i] : positions[i + 1]]` are of a step.

        The steps are the intervals `(edges[i], edges[i + 1]]`; the edges ascend.
        """
        days = self.iter_days(server, edges[0] // DAY_MS, edges[-1] // DAY_MS)
        with self.convert_decode_errors(f"the days of {server.title}"):
            return read_day_steps(days, edges)

    def find_long_intervals(
        self, server: ServerRow, window: Window, usual: int
    ) -> list[tuple[int, int]]:
        """Return the intervals that end in a window and are longer than three usual ones.

        Each is a pair of successive observations, of which the first may be before the window.
        `usual` is the usual interval in half milliseconds. The window starts at an instant.
        """
        with self.convert_decode_errors(f"the summaries of {server.title}"):
            found = find_long_intervals(self, server, window, usual)
        if found is None:
            start = window.start
            if server.first_observed_at is not None and server.first_observed_at <= start:
                start = (self.find_last_observed_at(server, start) or start) - 1
            instants, _ = self.read_observations(server, Window(start, window.end))
            found = [pair for pair in pairwise(instants) if 2 * (pair[1] - pair[0]) > 3 * usual]
        return found

    def find_last_observed_at(self, server: ServerRow, until: int) -> int | None:
        """Return the instant of a server's last observation up to and including `until`."""
        if server.last_observed_at is None or until >= server.last_observed_at:
            with self.convert_decode_errors(server.title):
                return check_optional_instant(server.last_observed_at)
        # All observations of the last day may be later than `until`; those of the day before
        # are not.
        for _ in range(2):
            (ends,) = self.find_ends([server], Window(0, until))
            if not ends:
                return None
            start = ends[-1].day * DAY_MS
            instants, _ = self.read_observations(server, Window(start - 1, until))
            if instants:
                return instants[-1]
            until = start - 1
        raise self.build_damage_error(f"the days of {server.title}")

    def read_days(self, server: ServerRow, entries: Sequence[Entry]) -> list[Day]:
        """Return the rows of some days of a server: at most 1,000, read with one statement."""
        (days,) = self.read_days_of([(server, entries)])
        return days

    def count_calendar_blocks(self, server: ServerRow) -> int:
        """Return the number of rows of `calendars` of a server."""
        return self.get_calendar(server).stored_blocks

    def verify_summaries(self, server: ServerRow) -> Counter[str]:
        """Verify all rows of summaries and intervals of a server; return their numbers by table."""
        with self.convert_decode_errors(f"the summaries of {server.title}"):
            return verify_summaries(self, server)

    def iter_directory(self) -> Iterator[Bucket]:
        """Yield the rows of `directory`, without verification."""
        rows = self._connection.stream("SELECT * FROM directory ORDER BY bucket", part=DIRECTORY)
        return map(Bucket._make, rows)

    def count_rows(self, table: str, most: int) -> int:
        """Return the number of rows of a table, at most `most`."""
        return self._connection.count_rows(table, most)

    def is_sound(self) -> bool:
        """Check the structure of the whole file with SQLite, including its indexes."""
        return self._connection.is_sound()


def open_file(path: str, *, sharing: int = 1) -> SnapshotFile:
    """Open a snapshot file for reading. `sharing` files share the memory that one may use.

    Raises SnapshotError with a one-line reason that names the problem and a remedy, and shows
    nothing of the file's content.
    """
    connection = open_connection(path, sharing=sharing)
    try:
        return SnapshotFile(connection)
    except BaseException:
        connection.close()
        raise
