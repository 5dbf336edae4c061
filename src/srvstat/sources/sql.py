"""Make the SQL that reads observations from a database."""

from srvstat.contract.errors import SourceError
from srvstat.sources.source import Source

TABLE = "observations"
"""The table that is read if there is no query."""


def build_query(source: Source) -> str:
    """Return the query of a source, which can be used as a subquery that ends with a line.

    Raises SourceError for an empty query.
    """
    if source.query is None:
        return f"SELECT * FROM {TABLE}"  # noqa: S608 - a constant
    query = source.query.strip().rstrip(";").rstrip()
    if not query:
        raise SourceError("--query: is empty")
    return query


def quote_identifier(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
