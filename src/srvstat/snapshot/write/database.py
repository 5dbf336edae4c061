"""Create, fill and check the database file of a new snapshot."""

import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

from srvstat.contract.errors import OutputError, SnapshotError, UsageError
from srvstat.files.paths import convert_write_errors
from srvstat.snapshot.digests import describe_servers
from srvstat.snapshot.read.connection import find_journal, format_journal_remedy
from srvstat.snapshot.read.snapshot import open_file
from srvstat.snapshot.read.verify import check_chain, check_written
from srvstat.snapshot.rows import (
    APPLICATION_ID,
    FORMAT_VERSION,
    Block,
    Bucket,
    FileRow,
    ServerRow,
    read_schema,
)

# sqlite-utils imports pandas if it is installed, which takes a second and 60 MiB. For Python, None
# is a module that does not exist.
_modules: dict[str, Any] = sys.modules
_modules.setdefault("pandas", None)
import sqlite_utils  # noqa: E402

if _modules["pandas"] is None:  # pragma: no branch - it may be imported already
    del _modules["pandas"]

# The draft is deleted on any error and flushed before it is renamed, so SQLite needs neither a
# journal nor flushes.
_SETTINGS = """
    PRAGMA page_size = 8192;
    PRAGMA trusted_schema = 0;
    PRAGMA cell_size_check = 1;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
"""


_PUT_BLOCK = f"REPLACE INTO blocks VALUES ({', '.join('?' * len(Block._fields))})"  # noqa: S608 - our own names


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of a snapshot in a new database."""
    connection.executescript(_SETTINGS)
    connection.executescript(read_schema())
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def put_block(connection: sqlite3.Connection, block: Block) -> None:
    """Store a block of a new snapshot."""
    connection.execute(_PUT_BLOCK, block)


def put_blocks(connection: sqlite3.Connection, blocks: Iterable[Block]) -> None:
    """Add or replace blocks of a snapshot."""
    connection.executescript(_SETTINGS)
    connection.executemany(_PUT_BLOCK, blocks)


def store_servers(
    connection: sqlite3.Connection, rows: Sequence[ServerRow], file_row: FileRow
) -> FileRow:
    """Replace the servers, their directory and the row of the file, and commit.

    `file_row` has the columns about its sources; returns the row as stored.
    """
    sealed, directory = describe_servers(file_row, rows)
    database = sqlite_utils.Database(connection, execute_plugins=False)
    stored: dict[str, Sequence[ServerRow | Bucket | FileRow]] = {
        "servers": rows,
        "directory": directory,
        "snapshot": [sealed],
    }
    for name, of_table in stored.items():
        table = database.table(name)
        table.delete_where()
        table.insert_all(row._asdict() for row in of_table)
    connection.commit()
    return sealed


_COUNTER_AT, _COUNTER_BYTES = 24, 4


@contextmanager
def open_draft(output: str, draft: str) -> Iterator[sqlite3.Connection]:
    """Open the draft of an output as a database without tables.

    Raises OutputError for SQLite's errors in the block.
    """
    # The draft itself is locked, and SQLite's locks would wait for that lock on macOS and NFS.
    uri = f"file:{quote(os.fsencode(draft), safe='/')}?mode=rw&nolock=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise OutputError(f"{output}: {error}, here or in SQLite's temporary files") from None


def check_draft(
    output: str, draft: str, row: FileRow, first_blocks: Mapping[str, int] | None = None
) -> None:
    """Read back a draft, with the given row of the file, before it becomes the output.

    For an update, `first_blocks` has the number of the first block written by the id of its server,
    and the output is still the file before the update.

    Raises OutputError if a row differs, or if one is missing, and UsageError if there is a journal.
    """
    try:
        with closing(open_file(draft)) as snapshot:
            is_complete = snapshot.file_row == row
            if first_blocks is None:
                check_chain(snapshot)
            else:
                check_written(snapshot, first_blocks)
        if first_blocks is not None:
            with convert_write_errors(output):
                is_complete &= _read_change_counter(draft) != _read_change_counter(output)
    except SnapshotError:
        is_complete = False
    if not is_complete:
        raise OutputError(f"{output}: the written file does not read back; check the disk")
    check_journal(output)


def _read_change_counter(path: str) -> bytes:
    """Return the counter in the first page of a database, which each change rewrites."""
    with open(path, "rb") as file:
        return file.read(_COUNTER_AT + _COUNTER_BYTES)[_COUNTER_AT:]


def check_journal(output: str) -> None:
    """Refuse an output with a journal, which would make the snapshot unreadable.

    Raises UsageError, OutputError.
    """
    with convert_write_errors(output):
        journal = find_journal(output)
    if journal:
        raise UsageError(
            f"{output}: {journal} exists, and SQLite would apply it to the new snapshot;"
            f" {format_journal_remedy(journal)}"
        )
