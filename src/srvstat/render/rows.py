"""Write rows as CSV or NDJSON."""

from collections.abc import Callable, Iterator
from typing import Any

from srvstat.contract import wire
from srvstat.contract.instants import format_instant
from srvstat.documents.rows import Rows


def encode_rows(rows: Rows, format: str) -> Iterator[bytes]:
    """Yield rows in a format, in pieces that end with a newline."""
    return _ENCODERS[format](rows)


def _encode_csv(rows: Rows) -> Iterator[bytes]:
    yield ",".join(column.name for column in rows.columns).encode() + b"\n"
    for row in rows.rows:
        cells = (
            _format_cell(value, column.kind)
            for value, column in zip(row, rows.columns, strict=True)
        )
        yield ",".join(cells).encode() + b"\n"


def _encode_ndjson(rows: Rows) -> Iterator[bytes]:
    for row in rows.rows:
        values = {
            column.name: format_instant(value)
            if column.kind == "instant" and value is not None
            else value
            for value, column in zip(row, rows.columns, strict=True)
        }
        yield wire.encode(values) + b"\n"


def _format_cell(value: Any, kind: str) -> str:
    if value is None:
        return ""
    if kind == "instant":
        return format_instant(value)
    text = value if kind == "text" else wire.encode(value).decode()
    quotes = any(character in text for character in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if quotes else text


_ENCODERS: dict[str, Callable[[Rows], Iterator[bytes]]] = {
    "csv": _encode_csv,
    "ndjson": _encode_ndjson,
}
