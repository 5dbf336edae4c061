"""Open a snapshot of either kind, and ask it: a file, or a folder of shards."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from srvstat.contract.requests import NAMESPACES, Namespace, ServerReference
from srvstat.contract.stats import Statistics
from srvstat.contract.time import Window
from srvstat.files.paths import Identity, compute_identity, identify_file
from srvstat.snapshot.digests import MANIFEST
from srvstat.snapshot.read.connection import open_connection
from srvstat.snapshot.read.verified_rows import DIRECTORY, FILE_ROW, VerifiedRows
from srvstat.snapshot.read.windows import compute_window_statistics, compute_window_totals
from srvstat.snapshot.rows import Bucket, ServerRow

if TYPE_CHECKING:
    from srvstat.snapshot.read.shards import ShardedSnapshot

_COLUMNS: dict[Namespace, str] = {"id": "id", "cfxId": "cfx_id"}

_MAX_SEARCHED_SERVERS = 50_000
"""Reading the sourceIds of this many takes about 0.1 s."""


class SnapshotFile(VerifiedRows):
    """An open snapshot; `open_file` opens one.

    Instants are Unix milliseconds. Every method may raise SnapshotError, which names the damaged
    part of the file.
    """

    shards: None = None
    """A single file has none."""

    def close(self) -> None:
        """Close the file; later reads raise sqlite3.ProgrammingError."""
        self.connection.close()

    def reread(self) -> "SnapshotFile":
        """Return the same open file without anything in memory: queries read from the disk.

        Raises SnapshotError also if another snapshot was written over the file.
        """
        self.connection.forget_pages()
        again = SnapshotFile(self.connection)
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

    def iter_identifiers(
        self, by: Namespace, start: str = "", *, backwards: bool = False
    ) -> Iterator[str]:
        """Yield unverified identifiers of a namespace; `has_identifier` verifies one.

        They are in ascending order from `start` on, or with `backwards` in descending order before
        `start`.
        """
        column = _COLUMNS[by]
        operator, order = ("<", "DESC") if backwards else (">=", "ASC")
        rows = self.connection.stream(
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
        rows = self.connection.stream(
            "SELECT id FROM servers WHERE source_id = ? COLLATE NOCASE ORDER BY id LIMIT 1",
            source_id,
            part="the servers",
        )
        return next((name for (name,) in rows if isinstance(name, str)), None)

    def compute_statistics(self, servers: Sequence[ServerRow], window: Window) -> list[Statistics]:
        """Return the statistics of each server in a window; the number of reads is constant."""
        with self.convert_decode_errors("the observations"):
            return compute_window_statistics(self, servers, window)

    def compute_totals(self, servers: Sequence[ServerRow], window: Window) -> list[tuple[int, int]]:
        """Return the number of observations of each server in a window, and their sum."""
        with self.convert_decode_errors("the observations"):
            return compute_window_totals(self, servers, window)

    def iter_directory(self) -> Iterator[Bucket]:
        """Yield the rows of `directory`, without verification."""
        rows = self.connection.stream("SELECT * FROM directory ORDER BY bucket", part=DIRECTORY)
        return map(Bucket._make, rows)


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


Snapshot: TypeAlias = "SnapshotFile | ShardedSnapshot"


def open_snapshot(path: str) -> Snapshot:
    """Open a snapshot for reading: a file, or a folder with a manifest of shards.

    Raises SnapshotError with a one-line reason that names the problem and a remedy, and shows
    nothing of the observations.
    """
    if not path or not os.path.isdir(path):
        return open_file(path)
    # Answers from one file need neither the manifest nor its model, which take 20 ms.
    from srvstat.snapshot.read.shards import open_shards  # noqa: PLC0415

    return open_shards(path)


def identify_snapshot(path: str) -> Identity:
    """Return the identity of the file at a path; for a folder, that of its manifest."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return identify_file(os.path.join(path, MANIFEST))
    return compute_identity(status)
