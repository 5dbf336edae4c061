"""Create and fill the tables of a new snapshot."""

import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from srvstat.snapshot.format.digest import build_directory, digest_directory, seal
from srvstat.snapshot.format.rows import FileRow, ServerRow
from srvstat.snapshot.format.schema import APPLICATION_ID, FORMAT_VERSION, read_schema


@contextmanager
def _hide_modules(*names: str) -> Iterator[None]:
    """Let imports of modules fail in the block, unless they are imported already."""
    hidden = [name for name in names if name not in sys.modules]
    modules: dict[str, Any] = sys.modules
    # For Python, None is a module that does not exist.
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]


# sqlite-utils imports both if they are installed, which takes a second and 60 MiB.
with _hide_modules("numpy", "pandas"):
    import sqlite_utils

# The draft is deleted on any error and flushed before it is renamed, so SQLite needs neither a
# journal nor flushes. Rows of `days` take a few kilobytes each; larger pages waste less space.
_SETTINGS = """
    PRAGMA page_size = 16384;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
"""


@contextmanager
def fill_tables(connection: sqlite3.Connection) -> Iterator[sqlite_utils.Database]:
    """Create the tables of a snapshot, and commit what the block stores in them."""
    connection.executescript(_SETTINGS)
    database = sqlite_utils.Database(connection, execute_plugins=False)
    database.executescript(read_schema())
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    with database.atomic():
        yield database


def store_servers(
    database: sqlite_utils.Database, rows: Sequence[ServerRow], file_row: FileRow
) -> FileRow:
    """Store the servers, their directory, and the row of the file with its digests.

    Returns the row of the file as stored.
    """
    directory = build_directory(rows)
    sealed = seal(file_row._replace(bucket_digests=digest_directory(directory)))
    database.table("servers").insert_all(row._asdict() for row in rows)
    database.table("directory").insert_all(bucket._asdict() for bucket in directory)
    database.table("snapshot").insert(sealed._asdict())
    return sealed
