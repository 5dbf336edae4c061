"""Convert documents to rows: in every format, as tables of other libraries, and for notebooks."""

import html
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from itertools import islice
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args
from zoneinfo import ZoneInfo

from srvstat.contract import wire
from srvstat.contract.errors import MissingLibraryError, SnapshotError
from srvstat.contract.time import format_instant
from srvstat.documents.document import Instant, describe, name_member

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


Kind = Literal["text", "texts", "integer", "number", "boolean", "instant"]
"""The type of a column's values, besides None.

`texts` is a sequence of texts. `instant` is an integer of Unix milliseconds.
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
"""The number of rows in memory while a Parquet file is written; larger groups barely reduce the
size.
"""


class Column(NamedTuple):
    """A column: its name in camel case, as in JSON, and the kind of its values.

    `path` leads from a part to the value, by attributes and indexes.
    """

    name: str
    kind: Kind
    path: tuple[str | int, ...] = ()


class Rows(NamedTuple):
    """Columns and rows; each row has one value per column. Rows may be computed on iteration."""

    columns: tuple[Column, ...]
    rows: Iterable[tuple[Any, ...]]


_MOST_SHOWN = 50
"""The maximum number of rows that a notebook shows."""


class RowDocument(ABC):
    """A document about a snapshot that can be converted to rows.

    Libraries that read the Arrow C stream interface accept it, such as `polars.DataFrame(document)`
    and DuckDB. A notebook shows it as a table, without the columns whose names match `_details`.
    """

    _details: ClassVar[str] = ""

    if TYPE_CHECKING:  # a pydantic model that extends this class defines its own fields
        document: str
        as_of: int
        root: str

    @abstractmethod
    def to_rows(self) -> Rows:
        """Return the document as rows."""

    def to_arrow(self) -> "pa.Table":
        """Return the rows as an Arrow table. Needs pyarrow.

        Times are `timestamp[ms, tz=UTC]`, integers `int64` and other numbers `double`. The table's
        metadata has `document`, `asOf` and `root`.

        Raises ImportError without pyarrow, and SnapshotError if data are damaged.
        """
        return self._open_reader().read_all()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._open_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the rows as a pandas data frame. Needs pyarrow and pandas.

        Integers and Booleans have the types `Int64` and `boolean`, which support missing values.

        Raises ImportError without one of the libraries, and SnapshotError if data are damaged.
        """
        pa, pd = import_pyarrow(), _import_frames("pandas")
        # Otherwise, a missing value would turn a column of integers into floats.
        types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        return self.to_arrow().to_pandas(types_mapper=types.get)

    def to_polars(self) -> "pl.DataFrame":
        """Return the rows as a polars data frame. Needs pyarrow and polars.

        Raises ImportError without one of the libraries, and SnapshotError if data are damaged.
        """
        return _import_frames("polars").from_arrow(self.to_arrow())

    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table, without empty columns."""
        columns, rows = self.to_rows()
        left = iter(rows)
        shown = list(islice(left, _MOST_SHOWN))
        more = sum(1 for _ in left)
        zone = ZoneInfo(getattr(self, "time_zone", "UTC"))
        table = [
            _build_cells(column, [row[at] for row in shown], zone)
            for at, column in enumerate(columns)
            if not re.fullmatch(self._details, column.name)
            and not (shown and all(row[at] is None or row[at] == () for row in shown))
        ]
        lines = "".join(f"<tr>{''.join(cells)}</tr>" for cells in zip(*table, strict=True))
        title = html.escape(describe(self)) + (
            "" if zone.key == "UTC" else f", times in {zone.key}"
        )
        note = f"<p>… {more:,} more</p>" if more else ""
        return (
            f'<div style="overflow-x:auto"><p>{title}</p>'
            f'<table class="dataframe">{lines}</table>{note}</div>'
        )

    def iter_parquet(self) -> Iterator[bytes]:
        """Return the rows as a Parquet file, in pieces of bounded size.

        It has the metadata of `to_arrow`.

        Raises MissingLibraryError without pyarrow and, while the pieces are read, SnapshotError.
        """
        return _iter_file(*self._prepare_batches())

    def _open_reader(self) -> "pa.RecordBatchReader":
        return import_pyarrow().RecordBatchReader.from_batches(*self._prepare_batches())

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
    """Return pyarrow, whose import takes 0.1 s. Raises MissingLibraryError if it is missing."""
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise MissingLibraryError(
            "Arrow and Parquet need pyarrow; run pip install 'srvstat[parquet]'"
        ) from None
    return pa


def _import_frames(library: Literal["pandas", "polars"]) -> Any:
    """Return a data frame library, whose import takes up to 0.3 s.

    Raises MissingLibraryError if it is missing.
    """
    try:
        return import_module(library)
    except ModuleNotFoundError:
        raise MissingLibraryError(
            f"a data frame needs {library}; run pip install {library}"
        ) from None


_CLIPPED = "display:inline-block;max-width:20em;overflow:hidden;text-overflow:ellipsis"
"""Anyone can choose a hostname: long names are clipped, and so are marks above and below the
line.
"""


def _build_cells(column: Column, values: Iterable[Any], zone: ZoneInfo) -> list[str]:
    """Return the cells of a column in HTML. Column names can break only before a capital letter."""
    side = "left" if column.kind in {"text", "texts"} else "right"
    name = re.sub("(?<=[a-z])(?=[A-Z])", "<wbr>", html.escape(column.name))
    shown = (_format_value(column.kind, value, zone) for value in values)
    style = f"text-align:{side};white-space:nowrap"
    cells = [f'<td style="{style}">{text}</td>' for text in shown]
    return [f'<th style="text-align:{side}">{name}</th>', *cells]


def _format_value(kind: Kind, value: Any, zone: ZoneInfo) -> str:
    """Format a value in HTML. Times are local."""
    match kind:
        case _ if value is None:
            return "–"  # noqa: RUF001 - the dash of a missing value
        case "text" | "texts":
            text = value if kind == "text" else ", ".join(value)
            return f'<span style="{_CLIPPED}">{html.escape(_escape_controls(text))}</span>'
        case "instant":
            return f"{datetime.fromtimestamp(value / 1000, zone):%Y-%m-%d %H:%M}"
        case "boolean":
            return "yes" if value else "no"
        case _:
            return f"{value:,}" if kind == "integer" else f"{value:,.2f}"


def derive_columns(part: Any, *path: str | int) -> Iterator[Column]:
    """Yield a column for each field of a dataclass. Fields of unsupported types are omitted.

    A field with another dataclass gets a column for each of that class's fields. `path` leads to
    the dataclass, and prefixes the columns' names.
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
    """Return a row for each part, with the values at the columns' paths."""
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
        yield pa.record_batch(list(map(_build_array, schema, values)), schema)


