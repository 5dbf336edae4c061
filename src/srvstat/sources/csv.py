"""Read observations from CSV, in our own form or with a mapping.

Our own form has the header `serverId,observedAt,players` and quotes as in RFC 4180. With a mapping,
the delimiter is detected, and a file may be wide, contain comments, or lack a header.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from srvstat.contract.errors import SourceError
from srvstat.contract.time import InstantError
from srvstat.sources import tables
from srvstat.sources.columns import MARGIN, Column, Data
from srvstat.sources.mapping import ColumnMapping, list_names
from srvstat.sources.source import Batch, Reject, Source, TextBlock
from srvstat.sources.values import DAY_FIRST, Forms, find_time_form

HEADER = ("serverId", "observedAt", "players")
_HEADER_TEXT = ",".join(HEADER)
_DELIMITERS = {
    ",": "CSV",
    ";": "CSV with semicolons",
    "\t": "TSV",
    "|": "CSV with vertical bars",
    "^": "CSV with carets",
    "~": "CSV with tildes",
    " ": "columns between spaces",
}
"""The names of the text formats, by delimiter."""

_SAMPLE_CELLS = 300_000
_PEEKED_CHARACTERS = 5_000
_UNIX_TIME = re.compile(r"1[0-9]{9}(?:[0-9]{3}){0,3}(?:\.[0-9]*)?")
_SPACES = re.compile(r"[ \t]+")
_COMMENT = "#"
_TITLE = re.compile(r'(?:"[^"]*"|[^",;\t]*)(?:,{2,}|;{2,}|\t{2,})')
"""Matches a spreadsheet's title line above the header: one field followed by empty fields."""

_LONGEST_RECORD = 65_536
"""The maximum size of a record that spans lines.

No valid field has a line break, so a quote that stays open for longer is an error.
"""

_QUOTE, _NEWLINE = ord('"'), ord("\n")

