"""The bands that the values of a server are divided into, so that a histogram of them is short.

A band is a range of values without a gap between it and the next one. Where a server was observed
with few values, each of them is a band. Otherwise a band holds several values and about as many
observations as any other, and its row of `bands` has the players of all of them, in the order of
time. A rank is then found by the histogram of the bands and the observations of a single band.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from srvstat.snapshot.format.digest import DIGEST_BYTES, digest_row
from srvstat.snapshot.format.packing import pack, unpack
from srvstat.snapshot.format.rows import ServerRow, Value

BANDS_PER_SERVER = 1_000_000
"""More bands than a server has: `server_band` is the server times this, plus the band's number."""

_MAX_VALUES = 4_096
_MAX_VALUES_PER_OBSERVATION = 16
"""Single values are bands up to so many, for each observation of an average day."""

_MIN_BANDS, _MAX_BANDS = 16, 512
_MAX_OBSERVATIONS_PER_BAND = 100_000
"""So that reading a band takes milliseconds, however many observations a server has."""

_NO_DIGEST = bytes(DIGEST_BYTES)
"""Stands for a band of one value, which has no row."""


class Bands(NamedTuple):
    """The least value of each band, ascending, and the digests of their rows.

    Without digests each band is a single value.
    """

    starts: Sequence[int]
    digests: bytes

    def digest(self, band: int) -> bytes | None:
        """Return the digest of a band's row; None for a band of a single value."""
        found = self.digests[band * DIGEST_BYTES : (band + 1) * DIGEST_BYTES]
        return None if found in (b"", _NO_DIGEST) else found


def divide_into_bands(players: Sequence[int], days: int) -> list[int]:
    """Return the least value of each band, for all observations of a server on so many days."""
    counts = Counter(players)
    values = sorted(counts)
    a_day = len(players) // max(days, 1)
    if len(values) <= min(_MAX_VALUES, _MAX_VALUES_PER_OBSERVATION * a_day):
        return values
    wanted = max(
        min(max(a_day, _MIN_BANDS), _MAX_BANDS), len(players) // _MAX_OBSERVATIONS_PER_BAND
    )
    return list(_find_starts(values, counts, -(-len(players) // wanted)))


def _find_starts(values: Sequence[int], counts: Mapping[int, int], full: int) -> Iterator[int]:
    """Yield the least value of bands that are full, or have one value that is as frequent."""
    in_band = full
    for value in values:
        if in_band >= full or counts[value] >= full:
            yield value
            in_band = 0
        in_band += counts[value]


def number_values(values: Sequence[int], starts: Sequence[int]) -> dict[int, int]:
    """Return the number of the band of each value; both are ascending."""
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
    """Yield the rows of `bands` of a server, ascending: one for each band of several values.

    `bands` has the number of each value's band.
    """
    most = Counter(bands.values())
    members = {band: array("Q") for band, values in most.items() if values > 1}
    if not members:
        return
    for value in players:
        if (band := bands[value]) in members:
            members[band].append(value - starts[band])
    for band, above in sorted(members.items()):
        yield server * BANDS_PER_SERVER + band, len(above), pack(above, max(above))


def join_digests(rows: Sequence[tuple[Value, ...]], bands: int) -> bytes:
    """Return the digests of all bands of a server, or nothing where none of them has a row."""
    digests = {int(row[0] or 0) % BANDS_PER_SERVER: digest_row("bands", row) for row in rows}
    return b"".join(digests.get(band, _NO_DIGEST) for band in range(bands)) if digests else b""


def read_bands(server: ServerRow) -> Bands:
    """Return the bands that the row of a server holds.

    Raises ValueError for columns that no build wrote.
    """
    count = server.band_count
    return Bands(unpack(server.bands, count) if count else (), server.band_digests)


class Members(NamedTuple):
    """The observations in a band: how many, and their packed players above the band's start."""

    size: int
    packed: bytes

    def between(self, first: int, last: int) -> Sequence[int]:
        """Return the members from one position up to but not including another one.

        Raises ValueError for bytes that no build wrote.
        """
        return unpack(self.packed, self.size)[first:last]
