"""Upgrade a snapshot: rewrite one of an older format in the current one, without its sources."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

from srvstat.contract.errors import UsageError
from srvstat.documents.upgrade_summary import UpgradeSummary
from srvstat.files.atomic_write import atomic_write, check_name
from srvstat.files.identity import compute_identity
from srvstat.files.locks import lock_file
from srvstat.snapshot.format.rows import FileRow, ServerRow
from srvstat.snapshot.format.schema import FORMAT_VERSION
from srvstat.snapshot.old_formats.file import OldFile
from srvstat.snapshot.old_formats.tables import OLD_LAYOUTS
from srvstat.snapshot.read.connection import open_connection
from srvstat.snapshot.read.layout import CURRENT_LAYOUT
from srvstat.snapshot.read.reader import SnapshotFile
from srvstat.snapshot.read.snapshot import open_snapshot
from srvstat.snapshot.write.database import check_draft, check_journal, open_draft
from srvstat.snapshot.write.second_process import SecondProcess
from srvstat.snapshot.write.store import StagedServer, store_staged
from srvstat.snapshot.write.tables import fill_tables, store_servers
from srvstat.snapshot.write.upgrade_rows import build_file_row, build_server_row

_SECOND_PROCESS_FROM = 100_000
"""Observations from which a second process takes less time than its start."""


def upgrade(
    path: str,
    output: str | None = None,
    *,
    overwrite: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> UpgradeSummary | None:
    """Rewrite a snapshot of an older format in the current one, and return a summary.

    The file is replaced by the new one; with an `output`, it stays and that file is written, which
    `overwrite` allows to replace another one. Returns None for a snapshot that has the current
    format already, for which an `output` is an error. Everything is verified as far as the old
    format allows. Calls `progress` with the number of observations just read and the total number.

    Raises SnapshotError, UsageError, OutputError, SourceError.
    """
    target = _check_target(path, output)
    if os.path.isdir(path):
        # Sharded snapshots are as old as the current format.
        open_snapshot(path).close()
        _check_no_output(path, output)
        return None
    with (
        lock_file(path) as locked,
        closing(open_connection(path, layouts={**OLD_LAYOUTS, **CURRENT_LAYOUT})) as connection,
    ):
        if connection.version == FORMAT_VERSION:
            SnapshotFile(connection)
            _check_no_output(path, output)
            return None
        check_journal(target)
        old = OldFile(connection)
        replaced = compute_identity(os.fstat(locked)) if output is None else None
        with atomic_write(
            target, overwrite=overwrite or output is None, replaced=replaced
        ) as draft:
            with open_draft(target, draft) as database, SecondProcess() as second:
                if old.row["observation_count"] >= _SECOND_PROCESS_FROM:
                    second.start()
                file_row = _fill_draft(database, old, second, progress)
            check_draft(target, draft, file_row.observation_count)
            check_journal(target)
    return UpgradeSummary(
        version=old.version,
        new_version=FORMAT_VERSION,
        servers=file_row.server_count,
        observations=file_row.observation_count,
        as_of=file_row.as_of,
        old_root=old.row["root"].hex() if "root" in old.row else None,
        root=file_row.root.hex(),
    )


def _check_target(path: str, output: str | None) -> str:
    """Return the file to write; an output must be another file than the old one.

    Raises UsageError, OutputError.
    """
    if output is None:
        check_name("PATH", path)
        return path
    if check_name("--output", output) == os.path.realpath(path):
        raise UsageError(f"{output}: is also PATH; leave out --output to replace it")
    return output


def _check_no_output(path: str, output: str | None) -> None:
    """Refuse an output if there is nothing to write.

    Raises UsageError.
    """
    if output is not None:
        raise UsageError(
            f"{path}: already has format {FORMAT_VERSION}, so {output} is not written; use {path}"
            " as it is"
        )


def _fill_draft(
    connection: sqlite3.Connection,
    old: OldFile,
    second: SecondProcess,
    progress: Callable[[int, int], None],
) -> FileRow:
    """Store all servers and observations of an old file; return the row of the new file."""
    rows: list[ServerRow] = []
    with fill_tables(connection) as database:
        for staged, derived in store_staged(connection, _read_servers(old), second):
            rows.append(build_server_row(old, staged.key, derived))
            progress(len(staged.instants), old.row["observation_count"])
        old.check_counts()
        return store_servers(database, rows, build_file_row(old, rows))


def _read_servers(old: OldFile) -> Iterator[StagedServer]:
    """Yield the servers of an old file in the order of their ids, with numbers from 1."""
    for key, row in enumerate(old.servers, start=1):
        server = old.read_server(row)
        yield StagedServer(row["id"], key, server.instants, server.players)
