"""Read observations as CSV, in our own form or under a mapping.

Our own form has the header `serverId,observedAt,players` and quotes as in RFC 4180. Under a
mapping, the delimiter is recognized, and a file may be wide.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from srvstat.contract.arrays import Numbers
from srvstat.contract.errors import SourceError
from srvstat.contract.time import LATEST, YEAR_2001, InstantError
from srvstat.contract.windows import DAY_MS
from srvstat.contract.wire import MAX_IDENTIFIER_LENGTH
from srvstat.sources.mapping import describe_missing, describe_repeated, list_names
from srvstat.sources.source import Batch, Row, Source, TextBlock, parse_records, renumber
from srvstat.sources.table import SAMPLE_ROWS, Sample, Table
from srvstat.sources.values import IDENTIFIER, NO_COUNT, SECONDS, RowError, convert_local_times

HEADER = ("serverId", "observedAt", "players")
_HEADER_TEXT = ",".join(HEADER)
_DELIMITERS = ",;\t|"

_LONGEST_RECORD = 65_536
"""No valid field has a line break, so a quote that stays open for longer is an error."""

_Lines = list[tuple[int, str]]


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a block at a time.

    Raises SourceError for a wrong header and as `Source.read_blocks` does.
    """
    if source.mapping.is_strict:
        header = _read_header(source, f"the header {_HEADER_TEXT}")
        columns = _check_own_header(source, header)
    else:
        header = _read_header(source, "a header")
        columns = _recognize_columns(source, header)
    plain_rows = _PlainRows(source, columns)
    pending: _Lines = []
    for block in header.blocks:
        batch = None if pending or '"' in block.text else plain_rows.parse(block)
        if batch is None:
            lines = [*pending, *block.split_lines()]
            batch, pending = _parse_lines(source, columns, lines, is_end=False)
        yield batch
    if pending:
        yield _parse_lines(source, columns, pending, is_end=True)[0]


def read_sample(source: Source) -> Sample:
    """Return the first rows of a source, with the delimiter that divides it into most columns.

    Raises SourceError.
    """
    header = _read_header(source, "a header")
    form = max(map(_Form, _DELIMITERS), key=lambda each: len(each.split_header(header.text)))
    lines = (line.removesuffix("\r") for _, line in next(header.blocks).split_lines())
    names = form.split_header(header.text)
    rows = [
        row for line in lines if line and len(row := form.split_fields(line) or ()) == len(names)
    ]
    columns = list(zip(*rows[:SAMPLE_ROWS], strict=True)) or [()] * len(names)
    return Sample("CSV", Table(names, columns, range(len(rows))), is_whole=False)


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
        if '"' not in text:
            return text.split(self.delimiter)
        if not self.is_complete(text):
            return None
        fields: list[str] = self._field.findall(f"{text}{self.delimiter}")
        return [each[1:-1].replace('""', '"') if each.startswith('"') else each for each in fields]

    def split_header(self, text: str) -> list[str]:
        """Return the names of columns, without the spaces around them."""
        return [name.strip(" ") for name in self.split_fields(text) or ()]


class _Columns(NamedTuple):
    """The form of a file, the number of its columns, and the positions of some, from 0.

    `wanted` has the positions of the mapping's columns. `servers` has the positions of the other
    columns of a wide file, by name.
    """

    form: _Form
    width: int
    wanted: Sequence[int]
    servers: Mapping[str, int]

    def split_record(self, text: str) -> Row:
        """Return the fields of a record.

        Raises RowError.
        """
        fields = self.form.split_fields(text)
        if fields is None or len(fields) != self.width:
            raise RowError(self._describe_problem(text))
        if len(self.wanted) == 1:
            (time_at,) = self.wanted
            return Row(fields[time_at], [(name, fields[at]) for name, at in self.servers.items()])
        server_id, observed_at, players = (fields[at] for at in self.wanted)
        return Row(observed_at, [(server_id, players)])

    def _describe_problem(self, text: str) -> str:
        if self.form.is_open(text):
            return "a quote is not closed"
        if '"' not in text:
            return f"must have {self.width} fields, not {text.count(self.form.delimiter) + 1}"
        return f"must be {self.width} fields, quoted as in RFC 4180"


