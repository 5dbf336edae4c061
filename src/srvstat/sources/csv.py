"""Read observations as CSV, in our own form or under a mapping.

Our own form has the header `serverId,observedAt,players` and quotes as in RFC 4180. Under a
mapping, the delimiter is recognized, and a file may be wide, have comments, or lack a header.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from srvstat.contract.arrays import Numbers
from srvstat.contract.errors import SourceError
from srvstat.contract.time import InstantError
from srvstat.contract.wire import MAX_IDENTIFIER_LENGTH
from srvstat.sources.columns import (
    EMPTY_COUNT,
    MALFORMED,
    MARGIN,
    WORD,
    Column,
    Data,
    Flags,
    Words,
    parse_counts,
    parse_times,
)
from srvstat.sources.mapping import ColumnMapping, describe_missing, list_names
from srvstat.sources.source import Batch, Row, Source, TextBlock, parse_records, renumber
from srvstat.sources.table import SAMPLE_ROWS, Sample, Table, find_columns, list_wanted
from srvstat.sources.values import DAY_FIRST, IDENTIFIER, NO_COUNT, Forms, RowError, find_time_form

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
"""The forms of text, by the delimiter."""

_SAMPLE_CELLS = 300_000
_PEEKED_CHARACTERS = 5_000
_UNIX_TIME = re.compile(r"1[0-9]{9}(?:[0-9]{3}){0,3}(?:\.[0-9]*)?")
_SPACES = re.compile(r"[ \t]+")
_COMMENT = "#"
_TITLE = re.compile(r'(?:"[^"]*"|[^",;\t]*)(?:,{2,}|;{2,}|\t{2,})')
"""Matches a line of a spreadsheet above its header: one field, and others that are empty."""

_LONGEST_RECORD = 65_536
"""No valid field has a line break, so a quote that stays open for longer is an error."""

_Lines = list[tuple[int, str]]


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a block at a time.

    Raises SourceError for a wrong header and as `Source.read_blocks` does.
    """
    if source.mapping.is_strict:
        start = _read_own_header(source)
        columns = _Columns(_Form(","), start.names, 0, [1], 2, {})
    else:
        start = _read_start(source, is_sample=False)
        columns = _find_columns(source, start)
    rows = _Rows(source, columns)
    pending: _Lines = []
    for block in start.blocks:
        batch = None if pending else rows.parse(block)
        if batch is None:
            lines = [*pending, *block.split_lines()]
            batch, pending = _parse_lines(source, columns, lines, is_end=False)
        yield batch
    if pending:
        yield _parse_lines(source, columns, pending, is_end=True)[0]


