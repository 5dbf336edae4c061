"""Rows in every format: each is parsed with the reader that others would use."""

import csv
import io
import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from srvstat.contract.errors import MissingLibraryError, SnapshotError
from srvstat.contract.time import LATEST, format_instant
from srvstat.documents.document import Column, Kind, RowDocument, Rows, encode_rows
from support.markdown import make_visible, parse_table

KINDS: tuple[Kind, ...] = ("text", "integer", "number", "boolean", "instant", "texts")
COLUMNS = tuple(Column(f"{kind}0.5%", kind) for kind in KINDS)


class Written(RowDocument):
    """A document of given rows."""

    document = "history"
    as_of = 0
    root = "cafe"

    def __init__(
        self, rows: Iterable[tuple[Any, ...]], columns: tuple[Column, ...] = COLUMNS
    ) -> None:
        self._rows = Rows(columns, rows)

    def to_rows(self) -> Rows:
        """Return the given rows."""
        return self._rows


def encode(
    rows: Iterable[tuple[Any, ...]], format: str, columns: tuple[Column, ...] = COLUMNS
) -> bytes:
    return b"".join(encode_rows(Written(rows, columns), format))


MARKUP = [
    "|", "\\", "\\|", "`", "``", "*a*", "__a__", "~~a~~", "[a](b)", "![a](b)", "<b>", "<!--",
    "&lt;", "http://a.de", "www.a.de", "<http://a.de>", "\n", "\r\n", "\x1b[2J", "\u202e", "\x85",
    "\x00", '"', ",", "'", "=1+1", "# a", "- a", "---", " ", "\t", "e\u0301", "{", "%s", "$x$",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(MARKUP) | st.text(max_size=3), max_size=5).map("".join)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 2**53)
ROWS = st.lists(
    st.tuples(
        st.none() | TEXTS,
        st.none() | st.integers(-(2**53), 2**53),
        st.none() | NUMBERS,
        st.none() | st.booleans(),
        st.none() | st.integers(0, LATEST),
        st.none() | st.lists(st.sampled_from(["game", "cfxId", 'a "b"']), max_size=2),
    ),
    max_size=5,
)


def list_cells(row: Sequence[Any]) -> list[str]:
    """Return a row as the cells of a text format, None as an empty one."""
    text, integer, number, boolean, instant, texts = row
    return [
        text or "",
        "" if integer is None else str(integer),
        "" if number is None else json.dumps(number),
        "" if boolean is None else json.dumps(boolean),
        "" if instant is None else format_instant(instant),
        " ".join(texts or ()),
    ]


def parse_numbers(rows: Iterable[Sequence[str]]) -> list[list[Any]]:
    """Return rows of cells with the value of the third, whose digits are not Python's."""
    return [[a, b, c and float(c), *others] for a, b, c, *others in rows]


def parse_integer(digits: str) -> float:
    """Return a number without a point, which is a double if it is too large to be exact."""
    return int(digits) if abs(int(digits)) <= 2**53 else float(digits)


@given(ROWS)
@example([("".join(MARKUP), None, None, None, None, None)])
@example([(markup, None, None, None, None, None) for markup in MARKUP])
def test_all_formats_hold_the_same_rows(rows: list[tuple[Any, ...]]) -> None:
    names = [column.name for column in COLUMNS]
    cells = [list_cells(row) for row in rows]

    head, *lines = csv.reader(io.StringIO(encode(rows, "csv").decode(), newline=""))
    assert (head, parse_numbers(lines)) == (names, parse_numbers(cells))

    objects = [
        json.loads(line, parse_int=parse_integer)
        for line in encode(rows, "ndjson").split(b"\n")[:-1]
    ]
    times = [None if row[4] is None else format_instant(row[4]) for row in rows]
    assert objects == [
        dict(zip(names, (*row[:4], time, row[5]), strict=True))
        for row, time in zip(rows, times, strict=True)
    ]

    head, *lines = parse_table(encode(rows, "markdown").decode())
    visible = [
        [make_visible(text), *others, ", ".join(row[5] or ())]
        for (text, *others, _), row in zip(cells, rows, strict=True)
    ]
    assert (head, parse_numbers(lines)) == (names, parse_numbers(visible))

    table = pq.read_table(io.BytesIO(encode(rows, "parquet")))
    table = table.set_column(4, names[4], table.column(4).cast(pa.int64()))
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