_Lines = list[tuple[int, str]]


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, block by block.

    Raises SourceError if the header is wrong, and the errors of `Source.read_blocks`.
    """
    is_strict = source.mapping.is_strict
    start = _read_own_header(source) if is_strict else _read_start(source, is_sample=False)
    tables.check_columns(source, start.names, start.line)
    pending: _Lines = []
    for block in start.blocks:
        batch = None if pending else _parse_plain(source, start, block)
        if batch is None:
            lines = [*pending, *block.split_lines()]
            batch, pending = _parse_lines(source, start, lines, is_end=False)
        yield batch
    if pending:
        yield _parse_lines(source, start, pending, is_end=True)[0]


def read_sample(source: Source) -> tables.Sample:
    """Return the first rows of a source, except rows with a different number of fields.

    Raises SourceError if the source can't be read.
    """
    start = _read_start(source, is_sample=True)
    source = replace(source, mapping=ColumnMapping())
    most = min(tables.SAMPLE_ROWS, max(100, _SAMPLE_CELLS // max(len(start.names), 1)))
    lines = (
        (number, text)
        for block in start.blocks
        for number, line in block.split_lines()
        if (text := line.removesuffix("\r")) and not start.is_ignored(source, number, text, ())
    )
    found = list(islice(lines, most))
    rows = [(number, start.form.split_fields(text) or ()) for number, text in found]
    rows = [row for row in rows if len(row[1]) == len(start.names)]
    cells = list(zip(*(fields for _, fields in rows), strict=True)) or [()] * len(start.names)
    table = tables.Table(start.names, cells, [number for number, _ in rows])
    return tables.Sample(_DELIMITERS[start.form.delimiter], table, next(lines, None) is None)


class _Form:
    """The syntax of records whose fields are separated by a delimiter."""

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter

    def split_fields(self, text: str) -> list[str] | None:
        """Return the unquoted fields of a record, or None if the text is not a record."""
        if self.delimiter == " ":
            text = _SPACES.sub(" ", text.strip())
        if '"' not in text:
            return text.split(self.delimiter)
        try:
            (fields,) = csv.reader([text], delimiter=self.delimiter, strict=True)
        except (csv.Error, ValueError):
            return None
        return fields

    def split_header(self, text: str) -> list[str]:
        """Return the column names without surrounding spaces."""
        return [name.strip(" ") for name in self.split_fields(text) or ()]

    def normalize(self, block: TextBlock) -> TextBlock:
        """Replace runs of spaces by one space if the delimiter is a space."""
        if self.delimiter != " ":
            return block
        lines = (_SPACES.sub(" ", line.strip()) for line in block.text.split("\n"))
        return TextBlock(block.first_line, "\n".join(lines))


class _Start(NamedTuple):
    """The syntax of a file, its columns, the line of the header, and the blocks of its rows."""

    form: _Form
    names: Sequence[str]
    line: int
    blocks: Iterator[TextBlock]

    def is_ignored(self, source: Source, line: int, text: str, wanted: Sequence[str]) -> bool:
        """Return whether a line is a comment, has no values, or repeats the header.

        Raises SourceError if the line is the header of another table.
        """
        if source.mapping.is_strict:
            return not text
        if text.startswith(_COMMENT) or not text.strip(f'{self.form.delimiter}" \t'):
            return True
        if not wanted or not {*wanted} <= {*(names := self.form.split_header(text))}:
            return False
        if names != [*self.names]:
            reason = "a second table begins here; move it to its own file"
            raise source.build_error(line, reason)
        return True

    def describe_problem(self, text: str, fields: Sequence[str] | None) -> str:
        """Explain why a text is not a record with one field per column."""
        if fields is not None:
            return f"must have {len(self.names)} fields, not {len(fields)}"
        if text.count('"') % 2:
            return "a quote is not closed"
        return f"malformed CSV: must have {len(self.names)} fields, quoted as in RFC 4180"


def _find_first_line(source: Source, expected: str) -> tuple[TextBlock, Iterator[TextBlock]]:
    """Return the block that starts at the first nonempty line, and the blocks after it.

    Raises SourceError if all lines are empty, and the errors of `Source.read_blocks`.
    """
    # Warn about a missing final newline, because a truncated row may look complete.
    blocks = source.read_blocks(warn_if_unended=True)
    for block in blocks:
        # Old spreadsheets end lines with CR only, so the text is a single line.
        is_one = "\n" not in block.text
        lines = block.text.replace("\r", "\n" if is_one else "\r").split("\n")
        at = next((at for at, line in enumerate(lines) if line.removesuffix("\r")), None)
        if at is not None:
            return TextBlock(block.first_line + at, "\n".join(lines[at:])), blocks
    raise SourceError(f"{source.title}: empty file; the first line must be {expected}")


def _read_own_header(source: Source) -> _Start:
    """Read the header of our own form.

    Raises SourceError if the header differs.
    """
    block, blocks = _find_first_line(source, f"the header {_HEADER_TEXT}")
    text, _, rest = block.text.partition("\n")
    form = _Form(",")
    fields = form.split_fields(text.removesuffix("\r"))
    if fields != [*HEADER]:
        found = f", not the columns {list_names(fields)}" if fields else ""
        raise source.build_error(
            block.first_line,
            f"must be the header {_HEADER_TEXT}{found}; name other columns with --columns or"
            " --wide",
        )
    rows = TextBlock(block.first_line + 1, rest)
    return _Start(form, HEADER, block.first_line, chain([rows], blocks))


def _read_start(source: Source, *, is_sample: bool) -> _Start:
    """Detect the delimiter and the header: the first line, the last comment before it, or none.

    The columns of a file without a header are numbered from 1. A sample has a header unless its
    first line contains a time. Otherwise the columns that the mapping names decide.

    Raises SourceError if the text contains NUL bytes, and the errors of `_find_first_line`.
    """
    block, blocks = _find_first_line(source, "a header")
    if "\0" in block.text:
        reason = "contains NUL bytes; if it is UTF-16, add --encoding utf-16"
        raise SourceError(f"{source.title}: {reason}")
    lines = [line.removesuffix("\r") for line in block.text.split("\n")]
    at, delimiters = 0, list(_DELIMITERS)
    if (declared := lines[0].lower().removeprefix("sep=")) in _DELIMITERS and len(lines[0]) > 1:
        at, delimiters = 1, [declared]
    comments: list[str] = []
    while at < len(lines) - 1 and (
        not lines[at] or lines[at].startswith(_COMMENT) or _TITLE.fullmatch(lines[at])
    ):
        comments += [lines[at]] if lines[at].startswith(_COMMENT) else []
        at += 1
    wanted = [] if is_sample else source.mapping.names
    peeked = [line for line in lines[at:] if line and not line.startswith(_COMMENT)]
    form = _recognize_form(
        delimiters, peeked[: 1 + _PEEKED_CHARACTERS // (1 + len(lines[at]))], wanted
    )
    header = form.split_header(lines[at])
    numbered = [str(number) for number in range(1, len(header) + 1)]
    starts = [(header, at + 1), (numbered, at)]
    if comments:
        named = form.split_header(comments[-1].lstrip(f"{_COMMENT} "))
        if len(named) == len(header):
            starts.insert(1, (named, at))
    if is_sample:
        names, first = starts[1 if any(map(_is_time, header)) else 0]
    else:
        fitting = (
            each for each in starts if {*tables.list_wanted(source.mapping, each[0])} <= {*each[0]}
        )
        names, first = next(fitting, starts[0])
    rest = form.normalize(TextBlock(block.first_line + first, "\n".join(lines[first:])))
    names = _fit_names(names, form.split_fields(peeked[1]) or () if len(peeked) > 1 else names)
    return _Start(form, names, block.first_line + at, chain([rest], map(form.normalize, blocks)))


def _recognize_form(
    delimiters: Sequence[str], lines: Sequence[str], wanted: Sequence[str]
) -> _Form:
    """Return the syntax with the most wanted columns, then consistent lines, then fields."""

    def rate(form: _Form) -> tuple[int, int, int]:
        texts = form.normalize(TextBlock(1, "\n".join(lines))).text.split("\n")
        widths = [len(form.split_fields(text) or ()) for text in texts]
        # Lines may end with a delimiter that the header lacks.
        agreeing = sum(abs(width - widths[0]) <= 1 for width in widths) if widths[0] > 1 else 0
        return len({*wanted} & {*form.split_header(texts[0])}), agreeing, widths[0]

    rated = [(rate(form), form) for form in map(_Form, delimiters)]
    # Times contain spaces, too.
    rated = [each for each in rated if each[1].delimiter != " " and each[0][1]] or rated
    return max(rated, key=itemgetter(0))[1]


def _is_time(text: str) -> bool:
    """Return whether a field is a date or a Unix time, and so not a column name."""
    try:
        return bool(_UNIX_TIME.fullmatch(text)) or (
            "day" in find_time_form(text, Forms(time_format=DAY_FIRST)).spans
        )
    except InstantError:
        return False


def _fit_names(names: list[str], fields: Sequence[str]) -> list[str]:
    """Adjust the column names if only the header, or only the rows, end with a delimiter."""
    if len(fields) == len(names) + 1 and not fields[-1]:
        return [*names, ""]
    return names[:-1] if len(fields) == len(names) - 1 and not names[-1] else names


def _parse_plain(source: Source, start: _Start, block: TextBlock) -> Batch | None:
    """Parse the rows of a block as bytes.

    Returns None if a row has a different number of fields, or quotes within a field.
    """
    text = f"{block.text}\n"
    text = text.replace("\r\n", "\n") if "\r" in text else text
    data, width = Data(text.encode()), len(start.names)
    within = slice(len(MARGIN) - 1, -len(MARGIN))
    line_ends = np.flatnonzero(data.array[within] == _NEWLINE) + within.start
    is_end = (data.array == ord(start.form.delimiter)) | (data.array == _NEWLINE)
    quotes = np.cumsum(data.array == _QUOTE) if '"' in text else None
    if quotes is not None:
        is_end &= quotes & 1 == 0
    every = np.flatnonzero(is_end[within]) + within.start
    if not np.array_equal(every[::width], line_ends):
        return None
    starts, ends = (part.reshape(-1, width).T for part in (every[:-1] + 1, every[1:]))
    if quotes is not None:
        count = quotes[ends] - quotes[starts - 1]
        is_quoted = (data.array[starts] == _QUOTE) & (data.array[ends - 1] == _QUOTE)
        is_quoted &= count == len('""')
        if (count[~is_quoted] > 0).any():
            return None
        starts, ends = starts + is_quoted, ends - is_quoted
    columns = [*map(partial(Column, data), starts, ends)]
    lines = Column(data, line_ends[:-1] + 1, line_ends[1:])
    places = range(block.first_line, block.first_line + len(lines))
    batch = tables.convert_table(source, tables.Table(start.names, columns, places, lines))
    wanted = tables.list_wanted(source.mapping, start.names)
    rejects = [
        reject
        for reject in batch.rejects
        if not start.is_ignored(
            source, reject.place, lines[reject.place - block.first_line], wanted
        )
    ]
    return replace(batch, rejects=rejects) if batch.rejects else batch


def _parse_lines(
    source: Source, start: _Start, lines: _Lines, *, is_end: bool
) -> tuple[Batch, _Lines]:
    """Parse records one by one, and return also the last lines if their quote is still open.

    An unclosed quote affects only its own line. Strict RFC 4180 would turn the rest of the file
    into one record, so several lines form a record only if they are well-formed together.
    """
    wanted = tables.list_wanted(source.mapping, start.names)
    found: list[tuple[int, str, list[str]]] = []
    rejects: list[Reject] = []
    at = 0
    while at < len(lines):
        length, text, fields = _split_record(lines, at, start.form)
        if length is None and not is_end:
            break
        line = lines[at][0]
        at += length or 1
        if start.is_ignored(source, line, text, wanted):
            continue
        if fields is not None and len(fields) == len(start.names):
            found.append((line, text, fields))
        else:
            rejects.append(Reject(line, start.describe_problem(text, fields), text))
    columns = [[fields[at] for *_, fields in found] for at in range(len(start.names))]
    table = tables.Table(
        start.names, columns, [line for line, *_ in found], [text for _, text, _ in found]
    )
    return tables.convert_table(source, table, rejects), lines[at:]


def _split_record(
    lines: _Lines, start: int, form: _Form
) -> tuple[int | None, str, list[str] | None]:
    """Return the number of lines of a record, its text and its fields.

    The number is None if the lines end within a quote. The fields are None if the line is
    malformed.
    """
    first = lines[start][1].removesuffix("\r")
    fields = form.split_fields(first)
    quotes, size = first.count('"'), len(first)
    at = start + 1
    while fields is None and quotes % 2 and size <= _LONGEST_RECORD:
        if at == len(lines):
            return None, first, None
        quotes += lines[at][1].count('"')
        size += len(lines[at][1])
        at += 1
        if quotes % 2 == 0:
            text = "\n".join(line for _, line in lines[start:at]).removesuffix("\r")
            fields = form.split_fields(text)
            return (1, first, None) if fields is None else (at - start, text, fields)
    return 1, first, fields
