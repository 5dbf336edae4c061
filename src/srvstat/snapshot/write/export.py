"""Export a snapshot: write its servers and observations to files that a build reads."""

import os
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import reduce
from operator import or_

from srvstat.contract.ranges import BEFORE_ALL, DAY_MS, Window
from srvstat.documents.snapshot import ExportSummary
from srvstat.files.atomic import atomic_folder, write_file
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.write.server_rows import build_record
from srvstat.sources.server_records import ServerRecord
from srvstat.sources.servers import format_records

EncodeObservations = Callable[[Iterable[ServerRow], Window], Iterable[bytes]]
"""Returns the observations of servers in a window as a file, in pieces."""

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def write_export(  # noqa: PLR0913 - each is a choice of the command
    folder: str,
    snapshot: Snapshot,
    servers: Callable[[], Iterable[ServerRow]],
    encode: EncodeObservations,
    *,
    format: str,
    by_month: bool = False,
) -> ExportSummary:
    """Write servers of a snapshot to a new folder, and return a summary.

    `servers` is called once for each pass over the servers. `encode` writes the observations in
    the format that names their file. With `by_month`, there is a folder `month=2026-01` for each
    month (UTC) that has observations, as partitions of Hive.

    Raises SnapshotError, UsageError if the folder exists, OutputError.
    """
    export = _Export(folder, snapshot, servers)
    with atomic_folder(folder) as draft:
        export.write(draft, "servers.ndjson", format_records(export.iter_records()))
        observations = f"observations.{format}"
        if by_month:
            for month, window, chosen in export.split_months():
                name = os.path.join(observations, f"month={month}", f"part-0.{format}")
                export.write(draft, name, encode(chosen, window))
        else:
            window = Window(BEFORE_ALL, snapshot.as_of)
            export.write(draft, observations, encode(servers(), window))
    has_all = export.server_count == snapshot.file_row.server_count
    is_one_file = snapshot.shards is None and snapshot.parent_root is None
    return ExportSummary(
        servers=export.server_count,
        observations=export.observation_count,
        servers_path=os.path.join(folder, "servers.ndjson"),
        observations_path=os.path.join(folder, observations),
        size=export.size,
        as_of=snapshot.as_of,
        covered_from=snapshot.covered_from,
        root=snapshot.root if has_all and is_one_file else None,
    )


class _Export:
    """The passes over the servers of an export, and what has been written."""

    def __init__(
        self, title: str, snapshot: Snapshot, servers: Callable[[], Iterable[ServerRow]]
    ) -> None:
        self._title = title
        self._snapshot = snapshot
        self._servers = servers
        self.server_count = self.observation_count = self.size = 0

    def write(self, folder: str, name: str, pieces: Iterable[bytes]) -> None:
        """Write a file of the export."""
        path = os.path.join(folder, name)
        write_file(path, pieces, title=self._title)
        self.size += os.path.getsize(path)

    def iter_records(self) -> Iterator[ServerRecord]:
        """Yield the records of the servers, and count the servers and their observations."""
        for server in self._servers():
            with self._snapshot.convert_decode_errors(server.title):
                self._snapshot.get_detail(server)
                record = build_record(server)
            self.server_count += 1
            self.observation_count += server.observation_count
            yield record

    def split_months(self) -> Iterator[tuple[str, Window, Iterator[ServerRow]]]:
        """Yield each month with observations, its window, and the servers that have some in it.

        Without observations, yield the month of as of.
        """
        months: dict[str, int] = {}  # by id, as bits
        for server in self._servers():
            with self._snapshot.convert_decode_errors(server.title):
                days = [entry.day for entry in self._snapshot.iter_entries(server, 0)]
                months[server.id] = sum(1 << month for month in {*map(_find_month, days)})
        found = reduce(or_, months.values(), 0) or 1 << _find_month(self._snapshot.as_of // DAY_MS)
        for month in range(found.bit_length()):
            if found >> month & 1:
                chosen = (one for one in self._servers() if months[one.id] >> month & 1)
                yield *_build_window(month), chosen


def _find_month(day: int) -> int:
    """Return the number of the month of a day, from January of the year 1 on.

    Raises ValueError and OverflowError for a day that no build writes.
    """
    found = date.fromordinal(_EPOCH_ORDINAL + day)
    return found.year * 12 + found.month - 1


def _build_window(month: int) -> tuple[str, Window]:
    """Return the name of a month, such as 2026-01, and its window."""
    year, before = divmod(month, 12)
    first = date(year, before + 1, 1)
    start = (first.toordinal() - _EPOCH_ORDINAL) * DAY_MS
    _, days = monthrange(year, before + 1)
    return first.isoformat()[:7], Window(start - 1, start + days * DAY_MS - 1)
