"""Parse whole columns of times and player counts, many times faster than value by value.

A column stores offsets into a byte buffer. Texts are read as little-endian 8-byte words; a few
multiplications convert eight digits. Texts that differ only in digits share a shape, and a column
has few shapes. So the parts of a time are located once per shape and then read from all its texts
at once. The results are the same as from `srvstat.sources.values`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from srvstat.contract.arrays import Numbers
from srvstat.contract.time import LATEST, YEAR_2001, InstantError
from srvstat.contract.windows import DAY_MS
from srvstat.contract.wire import MAX_IDENTIFIER_LENGTH
from srvstat.sources import values
from srvstat.sources.mapping import ColumnMapping

EMPTY_COUNT, MALFORMED, BLANK = -1, -2, -3
"""Sentinels for empty texts such as NA, for malformed counts, and for empty cells of wide tables.

A malformed instant is any negative number.
"""

Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

WORD = 8
MARGIN = b"\n" * MAX_IDENTIFIER_LENGTH
"""Padding before and after the text, so that every word read lies within the buffer."""

_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(WORD + 1)], np.uint64)
"""Masks of the first n bytes of a word."""
_LAST_DIGITS = ~_FIRST_BYTES[::-1] & np.uint64(int.from_bytes([0x0F] * WORD))
"""Masks of the digits in the last n bytes of a word."""

_ZEROS, _OVER_NINE, _HIGH_BITS, _LOW_BITS = (
    np.uint64(int.from_bytes([byte] * WORD)) for byte in (ord("0"), 0x80 - 10, 0x80, 0x7F)
)
_MOST_DIGITS = 2 * WORD
_LEAST = np.array([1, 0, *(10**digits for digits in range(1, _MOST_DIGITS))])
"""The smallest number with n digits."""

_MOST_WORDS = 8
_MOST_SHAPES = 64
_COMPACT_DIGITS = 14
"""The number of digits of YYYYMMDDHHMMSS."""


class Data:
    """A byte buffer from which columns are read."""

    def __init__(self, text: Any) -> None:
        self.bytes = b"%b%b%b" % (MARGIN, text, MARGIN)
        self.array = np.frombuffer(self.bytes, np.uint8)
        count = len(self.bytes) - WORD + 1
        self.words = np.ndarray((count,), np.dtype("<u8"), self.bytes, strides=(1,))


class Column(Sequence[str]):
    """Texts in a byte buffer, stored as the offsets of their starts and ends."""

    def __init__(self, data: Data, starts: Numbers, ends: Numbers) -> None:
        self.data = data
        self.starts = starts
        self.ends = ends

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> "Column":
        """Build a column from strings."""
        joined = "\n".join(texts)
        if joined.count("\n") >= max(len(texts), 1):
            joined = "\n".join(text.replace("\n", "\t") for text in texts)
        data = Data(joined.encode("utf-8", "surrogatepass") + b"\n")
        ends = np.flatnonzero(data.array == ord("\n"))[len(MARGIN) - 1 :]
        ends = ends[: len(texts) + 1]
        return cls(data, ends[:-1] + 1, ends[1:])

    @classmethod
    def join(cls, columns: Sequence[Sequence[str]]) -> "Column":
        """Concatenate columns."""
        parts = [column for column in columns if isinstance(column, Column)]
        if not parts:
            return cls.from_texts([text for column in columns for text in column])
        data, offsets = parts[0].data, [0] * len(parts)
        if any(part.data is not data for part in parts):
            data = Data(b"".join(part.data.bytes for part in parts))
            sizes = [len(MARGIN), *(len(part.data.bytes) for part in parts[:-1])]
            offsets = np.cumsum(sizes).tolist()
        starts = [part.starts + offset for part, offset in zip(parts, offsets, strict=True)]
        ends = [part.ends + offset for part, offset in zip(parts, offsets, strict=True)]
        return cls(data, np.concatenate(starts), np.concatenate(ends))

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: Any) -> Any:
        return self.data.bytes[self.starts[row] : self.ends[row]].decode()

    def take(self, rows: Numbers | Flags) -> "Column":
        """Return the texts of the given rows."""
        return Column(self.data, self.starts[rows], self.ends[rows])

    def read_words(self, count: int) -> Words:
        """Return the first words of each text, one array row per word, padded with zeros."""
        widths = self.ends - self.starts
        words = np.empty((count, len(widths)), np.uint64)
        for number, start in enumerate(range(0, count * WORD, WORD)):
            kept = _FIRST_BYTES[np.clip(widths - start, 0, WORD)]
            words[number] = self.data.words[self.starts + start] & kept
        return words

    def parse_digits(self) -> Numbers:
        """Parse integers of up to 16 digits without leading zeros. Any other text becomes -1."""
        widths = self.ends - self.starts
        is_digits = widths <= _MOST_DIGITS
        widths = np.minimum(widths, _MOST_DIGITS)
        lower = np.minimum(widths, WORD)
        numbers = self._parse_last_digits(self.ends, lower, is_digits)
        if widths.max(initial=0) > WORD:
            upper = self._parse_last_digits(self.ends - WORD, widths - lower, is_digits)
            numbers += upper * 10**WORD
        is_digits &= numbers >= _LEAST[widths]
        return np.where(is_digits, numbers, -1)

    def _parse_last_digits(self, ends: Numbers, counts: Numbers, is_digits: Flags) -> Numbers:
        """Parse the last bytes before `ends`, at most eight, and clear the flags of non-digits."""
        unused = (8 * (WORD - counts)).view(np.uint64)  # numpy shifts by 64 bits to 0
        digits = ((self.data.words[ends - WORD] ^ _ZEROS) >> unused) << unused
        is_digits &= ((digits + _OVER_NINE) | digits) & _HIGH_BITS == 0
        return _join_digits(digits)


HASH_FACTORS = np.array(
    [pow(0x9E3779B97F4A7C15, 1 + at, 1 << 64) for at in range(MAX_IDENTIFIER_LENGTH // WORD)],
    np.uint64,
)
"""The factors by which the words of a text are multiplied to hash it."""

_SLOT_BITS = 16
_SLOT_SHIFT = np.uint64(64 - _SLOT_BITS)


def number_texts(texts: Sequence[str]) -> tuple[list[str], Numbers]:
    """Return the distinct texts in order of appearance, and each text's index among them.

    Short texts in a `Column` are found by a hash of their words and then compared, so a hash
    collision can't merge two texts.
    """
    rows = np.arange(len(texts))
    firsts = rows  # the first row with the same text
    if isinstance(texts, Column):
        widths = texts.ends - texts.starts
        count = -(-min(int(widths.max(initial=1)), MAX_IDENTIFIER_LENGTH) // WORD)
        words = np.concatenate([widths[np.newaxis].astype(np.uint64), texts.read_words(count)])
        slots = (HASH_FACTORS[:count] @ words[1:]) >> _SLOT_SHIFT
        row_of_slot = np.zeros(1 << _SLOT_BITS, np.int64)
        row_of_slot[slots[::-1]] = rows[::-1]  # the first row stays
        likely = row_of_slot[slots]
        is_same = (words.take(likely, axis=1) == words).all(axis=0)
        firsts = np.where(is_same & (widths <= MAX_IDENTIFIER_LENGTH), likely, rows)
    numbers: dict[str, int] = {}
    found = np.zeros(len(texts), np.int64)
    different = np.flatnonzero(firsts == rows)
    found[different] = [numbers.setdefault(texts[row], len(numbers)) for row in different.tolist()]
    return [*numbers], found[firsts]


class _Shape(NamedTuple):
    """Rows whose texts differ only in digits, with the first text and the words of all texts.

    The texts of several columns are joined; all but the last are padded to whole words.
    """

    rows: Numbers
    text: str
    words: Words

    def read_number(self, start: int, end: int) -> Numbers:
        """Return the number between two positions of each text."""
        found: Numbers = np.zeros(1, np.int64)
        for number in range(start // WORD, (end + WORD - 1) // WORD):
            first, last = max(start - number * WORD, 0), min(end - number * WORD, WORD)
            # Shift the digits to the end of the word and zero what precedes them.
            digits = (self.words[number] << np.uint64(8 * (WORD - last))) & _LAST_DIGITS[
                last - first
            ]
            found = found * 10 ** (last - first) + _join_digits(digits)
        return found


def _iter_shapes(columns: Sequence[Column], rows: Numbers) -> Iterator[_Shape]:
    """Yield the rows by shape, except rows with long texts and rows beyond the limit of shapes."""
    columns = [column.take(rows) for column in columns]
    widths = [int((column.ends - column.starts).max(initial=0)) for column in columns]
    counts = [-(-width // WORD) for width in widths]
    if not len(rows) or sum(counts) > _MOST_WORDS or b"\0" in columns[0].data.bytes:
        return
    words = np.concatenate([*map(Column.read_words, columns, counts)])
    zeroed = words ^ _ZEROS
    others = (((zeroed & _LOW_BITS) + _OVER_NINE) | zeroed) & _HIGH_BITS
    shapes = zeroed & ((others >> np.uint64(7)) * np.uint64(0xFF))
    for _ in range(_MOST_SHAPES):
        if not len(rows):
            return
        texts = [column[0] for column in columns]
        padded = [text.ljust(WORD * count) for text, count in zip(texts[:-1], counts, strict=False)]
        text = "".join([*padded, texts[-1]])
        is_equal = (shapes == shapes[:, :1]).all(axis=0)
        if is_equal.all():
            yield _Shape(rows, text, words)
            return
        yield _Shape(rows[is_equal], text, words[:, is_equal])
        others = ~is_equal
        rows, words, shapes = rows[others], words[:, others], shapes[:, others]
        columns = [column.take(others) for column in columns]


def _join_digits(digits: Words) -> Numbers:
    """Return the numbers whose digits are the bytes of words."""
    # Combine neighbouring digits into two-digit numbers, then these into four-digit numbers, and so
    # on.
    digits = digits * np.uint64(10 << 8 | 1)
    digits = ((digits >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(100 << 16 | 1)
    digits = (digits >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    return ((digits * np.uint64(10_000 << 32 | 1)) >> np.uint64(32)).view(np.int64)


def parse_times(columns: Sequence[Column], mapping: ColumnMapping) -> Numbers:
    """Parse the times in one column, or in two that are joined. Malformed times become negative."""
    instants: Numbers = np.full(len(columns[0].starts), MALFORMED)
    if mapping.time_format in {None, values.DAY_FIRST, values.MONTH_FIRST}:
        if len(columns) == 1:
            instants = _parse_numbers(columns[0], mapping)
        for shape in _iter_shapes(columns, np.flatnonzero(instants < 0)):
            is_number = shape.text.strip().replace(".", "", 1).isdigit()
            try:
                if mapping.is_strict:
                    form = values.find_strict_time_form(shape.text)
                else:
                    form = values.find_time_form(shape.text, mapping)
            except InstantError:
                continue
            if form is not None and not is_number and shape.text.isascii():
                instants[shape.rows] = _read_times(shape, form, mapping)
    _parse_alone(columns, instants, mapping.parse_time)
    return instants


def _parse_numbers(column: Column, mapping: ColumnMapping) -> Numbers:
    """Return the instants of plain numbers, or MALFORMED for other texts and unlikely instants."""
    numbers, unit = column.parse_digits(), mapping.time_unit
    if unit is None:
        most = LATEST if mapping.is_strict else 10 ** (_COMPACT_DIGITS - 1) - 1
        is_instant = (numbers >= YEAR_2001) & (numbers <= most)
    elif unit == "s":
        is_instant = numbers <= LATEST // 1000
        numbers *= 1000
    elif unit == "ms":
        is_odd = (numbers >= values.SECONDS.start) & (numbers < values.SECONDS.stop)
        is_instant = (numbers <= LATEST) & (mapping.is_strict | ~is_odd)
    else:
        numbers //= values.PER_MILLISECOND[unit]
        is_instant = (numbers >= YEAR_2001) & (numbers <= LATEST)
    return np.where(is_instant & (numbers >= 0), numbers, MALFORMED)


def _read_times(shape: _Shape, form: values.TimeForm, mapping: ColumnMapping) -> Numbers:
    """Return the instants of the texts of a shape, negative where malformed."""

    def read(part: str, default: int = 0) -> Numbers:
        span = form.spans.get(part)
        return np.array([default]) if span is None else shape.read_number(*span)

    year, month, day = read("year"), read("month", form.month), read("day", 1)
    start, end = form.spans["year"]
    if end - start == len("26"):
        year = year + np.where(np.less(year, values.FIRST_YEAR_OF_1900S), 2000, 1900)
    hour, minute, second = read("hour"), read("minute"), read("second")
    is_time = np.greater_equal(year, 1970) & (month > 0)
    limits = [(month, 12), (minute, 59), (second, 59)]
    if form.half:
        is_time &= hour > 0
        limits.append((hour, values.NOON))
        hour = hour % values.NOON + values.NOON * (form.half == "p")
    hours, minutes = read("hours"), read("minutes")
    for part, most in (*limits, (hour, 23), (hours, 23), (minutes, 59)):
        is_time &= part <= most
    start, end = form.spans.get("fraction", (0, 0))
    end = min(end, start + len("999"))
    milliseconds = shape.read_number(start, end) * 10 ** (len("999") - end + start)
    first_days = _find_first_days()
    number = np.where(is_time, 12 * (year - 1970) + month - 1, 0)
    is_time &= (day >= 1) & (day <= first_days[number + 1] - first_days[number])
    clock = (hour * 60 + minute) * 60 + second
    local = (first_days[number] + day - 1) * DAY_MS + clock * 1000 + milliseconds
    if form.sign is not None:
        local -= form.sign * (hours * 60 + minutes) * 60_000
    elif mapping.time_zone is None:
        is_time &= False
    else:
        local = values.convert_local_times(np.where(is_time, local, 0), mapping.time_zone)
    return np.where(is_time & (local >= 0) & (local <= LATEST), local, MALFORMED)


@lru_cache
def _find_first_days() -> Numbers:
    """Return the first day of each month from 1970 to 10000, in days since 1970."""
    months = np.arange(12 * (10_000 - 1970) + 1).astype("M8[M]")
    return months.astype("M8[D]").astype(np.int64)


def parse_counts(column: Column, mapping: ColumnMapping) -> Numbers:
    """Return the player counts of a column, with EMPTY_COUNT and MALFORMED as sentinels."""
    counts = column.parse_digits()
    counts[(counts < 0) | (counts > values.MAX_PLAYERS)] = MALFORMED
    if mapping.is_strict:
        return counts
    counts[column.starts == column.ends] = EMPTY_COUNT

    def parse(text: str) -> int:
        count = mapping.parse_count(text)
        return EMPTY_COUNT if count is None else count

    _parse_alone([column], counts, parse)
    return counts


def _parse_alone(columns: Sequence[Column], parsed: Numbers, parse: Callable[[str], int]) -> None:
    """Parse each distinct malformed text with the scalar parser, and fill in the results."""
    rows = np.flatnonzero(parsed == MALFORMED)
    if not len(rows):
        return
    first, *others = (column.take(rows) for column in columns)
    texts = [" ".join(each) for each in zip(first, *others, strict=True)] if others else first
    different, numbers = number_texts(texts)
    found: Numbers = np.full(len(different), MALFORMED)
    for at, text in enumerate(different):
        with suppress(values.RowError):
            found[at] = parse(text)
    parsed[rows] = found[numbers]
