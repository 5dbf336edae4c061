"""Parse plain rows of CSV, `serverId,observedAt,players` without quotes, a block at a time.

Every step computes with whole columns. Numbers and identifiers are read as words: eight bytes, of
which the first one is the lowest.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from srvstat.arrays import Numbers
from srvstat.contract.identifiers import MAX_IDENTIFIER_LENGTH
from srvstat.contract.instants import YEAR_2001
from srvstat.contract.windows import DAY_MS
from srvstat.sources.batch import IDENTIFIER, Batch, renumber

_Words = npt.NDArray[np.uint64]

_WORD = 8
_COMMA, _NEWLINE = b",\n"
_ROW_ENDS = np.frombuffer(b",,\n", np.uint8)
_MARGIN = b"\n" * MAX_IDENTIFIER_LENGTH
"""Bytes before and after the text, so that every word that is read lies within the bytes."""

_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
"""The bits of the first bytes of a word, by the number of bytes."""

_ZEROS, _OVER_NINE, _HIGH_BITS = (
    np.uint64(int.from_bytes([byte] * _WORD)) for byte in (ord("0"), 0x80 - 10, 0x80)
)

_LEAST = np.array([0, 0, *(10**digits for digits in range(1, 2 * _WORD))])
"""The least number of so many digits."""

_FACTORS = np.array(
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


class NotPlainError(ValueError):
    """A row is not plain, though it may be valid."""


class PlainRows:
    """Parses the plain rows of a file, and remembers its identifiers."""

    def __init__(self) -> None:
        # By code; the first one stands for identifiers that are not known.
        self._names = [""]
        self._words = np.zeros((1 + len(_FACTORS), 1), np.uint64)  # widths, then all words
        self._hashes = np.zeros(1, np.uint64)
        self._codes: dict[int, int] = {}  # by hash
        self._slots = np.zeros(1 << _SLOT_BITS, np.int64)  # codes by the first bits of hashes

    def parse(self, first_line: int, text: str) -> tuple[Batch, bool]:
        """Return the rows of whole lines, and whether their times are integers.

        Rows with integers are written in the only way.

        Raises NotPlainError.
        """
        text = f"{text}\n"
        data = _Data(text.replace("\r\n", "\n") if "\r" in text else text)
        ids, times, counts = data.find_fields()
        is_integer = bool(times.widths.max() <= _MOST_TIME_DIGITS)
        if is_integer:
            instants = data.parse_integers(times)
            _require(instants.min() >= YEAR_2001)
        else:
            instants = data.parse_utc_times(times)
        _require(counts.widths.max() <= _MOST_COUNT_DIGITS)
        players = data.parse_integers(counts)
        names, codes = self._find_names(data, ids)
        places = np.arange(first_line, first_line + len(codes))
        return Batch(names, codes, instants, players, places), is_integer

    def _find_names(self, data: "_Data", ids: "_Fields") -> tuple[list[str], Numbers]:
        """Return the identifiers of rows, and their codes."""
        _require(1 <= ids.widths.min() <= ids.widths.max() <= MAX_IDENTIFIER_LENGTH)
        count = -(-int(ids.widths.max()) // _WORD)
        words = np.empty((1 + count, len(ids.widths)), np.uint64)
        words[0] = ids.widths
        for number, start in enumerate(range(0, count * _WORD, _WORD), 1):
            words[number] = data.read_first_bytes(ids.starts + start, ids.widths - start)
        hashes = _FACTORS[:count] @ words[1:]
        codes = self._slots[hashes >> _SLOT_SHIFT]
        missing = np.flatnonzero(self._hashes[codes] != hashes)
        if len(missing):
            found, firsts, of_row = np.unique(
                hashes[missing], return_index=True, return_inverse=True
            )
            rows = missing[np.sort(firsts)]
            rows = rows[[number not in self._codes for number in hashes[rows].tolist()]]
            names = list(map(data.get_text, ids.starts[rows], ids.ends[rows]))
            _require(all(map(IDENTIFIER.fullmatch, names)))
            self._remember(names, words[:, rows], hashes[rows])
            codes[missing] = np.array([self._codes[number] for number in found.tolist()])[of_row]
        # Two identifiers may have one hash.
        _require((self._words[: 1 + count].take(codes, axis=1) == words).all())
        used, codes = renumber(codes)
        return [self._names[code] for code in used], codes

    def _remember(self, names: list[str], words: _Words, hashes: _Words) -> None:
        codes = range(len(self._names), len(self._names) + len(names))
        self._names += names
        padding = ((0, len(self._words) - len(words)), (0, 0))
        self._words = np.append(self._words, np.pad(words, padding), axis=1)
        self._hashes = np.append(self._hashes, hashes)
        self._codes.update(zip(hashes.tolist(), codes, strict=True))
        self._slots[hashes >> _SLOT_SHIFT] = codes


class _Fields(NamedTuple):
    """Where the fields of a column start and end, and their numbers of bytes."""

    starts: Numbers
    ends: Numbers
    widths: Numbers


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

    def find_fields(self) -> Iterator[_Fields]:
        """Return the columns of rows, all of which must have three fields."""
        is_end = self._array <= _COMMA
        if b" " in self._bytes:
            is_end &= self._array != ord(" ")
        ends = np.flatnonzero(is_end)[len(_MARGIN) - 1 : -len(_MARGIN)]
        _require(len(ends) % 3 == 1)
        _require((self._array[ends[1:]].reshape(-1, 3) == _ROW_ENDS).all())
        starts, widths = ends[:-1] + 1, np.diff(ends) - 1
        return (_Fields(starts[at::3], ends[at + 1 :: 3], widths[at::3]) for at in range(3))

    def parse_integers(self, fields: _Fields) -> Numbers:
        """Return integers of at most 16 digits, written without leading zeros."""
        _, ends, widths = fields
        values = self._parse_last_digits(ends, widths)
        if widths.max() > _WORD:
            values += self._parse_last_digits(ends - _WORD, widths - _WORD) * 10**_WORD
        _require(widths.min() > 0 and (values >= _LEAST[widths]).all())
        return values

    def _parse_last_digits(self, ends: Numbers, counts: Numbers) -> Numbers:
        """Return the numbers of the last digits, at most eight, before some positions."""
        unused = (8 * (_WORD - np.clip(counts, 0, _WORD))).astype(np.uint64)
        return _join_digits(((self._words[ends - _WORD] ^ _ZEROS) >> unused) << unused)

    def parse_utc_times(self, fields: _Fields) -> Numbers:
        """Return instants such as 2026-03-01T12:00:00.000Z.

        It may have a space for the T, and no fraction, or one of up to nine digits, which are cut.
        """
        starts, ends, widths = fields
        is_short = widths == len("2026-03-01T12:00:00Z")
        extra = widths - len("2026-03-01T12:00:00.000Z")
        _require((is_short | ((extra >= 0) & (extra <= len("000000")))).all())
        _require((self._array[ends - 1] == ord("Z")).all())
        self._parse_last_digits(ends - 1, extra)
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
        raise NotPlainError


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
