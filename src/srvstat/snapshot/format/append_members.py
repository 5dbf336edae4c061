"""Append observations to the rows of `bands`, and intervals to those of `intervals`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from srvstat.snapshot.format.bands import Bands, Members, pack_digests
from srvstat.snapshot.format.digest import digest_row
from srvstat.snapshot.format.packing import extend_packed, pack
from srvstat.snapshot.format.rows import BANDS_PER_SERVER, Value
from srvstat.snapshot.format.stored_rows import StoredRows


class ExtendedBands(NamedTuple):
    """The column of digests of bands with further members, and the rows that have changed."""

    band_digests: bytes
    members: Mapping[int, Members]


def append_members(
    stored: StoredRows,
    table: str,
    bands: Bands,
    cumulative: Sequence[int],
    later: Iterable[tuple[int, int]],
) -> ExtendedBands:
    """Append members to the bands of a server.

    `cumulative` has for each band the number of earlier members in it or a lower one. `later` has
    the band of each further member, and its value.
    """
    above: dict[int, list[int]] = {}
    for band, value in later:
        above.setdefault(band, []).append(value - bands.starts[band])
    with_row = [band for band in above if bands.get_digest(band)]
    changed = stored.read_members(table, with_row) if with_row else {}
    for band, values in above.items():
        if band not in changed and any(values) and bands.is_known(band):
            # So far, all members were the start of the band.
            size = cumulative[band] - (cumulative[band - 1] if band else 0)
            changed[band] = Members(size, bytes(size))
    members = {band: _extend(old, above[band]) for band, old in sorted(changed.items())}
    digests = {band: digest_row(table, (band, *of_band)) for band, of_band in members.items()}
    return ExtendedBands(pack_digests(bands.digests_by_number | digests), members)


def _extend(members: Members, above: Sequence[int]) -> Members:
    size, packed = members
    packed = extend_packed(packed, size, above) if size else pack(above, max(above))
    return Members(size + len(above), packed)


def take_members(
    take: Callable[[str, tuple[Value, ...]], None],
    table: str,
    server: int,
    members: Mapping[int, Members],
) -> None:
    """Call `take` with the row of each band of a server."""
    for band, of_band in members.items():
        take(table, (server * BANDS_PER_SERVER + band, *of_band))
