"""Divide the values of a server into bands, whose counts are stored."""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.snapshot.format.digest import DIGEST_BYTES, digest_row
from srvstat.snapshot.format.packing import pack, unpack
from srvstat.snapshot.format.rows import (
    BANDS_PER_SERVER,
    ForgedRowError,
    ServerRow,
    SummaryIndex,
    Value,
)

_FRACTION_BITS = 18


def find_epoch(server_id: str, observations: int) -> int:
    """Return the number of first observations that determine the bands of a server.

    It is the last of a series of thresholds that the server has reached. Each is about a quarter
    larger than the one before. The first depends on the id, so that the servers of a fleet reach
    theirs on different days.
    """
    offset = int.from_bytes(sha256(server_id.encode()).digest()[:2])
    threshold = (1 << _FRACTION_BITS) + offset
    while (following := threshold * 5 // 4) >> _FRACTION_BITS <= observations:
        threshold = following
    return min(threshold >> _FRACTION_BITS, observations)


_MAX_VALUES = 4_096
_MAX_VALUES_PER_OBSERVATION = 16
"""A server with more different values has bands of several values. The second limit is
multiplied by its average number of observations per day."""

_MIN_BANDS, _MAX_BANDS = 16, 512
_MAX_OBSERVATIONS_PER_BAND = 100_000
"""Limits the time to read a band of a server with many observations to milliseconds."""

UNKNOWN = b"\xff" * DIGEST_BYTES
"""Takes the place of the digest of a band of several values that has no row."""

_NUMBER_BYTES = 4


class Bands(NamedTuple):
    """The least value of each band, ascending, and the digests of the bands' rows.

    `digests` are those of the bands with these numbers, ascending. A band without a digest has no
    row, because all its values are its start.
    """

    starts: Sequence[int]
    numbers: Sequence[int]
    digests: bytes

    @property
    def digests_by_number(self) -> dict[int, bytes]:
        """The digests by the numbers of their bands."""
        starts = range(0, len(self.digests), DIGEST_BYTES)
        digests = (self.digests[start : start + DIGEST_BYTES] for start in starts)
        return dict(zip(self.numbers, digests, strict=True))

    def get_digest(self, band: int) -> bytes | None:
        """Return the digest of a band's row; None for a band without one."""
        found = self._find_digest(band)
        return None if found == UNKNOWN else found

    def is_known(self, band: int) -> bool:
        """Check that the values in a band are known: its row has them, or all are its start."""
        return self._find_digest(band) != UNKNOWN

    def list_rows(self) -> list[int]:
        """Return the numbers of the bands that have a row."""
        return [band for band in self.numbers if self.is_known(band)]

    def _find_digest(self, band: int) -> bytes | None:
        at = bisect_left(self.numbers, band)
        if at == len(self.numbers) or self.numbers[at] != band:
            return None
        return self.digests[at * DIGEST_BYTES : (at + 1) * DIGEST_BYTES]


def divide_into_bands(players: Sequence[int], days: int) -> list[int]:
    """Return the least value of each band.

    `players` are those of the first observations of a server, on a number of days. The first band
    begins at 0, so that each value has a band.
    """
    if not players:
        return []
    values = sorted(set(players))
    per_day = len(players) // days
    starts = {*_list_outer_starts(values[0], values[-1])}
    if len(values) <= min(_MAX_VALUES, _MAX_VALUES_PER_OBSERVATION * per_day):
        starts.update(values, [value + 1 for value in values])
    else:
        wanted = min(max(per_day, _MIN_BANDS), _MAX_BANDS)
        wanted = max(wanted, len(players) // _MAX_OBSERVATIONS_PER_BAND)
        starts.update(_find_starts(values, Counter(players), -(-len(players) // wanted)))
    return sorted(start for start in starts if start <= MAX_SAFE_INTEGER)


def _find_starts(values: Sequence[int], counts: Mapping[int, int], full: int) -> Iterator[int]:
    """Yield the starts of bands; `full` observations fill a band.

    A value that fills a band alone shares it with no other value, not even one that appears later.
    """
    in_band = full
    for value in values:
        if in_band >= full or counts[value] >= full:
            yield value
            in_band = 0
        if counts[value] >= full:
            yield value + 1
        in_band += counts[value]


def _list_outer_starts(least: int, greatest: int) -> Iterator[int]:
    """Yield the starts of bands below the least value and above the greatest."""
    yield 0
    steps = [1 << power for power in range(MAX_SAFE_INTEGER.bit_length())]
    yield from (least - step for step in steps if step < least)
    yield from (greatest + step for step in steps if step <= max(greatest, 1))


def find_numbers(values: Iterable[int], starts: Sequence[int]) -> list[int]:
    """Return the number of the band of each value."""
    return [bisect_right(starts, value) - 1 for value in values]


class ValueNumbers(dict[int, int]):
    """Maps values to the numbers of their bands; has the values that were looked up."""

    def __init__(self, starts: Sequence[int]) -> None:
        super().__init__()
        self._starts = starts

    def __missing__(self, value: int) -> int:
        """Find the band of a value."""
        number = self[value] = bisect_right(self._starts, value) - 1
        return number


def build_band_rows(
    server: int, players: Sequence[int], starts: Sequence[int], bands: Mapping[int, int]
) -> Iterator[tuple[Value, ...]]:
    """Yield the rows of `bands` of a server in ascending order: one per band of several values.

    A band has no row if all its values are its start. `bands` has the number of the band of each
    value.
    """
    members = {band: array("Q") for value, band in bands.items() if value != starts[band]}
    if not members:
        return
    values = {value for value, band in bands.items() if band in members}
    for value in filter(values.__contains__, players):
        members[bands[value]].append(value - starts[bands[value]])
    for band, above in sorted(members.items()):
        yield server * BANDS_PER_SERVER + band, len(above), pack(above, max(above))


def digest_rows(table: str, rows: Iterable[tuple[Value, ...]]) -> dict[int, bytes]:
    """Return the digests of rows of `bands` or `intervals` by the numbers of their bands."""
    return {int(row[0] or 0) % BANDS_PER_SERVER: digest_row(table, row) for row in rows}


def pack_digests(digests: Mapping[int, bytes]) -> bytes:
    """Pack the numbers of bands, ascending, and then their digests."""
    numbers = sorted(digests)
    packed = pack(numbers, (1 << 8 * _NUMBER_BYTES) - 1)
    return packed + b"".join(digests[number] for number in numbers)


def read_bands(row: ServerRow | SummaryIndex) -> Bands:
    """Return the bands of values in the row of a server, or those of intervals in its index."""
    count = row.band_count
    with_digest, rest = divmod(len(row.band_digests), _NUMBER_BYTES + DIGEST_BYTES)
    if rest:
        raise ForgedRowError("not digests of bands")
    digests = row.band_digests[with_digest * _NUMBER_BYTES :]
    numbers = row.band_digests[: with_digest * _NUMBER_BYTES]
    return Bands(
        unpack(row.bands, count) if count else (),
        unpack(numbers, with_digest) if with_digest else (),
        digests,
    )


class Members(NamedTuple):
    """The observations or intervals in a band: their number, and how much they exceed its start."""

    size: int
    packed: bytes

    def slice(self, first: int, last: int) -> Sequence[int]:
        """Return the members from position `first` up to, but not including, `last`."""
        return unpack(self.packed, self.size)[first:last]
