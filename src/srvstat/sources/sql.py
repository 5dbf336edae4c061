"""Make the SQL that reads observations from a database."""

from srvstat.sources.source import Source

TABLE = "observations"
"""The table that is read if there is no query."""


def build_query(source: Source) -> str:
    """Return the query of a source, for use as a subquery; it may end in a comment."""
    if source.query is None:
        return f"SELECT * FROM {TABLE}"  # noqa: S608 - a constant
    return source.query.rstrip("; \t\r\n")


def quote_identifier(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