def test_csv_quotes_only_where_it_must() -> None:
    columns = (Column("name", "text"), Column("players", "number"))
    rows = [("plain", 1.0), ("", None), (None, 1e21), ("=a, b", 1e-7), ('say "hi"\r\n', 0.5)]

    assert encode(rows, "csv", columns) == (
        b'name,players\nplain,1\n"",\n,1e+21\n"=a, b",1e-7\n"say ""hi""\r\n",0.5\n'
    )


def test_numbers_are_on_the_right_in_markdown() -> None:
    assert encode([("a_b|c", 7, 0.5, True, 0, ["x", "y"])], "markdown").decode() == (
        "| text0.5% | integer0.5% | number0.5% | boolean0.5% | instant0.5% | texts0.5% |\n"
        "| --- | ---: | ---: | --- | --- | --- |\n"
        "| a\\_b\\|c | 7 | 0.5 | true | 1970-01-01T00:00:00.000Z | x, y |\n"
    )


@pytest.mark.parametrize("format", ["csv", "ndjson", "markdown"])
def test_nothing_can_drive_a_terminal(format: str) -> None:
    rows = [("\x1b[2J\x9b\x07\u202e\r\n\x85", None, None, None, None, ["\x1b"])]
    shown = b"".join(encode_rows(Written(rows), format, for_terminal=True)).decode()

    assert {unicodedata.category(one) for one in shown.replace("\n", "")}.isdisjoint({"Cc", "Cf"})
    assert "\\u202e" in shown.replace("\\\\", "\\")
    assert shown.count("\n") == {"csv": 2, "ndjson": 1, "markdown": 3}[format]


@pytest.mark.parametrize("format", ["csv", "ndjson", "markdown", "parquet"])
def test_rows_are_read_while_they_are_written(format: str) -> None:
    numbers = iter(range(60_000))
    columns = (Column("number", "integer"),)
    pieces = encode_rows(Written(((one,) for one in numbers), columns), format)

    assert any(next(pieces) for _ in range(2))
    assert next(numbers) <= 50_000


def test_parquet_has_types_and_says_where_it_is_from() -> None:
    file = pq.ParquetFile(io.BytesIO(encode([], "parquet")))

    assert list(map(str, file.schema_arrow.types)) == [
        "string",
        "int64",
        "double",
        "bool",
        "timestamp[ms, tz=UTC]",
        "list<element: string>",
    ]
    metadata = {b"document": b"history", b"asOf": b"1970-01-01T00:00:00.000Z", b"root": b"cafe"}
    assert file.schema_arrow.metadata == metadata
    assert Written([]).to_arrow().schema.metadata == metadata


def test_a_number_beyond_doubles_is_rounded_in_parquet() -> None:
    rows = [(None, None, 2**53 + 1, None, None, None)]

    assert Written(rows).to_arrow().column(2).to_pylist() == [2.0**53]


def test_a_number_that_no_format_of_columns_can_hold_is_damage() -> None:
    with pytest.raises(SnapshotError, match="number of more than 64 bits"):
        encode([("", 2**64, None, None, None, None)], "parquet")


def test_without_pyarrow_the_remedy_is_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingLibraryError, match=r"pip install 'srvstat\[parquet\]'"):
        encode([], "parquet")
    with pytest.raises(ImportError, match="need pyarrow"):
        Written([]).to_arrow()


def test_a_data_frame_keeps_integers_where_values_are_missing() -> None:
    pytest.importorskip("pandas")
    frame = Written([("a", 2**53, 0.5, True, 0, ["x"]), (None,) * 6]).to_pandas()

    assert list(map(str, frame.dtypes)) == [
        "str",
        "Int64",
        "float64",
        "boolean",
        "datetime64[ms, UTC]",
        "object",
    ]
    assert frame.iloc[0].tolist()[:4] == ["a", 2**53, 0.5, True]
    assert frame.iloc[1].isna().all()
