"""What makes a SQLite file a snapshot of ours. The tables are explained in schema.sql."""

import os

APPLICATION_ID = 0x73727673
FORMAT_VERSION = 5

MAX_ROW_BYTES = 1 << 24
"""The most bytes that a reader takes of one row; no build makes a longer one."""


def schema() -> str:
    """Return the SQL text that creates the tables of a snapshot."""
    # importlib.resources would take longer to import than all else here.
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        return file.read()
