"""A document as a table of plain values, for CSV, NDJSON, Markdown, Parquet and data frames."""

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from itertools import islice
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from srvstat.contract.errors import MissingLibraryError, SnapshotError
from srvstat.contract.instants import format_instant
from srvstat.documents.document import Instant, name_member

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Kind = Literal["text", "texts", "integer", "number", "boolean", "instant"]
"""What a column holds besides None.

Texts are a sequence of texts. An instant is an integer of Unix milliseconds.
"""

_KINDS: dict[Any, Kind] = {
    str: "text",
    tuple[str, ...]: "texts",
    int: "integer",
    float: "number",
    bool: "boolean",
    Instant: "instant",
}
_ROWS_PER_GROUP = 50_000
"""The rows in memory while a Parquet file is written; more of them make it little smaller."""


class Column(NamedTuple):
    """A column: its name in camel case, as in JSON, and the kind of its values.

    `path` leads from a part to the value, by attributes and indexes.
    """

    name: str
    kind: Kind
    path: tuple[str | int, ...] = ()


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

        Instants are `timestamp[ms, tz=UTC]`, integers `int64` and other numbers `double`. The
        table's metadata has `document`, `asOf` and `root` of the document.

        Raises ImportError without pyarrow, SnapshotError.
        """
        schema, batches = self._prepare_batches()
        return import_pyarrow().Table.from_batches(batches, schema)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the rows as a data frame. Needs pyarrow and pandas.

        Integers and Booleans have the types `Int64` and `boolean`, in which a value can be missing.

        Raises ImportError without one of the libraries, SnapshotError.
        """
        pa = import_pyarrow()
        try:
            import pandas as pd  # noqa: PLC0415 - importing it takes 0.3 s
        except ModuleNotFoundError:
            raise MissingLibraryError("a data frame needs pandas; run pip install pandas") from None
        # Otherwise a column of integers becomes one of floats when a value is missing.
        types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        return self.to_arrow().to_pandas(types_mapper=types.get)

    def iter_parquet(self) -> Iterator[bytes]:
        """Return the rows as a Parquet file, in pieces of bounded size.

        Its metadata is that of `to_arrow`.

        Raises MissingLibraryError and, while the pieces are read, SnapshotError.
        """
        return _iter_file(*self._prepare_batches())

    def _prepare_batches(self) -> tuple["pa.Schema", Iterator["pa.RecordBatch"]]:
        pa = import_pyarrow()
        types = {
            "text": pa.string(),
            "texts": pa.list_(pa.string()),
            "integer": pa.int64(),
            "number": pa.float64(),
            "boolean": pa.bool_(),
            "instant": pa.timestamp("ms", tz="UTC"),
        }
        columns, rows = self.to_rows()
        schema = pa.schema(
            [(column.name, types[column.kind]) for column in columns],
            {"document": self.document, "asOf": format_instant(self.as_of), "root": self.root},
        )
        return schema, _iter_batches(schema, iter(rows))


def import_pyarrow() -> Any:
    """Return the library. Importing it takes 0.1 s.

    Raises MissingLibraryError.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise MissingLibraryError(
            "Arrow and Parquet need pyarrow; run pip install 'srvstat[parquet]'"
        ) from None
    return pa


def derive_columns(part: Any, *path: str | int) -> Iterator[Column]:
    """Yield a column for each field of a dataclass; fields of other types are left out.

    A field that holds another dataclass has a column for each of its fields. `path` leads to the
    dataclass, and its names begin those of the columns.
    """
    for field in fields(part):
        hints = get_args(field.type)
        hint: Any = hints[0] if NoneType in hints else field.type
        here = (*path, field.name)
        if is_dataclass(hint):
            yield from derive_columns(hint, *here)
        elif hint in _KINDS:
            yield Column(name_member("_".join(map(str, here))), _KINDS[hint], here)


def build_rows(columns: Iterable[Column], parts: Iterable[Any]) -> Rows:
    """Return a row for each part, with the values of columns that have a path."""
    columns = tuple(columns)
    reads = [_build_reader(column.path) for column in columns]
    return Rows(columns, (tuple([read(part) for read in reads]) for part in parts))


def _build_reader(path: tuple[str | int, ...]) -> Callable[[Any], Any]:
    if len(path) == 1:
        return attrgetter(str(path[0]))

    def read(value: Any) -> Any:
        for step in path:
            if value is not None:
                value = getattr(value, step) if isinstance(step, str) else value[step]
        return value

    return read


def _iter_batches(
    schema: "pa.Schema", rows: Iterator[tuple[Any, ...]]
) -> Iterator["pa.RecordBatch"]:
    pa = import_pyarrow()
    while batch := list(islice(rows, _ROWS_PER_GROUP)):
        values = zip(*batch, strict=True)
        arrays = [
            _build_array(pa, field, cells) for field, cells in zip(schema, values, strict=True)
        ]
        yield pa.record_batch(arrays, schema)


def _build_array(pa: Any, field: "pa.Field", cells: tuple[Any, ...]) -> "pa.Array":
    values: Any = cells
    if field.type == pa.float64():  # an integer of more than 53 bits is refused as a double
        values = [None if value is None else float(value) for value in cells]
    try:
        return pa.array(values, field.type)
    except OverflowError:
        raise SnapshotError(
            f"{field.name}: a number of more than 64 bits, which no build writes"
        ) from None


def _iter_file(schema: "pa.Schema", batches: Iterator["pa.RecordBatch"]) -> Iterator[bytes]:
    sink = _Sink()
    pa = import_pyarrow()
    with pa.parquet.ParquetWriter(
        pa.PythonFile(sink, mode="w"), schema, compression="zstd"
    ) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()


class _Sink(io.BytesIO):
    """A file that keeps what was written until it is taken."""

    def take(self) -> bytes:
        data = self.getvalue()
        self.seek(0)
        self.truncate()
        return data