class _Header(NamedTuple):
    """The first line that is not empty, its number, and the blocks of the lines after it."""

    line: int
    text: str
    blocks: Iterator[TextBlock]


def _read_header(source: Source, expected: str) -> _Header:
    """Read a source up to its header.

    Raises SourceError if all lines are empty, and as `Source.read_blocks` does.
    """
    # A row of CSV that is cut off may look complete.
    blocks = source.read_blocks(warn_if_unended=True)
    for block in blocks:
        lines = block.text.split("\n")
        at = next((at for at, line in enumerate(lines) if line.removesuffix("\r")), None)
        if at is not None:
            rest = TextBlock(block.first_line + at + 1, "\n".join(lines[at + 1 :]))
            text = lines[at].removesuffix("\r")
            return _Header(block.first_line + at, text, chain([rest], blocks))
    raise SourceError(f"{source.title}: empty; must begin with {expected}")


def _check_own_header(source: Source, header: _Header) -> _Columns:
    """Return the columns of our own form.

    Raises SourceError for another header.
    """
    form = _Form(",")
    fields = form.split_fields(header.text)
    if fields != [*HEADER]:
        found = f", not the columns {list_names(fields)}" if fields else ""
        raise source.build_error(
            header.line,
            f"must be the header {_HEADER_TEXT}{found}; name other columns with --columns or"
            " --wide",
        )
    return _Columns(form, len(HEADER), range(len(HEADER)), {})


def _recognize_columns(source: Source, header: _Header) -> _Columns:
    """Return the columns of a file.

    The delimiter is the one that separates the wanted columns, and the most of the others. A column
    of a wide file without a name is ignored, with a warning.

    Raises SourceError if a column is missing or repeated.
    """
    mapping = source.mapping
    wanted = [name.strip(" ") for name in mapping.names]
    least = len(wanted) + mapping.is_wide  # a wide file without servers has no observation
    headers = [(form, form.split_header(header.text)) for form in map(_Form, _DELIMITERS)]
    form, names = max(headers, key=lambda each: (len({*wanted} & {*each[1]}), len(each[1])))
    if len(names) < least or not {*wanted} <= {*names}:
        raise source.build_error(header.line, describe_missing(mapping, wanted, names))
    counts = Counter(names)
    # Columns without a name may be repeated.
    for name in filter(None, names if mapping.is_wide else wanted):
        if counts[name] > 1:
            raise source.build_error(header.line, describe_repeated(name))
    servers = {}
    if mapping.is_wide:
        servers = {name: at for at, name in enumerate(names) if name and name not in wanted}
        if "" in names and source.on_warning:
            reason = f"column {names.index('') + 1} has no name, so it is ignored"
            source.on_warning(source.build_error(header.line, reason).reason)
    return _Columns(form, len(names), [*map(names.index, wanted)], servers)


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
    return parse_records(source, block, records, columns.split_record), lines[at:]


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


_Words = npt.NDArray[np.uint64]

_WORD = 8
_MARGIN = b"\n" * MAX_IDENTIFIER_LENGTH
"""Bytes before and after the text, so that every word that is read lies within the bytes."""

_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
"""The bits of the first bytes of a word, by the number of bytes."""

_ZEROS, _OVER_NINE, _HIGH_BITS = (
    np.uint64(int.from_bytes([byte] * _WORD)) for byte in (ord("0"), 0x80 - 10, 0x80)
)

_LEAST = np.array([0, 0, *(10**digits for digits in range(1, 2 * _WORD))])
"""The least number of so many digits."""

