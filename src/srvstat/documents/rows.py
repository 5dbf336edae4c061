"""A document as a table of plain values, for CSV, NDJSON, Markdown, Parquet and data frames."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Kind = Literal["text", "texts", "integer", "number", "boolean", "instant"]
"""What a column holds besides None.

Texts are a sequence of texts. An instant is an integer of Unix milliseconds.
"""


class Column(NamedTuple):
    """A column: its name in camel case, as in JSON, and the kind of its values."""

    name: str
    kind: Kind


class Rows(NamedTuple):
    """Columns, and rows of as many values each. The rows can be computed while they are read."""

    columns: tuple[Column, ...]
    rows: Iterable[tuple[Any, ...]]


class RowDocument(ABC):
    """A document about a snapshot that can be written as rows."""

    if TYPE_CHECKING:  # a pydantic model that extends this class defines its own fields
        document: str
        as_of: int
        root: str

    @abstractmethod
    def to_rows(self) -> Rows:
        """Return the document as rows."""

    def to_arrow(self) -> "pa.Table":
        """Return the rows as an Arrow table. Needs pyarrow.

        Instants are `timestamp[ms, tz=UTC]`, integers `int64` and other numbers `double`.

        Raises ImportError without pyarrow.
        """
        # Importing pyarrow takes 0.1 s.
        from srvstat.documents.arrow import build_table  # noqa: PLC0415

        return build_table(self)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the rows as a data frame. Needs pyarrow and pandas.

        Integers and Booleans have the types `Int64` and `boolean`, in which a value can be missing.

        Raises ImportError without one of the libraries.
        """
        from srvstat.documents.arrow import build_frame  # noqa: PLC0415 - see to_arrow

        return build_frame(self)
