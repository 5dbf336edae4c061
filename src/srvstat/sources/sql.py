"""Make the SQL that reads observations from a database."""

from srvstat.contract.errors import SourceError
from srvstat.sources.source import Source

TABLE = "observations"
"""The table that is read if there is no query."""

NO_TABLE = f"no table {TABLE}; choose other rows with --query"
"""The reason to refuse a database without that table."""


def build_query(source: Source) -> str:
    """Return the query of a source, for use as a subquery; it may end in a comment.

    Raises SourceError for bytes that are not UTF-8, which Python keeps as lone surrogates.
    """
    if source.query is None:
        return f"SELECT * FROM {TABLE}"  # noqa: S608 - a constant
    if not is_utf8(source.query):
        raise SourceError(f"{source.title}: the query is not UTF-8")
    return source.query.rstrip("; \t\r\n")


def is_utf8(text: str) -> bool:
    """Return whether UTF-8 can encode a text, as databases need."""
    return not any("\ud800" <= each <= "\udfff" for each in text)


def quote_identifier(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