def read_sample(source: Source) -> Sample:
    """Return the first rows of a source, without those that have another number of fields.

    Raises SourceError.
    """
    start = _read_start(source, is_sample=True)
    source = replace(source, mapping=ColumnMapping())
    columns = _Columns(start.form, start.names, None, [], None, {})
    most = min(SAMPLE_ROWS, max(100, _SAMPLE_CELLS // max(len(start.names), 1)))
    lines = (
        (number, text)
        for block in start.blocks
        for number, line in block.split_lines()
        if (text := line.removesuffix("\r")) and not columns.is_ignored(source, number, text)
    )
    found = list(islice(lines, most))
    rows = [(number, start.form.split_fields(text) or ()) for number, text in found]
    rows = [row for row in rows if len(row[1]) == len(start.names)]
    cells = list(zip(*(fields for _, fields in rows), strict=True)) or [()] * len(start.names)
    table = Table(start.names, cells, [number for number, _ in rows])
    return Sample(_DELIMITERS[start.form.delimiter], table, next(lines, None) is None)


class _Form:
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
        if self.delimiter == " ":
            text = _SPACES.sub(" ", text.strip())
        if '"' not in text:
            return text.split(self.delimiter)
        if not self.is_complete(text):
            return None
        fields: list[str] = self._field.findall(f"{text}{self.delimiter}")
        return [each[1:-1].replace('""', '"') if each.startswith('"') else each for each in fields]

    def split_header(self, text: str) -> list[str]:
        """Return the names of columns, without the spaces around them."""
        return [name.strip(" ") for name in self.split_fields(text) or ()]

    def normalize(self, block: TextBlock) -> TextBlock:
        """Return a block with one delimiter between fields, of which several spaces are one."""
        if self.delimiter != " ":
            return block
        lines = (_SPACES.sub(" ", line.strip()) for line in block.text.split("\n"))
        return TextBlock(block.first_line, "\n".join(lines))


class _Columns(NamedTuple):
    """The form of a file, the names of its columns, and the positions of some, from 0.

    A file without identifiers has no `id`. `servers` are the servers of a wide file, by name.
    """

    form: _Form
    names: Sequence[str]
    id: int | None
    times: Sequence[int]
    players: int | None
    servers: Mapping[str, int]

    def split_record(self, text: str, source: Source) -> Row:
        """Return the fields of a record.

        Raises RowError.
        """
        fields = self.form.split_fields(text)
        if fields is None or len(fields) != len(self.names):
            raise RowError(self._describe_problem(text))
        observed_at = " ".join(fields[at] for at in self.times)
        if self.players is None:
            return Row(observed_at, [(name, fields[at]) for name, at in self.servers.items()])
        server_id = source.server_id if self.id is None else fields[self.id]
        is_strict = source.mapping.is_strict
        return Row(
            observed_at, [(server_id if is_strict else server_id.strip(), fields[self.players])]
        )

    def is_ignored(self, source: Source, line: int, text: str) -> bool:
        """Return whether a line is a comment, has no values, or repeats the header.

        Raises SourceError for the header of another table.
        """
        if source.mapping.is_strict:
            return False
        if text.startswith(_COMMENT) or not text.strip(f'{self.form.delimiter}" \t'):
            return True
        names = self.form.split_header(text)
        wanted = [self.names[at] for at in (*self.times, self.id, self.players) if at is not None]
        if not wanted or not {*wanted} <= {*names}:
            return False
        if names != [*self.names]:
            reason = "another table begins, with other columns; make it a file of its own"
            raise source.build_error(line, reason)
        return True

    def _describe_problem(self, text: str) -> str:
        width = len(self.names)
        if self.form.is_open(text):
            return "a quote is not closed"
        if '"' not in text:
            return f"must have {width} fields, not {text.count(self.form.delimiter) + 1}"
        return f"must be {width} fields, quoted as in RFC 4180"


class _Start(NamedTuple):
    """The form of a file, its columns, the line that names them, and the blocks of its rows."""

    form: _Form
    names: Sequence[str]
    line: int
    blocks: Iterator[TextBlock]


def _find_first_line(source: Source, expected: str) -> tuple[TextBlock, Iterator[TextBlock]]:
    """Return the block from the first line on that is not empty, and the blocks after it.

    Raises SourceError if all lines are empty, and as `Source.read_blocks` does.
    """
    # A row of CSV that is cut off may look complete.
    blocks = source.read_blocks(warn_if_unended=True)
    for block in blocks:
        # Old spreadsheets end lines with CR only, so the text is one line.
        is_one = "\n" not in block.text
        lines = block.text.replace("\r", "\n" if is_one else "\r").split("\n")
        at = next((at for at, line in enumerate(lines) if line.removesuffix("\r")), None)
        if at is not None:
            return TextBlock(block.first_line + at, "\n".join(lines[at:])), blocks
    raise SourceError(f"{source.title}: empty; must begin with {expected}")


def _read_own_header(source: Source) -> _Start:
    """Read the header of our own form.

    Raises SourceError for another header.
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
    """Recognize the delimiter, and find the header: a line, the last comment before it, or none.

    The columns of a file without a header are numbered from 1. A sample has a header unless its
    first line has a time; the wanted columns of a mapping tell it otherwise.

    Raises SourceError as `_find_first_line`.
    """
    block, blocks = _find_first_line(source, "a header")
    if "\0" in block.text:
        reason = "has NUL bytes, so it is no text; if it is UTF-16, add --encoding utf-16"
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
        fitting = (each for each in starts if {*list_wanted(source.mapping, each[0])} <= {*each[0]})
        names, first = next(fitting, starts[0])
    rest = form.normalize(TextBlock(block.first_line + first, "\n".join(lines[first:])))
    names = _fit_names(names, form.split_fields(peeked[1]) or () if len(peeked) > 1 else names)
    return _Start(form, names, block.first_line + at, chain([rest], map(form.normalize, blocks)))


def _recognize_form(
    delimiters: Sequence[str], lines: Sequence[str], wanted: Sequence[str]
) -> _Form:
    """Return the form with most wanted columns, lines that agree, and fields, in this order."""

    def rate(form: _Form) -> tuple[int, int, int]:
        texts = form.normalize(TextBlock(1, "\n".join(lines))).text.split("\n")
        widths = [len(form.split_fields(text) or ()) for text in texts]
        # A delimiter may end each line but the header.
        agreeing = sum(abs(width - widths[0]) <= 1 for width in widths) if widths[0] > 1 else 0
        return len({*wanted} & {*form.split_header(texts[0])}), agreeing, widths[0]

    rated = [(rate(form), form) for form in map(_Form, delimiters)]
    # Spaces are in times, too.
    rated = [each for each in rated if each[1].delimiter != " " and each[0][1]] or rated
    return max(rated, key=itemgetter(0))[1]


def _is_time(text: str) -> bool:
    """Return whether a field is a day or a Unix time, which no column is called."""
    try:
        return bool(_UNIX_TIME.fullmatch(text)) or (
            "day" in find_time_form(text, Forms(time_format=DAY_FIRST)).spans
        )
    except InstantError:
        return False


def _fit_names(names: list[str], fields: Sequence[str]) -> list[str]:
    """Return the names of columns if a delimiter ends the header only, or the rows only."""
    if len(fields) == len(names) + 1 and not fields[-1]:
        return [*names, ""]
    return names[:-1] if len(fields) == len(names) - 1 and not names[-1] else names


def _find_columns(source: Source, start: _Start) -> _Columns:
    """Return the columns of a file. A column of a wide file without a name is ignored.

    Raises SourceError if a column is missing or repeated.
    """
    mapping, names = source.mapping, start.names
    wanted = find_columns(source, Table(names, (), ()), start.line)
    times = [names.index(name) for name in mapping.find_times(names)]
    if not mapping.is_wide:
        id_at = None if mapping.id is None else names.index(mapping.id)
        return _Columns(start.form, names, id_at, times, names.index(mapping.players), {})
    others = {*wanted, *mapping.others, ""}
    servers = {name: at for at, name in enumerate(names) if name not in others}
    if not servers and "" not in names:
        raise source.build_error(start.line, describe_missing(mapping, wanted, names))
    if "" in names[:-1] and source.on_warning:
        reason = f"column {names.index('') + 1} has no name, so it is ignored"
        source.on_warning(source.build_error(start.line, reason).reason)
    return _Columns(start.form, names, None, times, None, servers)


def _parse_lines(
    source: Source, columns: _Columns, lines: _Lines, *, is_end: bool
) -> tuple[Batch, _Lines]:
    """Parse records one by one; return also the last lines, whose quote may still be closed.

    A quote that is never closed costs its own line only. Read literally, RFC 4180 would make the
    rest of the file one record. So several lines are a record only if they are well-formed
    together.
    """
    records: list[tuple[int, str]] = []
    at = 0
    while at < len(lines):
        length = _measure_record(lines, at, columns.form)
        if length is None and not is_end:
            break
        records.append(_join_lines(lines[at : at + (length or 1)]))
        at += length or 1
    block = TextBlock(*_join_lines(lines))
    return _parse_records(source, columns, block, records), lines[at:]


def _parse_records(
    source: Source, columns: _Columns, block: TextBlock, records: Iterable[tuple[int, str]]
) -> Batch:
    texts = ((line, text.removesuffix("\r")) for line, text in records)
    found = [each for each in texts if not columns.is_ignored(source, *each)]
    return parse_records(source, block, found, lambda text: columns.split_record(text, source))


def _join_lines(lines: _Lines) -> tuple[int, str]:
    return lines[0][0], "\n".join(line for _, line in lines)


def _measure_record(lines: _Lines, start: int, form: _Form) -> int | None:
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


HASH_FACTORS = np.array(
    [pow(0x9E3779B97F4A7C15, 1 + at, 1 << 64) for at in range(MAX_IDENTIFIER_LENGTH // WORD)],
    np.uint64,
)
"""What the words of an identifier are multiplied by for its hash."""

_SLOT_BITS = 16
_SLOT_SHIFT = np.uint64(64 - _SLOT_BITS)

_MOST_INTEGER_DIGITS = 15
_QUOTE, _NEWLINE = ord('"'), ord("\n")


class _Grid(NamedTuple):
    """Where lines, fields and quotes are in the bytes of a block.

    `ends` are the positions at which fields end, after the newline before the first line, and
    `is_regular` says of each line whether it has the right number of fields. `quotes` is the number
    of quotes up to each byte; None without any.
    """

    data: Data
    ends: Numbers
    is_regular: Flags
    quotes: Numbers | None

    def select(self, fields: Numbers | slice) -> tuple[Column, Flags]:
        """Return some fields without their quotes, and whether each has quotes inside."""
        starts, ends = self.ends[:-1][fields] + 1, self.ends[1:][fields]
        if self.quotes is None:
            return Column(self.data, starts, ends), np.zeros(starts.shape, np.bool_)
        count, array = self.quotes[ends] - self.quotes[starts - 1], self.data.array
        is_quoted = (count == len('""')) & (array[starts] == _QUOTE) & (array[ends - 1] == _QUOTE)
        return Column(self.data, starts + is_quoted, ends - is_quoted), (count > 0) & ~is_quoted


class _Rows:
    """Parses the rows of blocks by whole columns, and remembers identifiers.

    An identifier is found by a hash of its words and compared with the known one, so that equal
    hashes can't merge two servers. Rows with malformed values or quotes inside a field are left to
    `parse_records`, which knows the reasons.
    """

    def __init__(self, source: Source, columns: _Columns) -> None:
        self._source = source
        self._quiet_source = replace(source, keep_text=None)
        self._mapping = source.mapping
        self._columns = columns
        self._server_id = source.server_id
        self._width = len(columns.names)
        self._is_server = np.isin(np.arange(self._width), [*columns.servers.values()])
        # By code; code 0 is any unknown identifier.
        self._names = [""]
        self._words = np.zeros((1 + len(HASH_FACTORS), 1), np.uint64)  # widths, then all words
        self._hashes = np.zeros(1, np.uint64)
        self._is_valid = np.zeros(1, np.bool_)
        self._codes: dict[int, int] = {}  # by hash
        self._slots = np.zeros(1 << _SLOT_BITS, np.int64)  # codes by the first bits of hashes

    def parse(self, block: TextBlock) -> Batch | None:
        """Return the rows of a block; None if a quote is open at the end of a line."""
        text = f"{block.text}\n"
        text = text.replace("\r\n", "\n") if "\r" in text else text
        grid = self._find_grid(text)
        if grid is None:
            return None
        numbers = np.arange(len(grid.is_regular)) + block.first_line
        alone: _Lines = []
        if not grid.is_regular.all():
            lines = list(enumerate(text.split("\n")[:-1], block.first_line))
            alone = [lines[at] for at in np.flatnonzero(~grid.is_regular)]
            numbers = numbers[grid.is_regular]
            grid = self._find_grid(
                "".join(f"{lines[at - block.first_line][1]}\n" for at in numbers)
            )
            assert grid is not None  # noqa: S101 - no quote is open in any of the lines
        parse = self._parse_wide if self._mapping.is_wide else self._parse_long
        batch, malformed = parse(grid, numbers)
        for row in np.flatnonzero(malformed).tolist():
            start, end = grid.ends[[row * self._width, (row + 1) * self._width]].tolist()
            alone.append((int(numbers[row]), grid.data.get_text(start + 1, end)))
        other = _parse_records(self._quiet_source, self._columns, block, sorted(alone))
        is_restored = self._is_own(grid, malformed) or not len(other.codes) + len(batch.codes)
        if self._source.keep_text and not self._mapping.is_wide and not is_restored:
            self._source.keep_text(block)
        return _merge(batch, other) if alone else batch

    def _is_own(self, grid: _Grid, malformed: Flags) -> bool:
        """Return whether all rows are written as the strict form writes their observations."""
        if not self._mapping.is_strict or grid.quotes is not None or malformed.any():
            return False
        times, _ = grid.select(slice(self._columns.times[0], None, self._width))
        is_integer = times.ends - times.starts <= _MOST_INTEGER_DIGITS
        return bool((is_integer & (grid.data.array[times.starts] != ord("0"))).all())

    def _find_grid(self, text: str) -> _Grid | None:
        """Return where the fields of whole lines are; None if a quote is open at a line's end."""
        data = Data(text.encode())
        within = slice(len(MARGIN) - 1, -len(MARGIN))
        is_end = (data.array == ord(self._columns.form.delimiter)) | (data.array == _NEWLINE)
        quotes = None
        if '"' in text:
            quotes = np.cumsum(data.array == _QUOTE)
            lines = np.flatnonzero(data.array[within] == _NEWLINE) + within.start
            if (np.diff(quotes[lines]) & 1).any():
                return None
            is_end &= quotes & 1 == 0
        ends = np.flatnonzero(is_end[within]) + within.start
        fields = np.diff(np.flatnonzero(data.array[ends] == _NEWLINE))
        return _Grid(data, ends, fields == self._width, quotes)

    def _parse_wide(self, grid: _Grid, numbers: Numbers) -> tuple[Batch, Flags]:
        columns = self._columns
        malformed = np.zeros(len(numbers), np.bool_)
        times = []
        for at in columns.times:
            column, has_quotes = grid.select(slice(at, None, self._width))
            times.append(column)
            malformed |= has_quotes
        instants = parse_times(times, self._mapping)
        cells = np.flatnonzero(np.diff(grid.ends) > 1)
        rows, positions = np.divmod(cells, self._width)
        is_server = self._is_server[positions]
        rows, positions = rows[is_server], positions[is_server]
        column, has_quotes = grid.select(cells[is_server])
        counts = parse_counts(column, self._mapping)
        malformed[rows[has_quotes | (counts == MALFORMED)]] = True
        malformed |= instants < 0
        kept = (counts >= 0) & ~malformed[rows]
        used, codes = renumber(positions[kept])
        names = [columns.names[at] for at in used]
        return Batch(
            names, codes, instants[rows[kept]], counts[kept], numbers[rows[kept]]
        ), malformed

    def _parse_long(self, grid: _Grid, numbers: Numbers) -> tuple[Batch, Flags]:
        columns = self._columns
        malformed = np.zeros(len(numbers), np.bool_)
        if grid.quotes is not None:
            malformed |= grid.select(slice(None))[1].reshape(-1, self._width).any(axis=1)

        def select(at: int) -> Column:
            return grid.select(slice(at, None, self._width))[0]

        assert columns.players is not None  # noqa: S101 - it is not wide
        instants = parse_times([select(at) for at in columns.times], self._mapping)
        counts = parse_counts(select(columns.players), self._mapping)
        codes, names = np.zeros(len(numbers), np.int64), [self._server_id]
        if columns.id is not None:
            codes, names = self._find_codes(select(columns.id)), self._names
        malformed |= (instants < 0) | (counts == MALFORMED) | (codes < 0)
        rows = np.flatnonzero(~malformed & (counts >= 0))
        skipped = int((~malformed & (counts == EMPTY_COUNT)).sum())
        used, codes = renumber(codes[rows])
        found = [names[code] for code in used]
        skips = {NO_COUNT: skipped} if skipped else {}
        return Batch(
            found, codes, instants[rows], counts[rows], numbers[rows], (), skips
        ), malformed

    def _find_codes(self, ids: Column) -> Numbers:
        """Return the codes of identifiers; -1 for one that is malformed, empty or too long."""
        widths = ids.ends - ids.starts
        is_known = (widths >= 1) & (widths <= MAX_IDENTIFIER_LENGTH)
        count = -(-min(int(widths.max(initial=1)), MAX_IDENTIFIER_LENGTH) // WORD)
        words = np.concatenate([widths[np.newaxis].astype(np.uint64), ids.read_words(count)])
        hashes = HASH_FACTORS[:count] @ words[1:]
        codes: Numbers = self._slots[hashes >> _SLOT_SHIFT]
        missing = np.flatnonzero(is_known & (self._hashes[codes] != hashes))
        if len(missing):
            found, firsts, of_row = np.unique(
                hashes[missing], return_index=True, return_inverse=True
            )
            rows = missing[np.sort(firsts)]
            rows = rows[[number not in self._codes for number in hashes[rows].tolist()]]
            names = list(map(ids.data.get_text, ids.starts[rows], ids.ends[rows]))
            self._remember(names, words[:, rows], hashes[rows])
            codes[missing] = np.array([self._codes[number] for number in found.tolist()])[of_row]
        # Two identifiers may have one hash.
        is_known &= (self._words[: 1 + count].take(codes, axis=1) == words).all(axis=0)
        return np.where(is_known & self._is_valid[codes], codes, -1)

    def _remember(self, names: list[str], words: Words, hashes: Words) -> None:
        codes = range(len(self._names), len(self._names) + len(names))
        is_strict = self._mapping.is_strict
        is_any = not is_strict or self._source.accepts_any_id
        is_valid = [is_any or IDENTIFIER.fullmatch(name) is not None for name in names]
        self._names += names if is_strict else map(str.strip, names)
        padding = ((0, len(self._words) - len(words)), (0, 0))
        self._words = np.append(self._words, np.pad(words, padding), axis=1)
        self._hashes = np.append(self._hashes, hashes)
        self._is_valid = np.append(self._is_valid, is_valid)
        self._codes.update(zip(hashes.tolist(), codes, strict=True))
        self._slots[hashes >> _SLOT_SHIFT] = codes


def _merge(first: Batch, second: Batch) -> Batch:
    """Return the rows of two batches in the order of their places."""
    places = np.concatenate([first.places, second.places])
    order = np.argsort(places, kind="stable")
    return Batch(
        [*first.names, *second.names],
        np.concatenate([first.codes, second.codes + len(first.names)])[order],
        np.concatenate([first.instants, second.instants])[order],
        np.concatenate([first.players, second.players])[order],
        places[order],
        second.rejects,
        Counter(first.skipped) + Counter(second.skipped),
    )
