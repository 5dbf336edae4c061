"""Identify a snapshot among SQLite files, and read the SQL that creates its tables."""

import os

APPLICATION_ID = 0x73727673
FORMAT_VERSION = 8

MAX_ROW_BYTES = 1 << 24
"""Longest row in bytes that a reader accepts. No build writes a longer one."""


def read_schema() -> str:
    """Return the SQL text that creates the tables of a snapshot."""
    # Importing importlib.resources would take longer than the rest of this module.
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        return file.read()
