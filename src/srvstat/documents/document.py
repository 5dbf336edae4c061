"""The model that all JSON documents extend, their rows, and the parts that several have."""

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from srvstat.contract import wire
from srvstat.contract.errors import MissingLibraryError, SnapshotError
from srvstat.contract.time import InstantError, format_instant, parse_instant
from srvstat.contract.windows import DAY_MS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


WHOLE_SHARE = 0.9
"""A step of which observations cover a lesser share is partial.

Players follow a daily cycle, so the average of a few hours is no daily average.
"""

LEAST_COVERAGE = 0.8
"""Windows of which observations cover a lesser share are not compared, and have no trend."""

Instant = Annotated[int, PlainSerializer(format_instant, return_type=str)]
"""An instant in Unix milliseconds. In JSON it is a UTC time, as in the API."""


def _parse_given(value: Any) -> Any:
    try:
        return parse_instant(str(value)) if type(value) in (int, str) else value
    except InstantError as error:
        raise ValueError(f": {error}") from None


GivenInstant = Annotated[Instant, BeforeValidator(_parse_given)]
"""An instant in a document that is read: any form that `parse_instant` accepts."""

_PARTS_PER_PIECE = 20
_COLOR_CODE = re.compile(r"\^[0-9]")


def name_member(name: str) -> str:
    """Return the name that a field has in JSON: in camel case, `from` for `from_`."""
    return to_camel(name.rstrip("_"))


class Part(BaseModel):
    """A strict, frozen model. Its JSON has the fields in their order, in camel case.

    A part of which a document has thousands is a dataclass instead, because a model takes ten times
    as long to create. It is not validated; its JSON and its schema are those of a model.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
        alias_generator=name_member,
        validate_by_name=True,
        validate_by_alias=False,
        serialize_by_alias=True,
    )


class WindowPart(Part):
    """The interval `(from, to]`. `from` is None if all observations up to `to` count."""

    from_: Instant | None
    to: Instant


Members = Annotated[tuple[str, ...] | None, Field(exclude_if=lambda ids: ids is None)]
"""The ids of the servers of a total; left out for a server."""


class ServerPart(Part):
    """A server, by its identifiers and its name; or the total of `servers`, which has no id."""

    server_id: str | None
    cfx_id: str
    hostname: str
    servers: Members = None


class ServerName(NamedTuple):
    """The names of a server, or of the total of `servers`."""

    server_id: str | None
    cfx_id: str
    hostname: str
    servers: tuple[str, ...] | None = None


class GapPart(Part):
    """An interval without observations: from one observation or edge of the window to the next.

    In a timeline, it consists of the whole steps between them, up to `as_of`.
    """

    from_: Instant
    to: Instant


@dataclass(frozen=True, slots=True)
class GrowthPart:
    """The last observation minus the first, in players and in percent of the first, as in the API.

    Both are None for fewer than two observations; `percentage` also if the first count is 0.
    """

    players: int | None
    percentage: float | None


@dataclass(frozen=True, slots=True)
class ChangePart:
    """An average minus an earlier one, in players and in percent of the earlier one.

    `percentage` is None if the earlier average is 0.
    """

    players: float
    percentage: float | None


class Document(Part):
    """A part that is printed on its own.

    `document` is its name, which each document defines, and `version` the version of its fields. A
    field can be added without a new version. `long_field` names the field that has most of the
    JSON, if one has.
    """

    long_field: ClassVar[str | None] = None

    document: str
    version: Literal[1] = 1

    @classmethod
    def encode_schema(cls) -> bytes:
        """Return the JSON Schema (2020-12) of the document, as JSON without a newline."""
        schema: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        return wire.encode(schema | cls.model_json_schema(mode="serialization"))

    def to_json(self) -> bytes:
        """Return the document as JSON, without a newline."""
        return b"".join(self.iter_json())

    def iter_json(self) -> Iterator[bytes]:
        """Yield the document as JSON in pieces, without a newline."""
        name = self.long_field
        if name is None:
            yield wire.encode(self.model_dump())
            return
        others = self.model_copy(update={name: ()}).model_dump()
        array = f'"{name}":['.encode()
        head, _, tail = wire.encode(others).partition(array + b"]")
        yield head + array
        parts = getattr(self, name)
        for at in range(0, len(parts), _PARTS_PER_PIECE):
            piece = self.model_copy(update={name: parts[at : at + _PARTS_PER_PIECE]})
            yield (b"," if at else b"") + wire.encode(piece.model_dump(include={name})[name])[1:-1]
        yield b"]" + tail


class SnapshotDocument(Document):
    """A document about a snapshot: the instant that it speaks for, and the snapshot's root."""

    as_of: Instant
    root: str


class CountsDocument(SnapshotDocument):
    """A document of figures of counts. With `hold`, each count lasts until the next one.

    Averages, medians and quantiles are then weighted by time, also by a count from before the
    window. `hold` is left out where it is false.
    """

    hold: bool = Field(default=False, exclude_if=lambda held: not held)


def is_silent(last_observed_at: int | None, as_of: int, *, hold: bool = False) -> bool:
    """Return whether a server has no observation in the last day of a snapshot.

    Where counts are held, the last one lasts.

    The current count of its record is then as old as its last observation, or older: a person who
    reads it among the counts of other servers would take it for one of today.
    """
    return last_observed_at is None or (as_of - last_observed_at > DAY_MS and not hold)


def remove_color_codes(text: str) -> str:
    """Return a text without the color codes of Cfx.re, `^0` to `^9`, unless nothing else is in it.

    Documents and answers have the texts unchanged. web/timeline.js has the same function.
    """
    shown = _COLOR_CODE.sub("", text)
    return shown if shown.strip() else text


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

        It has the metadata of `to_arrow`.

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
    dataclass, and its names are prefixes of the columns' names.
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
"""Texts kept with their cells: rows repeat identifiers and hostnames."""

_MARKDOWN_ESCAPES = str.maketrans({mark: f"\\{mark}" for mark in r"\`*_~[]<>&|$"})
"""The marks that have a meaning inside a line of GitHub Flavored Markdown."""


class _Style(NamedTuple):
    """How a format writes the head, a row (a template for `%`), texts, instants and None."""

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

    CSV follows RFC 4180, with LF. Its texts are exact: no apostrophe protects a spreadsheet from
    `=1+1`, because then the file would differ from the snapshot for all other readers. None is an
    empty cell, and an empty text is quoted. NDJSON has the exact numbers and texts of JSON. In
    Markdown, texts can't be markup.

    In Markdown, and in all lines `for_terminal`, characters that could control a terminal are
    written as `\uXXXX`.

    Raises MissingLibraryError for Parquet without its library.
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
    """Return JSON; of a number, an integer is as in a column of integers."""
    return wire.encode(value).decode()


def _escape_controls(text: str) -> str:
    return wire.escape_for_terminal(text.encode()).decode()


def _quote_cell(text: str) -> str:
    if text and not any(mark in text for mark in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def escape_markdown(text: str) -> str:
    """Return text as one line that has no markup in GitHub Flavored Markdown."""
    shown = _escape_controls(text).translate(_MARKDOWN_ESCAPES)
    # GitHub makes links of these wherever they stand.
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
