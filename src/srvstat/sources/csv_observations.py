"""Read observations as CSV, in our own form or in that of a mapping.

Our own form has the header `serverId,observedAt,players` and quotes as in RFC 4180. Under a
mapping, the delimiter is recognized, and a file may be wide.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import SourceError
from srvstat.sources.batch import Batch, RowError
from srvstat.sources.mapping import ColumnMapping, describe_missing, list_names
from srvstat.sources.plain_csv import Columns, NotPlainError, PlainRows
from srvstat.sources.proposal import Sample
from srvstat.sources.source import Block, Source
from srvstat.sources.times_and_counts import Row, parse_records

# No valid field contains a line break, so a quote open for longer is an error.
_LONGEST_RECORD = 65_536

_Lines = list[tuple[int, str]]

ParseBlock = Callable[[Block], Batch | None]
"""Parses a block without quotes; returns None for a block whose rows must be parsed one by one."""

ParseRecords = Callable[[Block, Iterable[tuple[int, str]]], Batch]
"""Parses records, each with the number of its first line. They are the whole text of the block."""


DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
HEADER = ("serverId", "observedAt", "players")
_HEADER_TEXT = ",".join(HEADER)


class Header(NamedTuple):
    """The first line that is not empty, its number, and the blocks of the lines after it."""

    line: int
    text: str
    blocks: Iterator[Block]


class CsvForm:
    """The form of records whose fields are separated by a delimiter."""

    def __init__(self, delimiter: str) -> None:
        between = re.escape(delimiter)
        # In quotes, "" is an escaped quote.
        field = f'(?:"(?:[^"]|"")*+"|[^"{between}]*+)'
        self.delimiter = delimiter
        self._record = re.compile(f"{field}(?:{between}{field})*+")
        # The beginning of a record that ends inside quotes.
        self._open_record = re.compile(f'(?:{field}{between})*+"(?:[^"]|"")*+')
        self._field = re.compile(f"({field}){between}")

    def is_complete(self, text: str) -> bool:
        """Return whether a text is a record."""
        return self._record.fullmatch(text) is not None

    def is_open(self, text: str) -> bool:
        """Return whether a text is the beginning of a record that ends inside quotes."""
        return self._open_record.fullmatch(text) is not None

    def split_fields(self, text: str) -> list[str] | None:
        """Return the fields of a record without their quotes, or None if it is not a record."""
        if '"' not in text:
            return text.split(self.delimiter)
        if not self.is_complete(text):
            return None
        fields: list[str] = self._field.findall(f"{text}{self.delimiter}")
        return [
            field[1:-1].replace('""', '"') if field.startswith('"') else field for field in fields
        ]

    def describe_problem(self, text: str, width: int) -> str:
        """Describe why a record does not have a number of fields."""
        if self.is_open(text):
            return "a quote is not closed"
        if '"' not in text:
            return f"must have {width} fields, not {text.count(self.delimiter) + 1}"
        return f"must be {width} fields, quoted as in RFC 4180"


@cache
def get_form(delimiter: str) -> CsvForm:
    """Return the form of records with a delimiter."""
    return CsvForm(delimiter)


def read_header(source: Source, expected: str) -> Header:
    """Read a source up to its header.

    Raises SourceError if all lines are empty, and as `Source.read_blocks` does.
    """
    # A row of CSV that is cut off may look complete.
    blocks = source.read_blocks(warn_if_unended=True)
    for block in blocks:
        lines = block.text.split("\n")
        at = next((at for at, line in enumerate(lines) if line.removesuffix("\r")), None)
        if at is not None:
            rest = Block(block.first_line + at + 1, "\n".join(lines[at + 1 :]))
            text = lines[at].removesuffix("\r")
            return Header(block.first_line + at, text, chain([rest], blocks))
    raise SourceError(f"{source.title}: empty; must begin with {expected}")


def parse_blocks(
    blocks: Iterable[Block],
    form: CsvForm,
    parse_plain_block: ParseBlock,
    parse_records: ParseRecords,
) -> Iterator[Batch]:
    """Parse blocks to batches.

    Blocks with quotes, and those that `parse_plain_block` returns None for, are divided into
    records.
    """
    pending: _Lines = []
    for block in blocks:
        plain = None if pending or '"' in block.text else parse_plain_block(block)
        if plain is not None:
            yield plain
            continue
        lines = [*pending, *block.split_lines()]
        records, pending = _group_lines(lines, form, is_end=False)
        yield parse_records(Block(*_join_lines(lines)), map(_join_lines, records))
    if pending:
        records, _ = _group_lines(pending, form, is_end=True)
        yield parse_records(Block(*_join_lines(pending)), map(_join_lines, records))


def _join_lines(lines: _Lines) -> tuple[int, str]:
    return lines[0][0], "\n".join(line for _, line in lines)


def _group_lines(lines: _Lines, form: CsvForm, *, is_end: bool) -> tuple[list[_Lines], _Lines]:
    """Group lines into records; return also the last lines, whose quote may still be closed."""
    records: list[_Lines] = []
    at = 0
    while at < len(lines):
        length = _measure_record(lines, at, form)
        if length is None and not is_end:
            return records, lines[at:]
        # A quote that is never closed invalidates its own line only.
        records.append(lines[at : at + (length or 1)])
        at += length or 1
    return records, []


def _measure_record(lines: _Lines, start: int, form: CsvForm) -> int | None:
    """Return the number of lines of a record, or None if the lines end before its quote does.

    A record with misplaced quotes, or with one that stays open for too long, is one line.
    """
    is_open = False
    size = 0
    for at in range(start, len(lines)):
        # A line inside quotes parses like one that begins with a quote.
        text = f'"{lines[at][1]}' if is_open else lines[at][1]
        if form.is_complete(text.removesuffix("\r")):
            return at - start + 1
        is_open = form.is_open(text)
        size += len(text)
        if not is_open or size > _LONGEST_RECORD:
            return 1
    return None


def recognize_columns(source: Source, header: Header) -> Columns:
    """Return the columns of a file. The delimiter is the one that separates the wanted columns.

    A column of a wide file without a name is ignored, with a warning.

    Raises SourceError if a column is missing or repeated, or if several delimiters fit.
    """
    mapping = source.mapping
    wanted = _list_wanted_columns(mapping)
    headers = {delimiter: _split_header(header.text, delimiter) for delimiter in DELIMITERS}
    least = len(wanted) + mapping.is_wide  # a wide file without servers has no observation
    fitting = [
        delimiter
        for delimiter, names in headers.items()
        if len(names) >= least and set(wanted) <= set(names)
    ]
    if not fitting:
        raise source.build_error(header.line, describe_missing(mapping, wanted, headers.values()))
    if len(fitting) > 1:
        found = " or by ".join(map(DELIMITERS.__getitem__, fitting))
        raise source.build_error(header.line, f"the columns can be separated by {found}")
    names = headers[fitting[0]]
    _check_repeated(source, header.line, names if mapping.is_wide else wanted, names)
    servers = {}
    if mapping.is_wide:
        servers = {name: at for at, name in enumerate(names) if name and name not in wanted}
        _warn_of_unnamed(source, header.line, names)
    return Columns(fitting[0], len(names), [*map(names.index, wanted)], servers)


def _list_wanted_columns(mapping: ColumnMapping) -> list[str]:
    columns = [mapping.at] if mapping.is_wide else [mapping.id, mapping.at, mapping.players]
    return [name.strip(" ") for name in columns]


def _split_header(text: str, delimiter: str) -> list[str]:
    return [name.strip(" ") for name in get_form(delimiter).split_fields(text) or ()]


def _check_repeated(
    source: Source, line: int, checked: Sequence[str], names: Sequence[str]
) -> None:
    """Check that names of columns occur once. Columns without a name may be repeated.

    Raises SourceError.
    """
    counts = Counter(names)
    for name in filter(None, checked):
        if counts[name] > 1:
            places = " and ".join(str(at) for at, other in enumerate(names, 1) if other == name)
            raise source.build_error(
                line, f"two columns have the name {wire.quote_value(name)} (columns {places})"
            )


def _warn_of_unnamed(source: Source, line: int, names: Sequence[str]) -> None:
    if "" in names and source.on_warning:
        reason = f"column {names.index('') + 1} has no name, so it is ignored"
        source.on_warning(source.build_error(line, reason).reason)


def _split_record(text: str, columns: Columns) -> Row:
    form = get_form(columns.delimiter)
    fields = form.split_fields(text)
    if fields is None or len(fields) != columns.width:
        raise RowError(form.describe_problem(text, columns.width))
    if len(columns.wanted) == 1:
        (time_at,) = columns.wanted
        return Row(fields[time_at], [(name, fields[at]) for name, at in columns.servers.items()])
    server_id, observed_at, players = (fields[at] for at in columns.wanted)
    return Row(observed_at, [(server_id, players)])


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a block at a time.

    Raises SourceError for a wrong header and as `Source.read_blocks` does.
    """
    if source.mapping.is_strict:
        header = read_header(source, f"the header {_HEADER_TEXT}")
        columns = _check_own_header(source, header)
    else:
        header = read_header(source, "a header")
        columns = recognize_columns(source, header)
    rows = PlainRows(source.mapping, columns)

    def parse_plain_block(block: Block) -> Batch | None:
        try:
            batch, is_own_text = rows.parse(block.first_line, block.text)
        except NotPlainError:
            return None
        if source.keep_text and not is_own_text:
            source.keep_text(block)
        return batch

    def split_record(text: str) -> Row:
        return _split_record(text, columns)

    return parse_blocks(
        header.blocks,
        get_form(columns.delimiter),
        parse_plain_block,
        lambda block, records: parse_records(source, block, records, split_record),
    )


def _check_own_header(source: Source, header: Header) -> Columns:
    """Return the columns of our own form.

    Raises SourceError for another header.
    """
    fields = get_form(",").split_fields(header.text)
    if fields is None or tuple(fields) != HEADER:
        found = f", not the columns {list_names(fields)}" if fields else ""
        raise source.build_error(
            header.line,
            f"must be the header {_HEADER_TEXT}{found}; name other columns with --columns or"
            " --wide",
        )
    return Columns(",", len(HEADER), range(len(HEADER)), {})


def read_sample(source: Source) -> Sample:
    """Return the first rows of a source, with the delimiter that divides it into most columns.

    Raises SourceError.
    """
    header = read_header(source, "a header")
    forms = [get_form(delimiter) for delimiter in DELIMITERS]
    form = max(forms, key=lambda each: len(each.split_fields(header.text) or ()))
    names = [name.strip(" ") for name in form.split_fields(header.text) or ()]
    lines = (line.removesuffix("\r") for _, line in next(header.blocks).split_lines())
    return Sample.from_rows(names, (form.split_fields(line) or () for line in lines if line))
