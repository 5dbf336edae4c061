"""Derive the summaries of a snapshot as schema.sql describes them, independently of our code."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from statistics import median
from typing import Any, NamedTuple

from conftest import DAY
from snapshot.described_numbers import pack_numbers
from srvstat.snapshot.format.digest import digest_row

SUMMARY_KEYS = {
    "summary_index": "server",
    "summaries": "server_block",
    "interval_counts": "server_block",
    "intervals": "server_band",
}

_Rows = list[tuple[Any, ...]]


class _Interval(NamedTuple):
    end: int
    length: int
    players: int


class _Bands(NamedTuple):
    starts: Sequence[int]
    first_stored: int
    end_stored: int
    longest_usual: int

    def is_known(self, band: int) -> bool:
        """Check that a band without a row has no intervals but its least."""
        start, end = [*self.starts, 2**64][band : band + 2]
        return self.first_stored <= start < self.end_stored or end == start + 1


def describe_summaries(
    key: int, pairs: Sequence[tuple[int, int]], epoch: int, found: dict[str, _Rows]
) -> tuple[int | None, int | None, bytes]:
    """Add the rows of a server, and return its last columns of `servers`.

    Its first observations, as many as `epoch`, determine the bands of its intervals.
    """
    intervals = [
        _Interval(later, later - earlier, players)
        for (earlier, players), (later, _) in pairwise(pairs)
    ]
    lengths = [each.length for each in intervals]
    if not lengths:
        return None, None, b""
    usual = median(map(Fraction, lengths))
    covered = sum(min(Fraction(2 * each), 6 * usual) for each in lengths)
    if len(pairs) < 64:
        return int(2 * usual), int(covered), b""
    days = [list(of_day) for _, of_day in groupby(pairs, key=lambda pair: _find_day(pair[0]))]
    blocks = [days[at : at + 64] for at in range(0, len(days), 64)]
    first_days = {_find_day(at) for at, _ in pairs[:epoch]}
    bands = describe_interval_bands(lengths[: epoch - 1], len(first_days))
    rows = [
        _describe_block(key * 10_000 + number, block, intervals, bands.longest_usual)
        for number, block in enumerate(blocks)
    ]
    counts = _describe_counts(key, blocks, intervals, bands.starts)
    members = _describe_members(key, lengths, bands)
    edges = [_find_day(day[0][0]) for block in blocks for day in (block[0], block[-1])]
    of_bands = {band: b"\xff" * 16 for band in range(len(bands.starts)) if not bands.is_known(band)}
    of_bands |= {band: digest_row("intervals", row) for band, row in members.items()}
    index = (
        key,
        pack_numbers(edges),
        b"".join(digest_row("summaries", row) for row in rows),
        b"".join(digest_row("interval_counts", row) for row in counts),
        len(bands.starts),
        pack_numbers(bands.starts),
        describe_digests(of_bands),
        bands.longest_usual,
    )
    found["summary_index"].append(index)
    found["summaries"] += rows
    found["interval_counts"] += counts
    found["intervals"] += members.values()
    return int(2 * usual), int(covered), digest_row("summary_index", index)


def _find_day(instant: int) -> int:
    """Return the number of the UTC day at whose start a summary day ends."""
    return (instant + DAY - 1) // DAY


def _describe_block(
    key: int,
    days: Sequence[Sequence[tuple[int, int]]],
    intervals: Sequence[_Interval],
    longest_usual: int,
) -> tuple[Any, ...]:
    numbers = [_find_day(day[0][0]) for day in days]
    values = [[players for _, players in day] for day in days]
    times = [
        [at - (number - 1) * DAY for at, _ in day]
        for number, day in zip(numbers, days, strict=True)
    ]
    pairs = [list(zip(at, players, strict=True)) for at, players in zip(times, values, strict=True)]
    peaks = [_find_times(each, max(players)) for each, players in zip(pairs, values, strict=True)]
    lowests = [_find_times(each, min(players)) for each, players in zip(pairs, values, strict=True)]
    weighted = [
        sum(each.length * each.players for each in intervals if _find_day(each.end) == number)
        for number in numbers
    ]
    long = [
        each for each in intervals if each.length > longest_usual and _find_day(each.end) in numbers
    ]
    columns = [
        numbers,
        list(map(len, values)),
        list(map(sum, values)),
        [each[0] for each in values],
        [each[-1] for each in values],
        list(map(max, values)),
        list(map(min, values)),
        [each[0] for each in times],
        [each[-1] for each in times],
        [each[0] for each in peaks],
        [each[-1] for each in peaks],
        [each[0] for each in lowests],
        [each[-1] for each in lowests],
        weighted,
    ]
    return (
        *(key, len(days)),
        *map(_pack_wide, columns),
        len(long),
        pack_numbers([each.end - (numbers[0] - 1) * DAY for each in long]),
        pack_numbers([each.length for each in long]),
        pack_numbers([each.players for each in long]),
    )


def _find_times(pairs: Sequence[tuple[int, int]], value: int) -> list[int]:
    return [at for at, players in pairs if players == value]


def _pack_wide(numbers: Sequence[int]) -> bytes:
    if max(numbers) < 2**64:
        return pack_numbers(numbers)
    return b"".join(number.to_bytes(16, "little") for number in numbers)


def describe_interval_bands(lengths: Sequence[int], days: int) -> _Bands:
    """Return the bands of intervals of a server whose epoch has a number of days."""
    wanted = sorted([2, len(lengths) // days // 4, 16])[1]
    sample = sorted(lengths[:: len(lengths) // 2_048 + 1])
    size = len(sample)
    middle = [sample[size * (3 * wanted + 2 * at) // (8 * wanted)] for at in range(wanted + 1)]
    frequent = {
        value
        for value in set(sample)
        if sample.count(value) * 2 * wanted >= size or middle.count(value) > 1
    }
    starts = {0, *middle, 2 * middle[-1], *frequent, *(value + 1 for value in frequent)}
    return _Bands(sorted(starts), middle[0], middle[-1], 5 * sample[size // 2] // 2)


def describe_digests(digests: Mapping[int, bytes]) -> bytes:
    """Return the numbers of bands, ascending, and then their digests."""
    pairs = sorted(digests.items())
    numbers = b"".join(band.to_bytes(4, "little") for band, _ in pairs)
    return numbers + b"".join(digest for _, digest in pairs)


def _describe_counts(
    key: int,
    blocks: Sequence[Sequence[Sequence[tuple[int, int]]]],
    intervals: Sequence[_Interval],
    starts: Sequence[int],
) -> _Rows:
    """Count the intervals below the end of each band that end up to each day."""
    limits = [*starts[1:], 2**64]
    rows: _Rows = []
    before = [0] * len(starts)
    for number, block in enumerate(blocks):
        ends = [_find_day(day[0][0]) * DAY for day in block]
        up_to = [
            [sum(each.length < limit and each.end <= end for each in intervals) for end in ends]
            for limit in limits
        ]
        counts = [
            count - was for was, of_band in zip(before, up_to, strict=True) for count in of_band
        ]
        rows.append((key * 10_000 + number, pack_numbers(before), pack_numbers(counts)))
        before = [of_band[-1] for of_band in up_to]
    return rows


def _describe_members(
    key: int, lengths: Sequence[int], bands: _Bands
) -> dict[int, tuple[Any, ...]]:
    rows = {}
    for band, (start, end) in enumerate(pairwise(bands.starts)):
        if bands.first_stored <= start < bands.end_stored:
            members = [length - start for length in lengths if start <= length < end]
            if any(members):
                rows[band] = (key * 1_000_000 + band, len(members), pack_numbers(members))
    return rows
