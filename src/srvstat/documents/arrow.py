"""Convert rows to Arrow, Parquet and pandas. Only this module imports these libraries."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from srvstat.contract.errors import MissingLibraryError, SnapshotError
from srvstat.contract.instants import format_instant
from srvstat.documents.rows import Column, Kind, RowDocument, Rows

if TYPE_CHECKING:
    import pandas as pd

try:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter
except ModuleNotFoundError:
    raise MissingLibraryError(
        "Arrow and Parquet need pyarrow; run pip install 'srvstat[parquet]'"
    ) from None

_TYPES: dict[Kind, Any] = {
    "text": pa.string(),
    "texts": pa.list_(pa.string()),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "instant": pa.timestamp("ms", tz="UTC"),
}
_ROWS_PER_GROUP = 50_000
"""The rows in memory while a file is written; more of them make it little smaller."""


def build_table(document: RowDocument) -> "pa.Table":
    """Return the rows of a document as a table.

    Its metadata has `document`, `asOf` and `root` of the document.

    Raises SnapshotError.
    """
    rows = document.to_rows()
    schema = _build_schema(document, rows)
    return pa.Table.from_batches(_iter_batches(rows, schema), schema)


def build_frame(document: RowDocument) -> "pd.DataFrame":
    """Return the rows of a document as a data frame.

    Raises MissingLibraryError, SnapshotError.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - importing it takes 0.3 s
    except ModuleNotFoundError:
        raise MissingLibraryError("a data frame needs pandas; run pip install pandas") from None
    # Otherwise a column of integers becomes one of floats when a value is missing.
    types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return build_table(document).to_pandas(types_mapper=types.get)


def encode_parquet(document: RowDocument) -> Iterator[bytes]:
    """Yield the rows of a document as a Parquet file, in pieces of bounded size.

    Its metadata is that of `build_table`.

    Raises SnapshotError.
    """
    rows = document.to_rows()
    schema = _build_schema(document, rows)
    sink = _Sink()
    with ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        for batch in _iter_batches(rows, schema):
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()


class _Sink:
    """A file that keeps what was written until it is taken."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data


def _build_schema(document: RowDocument, rows: Rows) -> "pa.Schema":
    return pa.schema(
        [(column.name, _TYPES[column.kind]) for column in rows.columns],
        {
            "document": document.document,
            "asOf": format_instant(document.as_of),
            "root": document.root,
        },
    )


def _iter_batches(rows: Rows, schema: "pa.Schema") -> Iterator["pa.RecordBatch"]:
    left = iter(rows.rows)
    while batch := list(islice(left, _ROWS_PER_GROUP)):
        values = zip(*batch, strict=True)
        arrays = [
            _build_array(column, cells) for column, cells in zip(rows.columns, values, strict=True)
        ]
        yield pa.record_batch(arrays, schema)


def _build_array(column: Column, cells: tuple[Any, ...]) -> "pa.Array":
    values: Any = cells
    if column.kind == "number":  # an integer of more than 53 bits is refused as a double
        values = [None if value is None else float(value) for value in cells]
    try:
        return pa.array(values, _TYPES[column.kind])
    except OverflowError:
        raise SnapshotError(
            f"{column.name}: a number of more than 64 bits, which no build writes"
        ) from None