def _build_array(field: "pa.Field", values: Sequence[Any]) -> "pa.Array":
    pa = import_pyarrow()
    if field.type == pa.float64():  # an integer of more than 53 bits is refused as a double
        values = [None if value is None else float(value) for value in values]
    try:
        return pa.array(values, field.type)
    except OverflowError:
        raise SnapshotError(
            f"{field.name}: a number of more than 64 bits, which no build writes"
        ) from None


def _iter_file(schema: "pa.Schema", batches: Iterator["pa.RecordBatch"]) -> Iterator[bytes]:
    pa = import_pyarrow()
    sink = io.BytesIO()
    file = pa.PythonFile(sink, mode="w")
    with pa.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()


_ROWS_PER_PIECE = 1000
_REPEATED_TEXTS = 4096
"""The maximum number of cached cell texts. Rows repeat identifiers and hostnames."""

_MARKDOWN_ESCAPES = str.maketrans({mark: f"\\{mark}" for mark in r"\`*_~[]<>&|$"})
"""Characters with a meaning inside a line of GitHub Flavored Markdown."""


class _Style(NamedTuple):
    """How a text format writes the header, rows, texts, times and None. Rows are `%` templates."""

    build_head: Callable[[tuple[Column, ...]], str]
    build_template: Callable[[tuple[Column, ...]], str]
    format_text: Callable[[str], str]
    format_texts: Callable[[Sequence[str]], str]
    format_instant: Callable[[int], str]
    null: str


