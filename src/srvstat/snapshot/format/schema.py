"""The identification of a snapshot among SQLite files; schema.sql explains its tables."""

import os

APPLICATION_ID = 0x73727673
FORMAT_VERSION = 5

MAX_ROW_BYTES = 1 << 24
"""The most bytes of a row that a reader accepts; no build writes a longer row."""


def read_schema() -> str:
    """Return the SQL text that creates the tables of a snapshot."""
    # Importing importlib.resources would take longer than the rest of this module.
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        return file.read()
