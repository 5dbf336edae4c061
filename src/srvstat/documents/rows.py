"""A document as a table of plain values, for CSV, NDJSON, Markdown, Parquet and data frames."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, Protocol

Kind = Literal["text", "integer", "number", "boolean", "instant"]
"""What a column holds besides None. An instant is an integer of Unix milliseconds."""


class Column(NamedTuple):
    """A column: its name in camel case, as in JSON, and the kind of its values."""

    name: str
    kind: Kind


class Rows(NamedTuple):
    """Columns, and rows of as many values each. The rows can be computed while they are read."""

    columns: tuple[Column, ...]
    rows: Iterable[tuple[Any, ...]]


class RowDocument(Protocol):
    """A document that can be written as rows."""

    def to_rows(self) -> Rows:
        """Return the document as rows."""