def encode_rows(
    document: RowDocument, format: str, *, for_terminal: bool = False
) -> Iterator[bytes]:
    r"""Yield the rows of a document in a format, in pieces of whole lines or of a Parquet file.

    - CSV follows RFC 4180, with LF. Texts are exact: no apostrophe protects a spreadsheet from
      `=1+1`, because the file would then differ from the snapshot for all other readers. None is an
      empty cell, and an empty text is quoted.
    - NDJSON has the exact numbers and texts of JSON.
    - In Markdown, texts can't be markup.

    In Markdown, and in all lines `for_terminal`, characters that could control a terminal are
    written as `\uXXXX`.

    Raises MissingLibraryError for Parquet without pyarrow.
    """
    if format == "parquet":
        return document.iter_parquet()
    return _encode_lines(document, _STYLES[format], for_terminal=for_terminal)


def _encode_lines(document: RowDocument, style: _Style, *, for_terminal: bool) -> Iterator[bytes]:
    columns, rows = document.to_rows()
    escape: Callable[[str], str] = _escape_controls if for_terminal else str
    formatters: Mapping[Kind, Callable[[Any], str]] = {
        "text": lru_cache(_REPEATED_TEXTS)(lambda text: escape(style.format_text(text))),
        "texts": lambda texts: escape(style.format_texts(texts)),
        "integer": int.__repr__,
        "number": _encode,
        "boolean": _encode,
        "instant": style.format_instant,
    }
    template = style.build_template(columns)
    yield style.build_head(columns).encode()
    left = iter(rows)
    while batch := list(islice(left, _ROWS_PER_PIECE)):
        cells = [
            [style.null if value is None else formatters[column.kind](value) for value in values]
            for column, values in zip(columns, zip(*batch, strict=True), strict=True)
        ]
        yield "".join([template % row for row in zip(*cells, strict=True)]).encode()


def _encode(value: Any) -> str:
    """Return a value as JSON. An integral number has no decimal point."""
    return wire.encode(value).decode()


def _escape_controls(text: str) -> str:
    return wire.escape_for_terminal(text.encode()).decode()


def _quote_cell(text: str) -> str:
    if text and not any(mark in text for mark in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def escape_markdown(text: str) -> str:
    """Return text as one line without markup in GitHub Flavored Markdown."""
    shown = _escape_controls(text).translate(_MARKDOWN_ESCAPES)
    # GitHub turns these into links wherever they occur.
    return shown.replace("://", "\\://").replace("www.", "www\\.")


def _build_json_line(columns: tuple[Column, ...]) -> str:
    members = (f"{_encode(column.name)}:".replace("%", "%%") + "%s" for column in columns)
    return f"{{{','.join(members)}}}\n"


def _build_markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _build_markdown_head(columns: tuple[Column, ...]) -> str:
    rules = ("---:" if column.kind in ("integer", "number") else "---" for column in columns)
    names = (escape_markdown(column.name) for column in columns)
    return _build_markdown_line(names) + _build_markdown_line(rules)


_STYLES: Mapping[str, _Style] = {
    "csv": _Style(
        lambda columns: ",".join(_quote_cell(column.name) for column in columns) + "\n",
        lambda columns: ",".join(["%s"] * len(columns)) + "\n",
        _quote_cell,
        lambda texts: _quote_cell(" ".join(texts)),
        format_instant,
        "",
    ),
    "ndjson": _Style(
        lambda _columns: "",
        _build_json_line,
        _encode,
        _encode,
        lambda at: f'"{format_instant(at)}"',
        "null",
    ),
    "markdown": _Style(
        _build_markdown_head,
        lambda columns: _build_markdown_line(["%s"] * len(columns)),
        escape_markdown,
        lambda texts: escape_markdown(", ".join(texts)),
        format_instant,
        "",
    ),
}
