"""Write rows as CSV, NDJSON or Markdown."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from srvstat.contract import wire
from srvstat.contract.time import format_instant
from srvstat.documents.document import Column, Kind, RowDocument

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


def _escape_markdown(text: str) -> str:
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
    names = (_escape_markdown(column.name) for column in columns)
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
        _escape_markdown,
        lambda texts: _escape_markdown(", ".join(texts)),
        format_instant,
        "",
    ),
}