HASH_FACTORS = np.array(
    [pow(0x9E3779B97F4A7C15, 1 + at, 1 << 64) for at in range(MAX_IDENTIFIER_LENGTH // _WORD)],
    np.uint64,
)
"""What the words of an identifier are multiplied by for its hash."""


_SLOT_BITS = 16
_SLOT_SHIFT = np.uint64(64 - _SLOT_BITS)

_MOST_TIME_DIGITS = 14
_MOST_COUNT_DIGITS = 15
"""So that every value is valid."""

_NO_SEPARATOR = np.uint64(~(0xFF << 16) & ((1 << 64) - 1))


class _NotPlainError(ValueError):
    """A row is not plain, though it may be valid."""


class _PlainRows:
    """Parses plain rows, which have no quotes, with whole columns, and remembers identifiers.

    Numbers and identifiers are read as words: eight bytes, of which the first one is the lowest. A
    few multiplications make eight digits a number. An identifier is found by a hash of its words
    and compared with the known one, so that equal hashes can't merge two servers. Only what is
    valid without doubt is parsed; all else is left to `_parse_lines`, which knows the reasons.
    """

    def __init__(self, source: Source, columns: _Columns) -> None:
        self._source = source
        self._mapping = source.mapping
        self._columns = columns
        # By code; code 0 is any unknown identifier.
        self._names = [""]
        self._words = np.zeros((1 + len(HASH_FACTORS), 1), np.uint64)  # widths, then all words
        self._hashes = np.zeros(1, np.uint64)
        self._codes: dict[int, int] = {}  # by hash
        self._slots = np.zeros(1 << _SLOT_BITS, np.int64)  # codes by the first bits of hashes

    def parse(self, block: TextBlock) -> Batch | None:
        """Return the rows of a block; None if a row is not plain."""
        text = f"{block.text}\n"
        data = _Data(text.replace("\r\n", "\n") if "\r" in text else text)
        parse = self._parse_wide if self._mapping.is_wide else self._parse_long
        try:
            return parse(block, data)
        except (_NotPlainError, InstantError):
            return None

    def _parse_wide(self, block: TextBlock, data: "_Data") -> Batch:
        form, width, (time_at,), servers = self._columns
        fields = data.find_fields(ord(form.delimiter), width)
        _require(len(servers) > 0)  # only columns without a name
        instants, _ = self._parse_times(data, fields.select(time_at))
        players = self._parse_counts(data, fields.select([*servers.values()]))
        rows, columns = np.nonzero(players >= 0)
        used, codes = renumber(columns)
        names = [*servers]
        return Batch(
            [names[code] for code in used],
            codes,
            instants[rows],
            players[rows, columns],
            rows + block.first_line,
        )

    def _parse_long(self, block: TextBlock, data: "_Data") -> Batch:
        form, width, wanted, _ = self._columns
        ids, times, counts = map(data.find_fields(ord(form.delimiter), width).select, wanted)
        instants, is_integer = self._parse_times(data, times)
        players = self._parse_counts(data, counts)
        codes = self._find_codes(data, ids)
        rows = np.flatnonzero(players >= 0)
        skipped = len(codes) - len(rows)
        used, codes = renumber(codes[rows])
        if self._source.keep_text and not (is_integer and self._mapping.is_strict):
            self._source.keep_text(block)
        return Batch(
            [self._names[code] for code in used],
            codes,
            instants[rows],
            players[rows],
            rows + block.first_line,
            skipped={NO_COUNT: skipped} if skipped else {},
        )

    def _parse_times(self, data: "_Data", times: "_Fields") -> tuple[Numbers, bool]:
        """Return the instants of a column, and whether it has integers."""
        if times.widths.max() > _MOST_TIME_DIGITS:
            if data.have_suffix(times, b"Z").all():
                return data.parse_times(times, suffix=1), False
            zone = self._mapping.time_zone
            if zone is None:
                raise _NotPlainError
            return convert_local_times(data.parse_times(times, suffix=0), zone), False
        values, unit = data.parse_integers(times), self._mapping.time_unit
        _require(times.widths.min() > 0)
        if unit is None:
            _require(values.min() >= YEAR_2001)
        elif unit == "s":
            _require(values.max() <= LATEST // 1000)
            values *= 1000
        else:
            _require(((values < SECONDS.start) | (values >= SECONDS.stop)).all())
        return values, True

    def _parse_counts(self, data: "_Data", counts: "_Fields") -> Numbers:
        """Return the player counts of a column, -1 for one that is empty under a mapping."""
        starts, ends, widths = counts
        if not self._mapping.is_strict:
            decimals = 2 * (data.have_suffix(counts, b".0") & (widths > len(".0")))
            ends, widths = ends - decimals, widths - decimals
        _require(widths.max() <= _MOST_COUNT_DIGITS)
        _require(widths.min() > 0 or not self._mapping.is_strict)
        return np.where(widths, data.parse_integers(_Fields(starts, ends, widths)), -1)

    def _find_codes(self, data: "_Data", ids: "_Fields") -> Numbers:
        """Return the codes of identifiers."""
        _require(1 <= ids.widths.min() <= ids.widths.max() <= MAX_IDENTIFIER_LENGTH)
        count = -(-int(ids.widths.max()) // _WORD)
        words = np.empty((1 + count, len(ids.widths)), np.uint64)
        words[0] = ids.widths
        for number, start in enumerate(range(0, count * _WORD, _WORD), 1):
            words[number] = data.read_first_bytes(ids.starts + start, ids.widths - start)
        hashes = HASH_FACTORS[:count] @ words[1:]
        codes: Numbers = self._slots[hashes >> _SLOT_SHIFT]
        missing = np.flatnonzero(self._hashes[codes] != hashes)
        if len(missing):
            found, firsts, of_row = np.unique(
                hashes[missing], return_index=True, return_inverse=True
            )
            rows = missing[np.sort(firsts)]
            rows = rows[[number not in self._codes for number in hashes[rows].tolist()]]
            names = list(map(data.get_text, ids.starts[rows], ids.ends[rows]))
            _require(not self._mapping.is_strict or all(map(IDENTIFIER.fullmatch, names)))
            self._remember(names, words[:, rows], hashes[rows])
            codes[missing] = np.array([self._codes[number] for number in found.tolist()])[of_row]
        # Two identifiers may have one hash.
        _require((self._words[: 1 + count].take(codes, axis=1) == words).all())
        return codes

    def _remember(self, names: list[str], words: _Words, hashes: _Words) -> None:
        codes = range(len(self._names), len(self._names) + len(names))
        self._names += names
        padding = ((0, len(self._words) - len(words)), (0, 0))
        self._words = np.append(self._words, np.pad(words, padding), axis=1)
        self._hashes = np.append(self._hashes, hashes)
        self._codes.update(zip(hashes.tolist(), codes, strict=True))
        self._slots[hashes >> _SLOT_SHIFT] = codes


class _Fields(NamedTuple):
    """Where the fields of a column, or of several, start and end, and their numbers of bytes."""

    starts: Numbers
    ends: Numbers
    widths: Numbers

    def select(self, columns: int | list[int]) -> "_Fields":
        """Return some columns, side by side, or a single one."""
        return _Fields(*(each[:, columns] for each in self))


class _Data:
    """The bytes of a block, in which every line ends with a newline."""

    def __init__(self, text: str) -> None:
        self._bytes = b"%b%b%b" % (_MARGIN, text.encode(), _MARGIN)
        self._array = np.frombuffer(self._bytes, np.uint8)
        count = len(self._bytes) - _WORD + 1
        self._words = np.ndarray((count,), np.dtype("<u8"), self._bytes, strides=(1,))

    def get_text(self, start: int, end: int) -> str:
        """Return a part of the text."""
        return self._bytes[start:end].decode()

    def read_first_bytes(self, starts: Numbers, counts: Numbers) -> _Words:
        """Return words of the first bytes, at most eight, from some positions; zeros follow."""
        return self._words[starts] & _FIRST_BYTES[np.clip(counts, 0, _WORD)]

    def find_fields(self, delimiter: int, width: int) -> _Fields:
        """Return all columns of rows, each of which must have so many fields."""
        is_end = (self._array == delimiter) | (self._array == ord("\n"))
        ends = np.flatnonzero(is_end)[len(_MARGIN) - 1 : -len(_MARGIN)]
        kinds = np.array([delimiter] * (width - 1) + [ord("\n")], np.uint8)
        _require(len(ends) % width == 1)
        _require((self._array[ends[1:]].reshape(-1, width) == kinds).all())
        columns = ends[:-1] + 1, ends[1:], np.diff(ends) - 1
        return _Fields(*(each.reshape(-1, width) for each in columns))

    def have_suffix(self, fields: _Fields, suffix: bytes) -> npt.NDArray[np.bool_]:
        """Return whether each field has some bytes before its end."""
        found = np.ones(fields.ends.shape, np.bool_)
        for before, byte in enumerate(reversed(suffix), 1):
            found &= self._array[fields.ends - before] == byte
        return found

    def parse_integers(self, fields: _Fields) -> Numbers:
        """Return integers of at most 16 digits, written without leading zeros; 0 if empty."""
        _, ends, widths = fields
        values = self._parse_last_digits(ends, widths)
        if widths.max() > _WORD:
            values += self._parse_last_digits(ends - _WORD, widths - _WORD) * 10**_WORD
        _require((values >= _LEAST[widths]).all())
        return values

    def _parse_last_digits(self, ends: Numbers, counts: Numbers) -> Numbers:
        """Return the numbers of the last digits, at most eight, before some positions."""
        unused = (8 * (_WORD - np.clip(counts, 0, _WORD))).astype(np.uint64)
        return _join_digits(((self._words[ends - _WORD] ^ _ZEROS) >> unused) << unused)

    def parse_times(self, fields: _Fields, suffix: int) -> Numbers:
        """Return times such as 2026-03-01T12:00:00.000, after which a suffix of some bytes is cut.

        They may have a space for the T, and no fraction, or one of up to nine digits, which are
        cut, too.
        """
        starts, ends, widths = fields
        is_short = widths == len("2026-03-01T12:00:00") + suffix
        extra = widths - len("2026-03-01T12:00:00.000") - suffix
        _require((is_short | ((extra >= 0) & (extra <= len("000000")))).all())
        self._parse_last_digits(ends - suffix, extra)
        separators = self._array[starts + len("2026-03-01")]
        _require(((separators == ord("T")) | (separators == ord(" "))).all())
        lengths = np.where(is_short, len(":00"), len(":00.000"))
        return _join_utc(
            _parse_form(self._words[starts], b"0000-00-"),
            _parse_form(self._words[starts + 8] & _NO_SEPARATOR, b"00\x0000:00"),
            _parse_form(self._words[starts + 16], b":00.000\x00", _FIRST_BYTES[lengths]),
        )


def _require(condition: bool | np.bool_) -> None:
    if not condition:
        raise _NotPlainError


def _parse_form(words: _Words, form: bytes, mask: _Words = _FIRST_BYTES[-1:]) -> Numbers:
    """Return the numbers whose digits are where a form has zeros; its other bytes become 0.

    Only the bytes of a mask are considered.
    """
    others = bytes(0 if byte == ord("0") else 0xFF for byte in form)
    zeros, literals = np.frombuffer(form + others, "<u8")
    digits = (words ^ zeros) & mask
    _require(not (digits & literals).any())
    return _join_digits(digits)


def _join_digits(digits: _Words) -> Numbers:
    """Return the numbers whose digits are the bytes of words, the first one the highest."""
    _require(not (((digits + _OVER_NINE) | digits) & _HIGH_BITS).any())
    # Two neighbours become a number of two digits, then two of these one of four, and so on.
    digits = ((digits * np.uint64(10 << 8 | 1)) >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    digits = ((digits * np.uint64(100 << 16 | 1)) >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    return ((digits * np.uint64(10_000 << 32 | 1)) >> np.uint64(32)).view(np.int64)


def _join_utc(months: Numbers, clocks: Numbers, seconds: Numbers) -> Numbers:
    """Return the instants of YYYY0MM0, DD0hh0mm and 0ss0mmm0."""
    years, month = months // 10_000, months % 10_000 // 10
    day, hour, minute = clocks // 1_000_000, clocks // 1000 % 1000, clocks % 1000
    second, millisecond = seconds // 100_000, seconds % 100_000 // 10
    limits = ((years, 1970, 9999), (month, 1, 12), (hour, 0, 23), (minute, 0, 59), (second, 0, 59))
    for values, least, most in limits:
        _require(least <= values.min() and values.max() <= most)
    month += 12 * (years - 1970) - 1
    first, following = (
        (month + more).astype("M8[M]").astype("M8[D]").astype(np.int64) for more in (0, 1)
    )
    _require(day.min() >= 1 and (first + day <= following).all())
    clock = (hour * 60 + minute) * 60 + second
    return (first + day - 1) * DAY_MS + clock * 1000 + millisecond
