"""Divide the values of a server into bands, which keep its histograms short.

Bands are adjacent ranges of values. If a server has few different values, each of them is a band.
Otherwise bands have several values and about equally many observations, and the row of such a band
in `bands` stores the players of its observations in order of time. The histogram of the bands and
the observations of one band are enough to find the value at a rank.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from srvstat.snapshot.format.digest import DIGEST_BYTES, digest_row
from srvstat.snapshot.format.packing import pack, unpack
from srvstat.snapshot.format.rows import BANDS_PER_SERVER, ServerRow, SummaryIndex, Value

_MAX_VALUES = 4_096
_MAX_VALUES_PER_OBSERVATION = 16
"""A server with more different values has bands of several values. The second limit is
multiplied by its average number of observations per day."""

_MIN_BANDS, _MAX_BANDS = 16, 512
_MAX_OBSERVATIONS_PER_BAND = 100_000
"""Limits the time to read a band of a server with many observations to milliseconds."""

_NO_DIGEST = bytes(DIGEST_BYTES)
"""The digest of a band of one value, which has no row."""


class Bands(NamedTuple):
    """The least value of each band, ascending, and the digests of the bands' rows.

    Without digests, each band has one value.
    """

    starts: Sequence[int]
    digests: bytes

    def get_digest(self, band: int) -> bytes | None:
        """Return the digest of a band's row; None for a band of one value."""
        found = self.digests[band * DIGEST_BYTES : (band + 1) * DIGEST_BYTES]
        return None if found in (b"", _NO_DIGEST) else found


def divide_into_bands(players: Sequence[int], days: int) -> list[int]:
    """Return the least value of each band for all observations of a server on a number of days."""
    counts = Counter(players)
    values = sorted(counts)
    per_day = len(players) // max(days, 1)
    if len(values) <= min(_MAX_VALUES, _MAX_VALUES_PER_OBSERVATION * per_day):
        return values
    wanted = max(
        min(max(per_day, _MIN_BANDS), _MAX_BANDS), len(players) // _MAX_OBSERVATIONS_PER_BAND
    )
    return list(_find_starts(values, counts, -(-len(players) // wanted)))


def _find_starts(values: Sequence[int], counts: Mapping[int, int], full: int) -> Iterator[int]:
    """Yield the least value of each band; `full` observations fill a band."""
    in_band = full
    for value in values:
        if in_band >= full or counts[value] >= full:
            yield value
            in_band = 0
        in_band += counts[value]


def number_values(values: Sequence[int], starts: Sequence[int]) -> dict[int, int]:
    """Map each value to the number of its band; values and starts are ascending."""
    numbers: dict[int, int] = {}
    band = -1
    for value in values:
        if band + 1 < len(starts) and value >= starts[band + 1]:
            band += 1
        numbers[value] = band
    return numbers


def build_band_rows(
    server: int, players: Sequence[int], starts: Sequence[int], bands: Mapping[int, int]
) -> Iterator[tuple[Value, ...]]:
    """Yield the rows of `bands` of a server in ascending order: one per band of several values.

    `bands` maps each value to the number of its band.
    """
    if len(bands) == len(starts):
        return
    members = [array("Q") for _ in starts]
    append = [of_band.append for of_band in members]
    for value in players:
        append[bands[value]](value)
    for band, start in enumerate(starts):
        above = [value - start for value in members[band]]
        if any(above):
            yield server * BANDS_PER_SERVER + band, len(above), pack(above, max(above))


def join_digests(table: str, rows: Sequence[tuple[Value, ...]], bands: int) -> bytes:
    """Return the joined digests of all bands of a server, zeros for a band without a row."""
    digests = {int(row[0] or 0) % BANDS_PER_SERVER: digest_row(table, row) for row in rows}
    return b"".join(digests.get(band, _NO_DIGEST) for band in range(bands))


def read_bands(row: ServerRow | SummaryIndex) -> Bands:
    """Return the bands of values in the row of a server, or those of intervals in its index.

    Raises ValueError for columns that no build writes.
    """
    count = row.band_count
    return Bands(unpack(row.bands, count) if count else (), row.band_digests)


class Members(NamedTuple):
    """The observations or intervals in a band: their number, and how much they exceed its start."""

    size: int
    packed: bytes

    def slice(self, first: int, last: int) -> Sequence[int]:
        """Return the members from position `first` up to, but not including, `last`.

        Raises ValueError for bytes that no build writes.
        """
        return unpack(self.packed, self.size)[first:last]
