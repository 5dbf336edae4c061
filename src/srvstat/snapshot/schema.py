"""What makes a SQLite file a snapshot of ours. The tables are explained in schema.sql."""

from importlib.resources import files

APPLICATION_ID = 0x73727673
FORMAT_VERSION = 2


def schema() -> str:
    """Return the SQL text that creates the tables of a snapshot."""
    return files("srvstat.snapshot").joinpath("schema.sql").read_text(encoding="utf-8")
